//! The simple buffer (paper 5: *Inferring insertion times and optimizing error penalties in time-decaying Bloom
//! filters*, section 6.2): a list of the fingerprints of the last W insertions, which a query searches.
//!
//! No other structure stores an exact window in less memory one key at a time, and the paper compares filters with it.
//! A query takes time in proportion to W; one of [SWAMP](crate::family::swamp::shape), which is half as large again,
//! does not.
//!
//! An insertion writes over the oldest fingerprint: a key leaves exactly when W others have followed, without slack.
//!
//! Where this differs from the paper:
//! - Fingerprints lie in groups of 64 across the words: word i of a group has bit i of each. A query rules out half of
//!   the rest of a group with every word, and so reads 8 words on average if the key is not there, whatever the number
//!   of bits.
//! - The fingerprint 0 is an empty place, so a filter that is not yet full reports nothing by it.
//! - The window is always that of the buffer: the last floor(w * bpi / bph) insertions are kept only when that is all
//!   of them.

use crate::Error;
use crate::clock::{BY_INSERTION, Window};
use crate::family::budget::{Budget, too_few_bytes};
use crate::family::swamp::shape::fingerprints;
use crate::family::{CacheLines, Parameters, fill};

/// Number of fingerprints that a query reads together.
pub const GROUP: u64 = 64;

/// The shape of a fingerprint buffer: everything but the window that determines its size and its error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferShape {
    /// bph: bits of a fingerprint, 1 to 64.
    pub fingerprint_bits: u32,
}

impl BufferShape {
    /// Creates a shape whose parameter is in range.
    pub fn new(fingerprint_bits: u32) -> Result<Self, Error> {
        if !(1..=64).contains(&fingerprint_bits) {
            return Err(Error::value(format!("fingerprint_bits must lie in 1 .. 64, got {fingerprint_bits}")));
        }
        Ok(Self { fingerprint_bits })
    }

    /// Reads a shape from parameters.
    pub fn read(parameters: &Parameters<'_>) -> Result<Self, Error> {
        Self::new(parameters.read_u32("fingerprint_bits")?)
    }

    /// Returns R, the number of different fingerprints: 2^bph - 1, since 0 is an empty place.
    pub fn fingerprints(&self) -> u64 {
        u64::MAX >> (64 - self.fingerprint_bits)
    }
}

impl crate::family::Shape for BufferShape {
    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("fingerprint_bits", self.fingerprint_bits.into())]
    }

    fn retained(&self) -> u32 {
        BY_INSERTION
    }

    /// Returns the bytes of the buffer, in whole groups of [`GROUP`] fingerprints.
    fn bytes(&self, window: Window) -> u64 {
        8 * u64::from(self.fingerprint_bits) * window.capacity().div_ceil(GROUP)
    }

    /// Returns the probability that one of the keys of the window has the fingerprint of a new key, 1 - (1 - 1/R)^W;
    /// the hash collisions of paper 5, section 6.2. It is equal at every phase.
    fn fpr(&self, window: Window) -> f64 {
        fill::slice(self.fingerprints(), window.capacity())
    }

    /// Returns the lines of a group for an insertion, which writes the slot's bit into each word. A query reads the
    /// first line of every group of the window, half of them when it finds the key.
    fn cache_lines(&self, window: Window) -> CacheLines {
        let (groups, insert) =
            (window.capacity().div_ceil(GROUP) as f64, (f64::from(self.fingerprint_bits) / 8.0).ceil());
        CacheLines { insert, hit: groups / 2.0, miss: groups }
    }
}

/// Returns the shape for a window and a budget: the fewest bits with the rate, or the most in the bytes.
pub fn choose(window: Window, budget: Budget) -> Result<BufferShape, Error> {
    let insertions = window.by_insertion()?;
    match budget {
        Budget::Rate(fpr) => {
            // R = 2^bits - 1 is at least as many as needed.
            BufferShape::new(u64::BITS - fingerprints(insertions, fpr)?.leading_zeros())
        }
        Budget::Bytes(bytes) => {
            let bit = 8 * insertions.div_ceil(GROUP);
            let bits = (bytes / bit).min(64) as u32;
            BufferShape::new(bits).map_err(|_| too_few_bytes(bit, " for this window", bytes))
        }
    }
}
