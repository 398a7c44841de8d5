//! Posteriors against streams drawn from the prior: among all filters whose cells say the same of a key, the share of
//! those that hold it at an age is what the posterior says. And the laws that hold for any evidence: sums of 1, nothing
//! outside [0, 1], from empty filters to saturated ones and priors from 0 to 1.

#[allow(dead_code, reason = "the rest is for promises")]
mod common;

use std::collections::HashMap;

use common::{insert, key};
use lately::clock::{Moments, Window};
use lately::filter::{AgePartitioned, Filter, GuardedEpoch, TimeLimited, Timing, Transposed};
use lately::inference::ring::{Generation, Ring, not_ruled_out};
use lately::inference::{Hazard, Inference, Likelihood, Memo, PerKey, Posterior, Span};
use lately::sizing::{age_partitioned, guarded_epoch, time_limited, timing};

const WINDOW: Window = Window::Count { insertions: 41 };
const SECOND: f64 = 1e9;
/// 41 keys in 41 seconds.
const TIMED: Window = Window::Time { span: 41_000_000_000, lateness: 0, capacity: 41 };

fn transposed(positions: u64, window: Window) -> Box<dyn Filter> {
    Box::new(Transposed::new(guarded_epoch::Shape::transposed(7, 2, positions).unwrap(), window, 0).unwrap())
}

/// Small filters at some tens of percent of false positives, so that all evidence is ambiguous.
fn small_filters() -> Vec<(&'static str, Box<dyn Filter>)> {
    let ring = |k, l, segment| {
        let shape = age_partitioned::Shape::new(k, l, segment).unwrap();
        Box::new(AgePartitioned::new(shape, WINDOW, 0).unwrap()) as Box<dyn Filter>
    };
    let epochs = |r, segment| {
        let shape = guarded_epoch::Shape::new(r, segment).unwrap();
        Box::new(GuardedEpoch::new(shape, WINDOW, 0).unwrap()) as Box<dyn Filter>
    };
    let timers = |k, bpt, blocks, slice| {
        let shape = timing::Shape::new(k, bpt, blocks, slice, 1).unwrap();
        Box::new(Timing::new(shape, WINDOW, 0).unwrap()) as Box<dyn Filter>
    };
    vec![
        ("timers of 4 blocks", timers(3, 3, 4, 105)),
        ("timers of 40 blocks", timers(2, 6, 40, 200)),
        ("k = 3 of 7 slices", ring(3, 4, age_partitioned::Segment::Slice { bits: 61 })),
        ("k = 1 of 3 slices", ring(1, 2, age_partitioned::Segment::Slice { bits: 90 })),
        ("k = 2 of 6 blocked", ring(2, 4, age_partitioned::Segment::Blocks { blocks: 2, block_bits: 64, parts: 2 })),
        ("4 segments", epochs(3, guarded_epoch::Segment::Bloom { bits: 90, k: 2 })),
        ("8 epochs, transposed", transposed(40, WINDOW)),
        ("5 blocked segments", epochs(4, guarded_epoch::Segment::Blocks { blocks: 2, block_bits: 64, parts: 2 })),
    ]
}

/// What was said of keys, and how often it came true.
#[derive(Default, Clone, Copy)]
struct Tally {
    trials: f64,
    said: f64,
    happened: f64,
}

impl Tally {
    fn note(&mut self, said: f64, happened: bool) {
        self.trials += 1.0;
        self.said += said;
        self.happened += f64::from(u8::from(happened));
    }

    /// Whether what happened lies within five standard deviations of what was said, and a thousandth of a trial.
    fn holds(&self) -> bool {
        let variance = self.said * (1.0 - self.said / self.trials).max(0.0);
        (self.happened - self.said).abs() <= 5.0 * variance.sqrt() + 5.0
    }
}

