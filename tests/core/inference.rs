//! Posteriors compared with streams drawn from the prior: among all filters with the same evidence about a key, the
//! share that contains it at an age is the posterior. And laws for any evidence: sums of 1, nothing outside [0, 1],
//! from empty filters to saturated ones and priors from 0 to 1.

use std::collections::HashMap;

use crate::support::calibration::Calibration;
use crate::support::{insert, key, trials};
use lately::clock::{Moments, Window};
use lately::family::baselines::generalized::likelihood::{Matches, likelihood};
use lately::family::baselines::{counting, fingerprint_buffer, generalized, stable};
use lately::family::slices::shape::Segment;
use lately::family::slices::{self, transposed};
use lately::family::timing::{self, growing};
use lately::family::{AnyFilter, bloom, lines, slice_sizes, swamp, time_limited};
use lately::inference::ring::{Generation, RingLikelihood, not_ruled_out};
use lately::inference::{
    Distinct, Evidence, Hazard, Inference, Likelihood, PerKey, Posterior, PosteriorCache, Question, Span,
};

const WINDOW: Window = Window::Count { insertions: 41 };
const SECOND: f64 = 1e9;
/// 41 keys in 41 seconds.
const TIMED: Window = Window::Time { span: 41_000_000_000, lateness: 0, capacity: 41 };

fn transposed(positions: u64, window: Window) -> AnyFilter {
    AnyFilter::new(transposed::Transposed::new(7, 2, positions).unwrap(), window, 0).unwrap()
}

/// Returns small filters at some tens of percent of false positives, so that all evidence is ambiguous.
fn small_filters() -> Vec<(&'static str, AnyFilter)> {
    let ring = |k, l, segment| {
        let shape = slices::shape::RingShape::age_partitioned(k, l, segment).unwrap();
        AnyFilter::new(shape, WINDOW, 0).unwrap()
    };
    let epochs = |r, segment| {
        let shape = slices::shape::RingShape::guarded_epoch(r, segment).unwrap();
        AnyFilter::new(shape, WINDOW, 0).unwrap()
    };
    let timers = |k, bpt, blocks, slice, equal| {
        let shape = timing::shape::TimingShape::new(k, bpt, blocks, slice, equal).unwrap();
        AnyFilter::new(shape, WINDOW, 0).unwrap()
    };
    let slices = |k, cells| slice_sizes::Slices::new(k, cells).unwrap();
    let bloom = |shape| AnyFilter::new(shape, WINDOW, 0).unwrap();
    let stable = |k, cells, bits, decrements| {
        let shape = stable::shape::StableShape::new(slices(k, cells), bits, decrements).unwrap();
        AnyFilter::new(shape, WINDOW, 0).unwrap()
    };
    let generalized = |bits, k1, k0| {
        let shape = generalized::shape::GeneralizedShape::new(bits, k1, k0).unwrap();
        AnyFilter::new(shape, WINDOW, 0).unwrap()
    };
    let buffer = |bits| {
        let shape = fingerprint_buffer::shape::BufferShape::new(bits).unwrap();
        AnyFilter::new(shape, WINDOW, 0).unwrap()
    };
    vec![
        ("classical", bloom(bloom::shape::BloomShape::classical(2, 400).unwrap())),
        ("partitioned", bloom(bloom::shape::BloomShape::partitioned(3, 150).unwrap())),
        ("counters", AnyFilter::new(counting::shape::CountingShape { slices: slices(2, 70) }, WINDOW, 0).unwrap()),
        ("fingerprints of 7 bits", buffer(7)),
        ("counted fingerprints", AnyFilter::new(swamp::shape::SwampShape::new(64, 2).unwrap(), WINDOW, 0).unwrap()),
        ("cells of 1 bit", stable(3, 200, 1, 3)),
        ("cells of 2 bits", stable(2, 200, 2, 8)),
        ("cells of 4 bits", stable(2, 200, 4, 40)),
        ("2 ones, 2 zeros", generalized(200, 2, 2)),
        ("1 one, 4 zeros", generalized(300, 1, 4)),
        ("timers of which 2 are equal", timers(3, 3, 4, 105, 2)),
        ("timers of 4 blocks", timers(3, 3, 4, 105, 1)),
        ("timers of 40 blocks", timers(2, 6, 40, 200, 1)),
        ("k = 3 of 7 slices", ring(3, 4, Segment::Bits { bits: 61, parts: 1 })),
        ("k = 1 of 3 slices", ring(1, 2, Segment::Bits { bits: 90, parts: 1 })),
        ("k = 2 of 6 blocked", ring(2, 4, Segment::Blocks { blocks: 2, block_bits: 64, parts: 2 })),
        ("4 segments", epochs(3, Segment::Bits { bits: 90, parts: 2 })),
        ("8 epochs, transposed", transposed(40, WINDOW)),
        ("5 blocked segments", epochs(4, Segment::Blocks { blocks: 2, block_bits: 64, parts: 2 })),
    ]
}

