//! The rate of false positives, compared with the formula and with the entries.

use super::*;
use crate::clock::Moments;
use crate::engine::Engine;
use crate::family::Budget;
use crate::shape::quotient::choose;

#[test]
fn fresh_keys_are_reported_as_often_as_entries_and_formula_predict() {
    const WINDOW: u64 = 150_000;
    const TRIALS: u64 = 1 << 20;
    for (format, load) in [((5, 3), 0.93), ((7, 3), 0.93), ((6, 4), 0.92), ((9, 4), 0.91), ((8, 8), 0.85)] {
        let shape = loaded(format, WINDOW, load);
        let window = Window::Count { insertions: WINDOW };
        let mut filter = engine(shape, window, Instructions::best());
        filter.insert(&(0..2 * WINDOW).map(mix).collect::<Vec<_>>(), Moments::Untimed).unwrap();
        let (mut reported, mut now) = (0, 0.0);
        for phase in 0..4 {
            let more: Vec<u64> = (0..WINDOW / 4).map(|i| mix(1 << 40 | phase << 30 | i)).collect();
            filter.insert(&more, Moments::Untimed).unwrap();
            let fresh: Vec<u64> = (0..TRIALS / 4).map(|i| mix(1 << 50 | phase << 30 | i)).collect();
            let mut present = vec![false; fresh.len()];
            filter.query(&fresh, Moments::Untimed, &mut present).unwrap();
            reported += present.iter().filter(|&&present| present).count();
            now += filter.false_positive_rate() / 4.0;
        }
        let (measured, theory) =
            (reported as f64 / TRIALS as f64, shape.false_positive_rate(shape.keys_per_epoch(window)));
        println!("{shape:?}: measured {measured:.3e}, by the entries {now:.3e}, in theory {theory:.3e}");
        assert!((measured - now).abs() <= 5.0 * (now / TRIALS as f64).sqrt(), "{measured} is not {now}");
        // Different keys may share an entry, with the chance of the rate itself. Those of the window are half of that.
        assert!(now <= theory && now >= theory * (0.97 - theory), "{now} is not {theory}");
    }
}

/// A plan holds for good: window after window, whatever has moved, no page has rejected a key.
#[test]
fn a_planned_filter_keeps_its_rate_for_twenty_windows() {
    const WINDOW: u64 = 300_000;
    let window = Window::Count { insertions: WINDOW };
    for fpr in [1e-3, 1e-4, 1e-5] {
        let shape = choose(window, Budget::Rate(fpr), None, None, None, false).unwrap();
        let mut filter = engine(shape, window, Instructions::best());
        for round in 0..20 {
            let keys: Vec<u64> = (0..WINDOW).map(|i| mix(round * WINDOW + i)).collect();
            filter.insert(&keys, Moments::Untimed).unwrap();
            let now = filter.false_positive_rate();
            assert!(now <= fpr, "{fpr}: {now} after {} windows, {shape:?}", round + 1);
        }
    }
}
