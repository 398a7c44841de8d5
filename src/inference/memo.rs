//! Posteriors, memoised: evidence takes few values, some ten to a few hundred for a filter, and a posterior is smooth
//! in the prior.
//!
//! Where priors differ by key, they are binned by their leading bits: the exponent and 4 bits of the mantissa, 16 bins
//! to an octave. Within a bin, whose ends lie at most h = 1/16 apart, a posterior is approximated by the parabola
//! through its ends and its middle. The error is at most h^3 / (72 sqrt 3) times p^3 times the third derivative. A
//! posterior is made of two shapes: odds o p / (1 + o p) have at most 0.38 there, and the chance 1 - e^(-pw) of a
//! window 1.35, so the error stays below 1e-5. Fading cells mix the two at every age: the error is below 1e-4 for a key
//! as old as a few times 1 / p, and 1e-2 for one long overdue, which is rare. So the few keys with a chance above 1/8
//! are worked out exactly. A prior that all keys share is a bin of its own, without error.

use super::Evidence;
use crate::memory::fallible;

/// Entries, as powers of 2: as many as keys, from 4 KiB to 4 MiB. A few keys should not pay for zeroing a whole table;
/// entries in use stay in the cache, and a larger table loses fewer of them to collisions.
const ENTRIES_LOG2: [u32; 2] = [6, 16];
/// Bits of a prior within a bin.
const WITHIN: u32 = 52 - 4;
/// A Weyl constant: 2^64 over the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// What was asked, and the posterior as a polynomial of the place within the prior's bin, in [0, 1).
#[derive(Clone, Copy)]
struct Entry {
    evidence: Evidence,
    age: f64,
    cell: u64,
    polynomial: [f64; 3],
}

/// A table of posteriors for one state of a filter. A collision overwrites.
pub struct Memo {
    entries: Vec<Entry>,
    log2: u32,
}

impl Memo {
    /// An empty table for a batch of `keys` keys; a small one where there is no memory for another.
    pub fn new(keys: usize) -> Self {
        let nothing = Entry { evidence: Evidence::default(), age: f64::NAN, cell: 0, polynomial: [0.0; 3] };
        let [least, most] = ENTRIES_LOG2;
        let log2 = keys.max(1).ilog2().clamp(least, most);
        let (mut entries, log2) = match fallible::with_room(1 << log2) {
            Ok(entries) => (entries, log2),
            Err(_) => (Vec::new(), least),
        };
        entries.resize(1 << log2, nothing);
        Self { entries, log2 }
    }

    /// The posterior of a prior that all keys share; `exact` works it out.
    #[inline(always)]
    pub fn shared(&mut self, evidence: Evidence, age: f64, p: f64, mut exact: impl FnMut(f64) -> f64) -> f64 {
        self.polynomial(evidence, age, p.to_bits(), || [exact(p), 0.0, 0.0])[0]
    }

    /// The posterior of the key's own prior; priors of `most` or more are not memoised.
    #[inline(always)]
    pub fn own(&mut self, evidence: Evidence, age: f64, p: f64, most: f64, mut exact: impl FnMut(f64) -> f64) -> f64 {
        if !(f64::MIN_POSITIVE..most).contains(&p) {
            return exact(p);
        }
        let bits = p.to_bits();
        let cell = bits >> WITHIN;
        let [constant, slope, bend] = self.polynomial(evidence, age, cell, || {
            let half = 1 << (WITHIN - 1);
            let at = [0, half, 2 * half].map(|within| f64::from_bits((cell << WITHIN) + within).min(most));
            let [left, middle, right] = at.map(&mut exact);
            let bend = 2.0 * (left - 2.0 * middle + right);
            [left, right - left - bend, bend]
        });
        let place = (bits & ((1 << WITHIN) - 1)) as f64 / (1u64 << WITHIN) as f64;
        (constant + place * (slope + place * bend)).clamp(0.0, 1.0)
    }

    #[inline(always)]
    fn polynomial(&mut self, evidence: Evidence, age: f64, cell: u64, work_out: impl FnOnce() -> [f64; 3]) -> [f64; 3] {
        let mixed = evidence.folded().wrapping_mul(SPREAD).wrapping_add(cell);
        let place = mixed.wrapping_mul(SPREAD) >> (64 - self.log2);
        let entry = &mut self.entries[place as usize];
        if (entry.evidence, entry.cell) != (evidence, cell) || entry.age != age {
            *entry = Entry { evidence, age, cell, polynomial: work_out() };
        }
        entry.polynomial
    }
}
