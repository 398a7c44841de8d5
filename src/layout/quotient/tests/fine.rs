//! Tags that are finer than rotations: when they expire, and when they are used again.

use super::promise::check_promise;
use super::*;
use crate::clock::Moments;
use crate::engine::{Engine, Refresh};

/// Format, epochs, and the length of each, of filters whose pages rotate as often as epochs begin, and less often.
const FINE: [(u32, u32, u32, u64); 10] = [
    (16, 4, 15, 20),
    (16, 4, 12, 3),
    (14, 5, 30, 1),
    (13, 6, 60, 7),
    (12, 8, 240, 1),
    (12, 8, 200, 5),
    (16, 10, 960, 1),
    (16, 12, 3840, 2),
    (14, 8, 100, 1),
    (12, 10, 801, 2),
];

/// Returns the window of some epochs, and a filter for it, whose pages are full just before they rotate.
fn filter((f, t, epochs, length): (u32, u32, u32, u64), instructions: Instructions) -> (u64, Aged<Quotient>) {
    let window = Window::Count { insertions: u64::from(epochs) * length + 1 };
    let of = |(pages, lines)| QuotientShape::fine(f, t, pages, lines, None, epochs).unwrap();
    let sizes = (3..17).map(|lines| (1, lines)).chain((2..).map(|pages| (pages, 17)));
    let shape = sizes.map(of).find(|shape| shape.load(shape.keys_per_epoch(window)) <= 0.93).unwrap();
    (window.length(), engine(shape, window, instructions))
}

/// A key is reported for r epochs and no longer after one more, at any phase of its epoch, its page and the tags.
#[test]
fn a_key_with_a_fine_tag_is_reported_for_its_window_and_at_most_one_epoch() {
    for (i, fine) in FINE.into_iter().enumerate() {
        for (j, instructions) in Instructions::available().enumerate().filter(|(j, _)| (i + j) % 2 == 0) {
            let (window, mut filter) = filter(fine, instructions);
            let (_, t, _, length) = fine;
            let rounds = (3 * length) << t;
            let every = [1, 13, 97][(i + j) % 3].max(window / 30);
            check_promise(&mut filter, window, rounds, every, mix).unwrap();
            let mut gone = 0;
            for at in rounds..rounds + 2 * window {
                filter.insert(&[mix(at)], Moments::Untimed).unwrap();
                let mut present = [false];
                filter.query(&[mix(at - window - length)], Moments::Untimed, &mut present).unwrap();
                gone += u64::from(!present[0]);
            }
            let of = 2 * window;
            assert!(gone as f64 >= of as f64 * (1.0 - 3.0 * filter.false_positive_rate()) - 5.0, "{fine:?}: {gone}");
        }
    }
}

/// The check of the promise can fail: it does where an epoch more than the slack is promised.
#[test]
fn the_check_of_the_promise_fails_where_an_epoch_too_many_is_promised() {
    for fine in FINE {
        let (window, mut filter) = filter(fine, Instructions::best());
        let too_long = window + fine.3;
        check_promise(&mut filter, too_long, 4 * window, 7.max(window / 200), mix).unwrap_err();
    }
}

/// An entry whose epoch is no longer retained is not reported by any call, and its key is new again.
#[test]
fn a_key_of_an_expired_epoch_is_new_again() {
    for fine in FINE {
        for refresh in [Refresh::Always, Refresh::Unseen] {
            let (window, mut filter) = filter(fine, Instructions::best());
            let keys = |from: u64| (from..from + window).map(mix).collect::<Vec<_>>();
            filter.insert(&keys(0), Moments::Untimed).unwrap();
            filter.insert(&vec![mix(1 << 40); (2 * fine.3) as usize], Moments::Untimed).unwrap();
            // The oldest keys have left their slack, and occur again, each in a call of its own.
            let (mut seen, mut again) = (0, 0);
            for i in 0..fine.3 {
                let mut there = [false];
                filter.duplicated(&[mix(i)], Moments::Untimed, refresh, &mut there).unwrap();
                seen += u64::from(there[0]);
                filter.query(&[mix(i)], Moments::Untimed, &mut there).unwrap();
                again += u64::from(there[0]);
            }
            assert!(seen <= 1 && again == fine.3, "{fine:?}: {seen} {again}");
        }
    }
}