/// Draws streams in which each insertion is the key with probability `p` and otherwise fresh, stops at every phase,
/// and holds the posterior of the key, for a prior of `told`, against what was inserted, evidence by evidence.
fn check_against_streams(
    name: &str,
    empty: &dyn Filter,
    (p, told): (f64, f64),
    streams: u64,
    window: u64,
) -> Result<(), String> {
    let mut tallies: HashMap<(u128, u64, &str), Tally> = HashMap::new();
    let asked = key(1 << 20, 0);
    for stream in 0..streams {
        let mut filter = empty.clone_box();
        let length = 100 + key(7, stream) % 40;
        let drawn = |i: u64| (key(stream + 8, i) >> 11) as f64 / (1u64 << 53) as f64;
        let keys: Vec<u64> = (0..length).map(|i| if drawn(i) < p { asked } else { key(stream, i) }).collect();
        insert(&mut *filter, &keys);
        let age = keys.iter().rev().position(|&key| key == asked).map_or(u64::MAX, |age| age as u64);
        let mut evidence = [0];
        filter.engine().evidence(&[asked], &mut evidence);
        let inference = Inference::new(filter.engine()).unwrap();
        let each = |_, posterior: &Posterior<'_>| {
            let said = posterior.within(window as f64);
            tallies.entry((evidence[0], 0, "window")).or_default().note(said, age < window);
            for (from, to) in [(0, 5), (5, 20), (20, 41), (41, 70), (70, length)] {
                let said = posterior.within(to as f64) - posterior.within(from as f64);
                tallies.entry((u128::MAX, from, "age")).or_default().note(said, (from..to).contains(&age));
            }
            tallies.entry((u128::MAX, 0, "never")).or_default().note(1.0 - posterior.ever(), age == u64::MAX);
        };
        inference.each(&[asked], Moments::Untimed, PerKey::All(told), length as f64, each).unwrap();
    }
    let wrong: Vec<String> = tallies
        .iter()
        .filter(|(_, tally)| !tally.holds())
        .map(|((evidence, from, what), Tally { trials, said, happened })| {
            format!("{name}, p {p}, evidence {evidence:b}, {what} {from}: {happened} of {trials}, said {said:.1}")
        })
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

#[test]
fn posteriors_are_the_shares_of_streams() {
    std::thread::scope(|scope| {
        for (p, window) in [(0.003, 41), (0.003, 17), (0.03, 41), (0.03, 17)] {
            scope.spawn(move || {
                for (name, filter) in small_filters() {
                    check_against_streams(name, &*filter, (p, p), 20_000, window).unwrap();
                }
            });
        }
    });
}

/// The same on a clock of time, for keys that come at random moments, one a second and in every other stream ten times
/// as fast after half of it; asked some seconds after the last.
fn check_against_timed_streams(
    name: &str,
    empty: &dyn Filter,
    (p, told): (f64, f64),
    streams: u64,
) -> Result<(), String> {
    let mut tallies: HashMap<(u64, u64), Tally> = HashMap::new();
    let asked = key(1 << 20, 0);
    for stream in 0..streams {
        let (mut filter, mut uniform) = (empty.clone_box(), uniform(stream + 8));
        let (mut now, mut last) = (0.0, f64::NEG_INFINITY);
        // The prior is the key's own rate, which stays the same however many others come.
        for i in 0..100 + key(7, stream) % 100 {
            let others = if i > 80 && stream % 2 == 1 { 10.0 } else { 1.0 };
            now -= (1.0 - uniform()).ln() / (others + p);
            let is_asked = uniform() < p / (others + p);
            let hash = if is_asked { asked } else { key(stream, i) };
            last = if is_asked { now } else { last };
            filter.engine_mut().insert(&[hash], Moments::At((now * SECOND) as i64)).unwrap();
        }
        let at = now + (stream % 3) as f64 * 4.0;
        let inference = Inference::new(filter.engine()).unwrap();
        let each = |_, posterior: &Posterior<'_>| {
            for window in [15u32, 30, 41, 55] {
                let said = posterior.within(f64::from(window));
                tallies.entry((window.into(), (said * 10.0) as u64)).or_default().note(said, at - last < window.into());
            }
        };
        let moment = Moments::At((at * SECOND) as i64);
        inference.each(&[asked], moment, PerKey::All(told), f64::INFINITY, each).unwrap();
    }
    let wrong: Vec<String> = tallies
        .iter()
        .filter(|(_, tally)| !tally.holds())
        .map(|((window, tenth), Tally { trials, said, happened })| {
            format!("{name}, rate {p}, {window} s, tenth {tenth}: {happened} of {trials}, said {said:.1}")
        })
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

fn timed_filters() -> Vec<(&'static str, Box<dyn Filter>)> {
    let ring = age_partitioned::Shape::new(3, 4, age_partitioned::Segment::Slice { bits: 61 }).unwrap();
    let epochs = guarded_epoch::Shape::new(3, guarded_epoch::Segment::Bloom { bits: 90, k: 2 }).unwrap();
    let timers = timing::Shape::new(3, 3, 4, 105, 1).unwrap();
    let limited = time_limited::Shape::new(2, 4).unwrap();
    // Epochs of 20 keys, as the others have 10 or more: of fewer, a key's own bits are too large a share.
    let long = Window::Time { span: 140_000_000_000, lateness: 0, capacity: 140 };
    vec![
        ("k = 3 of 7 slices", Box::new(AgePartitioned::new(ring, TIMED, 0).unwrap())),
        ("4 segments", Box::new(GuardedEpoch::new(epochs, TIMED, 0).unwrap())),
        ("8 epochs, transposed", transposed(128, long)),
        ("timers of 4 blocks", Box::new(Timing::new(timers, TIMED, 0).unwrap())),
        ("slices as many as needed", Box::new(TimeLimited::new(limited, 512, TIMED, 0).unwrap())),
    ]
}

