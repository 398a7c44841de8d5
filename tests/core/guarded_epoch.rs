//! The guarded-epoch Bloom filter, plain, blocked and transposed: exactly r * epoch + 1 to (r + 1) * epoch insertions
//! are retained, and simpler formulas of its rate are wrong.

use std::sync::Arc;

use crate::support::{Rates, check_window, insert, key, present};
use lately::clock::{Moments, Window};
use lately::family::slices::shape::{RingShape, Segment};
use lately::family::slices::transposed::Transposed;
use lately::family::{AnyFilter, Shape};

/// The layout of a filter: separate segments, plain or in blocks, or transposed.
#[derive(Clone, Copy, PartialEq)]
enum Layout {
    Sliced,
    Transposed,
}

impl Layout {
    fn shape(self, r: u32, segment: Segment) -> Arc<dyn Shape> {
        match (self, segment) {
            (Self::Transposed, Segment::Bits { bits, parts: k }) => Arc::new(Transposed::new(r, k, bits).unwrap()),
            _ => Arc::new(RingShape::guarded_epoch(r, segment).unwrap()),
        }
    }

    fn filter(self, r: u32, segment: Segment, window: Window) -> AnyFilter {
        AnyFilter::of(self.shape(r, segment), window, 0).unwrap()
    }
}

const fn count(insertions: u64) -> Window {
    Window::Count { insertions }
}

/// Cells of every width, and epochs of one insertion, of a few, and of many.
#[test]
fn no_key_of_the_window_is_missed_in_transposed_cells_of_any_width() {
    for r in [7, 15, 31, 63] {
        for window in [5, 64, 1000, 10_007] {
            let segment = Segment::Bits { bits: 3 * window + 5, parts: 5 };
            let epoch = count(window).generation(r);
            let mut filter = Layout::Transposed.filter(r, segment, count(window));
            check_window(&mut filter, window, epoch, 3 * u64::from(r + 1) * epoch + 1).unwrap();
        }
    }
}

/// Few enough bits are set that no key is reported by chance: only retained keys are.
#[test]
fn as_many_insertions_are_retained_as_stated() {
    let plain = Segment::Bits { bits: 1 << 20, parts: 7 };
    // r divides W - 1, W, or neither; and r is above W.
    let sliced = [(101, 4), (100, 4), (100, 3), (103, 4), (1, 1), (5, 9)];
    let transposed = [(106, 7), (105, 7), (101, 7), (100, 15), (5, 31), (70, 63)];
    for (layout, segment, cases) in [
        (Layout::Sliced, plain, sliced),
        (Layout::Sliced, Segment::Blocks { blocks: 1 << 14, block_bits: 64, parts: 8 }, sliced),
        (Layout::Transposed, plain, transposed),
    ] {
        for (window, r) in cases {
            let epoch = (window - 1_u64).div_ceil(r.into()).max(1);
            let mut filter = layout.filter(r, segment, count(window));
            let full = epoch * u64::from(r + 1);
            let mut retained = Vec::new();
            for n in 0..4 * full {
                insert(&mut filter, &[key(0, n)]);
                let newest_first: Vec<_> = (0..=n).rev().map(|i| key(0, i)).collect();
                let count = present(&filter, &newest_first);
                assert_eq!(present(&filter, &newest_first[..count]), count, "the retained keys are the newest");
                if n + 1 >= full {
                    retained.push(count as u64);
                }
            }
            let range = (*retained.iter().min().unwrap(), *retained.iter().max().unwrap());
            assert_eq!(range, (epoch * u64::from(r) + 1, full), "window {window}, r {r}");
            assert!(range.0 >= window);
            assert_eq!(filter.slack(), full - window);
        }
    }
}

#[test]
fn a_window_of_time_retains_r_to_r_plus_1_epochs() {
    for (layout, r) in [(Layout::Sliced, 4), (Layout::Transposed, 7), (Layout::Transposed, 63)] {
        check_window_of_time(layout, r);
    }
}

fn check_window_of_time(layout: Layout, r: u32) {
    let (span, lateness) = (1000_u64, 130);
    let epoch = (span + lateness).div_ceil(r.into()) as i64;
    let segment = Segment::Bits { bits: 1 << 20, parts: 7 };
    let last_reported = |inserted: i64| {
        let window = Window::Time { span, lateness, capacity: 10 };
        let mut filter = layout.filter(r, segment, window);
        assert_eq!(filter.slack() as i64, epoch * i64::from(r + 1) - span as i64);
        filter.engine_mut().insert(&[key(0, 0)], Moments::At(inserted)).unwrap();
        let reported = |age: i64| {
            let mut present = [false];
            filter.engine().query(&[key(0, 0)], Moments::At(inserted + age), &mut present).unwrap();
            present[0]
        };
        let last = (0..3 * span as i64).take_while(|&age| reported(age)).count() as i64 - 1;
        assert!((last + 1..3 * span as i64).all(|age| !reported(age)), "a forgotten key must not return");
        last
    };
    let ages: Vec<i64> = (0..epoch).map(|phase| last_reported(7 * epoch + phase)).collect();
    // A key of the last moment of an epoch is reported for the shortest time. Late keys may be `lateness` older.
    assert_eq!(*ages.iter().min().unwrap(), epoch * i64::from(r));
    assert_eq!(*ages.iter().max().unwrap(), epoch * i64::from(r + 1) - 1);
}

#[test]
fn the_rate_is_not_that_of_simpler_formulas() {
    let window = count(20_000);
    let blocks = Segment::Blocks { blocks: 60, block_bits: 512, parts: 8 };
    let plain = Segment::Bits { bits: 31_111, parts: 8 };
    for (layout, r, segment, filters) in
        [(Layout::Sliced, 8, plain, 500), (Layout::Sliced, 8, blocks, 2000), (Layout::Transposed, 7, plain, 500)]
    {
        let (shape, epoch) = (layout.shape(r, segment), window.generation(r));
        let rates = Rates::measure(&shape, window, filters, 1000);
        rates.check(shape.fpr(window)).unwrap();
        // One formula omits the guard, the other computes the mean over the phases, a tenth lower (erratum GEBF-3).
        let guardless = 1.0 - (1.0 - segment.match_rate(epoch)).powi(r as i32);
        rates.check(guardless).unwrap_err();
        let others = 1.0 - guardless;
        let mean = (1..=epoch).map(|keys| 1.0 - others * (1.0 - segment.match_rate(keys))).sum::<f64>() / epoch as f64;
        rates.check(mean).unwrap_err();
        if segment == blocks {
            // This formula assumes blocks of equal load, as proposition 2 does for a whole segment.
            let part_fill = 1.0 - (-(8.0 / 512.0) * epoch as f64 / 60.0).exp();
            rates.check(1.0 - (1.0 - part_fill.powi(8)).powi(9)).unwrap_err();
        }
    }
}
