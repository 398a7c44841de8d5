//! What the cells of a stable filter tell. It is little: every key's cells are set to the same maximum and decremented
//! at random, so their minimum gives an age within a factor of two at best, and with one bit to a cell only whether the
//! key came lately.
//!
//! A cell that was set i insertions ago met an event, a decrement or another key, in each of them with chance q. It
//! holds less than v if the last Max - v + 1 events were decrements ([`shape::stable`](crate::shape::stable)). A key
//! that is gone finds the distribution over all cells, which is counted. If cells hold less than v more or less often
//! than they should after this many insertions of different keys, because keys repeat, the key's cells are taken to do
//! so by the same factor.

use super::fading::{Fading, Spans, edges};
use super::{Evidence, Likelihood, Question};
use crate::shape::stable::Shape;

/// The least likelihood of anything: an empty filter never expects a set cell.
const LEAST: f64 = 1e-300;

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

/// What the minimum of a key's cells tells after `inserted` insertions; `counts` cells of a sample hold each value.
pub fn likelihood(shape: Shape, inserted: u64, counts: &[u64], question: &Question<'_>) -> Box<dyn Likelihood> {
    let (values, k) = (counts.len(), shape.slices.k as i32);
    let minima = |below: &[f64]| -> Vec<f64> {
        let at_least = |value: usize| (1.0 - below[value]).powi(k);
        (0..values).map(|value| (at_least(value) - at_least(value + 1)).max(LEAST).ln()).collect()
    };
    let below = shares_below(counts);
    let (gone, expected) = (minima(&below), shape.below_from_empty(inserted as f64));
    let at_age = |age: f64| {
        let mut since_set = shape.below(age);
        for (value, since_set) in since_set.iter_mut().enumerate().take(values).skip(1) {
            *since_set = (*since_set * below[value] / expected[value].max(f64::MIN_POSITIVE)).min(1.0);
        }
        minima(&since_set).into_iter().zip(&gone).map(|(log, gone)| log - gone).collect::<Vec<_>>()
    };
    let fading = |ages: &[f64]| Minima { logs: ages.iter().flat_map(|&age| at_age(age)).collect(), values };
    Box::new(Spans::new(edges(inserted as f64, question.ages), fading))
}

/// The share of cells below each value, and below one more than the greatest. Half a cell is added on either side, so
/// that a sample without a value does not prove that there is none.
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
