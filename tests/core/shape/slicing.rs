//! Rates of a filter over several sites, whole and with sites that have failed.

use lately::shard::slicing::*;

fn rates(groups: u64, spread: u64, k: u32, failed: u64, density: f64, least: u32) -> (f64, f64) {
    Sites::new(groups, spread, k).unwrap().failure_rates(failed, density, least).unwrap()
}

#[track_caller]
fn assert_close(rates: (f64, f64), exact: (f64, f64)) {
    let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
    assert!(close(rates.0, exact.0) && close(rates.1, exact.1), "{rates:?} is not {exact:?}");
}

#[test]
fn the_rates_of_the_paper() {
    let (k, rho) = (5, 0.45_f64);
    for (sites, failed) in [(1, 0), (1, 1), (10, 3), (40, 8), (40, 40)] {
        let phi = failed as f64 / sites as f64;
        let whole = rho.powi(5);
        // Eq. 5, and its form when failed sites answer "distinct".
        assert_close(rates(sites, 1, k, failed, rho, 0), (phi + (1.0 - phi) * whole, 0.0));
        assert_close(rates(sites, 1, k, failed, rho, k), ((1.0 - phi) * whole, phi));
        // Eq. 6, and the latter with OIE-1.
        assert_close(rates(1, sites, k, failed, rho, 0), ((phi + (1.0 - phi) * rho).powi(5), 0.0));
        let distinct = (((1.0 - phi) * rho).powi(5), 1.0 - (1.0 - phi).powi(5));
        assert_close(rates(1, sites, k, failed, rho, k), distinct);
    }
}

#[test]
fn few_cells_are_enough_for_the_heuristic() {
    // 8 of 40 sites failed, k = 8, half full: at x = 3 or 4 both rates are small (section 7, figure 5(d), OIE-2).
    let at = |x| rates(1, 40, 8, 8, 0.5, x);
    assert!((0.014..0.016).contains(&at(4).0) && at(4).1 < 0.011, "{:?}", at(4));
    assert!(at(8).1 > 0.8 && (0..8).all(|x| at(x).0 >= at(x + 1).0 && at(x).1 <= at(x + 1).1));
}

#[test]
fn the_fault_tolerance_of_the_paper() {
    // Section 3.2: most .15, f = 4: vertical fewer than 20 slices, horizontal more than 30.
    let (k, density) = (4, 0.02_f64.powf(0.25));
    let bound = Bound::FalsePositives(0.15);
    let horizontal = least_sites(|s| Sites::new(s, 1, k), 4, density, 0, bound).unwrap();
    let vertical = least_sites(|s| Sites::new(1, s, k), 4, density, 0, bound).unwrap();
    let root = 0.15_f64.powf(0.25);
    assert_eq!(horizontal, (4.0 * 0.98 / 0.13_f64).ceil() as u64);
    assert_eq!(vertical, (4.0 * (1.0 - density) / (root - density)).ceil() as u64);
    assert!(horizontal > 30 && vertical < 20);
    assert!(least_sites(|s| Sites::new(1, s, k), 4, 0.9, 0, bound).is_err());
    let missed = least_sites(|s| Sites::new(1, s, k), 1, density, k, Bound::FalseNegatives(0.01)).unwrap();
    assert_eq!(missed, (1.0 / (1.0 - 0.99_f64.powf(0.25))).ceil() as u64);
}

/// Returns the sites that are read for a key, in the mean of all ways in which its cells lie at sites and are set.
fn by_enumeration(spread: u64, k: u32, pipelined: bool, density: f64, duplicates: f64) -> f64 {
    let mut read = 0.0;
    for (ways, set) in (0..spread.pow(k)).flat_map(|ways| (0..1u32 << k).map(move |set| (ways, set))) {
        let sites: Vec<u64> = (0..k).map(|cell| ways / spread.pow(cell) % spread).collect();
        let is_set = |cell: usize| set >> cell & 1 == 1;
        let ones = set.count_ones() as i32;
        let all = f64::from(u8::from(set == (1 << k) - 1));
        let at_random = density.powi(ones) * (1.0 - density).powi(k as i32 - ones);
        let weight = duplicates * all + (1.0 - duplicates) * at_random;
        let weight = weight / spread.pow(k) as f64;
        let mut going = true;
        for (cell, site) in sites.iter().enumerate().filter(|&(cell, site)| !sites[..cell].contains(site)) {
            read += if going || !pipelined { weight } else { 0.0 };
            // The site that is read tests all of the key's cells that it has.
            going &= (cell..k as usize).all(|other| sites[other] != *site || is_set(other));
        }
    }
    read
}

