//! The chance that a fresh key matches a segment, compared with enumeration, the closed form and a simulation.

use lately::family::fill::*;

#[track_caller]
fn assert_close(value: f64, exact: f64, relative: f64) {
    assert!((value / exact - 1.0).abs() < relative, "{value} is not {exact}");
}

#[test]
fn the_fill_of_a_slice_is_exact_at_its_limits() {
    assert_eq!([slice(1, 0), slice(1, 1), slice(1, 9)], [0.0, 1.0, 1.0]);
    assert_close(slice(2, 3), 7.0 / 8.0, 1e-15);
    assert_close(slice(1 << 60, 1), 2.0_f64.powi(-60), 1e-15);
    assert_close(slice(1 << 60, 1 << 60), 1.0 - (-1.0_f64).exp(), 1e-15);
    assert_eq!(slice(64, u64::MAX), 1.0);
}

/// Returns the b-th power multiplied out; each power of (1 - b/B)^j then has a closed mean. Exact but for cancellation.
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
                for load in [0.05, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0].map(|x| x * f64::from(block_bits / parts) * 0.7) {
                    let keys = (load * count as f64).ceil() as u64;
                    let (value, exact) =
                        (blocks(count, block_bits, parts, keys), blocks_multiplied_out(count, block_bits, parts, keys));
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
    // One key: the fresh one must choose its block and each of its bits. No cancellation, however rare.
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
        let mut key =
            || (below(count) as usize, (0..parts).fold(0, |bits, p| bits | 1 << (p * part_bits + below(part_bits))));
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
