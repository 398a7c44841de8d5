//! Queries for windows that are shorter than the filter's.

use super::*;
use crate::clock::Moments;
use crate::engine::Engine;

/// Queries keys that left a shorter window an epoch ago, which are reported by chance alone, and keys that left it half
/// an epoch ago, of which the filter may report any.
#[test]
fn keys_leave_a_shorter_window_within_an_epoch() {
    const WINDOW: u64 = 20_000;
    let shape = loaded((16, 4), WINDOW, 0.9);
    let (mut filter, epoch) = (
        engine(shape, Window::Count { insertions: WINDOW }, Instructions::best()),
        Window::Count { insertions: WINDOW }.generation(shape.retained()) * shape.pages,
    );
    let (mut reported, mut sooner, mut queried) = (0, 0, 0);
    for phase in 0..200 {
        let at = 2 * WINDOW + phase * 97;
        let from = if phase == 0 { 0 } else { at - 97 };
        filter.insert(&(from..at).map(mix).collect::<Vec<_>>(), Moments::Untimed).unwrap();
        for window in [1, WINDOW / 7, WINDOW / 2, WINDOW - epoch] {
            let left = |by: u64| {
                let gone: Vec<u64> = (0..20).map(|i| mix(at - window - by - 1 - i)).collect();
                let mut present = [false; 20];
                filter.query_within(&gone, Moments::Untimed, Some(window), &mut present).unwrap();
                present.iter().filter(|&&present| present).count()
            };
            reported += left(epoch);
            sooner += left(epoch / 2);
            queried += 20;
        }
    }
    assert!(reported <= 5, "{reported} of {queried}, at a rate of 1e-5");
    assert!(sooner > queried / 4 && sooner < queried * 3 / 4, "{sooner} of {queried}");
    for window in [0, WINDOW + 1] {
        filter.query_within(&[1], Moments::Untimed, Some(window), &mut [false]).unwrap_err();
    }
}