#[test]
fn messages_are_those_of_all_ways_in_which_cells_lie() {
    for (spread, k) in [(1, 4), (2, 5), (3, 4), (7, 3), (5, 1)] {
        for pipelined in [false, true] {
            let exact = by_enumeration(spread, k, pipelined, 0.7, 0.3);
            let stated = Sites::new(3, spread, k).unwrap().messages(pipelined, 0.7, 0.3).unwrap();
            assert!((stated - exact).abs() < 1e-9, "{spread} {k} {pipelined}: {stated} is not {exact}");
        }
    }
}

#[test]
fn messages_at_the_limits() {
    let queried = |spread, pipelined, density, duplicates| {
        Sites::new(3, spread, 4).unwrap().messages(pipelined, density, duplicates).unwrap()
    };
    assert_eq!(queried(1, true, 0.5, 0.2), 1.0);
    assert!((queried(10, true, 0.0, 0.0) - 1.0).abs() < 1e-12);
    assert!((queried(10, true, 0.7, 1.0) - queried(10, false, 0.7, 0.0)).abs() < 1e-12);
    assert!((queried(100_000, true, 0.5, 0.0) - 1.875).abs() < 1e-4);
    let all = Sites::new(1, 10, 4).unwrap().messages(false, 0.0, 0.0).unwrap();
    assert!((all - 10.0 * (1.0 - 0.9_f64.powi(4))).abs() < 1e-12);
}

#[test]
fn one_group_is_the_filter_and_many_are_worse() {
    let rate = |groups| Sites::new(groups, 1, 4).unwrap().false_positive_rate(1000, 8000).unwrap();
    assert!((rate(1) / lately::family::bloom::shape::array_rate(4, 8000, 1000) - 1.0).abs() < 1e-12);
    let rates = [1, 2, 10, 40].map(rate);
    assert!(rates.is_sorted(), "{rates:?}");
    assert_eq!(Sites::new(5, 1, 4).unwrap().false_positive_rate(0, 8000).unwrap(), 0.0);
}

#[test]
fn no_slice_gets_more_than_its_capacity() {
    assert_eq!(capacity(1000, 1).unwrap(), 1000);
    assert_eq!(capacity(0, 5).unwrap(), 0);
    // Two slices of n keys: one gets n with chance 2 / 2^n, and n - 1 or more with 2 (n + 1) / 2^n.
    assert_eq!([10, 11, 14, 15].map(|keys| capacity(keys, 2).unwrap()), [10, 10, 13, 13]);
    let many = capacity(1 << 40, 1 << 10).unwrap() as f64;
    let deviations = (many - (1u64 << 30) as f64) / (1u64 << 30) as f64 * f64::from(1 << 15);
    assert!((4.5..5.5).contains(&deviations), "{deviations}");
}

#[test]
fn impossible_arguments_are_named() {
    for (error, word) in [
        (Sites::new(0, 1, 1).unwrap_err(), "sites"),
        (Sites::new(1 << 10, (1 << 10) + 1, 1).unwrap_err(), "sites"),
        (Sites::new(1, 1, 129).unwrap_err(), "k must"),
        (Sites::new(2, 2, 2).unwrap().failure_rates(5, 0.5, 0).unwrap_err(), "failed"),
        (Sites::new(2, 2, 2).unwrap().failure_rates(1, f64::NAN, 0).unwrap_err(), "density"),
        (Sites::new(2, 2, 2).unwrap().failure_rates(1, 0.5, 3).unwrap_err(), "least"),
        (Sites::new(2, 2, 2).unwrap().false_positive_rate(1, 1).unwrap_err(), "cells"),
        (Sites::new(2, 2, 2).unwrap().false_positive_rate(1 << 41, 300).unwrap_err(), "keys"),
        (Sites::new(2, 2, 2).unwrap().messages(true, 0.5, 1.1).unwrap_err(), "duplicates"),
        (capacity(5, 0).unwrap_err(), "slices"),
    ] {
        assert!(error.to_string().contains(word), "{error}");
    }
}
