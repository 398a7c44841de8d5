//! Shapes of counting filters, and how often their counters stick.

use lately::clock::Window;
use lately::family::Budget;
use lately::family::baselines::counting::shape::*;

const fn count(insertions: u64) -> Window {
    Window::Count { insertions }
}

#[test]
fn the_documented_figures() {
    let CountingShape { slices } = choose(count(1_000_000), Budget::Rate(0.01)).unwrap();
    let bits = |words: u64| 64.0 * words as f64 / 1e6;
    assert_eq!(slices.k, 4);
    assert!((bits(slices.words(BITS)) - 42.1).abs() < 0.1, "{}", bits(slices.words(BITS)));
    for (hot, rate) in [(100_000, 2e-6), (500_000, 9e-4), (1_000_000, 1e-2)] {
        assert!((floor(&slices, hot) / rate - 1.0).abs() < 0.15, "{hot} {}", floor(&slices, hot));
    }
    assert!((sticking_rate(1_442_695, 1_000_000) / 2.3e-14 - 1.0).abs() < 0.05);
}

#[test]
fn a_number_of_bytes_is_for_queue_and_counters() {
    for bytes in [808, 900, 5000] {
        let CountingShape { slices } = choose(count(100), Budget::Bytes(bytes)).unwrap();
        assert!((slices.words(BITS) + 100) * 8 <= bytes && slices.total() + 128 > 16 * (bytes / 8 - 100));
    }
}

/// Compares with every way that keys can fall: those in which the 15th key of the window is the 15th in cell 0.
#[test]
fn counters_stick_as_often_as_by_enumeration() {
    assert_eq!(sticking_rate(3, 14), 0.0);
    assert!((sticking_rate(2, 15) - 15.0 * 0.5_f64.powi(15)).abs() < 1e-15);
    // 14 of the 16 before it, and the last itself.
    let hit = (0u32..1 << 17).filter(|ways| ways & 1 == 1 && (ways >> 1).count_ones() == 14).count();
    assert!((sticking_rate(2, 17) - 17.0 * hit as f64 / f64::from(1 << 17)).abs() < 1e-15);
    assert_eq!(sticking_rate(1, 100), 0.0, "one cell meets 14 only on its way up");
}
