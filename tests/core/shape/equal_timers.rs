//! The equal-timers heuristic, compared with all outcomes.

use lately::family::timing::equal_timers::*;

/// Returns the chance that at least `equal` of `k` independent draws are alike, by trying all of them.
fn some_equal(k: u32, equal: usize, chances: &[f64]) -> f64 {
    let outcomes = chances.len().pow(k);
    let rate = |mut outcome: usize| {
        let mut counts = vec![0; chances.len()];
        let mut chance = 1.0;
        for _ in 0..k {
            counts[outcome % chances.len()] += 1;
            chance *= chances[outcome % chances.len()];
            outcome /= chances.len();
        }
        if counts.into_iter().any(|count| count >= equal) { chance } else { 0.0 }
    };
    (0..outcomes).map(rate).sum()
}

#[test]
fn rates_are_those_of_all_outcomes() {
    for (k, timers, generations, keys) in [(2, 30, 4, 5.0), (3, 10, 5, 4.0), (5, 8, 3, 2.5), (4, 1000, 6, 10.0)] {
        for equal in 2..=k {
            let rates = rates(k, equal, timers, generations, keys);
            let missed = |j: u32| (1.0 - 1.0 / timers as f64).powf(f64::from(j) * keys);
            let found = |j| missed(j) - missed(j + 1);
            let fresh: Vec<f64> = (0..generations).map(found).collect();
            let exact = some_equal(k, equal as usize, &fresh);
            assert!((rates.false_positive / exact - 1.0).abs() < 1e-10, "{k} {equal}: {rates:?} {exact}");
            for (age, rate) in (0..).zip(&rates.false_negative) {
                let own: Vec<f64> = (0..age).map(found).chain([missed(age)]).collect();
                let exact = 1.0 - some_equal(k, equal as usize, &own);
                assert!((rate - exact).abs() < 1e-12, "{k} {equal} {age}: {rate} {exact}");
            }
        }
    }
}

#[test]
fn all_equal_needs_one_generation_for_all() {
    let rates = rates(7, 7, 500, 20, 30.0);
    let missed = |j: i32| (1.0 - 1.0_f64 / 500.0).powi(30 * j);
    let exact: f64 = (0..20).map(|j| (missed(j) - missed(j + 1)).powi(7)).sum();
    assert!((rates.false_positive / exact - 1.0).abs() < 1e-12);
    assert_eq!(rates.false_negative[0], 0.0);
}
