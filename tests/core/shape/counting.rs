//! Shapes of counting filters.

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
}