#[test]
fn posteriors_of_time_are_the_shares_of_streams() {
    for (name, filter) in timed_filters() {
        for p in [0.003, 0.03] {
            check_against_timed_streams(name, &*filter, (p, p), 20_000).unwrap();
        }
        assert!(check_against_timed_streams(name, &*filter, (0.01, 0.02), 20_000).is_err(), "{name}");
    }
}

#[test]
fn the_check_fails_for_a_prior_that_is_not_the_streams() {
    for (name, filter) in small_filters() {
        assert!(check_against_streams(name, &*filter, (0.01, 0.013), 20_000, 41).is_err(), "{name}");
    }
}

/// Numbers in [0, 1), the same in every run.
fn uniform(stream: u64) -> impl FnMut() -> f64 {
    let mut i = 0;
    move || {
        i += 1;
        (key(stream, i) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Generations that each begin when the one before ends.
fn generations(begins: &[f64]) -> Vec<Generation> {
    let ends = [0.0].into_iter().chain(begins.iter().copied());
    begins.iter().zip(ends).map(|(&began, end)| Generation { began, exposure: began - end }).collect()
}

/// The probability of each generation to be the youngest that holds the key, and of none, summed over all sets of
/// generations that may hold it.
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
fn a_rings_posterior_is_the_sum_over_all_its_pasts() {
    for (round, k) in (0..400).zip([1, 2, 3, 5].into_iter().cycle()) {
        let mut uniform = uniform(round);
        let slices = k + 1 + (uniform() * 6.0) as usize;
        let lengths: Vec<f64> = (0..slices).map(|_| (1.0 + uniform() * 9.0).floor()).collect();
        let begins: Vec<f64> = (0..slices).map(|j| lengths[..=j].iter().sum()).collect();
        let rates: Vec<f64> = (0..slices).map(|_| 0.001 + 0.998 * uniform()).collect();
        let ring = Ring::new(k as u32, generations(&begins), &rates);
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

/// What holds for any posterior.
fn check_laws(spans: &[Span], hazard: Hazard, gap: f64, end: f64) -> Result<(), String> {
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
        // Generations of no length too: of a stream that has just begun.
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
        let ring = Ring::new(k as u32, generations(&begins), &rates);
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
fn a_key_that_never_comes_has_not_come() {
    for (name, mut filter) in small_filters() {
        let keys: Vec<u64> = (0..300).map(|i| key(0, i)).collect();
        insert(&mut *filter, &keys);
        let inference = Inference::new(filter.engine()).unwrap();
        let mut posteriors = vec![1.0; keys.len()];
        inference
            .posterior(&keys, Moments::Untimed, PerKey::All(0.0), 41.0, &mut Memo::new(), &mut posteriors)
            .unwrap();
        assert!(posteriors.iter().all(|&posterior| posterior == 0.0), "{name}");
        // And one that is all that comes was the last one.
        inference
            .posterior(&keys[299..], Moments::Untimed, PerKey::All(1.0), 1.0, &mut Memo::new(), &mut posteriors[..1])
            .unwrap();
        assert_eq!(posteriors[0], 1.0, "{name}");
    }
}

#[test]
fn a_posterior_from_the_memo_is_right_to_a_hundred_thousandth() {
    for (name, mut filter) in small_filters() {
        insert(&mut *filter, &(0..150).map(|i| key(0, i)).collect::<Vec<_>>());
        let inference = Inference::new(filter.engine()).unwrap();
        let keys: Vec<u64> = (60..160).map(|i| key(0, i)).collect();
        let mut uniform = uniform(1);
        for window in [5.0, 41.0] {
            let mut memo = Memo::new();
            for _ in 0..50 {
                let priors: Vec<f64> = keys.iter().map(|_| 10f64.powf(-6.0 * uniform())).collect();
                let mut posteriors = vec![f64::NAN; keys.len()];
                let prior = PerKey::Each(&priors);
                inference.posterior(&keys, Moments::Untimed, prior, window, &mut memo, &mut posteriors).unwrap();
                inference
                    .each(&keys, Moments::Untimed, prior, 150.0, |key, exact| {
                        let (exact, got) = (exact.within(window), posteriors[key]);
                        assert!((exact - got).abs() < 1e-5, "{name}: {got} for {exact} at p {}", priors[key]);
                    })
                    .unwrap();
            }
        }
    }
}
