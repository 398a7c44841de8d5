//! The likelihood of the match vector of a ring of slices: the age-partitioned filter and, with k = 1, the
//! guarded-epoch filter.
//!
//! The generation of age j, if it held the key, set the key's bits in the slices of age j to j + k - 1; bits set by
//! generations older than k + l have been cleared by now. A slice without the key's bits rules out every generation
//! that would have set them. The remaining generations hold the key independently a priori, with the odds of the prior
//! for their length. A slice covered by a generation that holds the key matches for certain; any other matches by
//! chance, at its measured rate.
//!
//! Summed over all sets of generations that hold the key, this is a chain from the oldest slice to the newest. Only the
//! odds that generation j holds the key, given that none younger does, are carried along. With g(s) the inverse of the
//! match rate of slice s, which is what covering it explains,
//!
//! ```text
//! odds(j)    = prior odds(j) * explains(j)
//! explains(j) = sum over t in j+1..j+k of   g(j)..g(t-1) * (1 - held(j+1))..(1 - held(t-1)) * held(t)
//!             +                             g(j)..g(j+k-1) * (1 - held(j+1))..(1 - held(j+k-1))
//! held(j)    = odds(j) / (1 + odds(j))
//! ```
//!
//! The key was then last inserted in generation j with probability held(j) * (1 - held(0))..(1 - held(j-1)); t is the
//! next older generation that holds the key while slices of j are still covered. Nothing here underflows or divides by
//! zero, from empty slices to full ones and p from 0 to 1. It costs k steps per generation that is not ruled out: none
//! for most keys that are not there, one step in all for most that are. Earlier insertions of the key count, as do
//! slices left by generations beyond l. Where slices share their keys, as the lanes of a line do, a run of them matches
//! more often than the product of its rates, so what it explains is measured as a whole.

use super::{Evidence, Hazard, Likelihood, PosteriorCurve, Span, chances};
use crate::clock::Clock;
use crate::inference::MAX_SLICES;
use crate::memory::bits::ones;

/// Least match rate: smaller ones come from samples in which hardly a bit was set.
const MIN_RATE: f64 = 1e-30;
/// Most that a run of slices can explain, so that products stay finite.
const MOST: f64 = 1e300;

/// Returns the possible generations in a match vector of `slices` slices, when a key takes `k` slices in a row. Bit j
/// is set if every slice that generation j has written, and that is still there, matches. Other bits of the vector are
/// ignored.
#[inline(always)]
pub fn not_ruled_out(matches: u128, k: u32, slices: u32) -> Evidence {
    let there = ones(slices);
    let mut ruled_out = !matches & there;
    let mut covered = 1;
    while covered < k {
        let step = covered.min(k - covered);
        ruled_out |= ruled_out >> step;
        covered += step;
    }
    Evidence::generations(!ruled_out & there)
}

/// The time in which a generation took keys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Generation {
    /// How long ago the generation took its last key, in insertions or seconds; by default when the next began.
    pub ended: f64,
    /// How long ago the generation began.
    pub began: f64,
    /// How long the generation took keys, adjusted if several keys share a moment.
    pub exposure: f64,
}

/// The likelihood of a ring of slices at one moment; by default one without slices, for keys that are not in question.
#[derive(Debug, Clone, Default)]
pub struct RingLikelihood {
    k: usize,
    /// The generations, the newest first; the open one ends at age 0.
    generations: Vec<Generation>,
    /// How much covering a run of slices explains: the inverse of the chance that all of it matches. Each slice has the
    /// runs of 1 to k slices that start at it; the longest is what a generation explains by itself.
    explains: Vec<f64>,
    /// The age up to which no key is without a trace, even if the generations do not reach that far.
    complete: f64,
}

impl RingLikelihood {
    /// Creates the likelihood of a ring in which every insertion writes the `k` newest slices. Each slice, the newest
    /// first, has the generation whose newest slice it is, and the chance that a fresh key matches.
    pub fn new(k: u32, generations: Vec<Generation>, match_rates: &[f64]) -> Self {
        let rate = |slice| match_rates.get(slice).map_or(1.0, |rate: &f64| rate.max(MIN_RATE));
        let runs = (0..match_rates.len()).flat_map(|j| {
            (j..j + k as usize).scan(1.0, move |run, slice| {
                *run *= rate(slice);
                Some(*run)
            })
        });
        Self::of_runs(k, generations, runs)
    }

    /// Creates the likelihood of slices that do not match independently: each slice has the chances that a fresh key
    /// matches all of the 1, 2, .. k slices from it on, as far as they exist.
    pub fn of_runs(k: u32, generations: Vec<Generation>, match_rates: impl Iterator<Item = f64>) -> Self {
        let explains = match_rates.map(|run| (1.0 / run).min(MOST)).collect();
        Self { k: k as usize, generations, explains, complete: 0.0 }
    }

