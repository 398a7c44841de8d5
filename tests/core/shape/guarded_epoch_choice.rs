//! Choices of guarded-epoch filters, against trying every shape in every size.

use lately::Error;
use lately::clock::Window;
use lately::family::budget::allowed_slack;
use lately::family::slices::shape::{Paper, RingShape, Segment};
use lately::family::slices::transposed::{self, Transposed};
use lately::family::{Budget, slices};

const fn count(insertions: u64) -> Window {
    Window::Count { insertions }
}

fn choose(window: Window, budget: Budget, slack: Option<u64>, block_bits: Option<u32>) -> Result<RingShape, Error> {
    slices::shape::choose(window, budget, slack, block_bits, Paper::GuardedEpoch)
}

fn rate(window: Window, shape: &RingShape) -> f64 {
    shape.false_positive_rate(window.keys_per_generation(shape.l))
}

/// Returns all shapes of the rule, each in every size up to `bytes`, the smallest first.
fn sizes(window: Window, slack: u64, block_bits: Option<u32>, bytes: u64) -> Vec<Vec<RingShape>> {
    let mut all = Vec::new();
    for r in (1..128).filter(|&r| window.slack(r, 1) <= slack) {
        for bits_of_a_key in if block_bits.is_some() { vec![1, 2, 4, 8] } else { (1..=64).collect() } {
            let segment = |units| match block_bits {
                None => Segment::Bits { bits: 64 * units, parts: bits_of_a_key },
                Some(block_bits) => Segment::Blocks { blocks: units, block_bits, parts: bits_of_a_key },
            };
            let shapes = (1..).map(|units| RingShape::guarded_epoch(r, segment(units)).unwrap());
            all.push(shapes.take_while(|shape| shape.nbytes() <= bytes).collect());
        }
    }
    all
}

const REQUESTS: [(u64, u64, Option<u32>); 6] =
    [(7, 64, None), (100, 64, None), (300, 150, None), (300, 40, None), (300, 150, Some(64)), (500, 1000, Some(512))];

#[test]
fn a_rate_gives_what_trying_everything_gives() {
    for ((insertions, slack, block_bits), fpr) in REQUESTS.into_iter().zip([1e-4, 0.1, 0.01, 0.01, 0.01, 0.001]) {
        let window = count(insertions);
        let bytes = 2000;
        let smallest: Vec<RingShape> = sizes(window, slack, block_bits, bytes)
            .into_iter()
            .filter_map(|sizes| sizes.into_iter().find(|shape| rate(window, shape) <= fpr))
            .collect();
        let least = smallest.iter().map(RingShape::nbytes).min().unwrap();
        let best = smallest.iter().filter(|shape| 512 * shape.nbytes() <= 513 * least);
        let best = best.min_by_key(|shape| (shape.l, shape.nbytes())).unwrap();
        let chosen = choose(window, Budget::Rate(fpr), Some(slack), block_bits).unwrap();
        assert_eq!((chosen.l, chosen.nbytes()), (best.l, best.nbytes()), "{insertions} {slack} {block_bits:?}");
        assert!(rate(window, &chosen) <= fpr);
    }
}

#[test]
fn a_number_of_bytes_gives_what_trying_everything_gives() {
    for ((insertions, slack, block_bits), bytes) in REQUESTS.into_iter().zip([999, 300, 700, 2000, 999, 2000]) {
        let window = count(insertions);
        let largest: Vec<(RingShape, f64)> = sizes(window, slack, block_bits, bytes)
            .iter()
            .filter_map(|sizes| sizes.last().map(|shape| (*shape, rate(window, shape))))
            .collect();
        let least = largest.iter().map(|rated| rated.1).fold(1.0, f64::min);
        let best = largest.iter().filter(|rated| rated.1 <= 65.0 / 64.0 * least);
        let best = best.min_by(|a, b| a.0.l.cmp(&b.0.l).then(a.1.total_cmp(&b.1))).unwrap();
        let chosen = choose(window, Budget::Bytes(bytes), Some(slack), block_bits).unwrap();
        assert_eq!(chosen, best.0, "{insertions} {slack} {block_bits:?} {bytes}");
    }
}

#[test]
fn the_documented_choices() {
    for (fpr, block_bits, r, bits_per_key) in
        [(0.01, None, 6, 15.91), (0.001, None, 8, 21.32), (0.01, Some(512), 5, 17.17), (0.001, Some(512), 5, 25.93)]
    {
        let shape = choose(count(1_000_000), Budget::Rate(fpr), None, block_bits).unwrap();
        assert_eq!(shape.l, r);
        assert!((shape.bits_per_key(1_000_000) - bits_per_key).abs() < 0.005);
        if let Segment::Bits { parts: k, .. } = shape.segment {
            assert_eq!(k, if r == 6 { 9 } else { 13 });
        }
    }
}

#[test]
fn the_transposed_choices() {
    for (fpr, slack, r, k, bits_per_key) in
        [(0.01, None, 7, 10, 15.90), (0.001, None, 7, 13, 21.38), (0.01, Some(70_000), 15, 11, 16.38)]
    {
        let shape = transposed::choose(count(1_000_000), Budget::Rate(fpr), slack).unwrap();
        let bits = shape.segments().bits_per_key(1_000_000);
        assert_eq!((shape.r, shape.k), (r, k), "{shape:?} {bits}");
        assert!((bits - bits_per_key).abs() < 0.005, "{bits}");
        assert_eq!(Transposed::new(r, k, shape.positions).unwrap(), shape);
    }
    for (slack, r) in [(142_860, 7), (142_800, 15), (70_000, 15), (66_000, 31), (20_000, 63)] {
        let shape = transposed::choose(count(1_000_000), Budget::Bytes(2_000_000), Some(slack)).unwrap();
        assert_eq!(shape.r, r);
        assert!(shape.segments().nbytes() <= 2_000_000 && count(1_000_000).slack(r, 1) <= slack);
    }
}

#[test]
fn the_requested_slack_is_kept() {
    let windows = [1, 2, 7, 127, 128, 129, 1000, 100_003].map(count).into_iter();
    let time = [(1, 0), (129, 0), (1_000_000_007, 0), (1000, 5000), (1, 99)];
    for window in windows.chain(time.map(|(span, lateness)| Window::Time { span, lateness, capacity: 1000 })) {
        let shape = choose(window, Budget::Rate(0.01), None, None).unwrap();
        assert!(window.slack(shape.l, 1) <= allowed_slack(window, None), "{window:?}");
    }
    for slack in [8_000, 20_000, 70_000, 700_000] {
        let window = count(1_000_000);
        let shape = choose(window, Budget::Rate(0.01), Some(slack), None).unwrap();
        assert!(window.slack(shape.l, 1) <= slack);
    }
}
