//! The likelihood of the cells of a stable filter. It contains little information: every key's cells are set to the
//! same maximum and decremented at random. So their minimum gives an age within a factor of two at best. With one bit
//! to a cell it shows only whether the key came lately.
//!
//! A cell that was set i insertions ago met an event, a decrement or another key, in each of them with chance q. It
//! holds less than v if the last Max - v + 1 events were decrements ([`shape::stable`](super::shape)). A key
//! that is gone finds the distribution over all cells, which is counted.
//!
//! If keys repeat, the same few are set in a cell again and again, in others none: q is not that of the mean cell. With
//! D equally frequent keys in m cells, Poisson(D / m) others share a cell with the key, and each sets it with chance 1
//! / D. D / m is chosen to make the share of zeros, from the first insertion on, the one that is counted; many to a
//! cell are as good as all different. What remains for other values, since keys are not equally frequent, counts as the
//! same factor for the key's cells as for all.

use super::shape::StableShape;
use crate::family::baselines::fading::{Fading, Spans, edges};
use crate::inference::{Evidence, Likelihood, Question};

/// Least likelihood of any value: an empty filter never expects a set cell.
const LEAST: f64 = 1e-300;

/// Number of keys to a cell from which on all cells are set about equally often.
const MIN_KEYS_PER_CELL: f64 = 30.0;

/// Shares of the cells, and how often cells of each are set relative to the mean of all.
type Kinds = Vec<(f64, f64)>;

/// The logarithms of the likelihood of each minimum, at each age, relative to a key that is gone.
struct Minima {
    logs: Vec<f64>,
    values: usize,
}

impl Fading for Minima {
    fn log_likelihood(&self, minimum: Evidence, place: usize) -> f64 {
        self.logs[place * self.values + minimum.as_number() as usize]
    }
}

/// Returns the likelihood of the minimum of a key's cells after `inserted` insertions; `counts` cells of a sample have
/// each value.
pub fn likelihood(shape: StableShape, inserted: u64, counts: &[u64], question: &Question<'_>) -> Box<dyn Likelihood> {
    let (values, k) = (counts.len(), shape.slices.k as i32);
    let minima = |below: &[f64]| -> Vec<f64> {
        let at_least = |value: usize| (1.0 - below[value]).powi(k);
        (0..values).map(|value| (at_least(value) - at_least(value + 1)).max(LEAST).ln()).collect()
    };
    let below = shares_below(counts);
    let from_empty = |kinds: &Kinds| mean(kinds, |often| shape.below_from_empty(inserted as f64, often));
    let kinds = fitting(shape.slices.cells as f64, below[1], |kinds| from_empty(kinds)[1]);
    let (gone, expected) = (minima(&below), from_empty(&kinds));
    let at_age = |age: f64| {
        let mut since_set = mean(&kinds, |often| shape.below(age, often));
        for (value, since_set) in since_set.iter_mut().enumerate().take(values).skip(1) {
            *since_set = (*since_set * below[value] / expected[value].max(f64::MIN_POSITIVE)).min(1.0);
        }
        minima(&since_set).into_iter().zip(&gone).map(|(log, gone)| log - gone).collect::<Vec<_>>()
    };
    let fading = |ages: &[f64]| Minima { logs: ages.iter().flat_map(|&age| at_age(age)).collect(), values };
    Box::new(Spans::new(edges(inserted as f64, question.ages), fading))
}

/// Returns the mean over cells of each kind.
fn mean(kinds: &Kinds, of: impl Fn(f64) -> Vec<f64>) -> Vec<f64> {
    let mut mean = Vec::new();
    for &(share, often) in kinds {
        let of = of(often);
        mean.resize(of.len(), 0.0);
        mean.iter_mut().zip(of).for_each(|(mean, of)| *mean += share * of);
    }
    mean
}

/// Returns the kinds of cells that this many equally frequent keys share on average.
fn shared_by(keys: f64) -> Kinds {
    let most = (keys + 8.0 * keys.sqrt() + 8.0) as u32;
    let mut chance = (-keys).exp();
    let mut kinds: Kinds = Vec::new();
    for others in 0..=most {
        kinds.push((chance, f64::from(others) / keys));
        chance *= keys / f64::from(others + 1);
    }
    kinds
}

/// Returns the kinds of `cells` cells with a share of `zeros` zeros according to `expected`: by bisection of the
/// logarithm of the keys to a cell. All cells are of one kind if that is about as many zeros as different keys leave.
fn fitting(cells: f64, zeros: f64, expected: impl Fn(&Kinds) -> f64) -> Kinds {
    let (mut few, mut many) = ((1.0 / cells).min(1.0), MIN_KEYS_PER_CELL);
    if zeros <= expected(&shared_by(many)) {
        return vec![(1.0, 1.0)];
    }
    for _ in 0..24 {
        let keys = (few * many).sqrt();
        if zeros < expected(&shared_by(keys)) {
            few = keys;
        } else {
            many = keys;
        }
    }
    shared_by(few)
}

/// Returns the share of cells below each value, and below one more than the greatest. Half a cell is added on either
/// side, so that a sample without a value does not prove that there is none.
fn shares_below(counts: &[u64]) -> Vec<f64> {
    let sample = counts.iter().sum::<u64>() as f64;
    let mut below = vec![0.0];
    let mut sum = 0;
    for &count in &counts[..counts.len() - 1] {
        sum += count;
        below.push((sum as f64 + 0.5) / (sample + 1.0));
    }
    below.push(1.0);
    below
}
