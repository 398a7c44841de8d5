//! Tags that are finer than turns: their edge, and the tags that come round.

use super::promise::check_promise;
use super::*;
use crate::clock::Moments;
use crate::engine::{Engine, Refresh};

/// Format, epochs, and how long each is, of filters whose pages turn as often as their epochs begin, and less often.
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

/// The window of so many epochs, and a filter for it in pages that are full just before they turn.
fn filter((f, t, epochs, length): (u32, u32, u32, u64), instructions: Instructions) -> (u64, Aged<Quotient>) {
    let window = Window::Count { insertions: u64::from(epochs) * length + 1 };
    let of = |(pages, lines)| QuotientShape::fine(f, t, pages, lines, None, epochs).unwrap();
    let sizes = (3..17).map(|lines| (1, lines)).chain((2..).map(|pages| (pages, 17)));
    let shape = sizes.map(of).find(|shape| shape.load(shape.keys_per_epoch(window)) <= 0.93).unwrap();
    (window.length(), engine(shape, window, instructions))
}

/// A key stays for r epochs and is gone after one more, at whatever phase of its epoch, of its page and of the tags.
#[test]
fn a_key_of_a_fine_tag_stays_for_its_window_and_one_epoch() {
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

/// An epoch more than the slack has, and the check of the promise fails: it would see a key that is missed.
#[test]
fn the_check_of_the_promise_fails_when_an_epoch_too_many_of_fine_tags_is_promised() {
    for fine in FINE {
        let (window, mut filter) = filter(fine, Instructions::best());
        let too_long = window + fine.3;
        check_promise(&mut filter, too_long, 4 * window, 7.max(window / 200), mix).unwrap_err();
    }
}

/// What is there and no longer counts is not reported by any call, and comes back as new.
#[test]
fn what_no_longer_counts_is_new_again() {
    for fine in FINE {
        for refresh in [Refresh::Always, Refresh::Unseen] {
            let (window, mut filter) = filter(fine, Instructions::best());
            let keys = |from: u64| (from..from + window).map(mix).collect::<Vec<_>>();
            filter.insert(&keys(0), Moments::Untimed).unwrap();
            filter.insert(&vec![mix(1 << 40); (2 * fine.3) as usize], Moments::Untimed).unwrap();
            // The oldest have left their slack, and come again one by one.
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
