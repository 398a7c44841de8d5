//! Rates and choices of a SWAMP.

use lately::clock::Window;
use lately::family::swamp::shape::*;
use lately::family::{Budget, Shape as _, fill};

fn count(insertions: u64) -> Window {
    Window::Count { insertions }
}

/// Compares with all ways in which `window` different keys and a fresh one can get their fingerprints.
#[test]
fn the_rate_equals_the_share_of_all_assignments() {
    for (fingerprints, window) in [(2u64, 1u32), (2, 5), (3, 4), (5, 5), (7, 3)] {
        let all = fingerprints.pow(window);
        let missed =
            |assignment: u64| (0..window).all(|i| !(assignment / fingerprints.pow(i)).is_multiple_of(fingerprints));
        let share = 1.0 - (0..all).filter(|&assignment| missed(assignment)).count() as f64 / all as f64;
        assert!((fill::slice(fingerprints, window.into()) - share).abs() < 1e-14);
    }
    let shape = SwampShape::new(128, 3).unwrap();
    assert_eq!(shape.false_positive_rate(100), fill::slice(1024, 100));
}

#[test]
fn distinct_inverts_the_expected_number_of_fingerprints() {
    let shape = SwampShape::new(1024, 2).unwrap();
    for keys in [1u64, 10, 900] {
        let expected = shape.fingerprints() as f64 * fill::slice(shape.fingerprints(), keys);
        let (low, high) = (shape.distinct(expected as u64, 1000), shape.distinct(expected as u64 + 1, 1000));
        assert!(low <= keys as f64 + 1e-9 && keys as f64 <= high, "{low} {keys} {high}");
    }
    assert_eq!(shape.distinct(0, 1000), 0.0);
    assert_eq!(shape.distinct(1023, 1000), 1000.0, "no more than there are insertions");
}

#[test]
fn a_filter_has_more_slots_than_its_window_has_insertions() {
    let shape = SwampShape::new(64, 5).unwrap();
    assert_eq!(shape.check(count(63)), Ok(()));
    assert!(shape.check(count(64)).unwrap_err().to_string().starts_with("slots must be more than"));
    assert!(choose(count(1000), Budget::Bytes(u64::MAX)).unwrap().fingerprints() > 1 << 62);
}
