//! Shapes of timing filters: their sweeps, blocks and choices, against brute force.

use lately::clock::Window;
use lately::family::Shape as _;
use lately::family::timing::shape::*;

const fn count(insertions: u64) -> Window {
    Window::Count { insertions }
}

fn every_window() -> impl Iterator<Item = Window> {
    let time = |span, lateness| Window::Time { span, lateness, capacity: 100 };
    let counts = [1, 2, 3, 4, 5, 7, 8, 13, 50, 127, 128, 129, 300, 1000, 4097].map(count);
    counts.into_iter().chain([(1, 0), (7, 0), (129, 0), (1000, 5000), (1, 99), (4001, 3)].map(|(s, l)| time(s, l)))
}

/// Every timer is swept while it is expired and known to be, whatever the parts and its place: brute force over
/// the numbers of generations.
#[test]
fn no_timer_outlives_its_timestamp() {
    for bpt in 2..=6 {
        for blocks in 1..timestamps(bpt) {
            let (sweeps, codes) = (u64::from(sweeps(bpt, blocks)), u64::from(timestamps(bpt)));
            for (set, part) in (0..3 * codes).flat_map(|set| (0..sweeps).map(move |part| (set, part))) {
                let known_expired = set + u64::from(blocks) + 1..=set + codes;
                assert!(known_expired.clone().any(|opened| opened % sweeps == part), "{bpt} {blocks}");
            }
        }
    }
}

#[test]
fn the_blocks_are_those_of_least_slack() {
    for window in every_window() {
        for bpt in [2, 3, 4, 5, 6, 8, 10, 12] {
            let most = timestamps(bpt) - timestamps(bpt).div_ceil(8);
            let least = (1..=most).map(|blocks| window.slack(blocks, 1)).min().unwrap();
            let chosen = blocks_of_least_slack(window, bpt);
            assert!(chosen <= most && window.slack(chosen, 1) == least, "{window:?} {bpt}: {chosen}");
        }
    }
}

#[test]
fn slack_rates_and_retained_keys_follow_from_the_formulas() {
    let window = count(101);
    let shape = TimingShape::new(3, 4, 10, 160, 1).unwrap();
    assert_eq!((window.slack(10, 1), live_keys(window, 10)), (9, 110));
    assert!((shape.npws(window) - 9.0 / 101.0).abs() < 1e-12);
    let fill = 1.0 - (1.0 - 1.0 / 160.0_f64).powi(110);
    assert!((shape.fpr(window) - fill.powi(3)).abs() < 1e-12);
    assert_eq!(shape.false_negative_rates(window), vec![0.0; 11]);
    // Half a minute late on a window of a minute, at 100 keys a minute: 11 tenths of 90 s, so 165 keys.
    let time = Window::Time { span: 60_000_000_000, lateness: 30_000_000_000, capacity: 100 };
    assert_eq!(live_keys(time, 10), 165);
}
