//! Shapes of age-partitioned filters: fills and accesses.

use lately::clock::Window;
use lately::family::slices::shape::{RingShape, Segment};
use lately::family::{Shape, runs};

const BLOCKS: Segment = Segment::Blocks { blocks: 5, block_bits: 512, parts: 4 };

/// Shifts generations as in section 5.1 of paper 1, but counts keys instead of setting bits.
#[test]
fn fills_are_those_of_the_keys_in_each_segment() {
    for segment in [Segment::Bits { bits: 500, parts: 1 }, BLOCKS] {
        for (k, l) in [(1, 3), (3, 2), (4, 7)] {
            let generation = 20;
            let mut keys = vec![0; k + l];
            for _ in 0..k + l {
                keys[..k].iter_mut().for_each(|n| *n += generation);
                keys.rotate_right(1);
                keys[0] = 0;
            }
            let shape = RingShape::age_partitioned(k as u32, l as u32, segment).unwrap();
            let mut rates = Vec::new();
            // The last of these is just before a shift, the worst phase.
            for in_current in [13, generation] {
                let mut keys = keys.clone();
                keys[..k].iter_mut().for_each(|n| *n += in_current);
                let expected: Vec<f64> = keys.iter().map(|&n| segment.match_rate(n)).collect();
                assert_eq!(shape.fills(generation, in_current), expected);
                rates.push(runs::false_positive_rate(k as u32, &expected));
            }
            // Beside the chance that two keys have one hash.
            let error = (shape.false_positive_rate(generation) - rates[1]).abs();
            assert!(rates[0] < rates[1] && error <= 1e-12 * rates[1] + 1e-16);
        }
    }
}

/// Rows of table 2 of paper 1, whose slices are half full: a shape, and its accesses. Those in the window are as
/// printed. The others are printed for a linear gradient of the fills (erratum APBF-1): 10.42 and 1.85 at (10, 7).
#[test]
fn a_shape_states_the_accesses_of_the_paper() {
    for (k, l, expected) in
        [(4, 3, [4.708, 4.418, 2.158]), (10, 7, [10.858, 10.476, 1.919]), (16, 22, [17.410, 16.858, 3.448])]
    {
        let keys = 100_000;
        let bits = (f64::from(k) * keys as f64 / std::f64::consts::LN_2) as u64;
        let shape = RingShape::age_partitioned(k, l, Segment::Bits { bits, parts: 1 }).unwrap();
        let accesses = shape.accesses(Window::Count { insertions: keys * u64::from(l) + 1 }).unwrap();
        let accesses = [accesses.in_window, accesses.false_positive, accesses.absent];
        for (ours, expected) in accesses.into_iter().zip(expected) {
            assert!((ours - expected).abs() < 0.001, "({k}, {l}): {ours} instead of {expected}");
        }
    }
    let epochs = RingShape::guarded_epoch(8, Segment::Bits { bits: 1000, parts: 4 }).unwrap();
    assert_eq!(epochs.accesses(Window::Count { insertions: 1000 }), None);
}