/// Draws streams in which each insertion is the key with probability `p` and otherwise fresh, and stops at every phase.
/// Compares the posterior of the key for that prior with what was inserted, evidence by evidence.
fn check_against_streams(name: &str, empty: &AnyFilter, p: f64, streams: u64, window: u64) {
    let mut calibrations: HashMap<(Evidence, u64, &str), Calibration> = HashMap::new();
    for stream in 0..streams {
        // Another seed in each: random decay is equal in stable filters of one seed.
        let queried = key(1 << 20, stream);
        let mut filter = empty.clone();
        let length = 100 + key(7, stream) % 40;
        let drawn = |i: u64| (key(stream + 8, i) >> 11) as f64 / (1u64 << 53) as f64;
        let keys: Vec<u64> = (0..length).map(|i| if drawn(i) < p { queried } else { key(stream, i) }).collect();
        insert(&mut filter, &keys);
        let age = keys.iter().rev().position(|&key| key == queried).map_or(u64::MAX, |age| age as u64);
        let mut evidence = [Evidence::default()];
        filter.engine().evidence(&[queried], &mut evidence);
        let question = Question { ages: &[5.0, 17.0, 20.0, 41.0, 70.0], ..Question::default() };
        let inference = Inference::about(filter.engine(), &question).unwrap();
        let each = |_, posterior: &Posterior<'_>| {
            let predicted = posterior.within(window as f64);
            calibrations.entry((evidence[0], 0, "window")).or_default().note(predicted, age < window);
            for (from, to) in [(0, 5), (5, 20), (20, 41), (41, 70), (70, length)] {
                let predicted = posterior.within(to as f64) - posterior.within(from as f64);
                calibrations
                    .entry((Evidence::ABSENT, from, "age"))
                    .or_default()
                    .note(predicted, (from..to).contains(&age));
            }
            calibrations
                .entry((Evidence::ABSENT, 0, "never"))
                .or_default()
                .note(1.0 - posterior.ever(), age == u64::MAX);
        };
        inference.each(&[queried], Moments::Untimed, PerKey::All(p), length as f64, each).unwrap();
    }
    let wrong: Vec<String> = calibrations
        .iter()
        .filter(|(_, calibration)| !calibration.holds())
        .map(|((evidence, from, what), Calibration { trials, predicted, happened })| {
            format!(
                "{name}, p {p}, evidence {evidence:?}, {what} {from}: {happened} of {trials}, predicted {predicted:.1}"
            )
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn posteriors_are_the_shares_of_streams() {
    std::thread::scope(|scope| {
        for (p, window) in [(0.003, 41), (0.003, 17), (0.03, 41), (0.03, 17)] {
            scope.spawn(move || {
                for (name, filter) in small_filters() {
                    check_against_streams(name, &filter, p, trials(6_000), window);
                }
            });
        }
    });
}

/// Draws streams on a clock of time, for keys that come at random moments, one a second and in every other stream ten
/// times as fast after half of it. Compares the posterior some seconds after the last key.
fn check_against_timed_streams(name: &str, empty: &AnyFilter, p: f64, streams: u64) {
    let mut calibrations: HashMap<(u64, u64), Calibration> = HashMap::new();
    let queried = key(1 << 20, 0);
    for stream in 0..streams {
        let (mut filter, mut uniform) = (empty.clone(), uniform(stream + 8));
        let (mut now, mut last) = (0.0, f64::NEG_INFINITY);
        // The prior is the key's own rate, which does not depend on the other keys.
        for i in 0..100 + key(7, stream) % 100 {
            let others = if i > 80 && stream % 2 == 1 { 10.0 } else { 1.0 };
            now -= (1.0 - uniform()).ln() / (others + p);
            let is_queried = uniform() < p / (others + p);
            let hash = if is_queried { queried } else { key(stream, i) };
            last = if is_queried { now } else { last };
            filter.engine_mut().insert(&[hash], Moments::At((now * SECOND) as i64)).unwrap();
        }
        let at = now + (stream % 3) as f64 * 4.0;
        let inference = Inference::new(filter.engine()).unwrap();
        let each = |_, posterior: &Posterior<'_>| {
            for window in [15u32, 30, 41, 55] {
                let predicted = posterior.within(f64::from(window));
                calibrations
                    .entry((window.into(), (predicted * 10.0) as u64))
                    .or_default()
                    .note(predicted, at - last < window.into());
            }
        };
        let moment = Moments::At((at * SECOND) as i64);
        inference.each(&[queried], moment, PerKey::All(p), f64::INFINITY, each).unwrap();
    }
    let wrong: Vec<String> = calibrations
        .iter()
        .filter(|(_, calibration)| !calibration.holds())
        .map(|((window, tenth), Calibration { trials, predicted, happened })| {
            format!("{name}, rate {p}, {window} s, tenth {tenth}: {happened} of {trials}, predicted {predicted:.1}")
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn timed_filters() -> Vec<(&'static str, AnyFilter)> {
    let ring = slices::shape::RingShape::age_partitioned(3, 4, Segment::Bits { bits: 61, parts: 1 }).unwrap();
    let epochs = slices::shape::RingShape::guarded_epoch(3, Segment::Bits { bits: 90, parts: 2 }).unwrap();
    let timers = timing::shape::TimingShape::new(3, 3, 4, 105, 1).unwrap();
    let limited = time_limited::shape::TimeLimitedShape::new(2, 4, 512).unwrap();
    let part = timing::shape::TimingShape::new(3, 3, 4, 60, 1).unwrap();
    let growing = |limit| AnyFilter::new(growing::Growing { part, limit }, TIMED, 0).unwrap();
    // Epochs of 20 keys, as the others have 10 or more: with fewer, a key's own bits are too large a share.
    let long = Window::Time { span: 140_000_000_000, lateness: 0, capacity: 140 };
    vec![
        ("parts of 25 keys", growing(growing::Limit::Keys(25))),
        ("parts of 75 timers", growing(growing::Limit::Timers(75))),
        ("k = 3 of 7 slices", AnyFilter::new(ring, TIMED, 0).unwrap()),
        ("4 segments", AnyFilter::new(epochs, TIMED, 0).unwrap()),
        ("8 epochs, transposed", transposed(128, long)),
        ("timers of 4 blocks", AnyFilter::new(timers, TIMED, 0).unwrap()),
        ("slices as many as needed", AnyFilter::new(limited, TIMED, 0).unwrap()),
    ]
}

#[test]
fn posteriors_of_time_are_the_shares_of_streams() {
    for (name, filter) in timed_filters() {
        for p in [0.003, 0.03] {
            check_against_timed_streams(name, &filter, p, trials(20_000));
        }
    }
}

/// Returns numbers in [0, 1), equal in every run.
fn uniform(stream: u64) -> impl FnMut() -> f64 {
    let mut i = 0;
    move || {
        i += 1;
        (key(stream, i) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Returns generations that each begin when the one before ends.
fn generations(begins: &[f64]) -> Vec<Generation> {
    let ends = [0.0].into_iter().chain(begins.iter().copied());
    begins.iter().zip(ends).map(|(&began, ended)| Generation { ended, began, exposure: began - ended }).collect()
}

/// Returns the probability of each generation to be the youngest that contains the key, and of none, summed over all
/// sets of generations that may contain it.
fn enumerated(k: usize, lengths: &[f64], rates: &[f64], matches: u128, p: f64) -> Vec<f64> {
    let slices = rates.len();
    let mut youngest = vec![0.0; slices + 1];
    for held in 0u32..1 << slices {
        let mut weight = 1.0;
        for j in 0..slices {
            let never = (1.0 - p).powf(lengths[j]);
            weight *= if held >> j & 1 == 1 { 1.0 - never } else { never };
            let covered = (0..k.min(j + 1)).any(|back| held >> (j - back) & 1 == 1);
            let matched = if covered { 1.0 } else { rates[j] };
            weight *= if matches >> j & 1 == 1 { matched } else { 1.0 - matched };
        }
        youngest[(held.trailing_zeros() as usize).min(slices)] += weight;
    }
    let all: f64 = youngest.iter().sum();
    youngest.iter().map(|weight| weight / all).collect()
}

#[test]
fn the_posterior_of_a_ring_is_the_sum_over_all_histories() {
    for (round, k) in (0..400).zip([1, 2, 3, 5].into_iter().cycle()) {
        let mut uniform = uniform(round);
        let slices = k + 1 + (uniform() * 6.0) as usize;
        let lengths: Vec<f64> = (0..slices).map(|_| (1.0 + uniform() * 9.0).floor()).collect();
        let begins: Vec<f64> = (0..slices).map(|j| lengths[..=j].iter().sum()).collect();
        let rates: Vec<f64> = (0..slices).map(|_| 0.001 + 0.998 * uniform()).collect();
        let ring = RingLikelihood::new(k as u32, generations(&begins), &rates);
        for p in [1e-4, 0.02, 0.3, 0.8] {
            let matches = (0..slices).fold(0, |matches, j| matches | u128::from(uniform() < 0.8) << j);
            let expected = enumerated(k, &lengths, &rates, matches, p);
            let mut spans = Vec::new();
            ring.last_inserted(not_ruled_out(matches, k as u32, slices as u32), Hazard::per_insertion(p), &mut spans);
            let mut got = vec![0.0; slices + 1];
            for span in &spans {
                got[begins.iter().position(|&begin| begin == span.to).unwrap_or(slices)] = span.probability;
            }
            let worst = got.iter().zip(&expected).map(|(got, expected)| (got - expected).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-12, "k {k}, {matches:b}, p {p}: {got:?} for {expected:?}");
        }
    }
}

/// Checks the laws of any posterior.
pub(crate) fn check_laws(spans: &[Span], hazard: Hazard, gap: f64, end: f64) -> Result<(), String> {
    let sum: f64 = spans.iter().map(|span| span.probability).sum();
    let posterior = Posterior::new(spans, hazard, gap, end);
    let ages = [0.0, 0.5, 1.0, 7.0, 40.0, 1e3, 1e9, 1e300, f64::INFINITY];
    let below = ages.map(|age| posterior.within(age));
    let [likely, expected] = [posterior.most_likely(), posterior.expected()];
    let end = end + gap;
    let wrong = (sum - 1.0).abs() > 1e-12
        || spans.windows(2).any(|pair| pair[0].to > pair[1].from)
        || below.iter().any(|below| !(0.0..=1.0).contains(below))
        || below.windows(2).any(|pair| pair[0] > pair[1] + 1e-15)
        || !(likely >= gap && expected >= gap)
        || (posterior.ever() > 0.0 && expected.is_finite() && expected > end);
    if wrong { Err(format!("{spans:?} {hazard:?}: {below:?} {likely} {expected}")) } else { Ok(()) }
}

#[test]
fn no_state_and_no_prior_breaks_the_laws() {
    for (round, k) in (0..300).zip([1, 2, 7, 30].into_iter().cycle()) {
        let mut uniform = uniform(round);
        let slices = (k + 1 + (uniform() * 97.0) as usize).min(128);
        // Generations of no length too, as in a stream that has just started.
        let mut begin = 0.0;
        let lengths = (0..slices).map(|_| if uniform() < 0.3 { 0.0 } else { 10f64.powf(uniform() * 12.0).floor() });
        let begins: Vec<f64> = lengths
            .map(|length| {
                begin += length;
                begin
            })
            .collect();
        let fill = |uniform: &mut dyn FnMut() -> f64| [0.0, 1.0, uniform(), 1e-12][(uniform() * 4.0) as usize];
        let rates: Vec<f64> = (0..slices).map(|_| fill(&mut uniform)).collect();
        let ring = RingLikelihood::new(k as u32, generations(&begins), &rates);
        for p in [0.0, 5e-324, 1e-300, 1e-12, 1e-3, 0.5, 1.0 - 1e-16, 1.0] {
            for hazard in [Hazard::per_insertion(p), Hazard::per_second(p), Hazard::per_second(p * 1e300)] {
                let random = (0..slices).fold(0, |matches, j| matches | u128::from(uniform() < 0.9) << j);
                for matches in [0, u128::MAX >> (128 - slices), random] {
                    let mut spans = Vec::new();
                    ring.last_inserted(not_ruled_out(matches, k as u32, slices as u32), hazard, &mut spans);
                    for (gap, end) in [(0.0, f64::INFINITY), (3.0, f64::INFINITY), (0.0, begin), (0.0, 1.0)] {
                        check_laws(&spans, hazard, gap, end).unwrap();
                    }
                }
            }
        }
    }
}

#[test]
fn a_key_of_prior_zero_has_posterior_zero() {
    for (name, mut filter) in small_filters() {
        let keys: Vec<u64> = (0..300).map(|i| key(0, i)).collect();
        insert(&mut filter, &keys);
        let inference = Inference::new(filter.engine()).unwrap();
        let mut posteriors = vec![1.0; keys.len()];
        inference
            .posterior(&keys, Moments::Untimed, PerKey::All(0.0), 41.0, &mut PosteriorCache::new(300), &mut posteriors)
            .unwrap();
        assert!(posteriors.iter().all(|&posterior| posterior == 0.0), "{name}");
        // A key that is every insertion was the last one.
        inference
            .posterior(
                &keys[299..],
                Moments::Untimed,
                PerKey::All(1.0),
                1.0,
                &mut PosteriorCache::new(300),
                &mut posteriors[..1],
            )
            .unwrap();
        assert_eq!(posteriors[0], 1.0, "{name}");
    }
}

#[test]
fn a_posterior_from_the_cache_is_right_to_a_hundred_thousandth() {
    for (name, mut filter) in small_filters() {
        let fading = name.starts_with("cells") || name.ends_with("zeros");
        insert(&mut filter, &(0..150).map(|i| key(0, i)).collect::<Vec<_>>());
        let inference = Inference::new(filter.engine()).unwrap();
        let keys: Vec<u64> = (60..160).map(|i| key(0, i)).collect();
        let mut uniform = uniform(1);
        for window in [5.0, 41.0] {
            let mut cache = PosteriorCache::new(300);
            for _ in 0..50 {
                let priors: Vec<f64> = keys.iter().map(|_| 10f64.powf(-6.0 * uniform())).collect();
                let mut posteriors = vec![f64::NAN; keys.len()];
                let prior = PerKey::Each(&priors);
                inference.posterior(&keys, Moments::Untimed, prior, window, &mut cache, &mut posteriors).unwrap();
                inference
                    .each(&keys, Moments::Untimed, prior, 150.0, |key, exact| {
                        let (exact, got) = (exact.within(window), posteriors[key]);
                        let error = if fading { 1e-4 } else { 1e-5 };
                        assert!((exact - got).abs() < error, "{name}: {got} for {exact} at p {}", priors[key]);
                    })
                    .unwrap();
            }
        }
    }
}

/// The batch has enough keys for tables with a place for every code, in lines that have them, and others for
/// comparison.
#[test]
fn a_key_has_the_same_posterior_in_a_large_batch_and_alone() {
    let window = Window::Count { insertions: 4000 };
    let keys: Vec<u64> = (0..9000).map(|i| key(0, i)).collect();
    let priors: Vec<f64> = (0..4500).map(|i| 10f64.powf(-f64::from(i % 97) / 12.0)).collect();
    let lines = [(1, 7, 1, 1), (2, 6, 2, 1), (2, 6, 3, 2), (1, 15, 2, 1), (3, 29, 4, 2)].map(|(k, l, pages, lines)| {
        AnyFilter::new(lines::shape::LineShape::age_partitioned(k, l, pages, lines).unwrap(), window, 0).unwrap()
    });
    let slices = [(2, 2, 2, 1), (3, 4, 8, 2), (30, 6, 62, 1), (3, 7, 63, 1)].map(|(k, bpt, blocks, equal)| {
        AnyFilter::new(timing::shape::TimingShape::new(k, bpt, blocks, 20_000, equal).unwrap(), window, 0).unwrap()
    });
    for mut filter in lines.into_iter().chain(slices) {
        insert(&mut filter, &keys[..7000]);
        let name = format!("{} {:?}", filter.name(), filter.parameters());
        let inference = Inference::new(filter.engine()).unwrap();
        let queried = &keys[4500..];
        for prior in [PerKey::All(1e-4), PerKey::All(0.3), PerKey::Each(&priors)] {
            let mut large = PosteriorCache::new(queried.len());
            for window in [4000.0, 1234.0] {
                let mut posteriors = vec![f64::NAN; queried.len()];
                inference.posterior(queried, Moments::Untimed, prior, window, &mut large, &mut posteriors).unwrap();
                for (i, (posterior, &key)) in posteriors.into_iter().zip(queried).enumerate() {
                    let (prior, mut alone) = (prior.slice(i..i + 1), [f64::NAN]);
                    let mut cache = PosteriorCache::new(1);
                    inference.posterior(&[key], Moments::Untimed, prior, window, &mut cache, &mut alone).unwrap();
                    assert_eq!(posterior.to_bits(), alone[0].to_bits(), "{name} {prior:?} {window} {i}");
                }
            }
        }
    }
}

/// A stand-in for the curve of a stream whose keys repeat: of the uniform law over 50 keys.
fn fifty_keys(insertions: &[f64]) -> Option<Vec<f64>> {
    Some(insertions.iter().map(|n| 50.0 * -(n * (-1.0f64 / 50.0).ln_1p()).exp_m1()).collect())
}

#[test]
fn a_generalized_posterior_is_the_sum_over_all_ages() {
    for (round, k) in (0..120).zip([1, 3, 10, 25, 60].into_iter().cycle()) {
        let mut uniform = uniform(round);
        let bits = 10f64.powf(1.5 + 3.0 * uniform()).floor();
        let shape =
            generalized::shape::GeneralizedShape::new(bits as u64, k, 1 + (uniform() * f64::from(k)) as u32).unwrap();
        let inserted = 10f64.powf(5.0 * uniform()).floor();
        let log_kept = f64::from(shape.k0 + shape.k1) * (-1.0 / bits).ln_1p();
        let ones = (bits * shape.steady_fill() * -(inserted * log_kept).exp_m1()).round();
        let mut some = |of: u32| (f64::from(of + 1) * uniform().sqrt()) as u32;
        let evidence =
            Matches { zeros: shape.k0, zeros_matching: some(shape.k0), ones: shape.k1, ones_matching: some(shape.k1) };
        for (distinct, error) in [(None, 1e-9), (Some(&fifty_keys as &Distinct<'_>), 1e-3)] {
            let keys = |n: f64| distinct.map_or(n, |distinct| distinct(&[n]).unwrap()[0]);
            let untouched = (keys(inserted) * log_kept).exp();
            let one_more = 0.5 * (1.0 - untouched) + shape.steady_fill() * untouched;
            let one = (ones + one_more) / ((bits * (1.0 - untouched)).max(ones) + 1.0);
            let gone = (ones + 0.5) / (bits + 1.0);
            let ratio = |age: f64| {
                let (kept, lost) = ((keys(age) * log_kept).exp(), -(keys(age) * log_kept).exp_m1());
                let (c0, c1) = (evidence.zeros_matching as i32, evidence.ones_matching as i32);
                ((1.0 - one + one * kept) / (1.0 - gone)).powi(c0)
                    * ((one + (1.0 - one) * kept) / gone).powi(c1)
                    * (one * lost / gone).powi(shape.k0 as i32 - c0)
                    * ((1.0 - one) * lost / (1.0 - gone)).powi(shape.k1 as i32 - c1)
            };
            for p in [1e-9, 1e-4, 0.02, 0.4f64] {
                let queried = [1.0, 10f64.powf(2.0 * uniform()).floor(), 10f64.powf(5.0 * uniform()).floor()];
                let never = (inserted * (-p).ln_1p()).exp();
                let weights: Vec<f64> = (0..inserted as u32)
                    .map(f64::from)
                    .map(|age| p * (age * (-p).ln_1p()).exp() * ratio(age))
                    .collect();
                let all = weights.iter().sum::<f64>() + never;
                if all < 1e-250 || !all.is_finite() {
                    continue;
                }
                let question = Question { ages: &queried, distinct, few: None };
                let likelihood = likelihood(shape, inserted as u64, ones, &question);
                let (mut spans, hazard) = (Vec::new(), Hazard::per_insertion(p));
                likelihood.last_inserted(evidence.evidence(), hazard, &mut spans);
                check_laws(&spans, hazard, 0.0, inserted).unwrap();
                let posterior = Posterior::new(&spans, hazard, 0.0, inserted);
                for age in queried {
                    let expected = weights.iter().take(age as usize).sum::<f64>() / all;
                    let got = posterior.within(age);
                    assert!((got - expected).abs() < error, "{shape:?} {evidence:?} {p} {age}: {got} for {expected}");
                }
            }
        }
    }
}
