//! The limit of a part of a growing timing filter, and what the parts cost.

use lately::clock::Window;
use lately::family::Budget;
use lately::family::Shape as _;
use lately::family::fill::any;
use lately::family::request::Grow;
use lately::family::timing::growing::*;
use lately::family::timing::shape::{TimingShape, choose};

const WINDOW: Window = Window::Time { span: 600, lateness: 0, capacity: 1000 };

#[test]
fn a_full_part_has_the_rate_of_the_plan() {
    for (fpr, slack) in [(0.1, None), (0.01, None), (0.01, Some(60)), (1e-9, None)] {
        let shape = choose(WINDOW, Budget::Rate(fpr), slack).unwrap();
        let planned = shape.fpr(WINDOW);
        let rate = |grow| Limit::planned(grow, shape, WINDOW).false_positive_rate(shape);
        assert_eq!(rate(Grow::Cardinality), planned);
        // Rounded down to a whole timer.
        let timers = f64::from(shape.k) * shape.slice_timers() as f64;
        let below = 1.0 - f64::from(shape.k) / (shape.fill(1000) * timers);
        assert!(rate(Grow::Density) <= planned && rate(Grow::Density) >= below * planned, "{fpr}");
    }
}

#[test]
fn the_rates_of_parts_add_up_as_in_oie_10() {
    for (parts, total) in [(1, 0.05), (2, 0.0975), (6, 0.264_908_109_375)] {
        assert!((any(std::iter::repeat_n(0.05, parts)) - total).abs() < 1e-15);
    }
    assert_eq!((any([0.0, 0.0].into_iter()), any([1.0, 0.3].into_iter())), (0.0, 1.0));
    assert!((any([1e-20].into_iter()) / 1e-20 - 1.0).abs() < 1e-15, "no digits are lost");
    assert_eq!(any(std::iter::empty()), 0.0);
}

#[test]
fn shapes_that_cannot_grow_are_rejected() {
    let shape = TimingShape::new(3, 4, 5, 160, 1).unwrap();
    let equal = TimingShape { equal_timers: 2, ..shape };
    let keys = Limit::Keys(5);
    for (limit, shape, window, words) in [
        (keys, shape, Window::Count { insertions: 5 }, "grow is for windows of time"),
        (keys, equal, WINDOW, "grow takes equal_timers=1, got 2"),
        (Limit::Keys(0), shape, WINDOW, "part_keys must lie in 1..=2**62, got 0"),
        (Limit::Keys(u64::MAX), shape, WINDOW, "part_keys"),
        (Limit::Timers(2), shape, WINDOW, "part_timers must lie in k..=k * slice_timers, here 3..=480, got 2"),
        (Limit::Timers(481), shape, WINDOW, "part_timers"),
    ] {
        let error = limit.check(shape, window).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(Limit::Timers(480).check(shape, WINDOW).unwrap().most(), 480);
}
