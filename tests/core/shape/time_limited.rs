//! Slices of time-limited filters, whatever the rate does.

use std::f64::consts::LN_2;

use lately::family::fill;
use lately::family::time_limited::shape::*;

#[test]
fn a_slice_at_capacity_is_half_full_and_no_fuller() {
    for bits in [512, 576, 1000, 1 << 20, 1 << 40] {
        let c = capacity(bits);
        assert!(fill::slice(bits, c) <= 0.5 + 1e-12 && fill::slice(bits, c + 1) > 0.5, "{bits} {c}");
    }
    for keys in [1, 354, 355, 356, 1000, 123_457, 1 << 40] {
        let m = bits(keys);
        assert!(capacity(m) >= keys && m.is_multiple_of(64) && m >= MIN_BITS, "{keys} {m}");
        // Of the next smaller size, but one bit less: the next word begins where that bit is needed.
        assert!(m == MIN_BITS || capacity(m - 65) < keys, "{keys} {m}");
        // Equation 8 as printed is half a bit too few, before whole words.
        assert!((m as f64 - keys as f64 / LN_2) < 65.5 || m == MIN_BITS);
    }
    assert_eq!(bits(u64::MAX), MAX_BITS);
}

/// Returns a number below `n`, from a linear congruential generator.
fn below(random: &mut u64, n: u64) -> u64 {
    *random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
    ((u128::from(*random) * u128::from(n)) >> 64) as u64
}

/// Slices have any size: every rate passes, and each slice is checked before each shift.
#[test]
fn no_slice_of_any_size_takes_more_than_its_share() {
    let mut random = 1;
    for k in [1, 2, 5, 10, 40] {
        let shape = TimeLimitedShape::new(k as u32, 5, MIN_BITS).unwrap();
        let first = Load { capacity: capacity(MIN_BITS), count: 0 };
        let mut filling = vec![first; k];
        for _ in 0..2000 {
            let g = generation(&filling);
            // Time often ends the generation early.
            let keys = if below(&mut random, 2) == 0 { g } else { 1 + below(&mut random, g) };
            filling.iter_mut().for_each(|load| load.count += keys);
            for (i, load) in filling.iter().enumerate() {
                assert!(load.count <= load.capacity, "{k} {i} {load:?}");
                let fill = -(-LN_2 * load.count as f64 / load.capacity as f64).exp_m1();
                assert!(fill <= shape.fills()[i] + 1e-12, "{k} {i} {load:?}");
                // TLBF-2: room for a key in each generation to come.
                assert!(load.left() >= (k - 1 - i) as u64, "{k} {i} {load:?}");
            }
            filling.pop();
            let target = [10, 1000, 100_000][below(&mut random, 3) as usize];
            let c = new_capacity(&filling, 1 + below(&mut random, target));
            filling.insert(0, Load { capacity: capacity(bits(c)), count: 0 });
        }
    }
}

/// Equation 7 is compared with the shifts themselves: each generation is as long as the older slices and the target
/// allow.
#[test]
fn the_new_slice_is_large_enough_for_its_keys() {
    let mut random = 7;
    for round in 0..3000 {
        let k = 1 + below(&mut random, 12);
        let older: Vec<Load> = (1..k)
            .map(|j| {
                let count = below(&mut random, 500);
                Load { capacity: count + (k - j) * (1 + below(&mut random, 60)) + below(&mut random, k), count }
            })
            .collect();
        let target = 1 + below(&mut random, 100);
        let mut taken = 0;
        for shift in 0..k {
            let still = older.iter().take((k - 1 - shift) as usize);
            let share = still.zip(1..).map(|(load, j)| (load.left() - taken).div_ceil(k - shift - j));
            taken += share.min().unwrap_or(u64::MAX).min(target);
        }
        // The walk plans whole shares where shares that do not divide are a key longer at first.
        let planned = new_capacity(&older, target);
        assert!(planned.abs_diff(taken) <= k, "{round}: {older:?} {target}: {planned} {taken}");
    }
    let full = |left| Load { capacity: left, count: 0 };
    assert_eq!(new_capacity(&[], 9), 9);
    assert_eq!(new_capacity(&[full(20), full(10)], 10), 30, "a steady rate");
    assert_eq!(new_capacity(&[full(20), full(10)], 50), 70, "10 and 10 as the older allow, then 50");
    assert_eq!(new_capacity(&[full(20), full(10)], 3), 9);
    assert_eq!(new_capacity(&[full(u64::MAX)], u64::MAX), u64::MAX, "no overflow");
}

#[test]
fn the_target_is_the_rate_times_the_generation() {
    assert_eq!(target(100, 50, 200, 1000), 400);
    assert_eq!(target(100, 300, 200, 1000), 67);
    assert_eq!(target(100, 0, 200, 1000), 1000, "no time has passed: what the filter holds");
    assert_eq!([target(0, 5, 200, 1000), target(5, u64::MAX, 1, 1000)], [1, 1]);
    assert_eq!(target(u64::MAX, 1, 1 << 62, u64::MAX), u64::MAX);
}

/// Table 2 of the paper, from the five (k, l) of paper 1, Table 2, for each rate; erratum TLBF-5.
#[test]
fn table_2() {
    for (shapes, least, most) in [
        ([(4, 3), (5, 7), (6, 14), (7, 28), (8, 56)], 10, 13),
        ([(7, 5), (8, 8), (9, 14), (10, 25), (11, 46)], 19, 24),
        ([(10, 7), (11, 9), (12, 14), (13, 23), (14, 40)], 26, 35),
        ([(14, 11), (15, 15), (16, 22), (17, 36), (18, 63)], 32, 45),
        ([(17, 13), (18, 16), (19, 22), (20, 33), (21, 54)], 41, 56),
    ] {
        let all = shapes.map(|(k, l)| TimeLimitedShape::new(k, l, MIN_BITS).unwrap().bits_per_key());
        let ends = |pick: fn(f64, f64) -> f64, none| all.iter().flatten().copied().fold(none, pick).floor() as u32;
        assert_eq!((ends(f64::min, f64::INFINITY), ends(f64::max, 0.0)), (least, most));
    }
}
