//! Rates and choices of slices, against every way that keys can fall.

use lately::family::slice_sizes::*;

/// Compares with every way that keys can fall into small slices, each equally likely.
#[test]
fn rate_and_accesses_are_those_of_all_ways_to_fall() {
    for (k, cells, keys) in [(1, 2, 3), (2, 3, 2), (3, 2, 2), (2, 2, 4)] {
        let slices = Slices::new(k, cells).unwrap();
        // One slice: the shares of ways in which the fresh key's cell, number 0, is taken.
        let ways = cells.pow(keys);
        let taken = (0..ways).filter(|way| (0..keys).any(|i| way / cells.pow(i) % cells == 0)).count();
        let fill = taken as f64 / ways as f64;
        assert!((slices.false_positive_rate(keys.into()) - fill.powi(k as i32)).abs() < 1e-15);

        let (mut absent, mut read) = (0.0, 0.0);
        for free in 0..(1u32 << k) - 1 {
            let chance: f64 = (0..k).map(|i| if free >> i & 1 == 1 { fill } else { 1.0 - fill }).product();
            absent += chance;
            read += chance * f64::from(free.trailing_ones() + 1);
        }
        assert!((slices.read_until_free(fill) - read / absent).abs() < 1e-12);
    }
}

#[test]
fn the_choices_are_those_that_trying_everything_gives() {
    for (keys, fpr) in [(1, 0.5), (7, 0.1), (100, 0.01)] {
        let holds = |s: &Slices| s.false_positive_rate(keys) <= fpr;
        let each: Vec<Slices> =
            (1..=40).filter_map(|k| (1..20_000).map(|cells| Slices { k, cells }).find(holds)).collect();
        let least = each.iter().map(Slices::total).min().unwrap();
        let best = each.iter().find(|s| 4 * s.total() <= 5 * least).unwrap();
        assert_eq!(Slices::for_rate(keys, fpr).unwrap(), *best);
    }
    for (keys, cells) in [(1, 1), (10, 7), (100, 1000), (1, 5000)] {
        let each: Vec<Slices> = (1..=cells.min(128)).map(|k| Slices { k: k as u32, cells: cells / k }).collect();
        let rate = |s: &Slices| s.false_positive_rate(keys);
        let least = each.iter().map(rate).fold(1.0, f64::min).max(HASH_COLLISION);
        assert_eq!(Slices::for_cells(keys, cells), *each.iter().find(|s| rate(s) <= 2.0 * least).unwrap());
    }
}

#[test]
fn a_rate_that_slices_cannot_have_is_named() {
    for fpr in [0.0, 1.0, f64::NAN] {
        assert!(Slices::for_rate(10, fpr).unwrap_err().to_string().contains("fpr must lie between 0 and 1"));
    }
    assert!(Slices::for_rate(1 << 62, 0.1).unwrap_err().to_string().contains("more than 2**60 cells"));
}
