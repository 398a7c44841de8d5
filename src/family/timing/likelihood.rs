//! The likelihood of a key's timers: the timing Bloom filter, with blocks of one insertion or of many (paper 5, section
//! 4).
//!
//! The last insertion of the key set all of its k timers to its block; later keys have overwritten some. So it lies no
//! later than the block of the oldest timer, of age a, which c timers show. The others were overwritten in younger
//! blocks whenever the key was inserted, and carry no further information. If the key was inserted in block a, its c
//! timers have not been touched in any younger block; if before, or never, they were touched in block a and not since.
//!
//! Paper 5 takes these chances from the expected number of distinct keys (F and G, definitions 11 and 12; G corrected
//! as in erratum INF-6). Here they are counted. The chance that no younger block touched a timer is the share of all
//! timers that are of age a, older or empty; the chance that block a touched it last is the share of those that show a.
//! This needs no curve of distinct keys, and holds for repeats and drifting streams too.

use crate::clock::Clock;
use crate::inference::{Evidence, Hazard, Likelihood, PosteriorCurve, Span, chances};

/// Greatest number of ranges of ages whose timers are counted separately. With more blocks than this a range spans
/// several, which are treated as alike.
const RANGES: u64 = 256;

/// The likelihood of timers in slices at one moment.
pub struct TimerLikelihood {
    clock: Clock,
    /// Number of retained blocks, the open one included.
    blocks: u64,
    /// Number of blocks in a range.
    width: u64,
    /// For each range of ages: the share of all timers that show one block of it, and the share that show a younger
    /// block than all of it.
    shares: Vec<(f64, f64)>,
}

impl TimerLikelihood {
    /// Creates the likelihood of timers that retain `blocks` blocks. `ages` are the ages of the live ones in a sample
    /// of `timers` timers.
    pub fn new(clock: Clock, blocks: u64, timers: u64, ages: impl Iterator<Item = u64>) -> Self {
        let width = blocks.div_ceil(RANGES);
        let mut counts = vec![0u64; blocks.div_ceil(width) as usize];
        ages.for_each(|age| counts[(age / width) as usize] += 1);
        let mut younger = 0;
        let shares = counts.iter().map(|&count| {
            let before = younger;
            younger += count;
            let timers = timers as f64;
            // A sample without a timer of a block does not prove that there is none.
            ((count as f64).max(0.5) / timers / width as f64, before as f64 / timers)
        });
        let shares = shares.collect();
        Self { clock, blocks, width, shares }
    }

    /// Returns the share of timers that show this block, and the share that show a younger one.
    fn shares_at(&self, age: u64) -> (f64, f64) {
        let (of_block, before_range) = self.shares[(age / self.width) as usize];
        (of_block, before_range + (age % self.width) as f64 * of_block)
    }

    /// Writes the spans for a key whose timers are all live. In a filter whose parts come and go, this part was written
    /// in a share of the time of its oldest block, and other parts in an earlier share: these are the two `shares`.
    fn of_oldest(&self, evidence: Evidence, (own, before): (f64, f64), hazard: Hazard, spans: &mut Vec<Span>) {
        let (from, to) = self.ages_of(evidence.age());
        let exposure = self.clock.exposure(evidence.age());
        let (held, not_held) = chances(hazard.odds(own * exposure) * self.explains(evidence));
        let held_before = not_held * hazard.within(before * exposure);
        spans.push(Span { from, to, probability: held + held_before });
        spans.push(Span { from: to, to: f64::INFINITY, probability: not_held - held_before });
    }

    /// Returns the ages of the block of this age.
    fn ages_of(&self, age: u64) -> (f64, f64) {
        (if age == 0 { 0.0 } else { self.clock.began(age - 1) }, self.clock.began(age))
    }

    /// Returns by which factor an insertion in the oldest block raises the chance that this many timers show it.
    fn explains(&self, evidence: Evidence) -> f64 {
        let (of_block, younger) = self.shares_at(evidence.age());
        // At least 1: a timer untouched since block a began was either touched in it or not.
        ((1.0 - younger) / of_block).max(1.0).powi(evidence.count() as i32).min(f64::MAX)
    }
}

/// The likelihood of timers in parts that come and go. Every insertion wrote the newest part of its time, and a part
/// loses no key while its block is retained. So a key that newer parts lack was not last inserted into them, and they
/// carry no further information. The evidence is that of the newest part that contains the key; older ones are not
/// read.
pub struct PartsLikelihood(Vec<(f64, TimerLikelihood)>);

impl PartsLikelihood {
    /// Creates the likelihood of parts, the newest first, each with the seconds since its last insertion.
    pub fn new(parts: Vec<(f64, TimerLikelihood)>) -> Self {
        Self(parts)
    }

    /// Returns for how long each part took keys of the block of this age, from the last key of the part before it on.
    /// Parts of one moment share the time before it by their timers.
    fn exposures(&self, age: u64) -> Vec<f64> {
        let timers = &self.0[0].1;
        let ((from, to), gap) = (timers.ages_of(age), timers.clock.gap());
        let mut exposures = vec![0.0; self.0.len()];
        let mut part = 0;
        for at_once in self.0.chunk_by(|newer, older| newer.0 == older.0) {
            let parts = part..part + at_once.len();
            let began = self.0.get(parts.end).map_or(to, |older| older.0);
            // At least as long as a key takes at the planned rate.
            let exposure = (to.min(began) - from.max(at_once[0].0)).max(gap);
            let of_block = |part: usize| self.0[part].1.shares_at(age).0;
            let all: f64 = parts.clone().map(of_block).sum();
            parts.clone().for_each(|part| exposures[part] = exposure * of_block(part) / all);
            part = parts.end;
        }
        exposures
    }
}

impl Likelihood for PartsLikelihood {
    fn last_inserted(&self, evidence: Evidence, hazard: Hazard, spans: &mut Vec<Span>) {
        if evidence == Evidence::ABSENT {
            return self.0[0].1.last_inserted(evidence, hazard, spans);
        }
        let (part, exposures) = (evidence.part(), self.exposures(evidence.age()));
        let all: f64 = exposures.iter().sum();
        let older: f64 = exposures[part + 1..].iter().sum();
        self.0[part].1.of_oldest(evidence, (exposures[part] / all, older / all), hazard, spans);
    }
}

impl Likelihood for TimerLikelihood {
    fn last_inserted(&self, evidence: Evidence, hazard: Hazard, spans: &mut Vec<Span>) {
        if evidence == Evidence::ABSENT {
            let from = self.clock.began(self.blocks - 1);
            return spans.push(Span { from, to: f64::INFINITY, probability: 1.0 });
        }
        self.of_oldest(evidence, (1.0, 0.0), hazard, spans);
    }

    fn posterior_curve(&self, evidence: Evidence, age: f64) -> Option<PosteriorCurve> {
        if evidence == Evidence::ABSENT {
            return Some(PosteriorCurve::unknown(self.clock.began(self.blocks - 1), age));
        }
        let ages = self.ages_of(evidence.age());
        PosteriorCurve::of_span(ages, self.clock.exposure(evidence.age()), self.explains(evidence), ages.1, age)
    }
}
