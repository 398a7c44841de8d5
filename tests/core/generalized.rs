//! The generalized Bloom filter: it promises no window, but its fill, its rate of false positives and its false
//! negatives by age are those that its shape computes, and its evidence equals a plain count.

use crate::support::{check_window, insert, key, mean, present};
use lately::clock::Window;
use lately::family::baselines::generalized::likelihood::Matches;
use lately::family::baselines::generalized::shape::{GeneralizedShape, choose};
use lately::family::{AnyFilter, Budget, Family};
use lately::inference::Evidence;
use lately::memory::Words;

const WINDOW: Window = Window::Count { insertions: 100 };

/// Bits, k1 and k0. Bits are many, and the joint chance of a key's bits is the product, to less than
/// (k1 + k0)^2 / bits.
const SHAPES: [(u64, u32, u32); 4] = [(3000, 1, 1), (20_000, 3, 4), (20_001, 2, 1), (30_000, 6, 2)];

fn shape((bits, k1, k0): (u64, u32, u32)) -> GeneralizedShape {
    GeneralizedShape::new(bits, k1, k0).unwrap()
}

fn filled(shape: GeneralizedShape, stream: u64, keys: u64) -> AnyFilter {
    let mut filter = AnyFilter::new(shape, WINDOW, 0).unwrap();
    insert(&mut filter, &(0..keys).map(|i| key(stream, i)).collect::<Vec<_>>());
    filter
}

#[test]
fn fill_and_rate_converge_to_those_stated() {
    for parameters in SHAPES {
        let shape = shape(parameters);
        let untouched = -shape.memory().log_untouched;
        let (mut fills, mut reported, mut by_bits) = (Vec::new(), Vec::new(), Vec::new());
        for stream in 0..40 {
            // Keys are inserted until 1e-6 of the bits have never been written.
            let filter = filled(shape, stream, (14.0 / untouched) as u64);
            fills.push(filter.engine().fill()[0]);
            by_bits.push(filter.false_positive_rate());
            let fresh: Vec<_> = (0..20_000).map(|i| key(100 + stream, i)).collect();
            reported.push(present(&filter, &fresh) as f64 / 20_000.0);
        }
        let (fill, deviation) = mean(&fills);
        assert!((fill - shape.steady_fill()).abs() < deviation, "{shape:?} {fill} {}", shape.steady_fill());
        let near = f64::from((shape.k1 + shape.k0).pow(2)) / shape.bits as f64 * shape.false_positive_rate();
        for (rate, deviation) in [mean(&reported), mean(&by_bits)] {
            assert!((rate - shape.false_positive_rate()).abs() < deviation + near, "{shape:?} {rate}");
            let other = GeneralizedShape { k0: shape.k0 + 1, ..shape };
            assert!((rate - other.false_positive_rate()).abs() > deviation + near, "the test must detect another k0");
        }
        assert_eq!(filled(shape, 0, 0).fpr(), shape.false_positive_rate());
    }
}

#[test]
fn keys_are_forgotten_by_age_as_stated() {
    for parameters in SHAPES {
        let shape = shape(parameters);
        let memory = shape.memory();
        let tenth = (0.1 / -memory.log_untouched) as u64;
        for age in [0, tenth / 10, tenth, 5 * tenth, 30 * tenth] {
            let (keys, start) = (tenth.max(50), 60 * tenth);
            let missing: Vec<f64> = (0..60)
                .map(|stream| {
                    // Each age is measured on other keys at other moments.
                    let mut filter = filled(shape, stream, start);
                    let mut missing = 0;
                    for i in start..start + keys + age {
                        insert(&mut filter, &[key(stream, i)]);
                        if i >= start + age {
                            missing += 1 - present(&filter, &[key(stream, i - age)]);
                        }
                    }
                    missing as f64 / keys as f64
                })
                .collect();
            let (measured, deviation) = mean(&missing);
            let exact = memory.missed(age as f64);
            // Misses are so rare that hardly a filter has any: they vary as coins.
            let coins = 5.0 * (exact / (60 * keys) as f64).sqrt();
            let near = f64::from((shape.k1 + shape.k0).pow(2)) / shape.bits as f64 * (1.0 - exact);
            assert!(
                (measured - exact).abs() < deviation.max(coins) + near,
                "{shape:?} {age}: {measured} is not {exact} +- {deviation}"
            );
            assert!(age != 0 || missing.iter().all(|&missing| missing == 0.0), "the key just inserted is never missed");
        }
    }
}

/// The filter fails the check of the window that other filters pass.
#[test]
fn no_window_is_promised_and_nine_tenths_of_the_oldest_keys_are_reported() {
    let window = Window::Count { insertions: 2000 };
    let made = || AnyFilter::new(choose(window, Budget::Rate(0.01)).unwrap(), window, 0).unwrap();
    check_window(&mut made(), 2000, 100, 8000).unwrap_err();
    let mut filter = made();
    insert(&mut filter, &(0..8000).map(|i| key(0, i)).collect::<Vec<_>>());
    let rates = filter.shape().false_negative_rates(filter.window());
    assert!(rates.len() == 2 && rates[0] == 0.0 && rates[1] > 0.09 && rates[1] <= 0.1, "{rates:?}");
    let beyond = filter.shape_as::<GeneralizedShape>().unwrap().memory().remembered_from(2000.0);
    let npws = filter.shape().npws(filter.window());
    assert!((npws - beyond / 2000.0).abs() < 1e-12, "{npws}");
    let kept = present(&filter, &(6000..8000).map(|i| key(0, i)).collect::<Vec<_>>());
    assert!((1700..2000).contains(&kept), "{kept}");
}

/// In few bits several hashes of one key often choose one bit.
#[test]
fn a_bit_both_set_and_reset_is_zero_and_evidence_counts_each_bit_once() {
    let shape = GeneralizedShape::new(13, 5, 4).unwrap();
    let mut fewer = 0;
    for i in 0..2000 {
        // One insertion into zeros shows the ones of the key, and one into ones its zeros.
        let touched = |cells: u64| {
            let mut filter = with_words(shape, cells);
            insert(&mut filter, &[key(0, i)]);
            filter.engine().words().as_slice()[0]
        };
        let (from_none, from_all) = (touched(0), touched((1 << 13) - 1));
        let (ones, zeros) = (from_none, !from_all & ((1 << 13) - 1));
        assert_eq!(ones & zeros, 0);
        fewer += u32::from(ones.count_ones() + zeros.count_ones() < 9);
        let state = key(1, i) & ((1 << 13) - 1);
        let filter = with_words(shape, state);
        let expected = Matches {
            zeros: zeros.count_ones(),
            zeros_matching: (zeros & !state).count_ones(),
            ones: ones.count_ones(),
            ones_matching: (ones & state).count_ones(),
        };
        let mut evidence = [Evidence::default()];
        filter.engine().evidence(&[key(0, i)], &mut evidence);
        assert_eq!(evidence, [expected.evidence()]);
        let matches = zeros & state == 0 && ones & !state == 0;
        assert_eq!(present(&filter, &[key(0, i)]) == 1, matches);
    }
    assert!(fewer > 1000, "{fewer} keys of 2000 have hashes that hit one bit");
}

/// Returns a filter of this shape with `cells` as every word.
fn with_words(shape: GeneralizedShape, cells: u64) -> AnyFilter {
    let parameters = [shape.bits, shape.k1.into(), shape.k0.into()];
    let form = Family::of(&shape).form(&shape);
    let words = Words::copied(&cells.to_le_bytes()).unwrap();
    AnyFilter::from_saved(form.kind, &parameters, WINDOW, |clock| clock, 0, words).unwrap()
}
