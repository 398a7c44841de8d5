//! How likely a fresh key matches one segment that holds a number of distinct keys.

/// Expected share of set bits in a slice of `bits` bits after `keys` distinct keys, which is the chance that a fresh
/// key matches: 1 - (1 - 1/m)^n (paper 1, section 4.1, the exact form).
///
/// Written with `ln_1p` and `exp_m1`, so that neither a slice of 2^60 bits nor one of a single bit loses digits. The
/// paper's 1 - e^(-n/m) is low by a share of up to 1/(2m): 7 % for one key in 7 bits.
pub fn slice(bits: u64, keys: u64) -> f64 {
    if keys == 0 {
        return 0.0; // ln(1 - 1/1) is -inf, and 0 times that is not a number
    }
    -(keys as f64 * (-1.0 / bits as f64).ln_1p()).exp_m1()
}

/// Chance that a fresh key matches a blocked segment after `keys` distinct keys: `blocks` blocks of `block_bits` bits,
/// each in `parts` parts; a key picks one block and sets one bit in every part of it.
///
/// The mean over the load j of the fresh key's block of (1 - (1 - b/B)^j)^b, where j is Binomial(keys, 1/blocks): paper
/// 1, section 6. With many blocks this is the Poisson mixture of erratum APBBF-1, the one that reproduces Table 3.
/// Taking the mean load for every block is too low: 3.5 times at B = 64, b = 8 and the load that would half fill all
/// parts, 2 % at B = 512, b = 4. `parts` is a power of two.
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

/// A lower bound of [`blocks`] that costs one exponential: by Jensen's inequality the mean of x^b is at least the
/// b-th power of the mean part fill.
pub fn blocks_at_least(blocks: u64, block_bits: u32, parts: u32, keys: u64) -> f64 {
    let share = f64::from(parts) / f64::from(block_bits);
    all_parts(1.0 - mean_part_empty(blocks, share, keys), parts)
}

/// Expected share of zeros in the parts, over all blocks: each key sets a given bit with chance share/blocks.
fn mean_part_empty(blocks: u64, share: f64, keys: u64) -> f64 {
    (keys as f64 * (-share / blocks as f64).ln_1p()).exp()
}

/// All bits of a key are set in a block whose parts are filled to `part_fill`: its b-th power, b a power of two.
fn all_parts(part_fill: f64, parts: u32) -> f64 {
    (0..parts.trailing_zeros()).fold(part_fill, |power, _| power * power)
}

/// Chance that a fresh key has the same 64-bit hash as one of `keys` others, and so is reported whatever the cells are:
/// the floor under every rate.
pub fn same_hash(keys: u64) -> f64 {
    keys as f64 / 18_446_744_073_709_551_616.0
}

/// Chance that a fresh key is reported for its cells, with `rate`, or for a hash that is that of one of `keys` others.
pub fn or_same_hash(rate: f64, keys: u64) -> f64 {
    let same = same_hash(keys);
    same + (1.0 - same) * rate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_close(value: f64, exact: f64, relative: f64) {
        assert!((value / exact - 1.0).abs() < relative, "{value} is not {exact}");
    }

    #[test]
    fn slice_at_its_limits() {
        assert_eq!([slice(1, 0), slice(1, 1), slice(1, 9)], [0.0, 1.0, 1.0]);
        assert_close(slice(2, 3), 7.0 / 8.0, 1e-15);
        assert_close(slice(1 << 60, 1), 2.0_f64.powi(-60), 1e-15);
        assert_close(slice(1 << 60, 1 << 60), 1.0 - (-1.0_f64).exp(), 1e-15);
        assert_eq!(slice(64, u64::MAX), 1.0);
    }

    /// The b-th power multiplied out; each power of (1 - b/B)^j then has a closed mean. Exact but for cancellation.
    fn blocks_multiplied_out(blocks: u64, block_bits: u32, parts: u32, keys: u64) -> f64 {
        let empty = 1.0 - f64::from(parts) / f64::from(block_bits);
        let mut coefficient = 1.0;
        let mut sum = 0.0;
        for i in 0..=parts {
            let mean = (keys as f64 * (-(1.0 - empty.powi(i as i32)) / blocks as f64).ln_1p()).exp();
            sum += coefficient * mean;
            coefficient *= -f64::from(parts - i) / f64::from(i + 1);
        }
        sum
    }

    #[test]
    fn blocks_equal_the_closed_form() {
        for block_bits in [64, 128, 256, 512] {
            for parts in [1, 2, 4, 8] {
                for count in [1, 2, 3, 1000, 1 << 40] {
                    // From a twentieth of the load that half fills the parts to a hundred times it.
                    for load in
                        [0.05, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0].map(|x| x * f64::from(block_bits / parts) * 0.7)
                    {
                        let keys = (load * count as f64).ceil() as u64;
                        let (value, exact) = (
                            blocks(count, block_bits, parts, keys),
                            blocks_multiplied_out(count, block_bits, parts, keys),
                        );
                        assert!((value - exact).abs() < 1e-12, "{count} {block_bits} {parts} {keys}: {value} {exact}");
                        assert!(blocks_at_least(count, block_bits, parts, keys) < value * (1.0 + 1e-12));
                    }
                }
            }
        }
    }

    #[test]
    fn blocks_at_their_limits() {
        assert_eq!(blocks(1, 64, 8, 0), 0.0);
        assert_eq!(blocks(7, 64, 8, 0), 0.0);
        // One key: the fresh one must pick its block and each of its bits. No cancellation, however rare.
        for count in [1, 2, 1 << 50] {
            assert_close(blocks(count, 512, 8, 1), 64.0_f64.powi(-8) / count as f64, 1e-13);
        }
        // Two keys in one block: load 2 for certain.
        assert_close(blocks(1, 64, 2, 2), (1.0 - (31.0_f64 / 32.0).powi(2)).powi(2), 1e-13);
        assert_eq!(blocks(3, 512, 1, 1 << 50), 1.0);
        assert_eq!(blocks(1, 64, 8, u64::MAX), 1.0);
    }

    #[test]
    fn blocks_equal_a_simulation() {
        const TRIALS: u32 = 20_000;
        let (count, parts, part_bits, keys) = (8, 8, 8, 41);
        let mut state = 1_u64;
        let mut below = |n: u64| {
            // splitmix64
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let x = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            (x ^ (x >> 31)) % n
        };
        let mut hits = 0;
        for _ in 0..TRIALS {
            let mut block = vec![0_u64; count as usize];
            let mut key = || {
                (below(count) as usize, (0..parts).fold(0, |bits, p| bits | 1 << (p * part_bits + below(part_bits))))
            };
            for _ in 0..keys {
                let (which, bits) = key();
                block[which] |= bits;
            }
            let (which, bits) = key();
            hits += u32::from(block[which] & bits == bits);
        }
        let expected = blocks(count, 64, parts as u32, keys);
        let measured = f64::from(hits) / f64::from(TRIALS);
        let bound = 4.0 * (expected * (1.0 - expected) / f64::from(TRIALS)).sqrt(); // 1 in 16,000 seeds is outside
        assert!((measured - expected).abs() < bound, "{measured} {expected} {bound}");
        // The mean load in every block would not have passed.
        let at_mean_load = (1.0 - (7.0_f64 / 8.0).powf(keys as f64 / count as f64)).powi(8);
        assert!((measured - at_mean_load).abs() > bound, "{measured} {at_mean_load} {bound}");
    }
}
