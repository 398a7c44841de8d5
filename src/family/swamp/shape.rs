//! SWAMP, the sliding-window approximate measurement protocol (Assaf, Ben Basat, Einziger, Friedman, *Pay for a Sliding
//! Bloom Filter and Get Counting, Distinct Elements, and Entropy for Free*, INFOCOM 2018).
//!
//! A cyclic buffer has the fingerprints of the last W insertions, and a table counts how often each of them occurs
//! there. An insertion overwrites the oldest fingerprint of the buffer and subtracts it from its count: a key leaves
//! exactly when W others have followed, without slack. A key is there when its fingerprint has a count.
//!
//! Where this differs from the paper:
//! - The table is a quotient filter with counts, where the paper has a TinyTable: it cannot overflow. See [the
//!   layout](super::cells).
//! - Fingerprints are any of S * 2^r, not of a power of two: the table may have any size.

use crate::Error;
use crate::clock::{BY_INSERTION, Window};
use crate::family::budget::{Budget, MAX_BYTES, check_rate, too_few_bytes};
use crate::family::search::bisection;
use crate::family::{CacheLines, Parameters, fill};

/// Greatest share of slots in use, when the fingerprints of a window are all different. Of 100 blocks of 64 slots 4
/// then pass entries on to the next, since they are full; at 7/8 it would be 16, for one bit per key less.
const MAX_LOADED: (u64, u64) = (4, 5);

/// The shape of a SWAMP: everything but the window that determines its size and its error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwampShape {
    /// S: number of slots of the table, a multiple of 64 and more than the window has insertions.
    pub slots: u64,
    /// r: number of bits of a fingerprint that a slot stores; its place determines the others.
    pub remainder_bits: u32,
}

impl SwampShape {
    /// Creates a shape whose parameters are in range: at most 2^63 fingerprints and [`MAX_BYTES`] bytes.
    pub fn new(slots: u64, remainder_bits: u32) -> Result<Self, Error> {
        if slots == 0 || !slots.is_multiple_of(64) {
            return Err(Error::value(format!("slots must be a multiple of 64, at least 64, got {slots}")));
        }
        if remainder_bits == 0 || remainder_bits > 57 || slots > 1 << (63 - remainder_bits) {
            return Err(Error::value(format!(
                "remainder_bits must be at least 1, and slots * 2**remainder_bits at most 2**63, \
                 got slots={slots}, remainder_bits={remainder_bits}"
            )));
        }
        let shape = Self { slots, remainder_bits };
        if shape.table_words() > MAX_BYTES / 16 {
            return Err(Error::value(format!("{slots} slots of {remainder_bits} bits are more than 2**59 bytes")));
        }
        Ok(shape)
    }

    /// Reads a shape from parameters.
    pub fn read(parameters: &Parameters<'_>) -> Result<Self, Error> {
        Self::new(parameters.read_u64("slots")?, parameters.read_u32("remainder_bits")?)
    }

    /// Returns R, the number of different fingerprints: S * 2^r.
    pub fn fingerprints(&self) -> u64 {
        self.slots << self.remainder_bits
    }

    /// Returns the bits of a fingerprint in the buffer.
    pub fn fingerprint_bits(&self) -> u32 {
        u64::BITS - (self.fingerprints() - 1).leading_zeros()
    }

    /// Returns the 64-bit words of the cyclic buffer.
    pub fn buffer_words(&self, window: u64) -> u64 {
        (window * u64::from(self.fingerprint_bits())).div_ceil(64)
    }

    /// Returns the 64-bit words of the table: in a slot the remainder, a digit of one bit, and three bits that locate
    /// its quotient.
    fn table_words(&self) -> u64 {
        self.slots / 64 * u64::from(self.remainder_bits + 4)
    }

    /// Returns the bytes of buffer and table, each of whole words.
    pub fn nbytes(&self, window: u64) -> u64 {
        8 * (self.buffer_words(window) + self.table_words())
    }

    /// Returns the probability that a key never inserted is reported once the window is full of different keys: that
    /// one of them has its fingerprint, 1 - (1 - 1/R)^W. It is equal at every phase, since the window always has W
    /// insertions.
    pub fn false_positive_rate(&self, window: u64) -> f64 {
        fill::slice(self.fingerprints(), window)
    }