    /// Returns the likelihood of a ring that keeps each slice with keys of the last `length` insertions or seconds:
    /// before its oldest generation came none of them.
    pub fn complete_to(self, length: f64) -> Self {
        Self { complete: length, ..self }
    }

    /// Creates the likelihood of a filter that cannot distinguish its generations: a key among the last `length`
    /// insertions matches, any other matches with this chance. With expected distinct keys in place of the rate this is
    /// equation 13 of paper 5.
    pub fn whole(length: u64, match_rate: f64) -> Self {
        let length = length as f64;
        Self::new(1, vec![Generation { ended: 0.0, began: length, exposure: length }], &[match_rate])
    }

    /// Creates the likelihood of a ring of generations that a clock has opened.
    pub fn of_clock(k: u32, clock: &Clock, match_rates: &[f64]) -> Self {
        let generation = |back: u64| {
            let ended = back.checked_sub(1).map_or(0.0, |next| clock.began(next));
            Generation { ended, began: clock.began(back), exposure: clock.exposure(back) }
        };
        Self::new(k, (0..match_rates.len() as u64).map(generation).collect(), match_rates)
    }

    /// Returns the age from which on no trace of a key is left.
    fn gone(&self) -> f64 {
        self.generations.last().map_or(0.0, |oldest| oldest.began).max(self.complete)
    }

    fn prior_odds(&self, generation: usize, hazard: Hazard) -> f64 {
        hazard.odds(self.generations[generation].exposure)
    }

    fn span(&self, generation: usize, probability: f64) -> Span {
        let Generation { ended, began, .. } = self.generations[generation];
        Span { from: ended, to: began, probability }
    }

    /// Returns what runs of 1 to k slices from one on explain.
    fn explains(&self, slice: usize) -> &[f64] {
        &self.explains[slice * self.k..][..self.k]
    }

    /// Writes the spans of the generations in `possible`. Returns the probability left for none of them.
    fn of_many(&self, possible: u128, hazard: Hazard, spans: &mut Vec<Span>) -> f64 {
        let (mut held, mut not_held) = ([0.0; MAX_SLICES as usize], [1.0; MAX_SLICES as usize]);
        // Most generations are equally long, and their odds are the same.
        let (mut exposure, mut prior_odds) = (f64::NAN, f64::NAN);
        let mut older_first = possible;
        while older_first != 0 {
            let j = older_first.ilog2() as usize;
            older_first &= !(1 << j);
            let (mut explains, mut none_between, runs) = (0.0, 1.0, self.explains(j));
            for (run, t) in runs.iter().zip(j + 1..(j + self.k).min(self.generations.len())) {
                explains += run * none_between * held[t];
                none_between *= not_held[t];
            }
            explains += runs[self.k - 1] * none_between;
            if self.generations[j].exposure != exposure {
                (exposure, prior_odds) = (self.generations[j].exposure, self.prior_odds(j, hazard));
            }
            (held[j], not_held[j]) = chances(prior_odds * explains);
        }
        let (mut none_younger, mut younger_first) = (1.0, possible);
        while younger_first != 0 {
            let j = younger_first.trailing_zeros() as usize;
            younger_first &= younger_first - 1;
            spans.push(self.span(j, none_younger * held[j]));
            none_younger *= not_held[j];
        }
        none_younger
    }
}

impl Likelihood for RingLikelihood {
    fn last_inserted(&self, evidence: Evidence, hazard: Hazard, spans: &mut Vec<Span>) {
        let possible = evidence.possible();
        let none_holds_it = match possible {
            0 => 1.0,
            _ if possible.is_power_of_two() => {
                let only = possible.trailing_zeros() as usize;
                let (held, not_held) = chances(self.prior_odds(only, hazard) * self.explains(only)[self.k - 1]);
                spans.push(self.span(only, held));
                not_held
            }
            _ => self.of_many(possible, hazard, spans),
        };
        spans.push(Span { from: self.gone(), to: f64::INFINITY, probability: none_holds_it });
    }

    fn posterior_curve(&self, evidence: Evidence, age: f64) -> Option<PosteriorCurve> {
        let possible = evidence.possible();
        if possible == 0 {
            return Some(PosteriorCurve::unknown(self.gone(), age));
        }
        let (i, j) = (possible.trailing_zeros() as usize, possible.ilog2() as usize);
        let Generation { ended, began, exposure } = self.generations[j];
        let curve = PosteriorCurve::of_span((ended, began), exposure, self.explains(j)[self.k - 1], self.gone(), age)?;
        let younger = &self.generations[i];
        let both = possible.count_ones() == 2 && younger.began <= age;
        match self.explains(i) {
            _ if i == j => Some(curve),
            // A generation explains the slices that no older one does.
            explains if both => {
                Some(curve.after(younger.exposure, explains[self.k.min(j - i) - 1], explains[self.k - 1]))
            }
            _ => None,
        }
    }
}
