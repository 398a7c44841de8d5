//! Choices of age-partitioned filters, against trying every shape in every size.

use lately::Error;
use lately::clock::Window;
use lately::family::budget::allowed_slack;
use lately::family::slices::shape::{Paper, RingShape, Segment};
use lately::family::{Budget, slices};

const fn count(insertions: u64) -> Window {
    Window::Count { insertions }
}

fn choose(window: Window, budget: Budget, slack: Option<u64>, block_bits: Option<u32>) -> Result<RingShape, Error> {
    slices::shape::choose(window, budget, slack, block_bits, Paper::AgePartitioned)
}

fn keys(window: Window, shape: &RingShape) -> u64 {
    window.keys_per_generation(shape.l)
}

/// Returns all shapes of the rule, each in every size up to `bytes`, the smallest first.
fn sizes(window: Window, slack: u64, block_bits: Option<u32>, bytes: u64) -> Vec<Vec<RingShape>> {
    let mut all = Vec::new();
    for (k, l) in (1..128).flat_map(|k| (1..=128 - k).map(move |l| (k, l))) {
        for parts in if block_bits.is_some() { vec![1, 2, 4, 8] } else { vec![1] } {
            let segment = |units| match block_bits {
                None => Segment::Bits { bits: 64 * units, parts: 1 },
                Some(block_bits) => Segment::Blocks { blocks: units, block_bits, parts },
            };
            if window.slack(l, k) <= slack {
                let shapes = (1..).map(|units| RingShape::age_partitioned(k, l, segment(units)).unwrap());
                all.push(shapes.take_while(|shape| shape.nbytes() <= bytes).collect());
            }
        }
    }
    all
}

#[test]
fn a_rate_gives_what_trying_everything_gives() {
    for (insertions, slack, block_bits, fpr, bytes) in [
        (100, 64, None, 0.1, 500),
        (300, 150, None, 0.01, 2000),
        (300, 40, None, 0.01, 2000),
        (7, 64, None, 1e-4, 500),
        (40, 400, None, 1e-3, 500),
        (300, 150, Some(64), 0.01, 2000),
        (500, 1000, Some(512), 0.001, 4000),
    ] {
        let window = count(insertions);
        let holds = |shape: &RingShape| shape.false_positive_rate(keys(window, shape)) <= fpr;
        let smallest: Vec<RingShape> = sizes(window, slack, block_bits, bytes)
            .into_iter()
            .filter_map(|sizes| sizes.into_iter().find(holds))
            .collect();
        let least = smallest.iter().map(RingShape::nbytes).min().unwrap();
        assert!(5 * least <= 4 * bytes, "sizes were tried far enough");
        let best = smallest.iter().filter(|shape| 4 * shape.nbytes() <= 5 * least);
        let best = best.min_by_key(|shape| (shape.k + shape.l, shape.nbytes())).unwrap();
        let chosen = choose(window, Budget::Rate(fpr), Some(slack), block_bits).unwrap();
        assert_eq!(chosen, *best, "{insertions} {slack} {block_bits:?} {fpr}");
    }
}

#[test]
fn a_number_of_bytes_gives_what_trying_everything_gives() {
    for (insertions, slack, block_bits, bytes) in [
        (100, 64, None, 300),
        (300, 150, None, 2000),
        (7, 64, None, 5000),
        (1, 64, None, 63),
        (300, 150, Some(64), 999),
    ] {
        let window = count(insertions);
        let largest: Vec<(RingShape, f64)> = sizes(window, slack, block_bits, bytes)
            .iter()
            .filter_map(|sizes| sizes.last().map(|shape| (*shape, shape.false_positive_rate(keys(window, shape)))))
            .collect();
        let least = largest.iter().map(|rated| rated.1).fold(1.0, f64::min);
        let best = largest.iter().filter(|rated| rated.1 <= 2.0 * least);
        let best = best.min_by(|a, b| (a.0.k + a.0.l).cmp(&(b.0.k + b.0.l)).then(a.1.total_cmp(&b.1))).unwrap();
        let chosen = choose(window, Budget::Bytes(bytes), Some(slack), block_bits).unwrap();
        assert_eq!(chosen, best.0, "{insertions} {slack} {block_bits:?} {bytes}");
    }
}

#[test]
fn the_documented_choices() {
    for (fpr, block_bits, k, l, bits_per_key) in [
        (0.01, None, 5, 10, 23.48),
        (0.001, None, 8, 16, 30.95),
        (0.01, Some(512), 1, 2, 18.83),
        (0.001, Some(512), 1, 2, 28.71),
    ] {
        let shape = choose(count(1_000_000), Budget::Rate(fpr), None, block_bits).unwrap();
        assert_eq!((shape.k, shape.l), (k, l));
        assert!((shape.bits_per_key(1_000_000) - bits_per_key).abs() < 0.005);
    }
}

#[test]
fn the_default_slack_is_possible_and_kept() {
    let time = |span, lateness| Window::Time { span, lateness, capacity: 1000 };
    let windows = [1, 2, 7, 127, 128, 129, 130, 1000, 100_003].map(count).into_iter();
    for window in windows.chain([(1, 0), (129, 0), (1_000_000_007, 0), (1000, 5000), (1, 99)].map(|(s, l)| time(s, l)))
    {
        let shape = choose(window, Budget::Rate(0.01), None, None).unwrap();
        assert!(window.slack(shape.l, shape.k) <= allowed_slack(window, None), "{window:?}");
    }
}