    /// Returns an estimate of the number of different keys among `window` insertions that have `fingerprints` different
    /// ones: ln(1 - D/R) / ln(1 - 1/R), with which n keys are expected to have D = R (1 - (1 - 1/R)^n) fingerprints
    /// (the maximum likelihood estimate of the SWAMP paper, section IV).
    pub fn distinct(&self, fingerprints: u64, window: u64) -> f64 {
        let all = self.fingerprints() as f64;
        ((-(fingerprints as f64) / all).ln_1p() / (-1.0 / all).ln_1p()).min(window as f64)
    }
}

impl crate::family::Shape for SwampShape {
    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("slots", self.slots), ("remainder_bits", self.remainder_bits.into())]
    }

    /// Rejects a window of as many insertions as slots, because a search ends at an empty slot. Occurrences take at
    /// most as many slots as there are insertions.
    fn check(&self, window: Window) -> Result<(), Error> {
        let (insertions, slots) = (window.by_insertion()?, self.slots);
        if insertions >= slots {
            return Err(Error::value(format!(
                "slots must be more than the window's {insertions} insertions, got {slots}"
            )));
        }
        Ok(())
    }

    fn retained(&self) -> u32 {
        BY_INSERTION
    }

    fn bytes(&self, window: Window) -> u64 {
        self.nbytes(window.capacity())
    }

    fn fpr(&self, window: Window) -> f64 {
        self.false_positive_rate(window.capacity())
    }

    /// Returns a line or two of the table for a query. An insertion writes those of the key that comes and of the one
    /// that leaves, and one line of the buffer.
    fn cache_lines(&self, _: Window) -> CacheLines {
        CacheLines { insert: 5.0, hit: 2.0, miss: 2.0 }
    }
}

/// Returns the shape for a window and a budget: the fewest bytes with the rate, or the least rate with the bytes.
///
/// Every bit of the remainder is tried, each with the fewest (or most) slots that do.
pub fn choose(window: Window, budget: Budget) -> Result<SwampShape, Error> {
    let insertions = window.by_insertion()?;
    let least_slots = (insertions * MAX_LOADED.1).div_ceil(MAX_LOADED.0).max(insertions + 1).next_multiple_of(64);
    let shapes = |slots: &dyn Fn(u32) -> Option<u64>| -> Vec<SwampShape> {
        (1..=57).filter_map(|bits| SwampShape::new(slots(bits)?, bits).ok()).collect()
    };
    match budget {
        Budget::Rate(fpr) => {
            let fingerprints = fingerprints(insertions, fpr)?;
            let slots = |bits| Some(fingerprints.div_ceil(1u64 << bits).max(least_slots).next_multiple_of(64));
            shapes(&slots).into_iter().min_by_key(|shape| shape.nbytes(insertions)).ok_or_else(|| {
                Error::value(format!("fpr={fpr} for this window takes more than the 2**63 fingerprints there may be"))
            })
        }
        Budget::Bytes(bytes) => {
            let fits = |slots, bits| SwampShape::new(slots, bits).is_ok_and(|shape| shape.nbytes(insertions) <= bytes);
            let too_many = |bits| bisection(least_slots / 64 - 1, 1 << 57, |blocks| !fits(64 * blocks, bits));
            let slots = |bits| Some(64 * (too_many(bits) - 1)).filter(|&slots| slots >= least_slots);
            shapes(&slots).into_iter().max_by_key(SwampShape::fingerprints).ok_or_else(|| {
                let needed = SwampShape { slots: least_slots, remainder_bits: 1 }.nbytes(insertions);
                too_few_bytes(needed, " for this window", bytes)
            })
        }
    }
}

/// Returns the least number of fingerprints with which `window` different keys have at most the rate: 1 / R <= 1 - (1 -
/// fpr)^(1/W).
pub fn fingerprints(window: u64, fpr: f64) -> Result<u64, Error> {
    check_rate(fpr)?;
    // At 2^64 and more the conversion stops at u64::MAX, which then has too high a rate.
    let mut fingerprints = (-1.0 / ((-fpr).ln_1p() / window as f64).exp_m1()).ceil() as u64;
    // The quotient may be off by its last digits.
    while fill::slice(fingerprints, window) > fpr {
        let more = fingerprints.saturating_add((fingerprints >> 50).max(1));
        if more == fingerprints {
            return Err(Error::value(format!("fpr={fpr} for this window takes more than the 2**64 hashes there are")));
        }
        fingerprints = more;
    }
    Ok(fingerprints)
}
