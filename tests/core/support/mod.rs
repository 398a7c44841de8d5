//! Streams of keys, and the check of the promise: shared by the tests of several filters.

pub mod calibration;
pub mod timed;

use std::collections::VecDeque;
use std::sync::Arc;

use lately::clock::{Moments, Window};
use lately::family::{AnyFilter, Shape};

/// Returns key number `i` of a stream, by splitmix64: a bijection, so keys of one stream never repeat.
pub fn key(stream: u64, i: u64) -> u64 {
    let mut z = (stream << 40).wrapping_add(i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns whether LATELY_CAMPAIGN is set, as `uv run pytest -m campaign` does: minutes of trials instead of seconds.
pub fn campaign() -> bool {
    std::env::var_os("LATELY_CAMPAIGN").is_some()
}

/// Returns `trials` in a campaign, else a sixteenth of them. Bounds must come from the number that is returned.
pub fn trials(campaign_trials: u64) -> u64 {
    if campaign() { campaign_trials } else { campaign_trials / 16 }
}

/// Inserts the keys in order.
pub fn insert(filter: &mut AnyFilter, keys: &[u64]) {
    filter.engine_mut().insert(keys, Moments::Untimed).unwrap();
}

/// Returns how many of the keys are reported.
pub fn present(filter: &AnyFilter, keys: &[u64]) -> usize {
    let mut present = vec![false; keys.len()];
    filter.engine().query(keys, Moments::Untimed, &mut present).unwrap();
    present.into_iter().filter(|&present| present).count()
}

/// Checks at every phase of `insertions` insertions that the oldest key of the last `window` is reported. Checks all of
/// the last `window` keys after every `generation` insertions, when a loss is most likely.
pub fn check_window(filter: &mut AnyFilter, window: u64, generation: u64, insertions: u64) -> Result<(), String> {
    let mut last = VecDeque::new();
    for n in 0..insertions {
        insert(filter, &[key(0, n)]);
        last.push_back(key(0, n));
        if last.len() as u64 > window {
            last.pop_front();
        }
        let just_shifted = n % generation == 0;
        let checked = if just_shifted { last.make_contiguous() } else { &last.make_contiguous()[..1] };
        let missing = checked.len() - present(filter, checked);
        if missing > 0 {
            return Err(format!("{missing} of the last {window} keys are missing after insertion {n}"));
        }
    }
    Ok(())
}

/// Shares of fresh keys that filters of a shape report.
pub struct Rates {
    shares: Vec<f64>,
    fresh: u64,
}

impl Rates {
    /// Measures `filters` filters with `fresh` keys each, at the end of a generation in their third round.
    pub fn measure(shape: &Arc<dyn Shape>, window: Window, filters: u64, fresh: u64) -> Self {
        let generation = window.generation(shape.retained());
        let inserted = generation * (2 * (window.length() + shape.slack(window)).div_ceil(generation) + 1);
        let share = |stream| {
            let mut filter = AnyFilter::of(Arc::clone(shape), window, 0).unwrap();
            insert(&mut filter, &(0..inserted).map(|i| key(stream, i)).collect::<Vec<_>>());
            let keys: Vec<_> = (0..fresh).map(|i| key(stream, inserted + i)).collect();
            present(&filter, &keys) as f64 / fresh as f64
        };
        Self { shares: (0..filters).map(share).collect(), fresh }
    }

    /// Checks that the mean is `rate`, within five standard deviations of the mean over the filters, and of as many
    /// coins. Returns the share that was reported, or an error with that share and what would be allowed.
    ///
    /// The answers of one filter vary together, so that the filters are the trials.
    pub fn check(&self, rate: f64) -> Result<f64, (f64, f64)> {
        let (measured, scatter) = mean(&self.shares);
        let coins = (self.shares.len() as u64 * self.fresh) as f64;
        let allowed = scatter.max(5.0 * (rate * (1.0 - rate) / coins).sqrt());
        if (measured - rate).abs() <= allowed { Ok(measured) } else { Err((measured, allowed)) }
    }
}

/// Returns the mean of one share per filter, and five standard errors of that mean, estimated from the shares.
pub fn mean(shares: &[f64]) -> (f64, f64) {
    let n = shares.len() as f64;
    let mean = shares.iter().sum::<f64>() / n;
    let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, 5.0 * (variance / n).sqrt() + 1e-9)
}
