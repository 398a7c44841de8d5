//! The age-partitioned Bloom filter: its rate is not the one that the paper prints.

use std::sync::Arc;

use crate::support::Rates;
use lately::clock::Window;
use lately::family::slices::shape::{RingShape, Segment};
use lately::family::{Shape, runs};

#[test]
fn the_rate_is_not_that_of_the_fills_that_the_paper_prints() {
    let window = Window::Count { insertions: 100_003 };
    for (k, l, rate) in [(4, 3, 0.1), (7, 5, 0.01), (10, 7, 0.001)] {
        let generation = window.generation(l);
        // Section 5.3: r_i = (i + 1) / 2k while filling, 1/2 when full.
        let printed: Vec<_> = (0..k + l).map(|i| f64::from((i + 1).min(k)) / f64::from(2 * k)).collect();
        let printed_rate = runs::false_positive_rate(k, &printed);
        let bits = (f64::from(k) * generation as f64 / std::f64::consts::LN_2).ceil() as u64;
        let shape = RingShape::age_partitioned(k, l, Segment::Bits { bits, parts: 1 }).unwrap();
        assert!((printed_rate / rate - 1.0).abs() < 0.25);
        let exact = shape.false_positive_rate(generation);
        let shape: Arc<dyn Shape> = Arc::new(shape);
        let rates = Rates::measure(&shape, window, 10, 500_000);
        rates.check(printed_rate).unwrap_err();
        rates.check(exact).unwrap();
    }
}
