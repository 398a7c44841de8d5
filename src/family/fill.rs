//! The fill of a segment that contains a number of distinct keys, and the chance that a fresh key matches it.

/// Returns the expected share of set bits in a slice of `bits` bits after `keys` distinct keys, which is the chance
/// that a fresh key matches: 1 - (1 - 1/m)^n (paper 1, section 4.1, the exact form).
///
/// Written with `ln_1p` and `exp_m1`, so that neither a slice of 2^60 bits nor one of a single bit loses digits. The
/// paper's 1 - e^(-n/m) is low by a share of up to 1/(2m): 7 % for one key in 7 bits.
pub fn slice(bits: u64, keys: u64) -> f64 {
    if keys == 0 {
        return 0.0; // ln(1 - 1/1) is -inf, and 0 times that is not a number
    }
    -(keys as f64 * (-1.0 / bits as f64).ln_1p()).exp_m1()
}

/// Returns 1 - (1 - p)(1 - q)...: the chance that one at least of several parts reports a key that none contains.
pub fn any(rates: impl Iterator<Item = f64>) -> f64 {
    -rates.map(|rate| (-rate).ln_1p()).sum::<f64>().exp_m1()
}

/// Returns the chance that a fresh key matches a blocked segment after `keys` distinct keys: `blocks` blocks of
/// `block_bits` bits, each in `parts` parts; a key chooses one block and sets one bit in every part of it.
///
/// It is the mean over the load j of the fresh key's block of (1 - (1 - b/B)^j)^b, where j is Binomial(keys, 1/blocks):
/// paper 1, section 6. With many blocks this is the Poisson mixture of erratum APBBF-1, the one that reproduces Table
/// 3. The mean load for every block would give too low a rate: 3.5 times at B = 64, b = 8 and the load that would half
/// fill all parts, 2 % at B = 512, b = 4. `parts` is a power of two.
///
/// The weights start at 1 well below the mean load, follow the ratio of neighbouring binomial terms upwards and are
/// divided by their sum: nothing underflows however large the load, and all terms are positive (multiplying out the
/// b-th power gives a closed form, but an alternating one). At most some 3000 terms, about 120 at the fills a filter
/// is planned for, in 0.3 us; relative error about 1e-13.
pub fn blocks(blocks: u64, block_bits: u32, parts: u32, keys: u64) -> f64 {
    let share = f64::from(parts) / f64::from(block_bits); // of a part, set by one key
    if keys == 0 {
        return 0.0;
    }
    if f64::from(parts) * mean_part_empty(blocks, share, keys) < f64::EPSILON / 4.0 {
        return 1.0; // rounds to it; and bounds the loads below: mean * share < 40
    }
    if blocks == 1 {
        return all_parts(-(keys as f64 * (-share).ln_1p()).exp_m1(), parts);
    }
    let (n, odds) = (keys as f64, 1.0 / (blocks - 1) as f64);
    let mean = n / blocks as f64;
    // Chernoff: loads more than t below the mean have weight below exp(-t^2 / (2 mean)), here e^-45 = 3e-20.
    let mut load = (mean - (90.0 * mean).sqrt()).floor().max(0.0);
    let mut part_empty = (load * (-share).ln_1p()).exp();
    let (mut weight, mut total, mut matching) = (1.0, 0.0, 0.0);
    // Above the mean the weights fall, and no load can match with a chance above 1: stop when they no longer count.
    while load <= mean || weight > 1e-20 * matching {
        total += weight;
        matching += weight * all_parts(1.0 - part_empty, parts);
        weight *= (n - load) / (load + 1.0) * odds;
        part_empty *= 1.0 - share;
        load += 1.0;
    }
    matching / total
}

/// Returns a lower bound of [`blocks`] that costs one exponential: by Jensen's inequality the mean of x^b is at least
/// the b-th power of the mean part fill.
pub fn blocks_at_least(blocks: u64, block_bits: u32, parts: u32, keys: u64) -> f64 {
    let share = f64::from(parts) / f64::from(block_bits);
    all_parts(1.0 - mean_part_empty(blocks, share, keys), parts)
}

/// Returns the expected share of zeros in the parts, over all blocks: each key sets a given bit with chance
/// share/blocks.
fn mean_part_empty(blocks: u64, share: f64, keys: u64) -> f64 {
    (keys as f64 * (-share / blocks as f64).ln_1p()).exp()
}

/// Returns the chance that all bits of a key are set in a block whose parts are filled to `part_fill`: its b-th power,
/// b a power of two.
fn all_parts(part_fill: f64, parts: u32) -> f64 {
    (0..parts.trailing_zeros()).fold(part_fill, |power, _| power * power)
}

/// Returns the chance that a fresh key has the same 64-bit hash as one of `keys` others, and so is reported whatever
/// the cells are: the lower limit of every rate.
pub fn same_hash(keys: u64) -> f64 {
    keys as f64 / 18_446_744_073_709_551_616.0
}

/// Returns the chance that a fresh key is reported: for its cells, by `rate`, or for having the hash of one of `keys`.
pub fn or_same_hash(rate: f64, keys: u64) -> f64 {
    let same = same_hash(keys);
    same + (1.0 - same) * rate
}
