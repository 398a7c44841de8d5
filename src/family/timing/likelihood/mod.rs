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
//!
//! Timers of one key in one line share their other keys, and are touched together more often than independent timers:
//! there [`LineLikelihood`] replaces the product.

mod lines;

pub use lines::{LineCounter, LineLikelihood, TimerCounts};

use crate::clock::Clock;
use crate::inference::{Evidence, Hazard, Likelihood, PosteriorCurve, Span, chances};

/// Greatest number of ranges of ages whose timers are counted separately. With more blocks than this a range spans
/// several, which are treated as alike.
const RANGES: u64 = 256;

/// The likelihood of timers in slices, in one state.
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
    /// in a share of its oldest block, and other parts in an earlier share: these are the two `shares`.
    fn of_oldest(&self, evidence: Evidence, shares: (f64, f64), hazard: Hazard, spans: &mut Vec<Span>) {
        of_block_at(&self.clock, evidence.age(), self.explains(evidence), shares, hazard, spans);
    }

    /// Returns by which factor an insertion in the oldest block raises the chance that this many timers show it.
    fn explains(&self, evidence: Evidence) -> f64 {
        let (of_block, younger) = self.shares_at(evidence.age());
        // At least 1: a timer untouched since block a began was either touched in it or not.
        ((1.0 - younger) / of_block).max(1.0).powi(evidence.count(0) as i32).min(f64::MAX)
    }
}

/// Writes the spans for a key whose oldest timers show the block of this age; `own` and `before` are the `shares` of
/// [`of_oldest`](TimerLikelihood::of_oldest). `explains` is the factor by which an insertion in the block raises the
/// chance of the evidence.
fn of_block_at(
    clock: &Clock,
    age: u64,
    explains: f64,
    (own, before): (f64, f64),
    hazard: Hazard,
    spans: &mut Vec<Span>,
) {
    let (from, to) = ages_of(clock, age);
    let exposure = clock.exposure(age);
    let (held, not_held) = chances(hazard.odds(own * exposure) * explains);
    let held_before = not_held * hazard.within(before * exposure);
    spans.push(Span { from, to, probability: held + held_before });
    spans.push(Span { from: to, to: f64::INFINITY, probability: not_held - held_before });
}

/// Returns the ages of the block of this age.
fn ages_of(clock: &Clock, age: u64) -> (f64, f64) {
    (if age == 0 { 0.0 } else { clock.began(age - 1) }, clock.began(age))
}

/// Writes the spans for a key that no retained block contains.
fn of_none(clock: &Clock, blocks: u64, spans: &mut Vec<Span>) {
    spans.push(Span { from: clock.began(blocks - 1), to: f64::INFINITY, probability: 1.0 });
}

/// Returns the posterior curve of either kind of evidence; `explains` as in [`of_block_at`].
fn posterior_curve(
    clock: &Clock,
    blocks: u64,
    evidence: Evidence,
    explains: impl FnOnce(Evidence) -> f64,
    age: f64,
) -> Option<PosteriorCurve> {
    if evidence == Evidence::ABSENT {
        return Some(PosteriorCurve::unknown(clock.began(blocks - 1), age));
    }
    let (block, ages) = (evidence.age(), ages_of(clock, evidence.age()));
    PosteriorCurve::of_span(ages, clock.exposure(block), explains(evidence), ages.1, age)
}

/// The likelihood of timers in parts that come and go. Every insertion wrote the newest part of its time, and a part
/// loses no key while its block is retained. So a key that newer parts lack was not last inserted into them, and they
/// carry no further information. The evidence is that of the newest part that contains the key; older ones are not
/// read.
pub struct PartsLikelihood(Vec<TimerLikelihood>);

impl PartsLikelihood {
    /// Creates the likelihood of parts, the newest first.
    pub fn new(parts: Vec<TimerLikelihood>) -> Self {
        Self(parts)
    }
}

impl Likelihood for PartsLikelihood {
    fn last_inserted(&self, evidence: Evidence, hazard: Hazard, spans: &mut Vec<Span>) {
        if evidence == Evidence::ABSENT {
            return self.0[0].last_inserted(evidence, hazard, spans);
        }
        let part = evidence.part();
        // In a burst many parts share a block, each in proportion to its share of the timers.
        let of_block: Vec<f64> = self.0.iter().map(|timers| timers.shares_at(evidence.age()).0).collect();
        let all: f64 = of_block.iter().sum();
        let older: f64 = of_block[part + 1..].iter().sum();
        self.0[part].of_oldest(evidence, (of_block[part] / all, older / all), hazard, spans);
    }
}

impl Likelihood for TimerLikelihood {
    fn last_inserted(&self, evidence: Evidence, hazard: Hazard, spans: &mut Vec<Span>) {
        if evidence == Evidence::ABSENT {
            return of_none(&self.clock, self.blocks, spans);
        }
        self.of_oldest(evidence, (1.0, 0.0), hazard, spans);
    }

    fn posterior_curve(&self, evidence: Evidence, age: f64) -> Option<PosteriorCurve> {
        posterior_curve(&self.clock, self.blocks, evidence, |evidence| self.explains(evidence), age)
    }
}
