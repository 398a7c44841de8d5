//! The simple buffer (paper 5: *Inferring insertion times and optimizing error penalties in time-decaying Bloom
//! filters*, section 6.2): a list of the fingerprints of the last W insertions, which a query searches.
//!
//! The least memory that an exact window can be kept in one key at a time, and what the paper measures filters against:
//! a query takes time in proportion to W. With [`Swamp`](super::Swamp), half as large again, it does not.
//!
//! An insertion writes over the oldest fingerprint: a key leaves exactly when W others have followed, without slack.
//!
//! Where this differs from the paper:
//! - Fingerprints lie in groups of 64 across the words: word i of a group has bit i of each. A query rules out half of
//!   the rest of a group with every word, and so reads 8 of them on average where it is not there, however many there are.
//! - The fingerprint 0 is an empty place, so that a filter that is not yet full reports nothing by it.
//! - The window is full: its last floor(w * bpi / bph) insertions are kept only when that is all of them.

use super::saved::{as_damage, check_cells, damaged, narrow};
use super::{Filter, Lines};
use crate::Error;
use crate::clock::{BY_INSERTION, Clock, Window};
use crate::engine::{Aged, Engine};
use crate::layout::buffer::Buffer;
use crate::memory::Words;
use crate::shape::fingerprint_buffer::Shape;
use crate::shape::runs::Accesses;

/// The simple buffer: has a key been inserted within the last `window` insertions? A baseline: see the module.
#[derive(Clone)]
pub struct FingerprintBuffer {
    shape: Shape,
    seed: u64,
    cells: Aged<Buffer>,
}

impl FingerprintBuffer {
    /// Its number in the saved form.
    pub const KIND: u16 = 8;

    /// An empty filter for windows of insertions.
    pub fn new(shape: Shape, window: Window, seed: u64) -> Result<Self, Error> {
        let insertions = shape.check_window(window)?;
        let bytes = shape.nbytes(insertions);
        let len = usize::try_from(bytes / 8).map_err(|_| Error::Memory { bytes })?;
        Ok(Self::assemble(shape, insertions, Clock::new(window, BY_INSERTION), seed, Words::zeroed(len)?))
    }

    /// The filter that [`parameters`](Filter::parameters) gave these values for, with these cells, its clock as
    /// `resume` makes it for the full generations kept.
    pub fn from_saved(
        parameters: &[u64],
        resume: impl FnOnce(u32) -> Clock,
        seed: u64,
        words: Words,
    ) -> Result<Self, Error> {
        let bits = *parameters.first().ok_or_else(damaged)?;
        let clock = resume(BY_INSERTION);
        let shape = Shape::new(narrow(bits)?).map_err(as_damage)?;
        let insertions = shape.check_window(clock.window()).map_err(as_damage)?;
        check_cells(&words, shape.nbytes(insertions) / 8)?;
        Ok(Self::assemble(shape, insertions, clock, seed, words))
    }

    fn assemble(shape: Shape, window: u64, clock: Clock, seed: u64, words: Words) -> Self {
        Self { shape, seed, cells: Aged { layout: Buffer { window, shape }, words, clock } }
    }

    /// Its parameters.
    pub fn shape(&self) -> Shape {
        self.shape
    }
}

impl Filter for FingerprintBuffer {
    fn engine(&self) -> &dyn Engine {
        &self.cells
    }

    fn engine_mut(&mut self) -> &mut dyn Engine {
        &mut self.cells
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn kind(&self) -> u16 {
        Self::KIND
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("fingerprint_bits", self.shape.fingerprint_bits.into())]
    }

    fn fpr(&self) -> f64 {
        self.shape.false_positive_rate(self.cells.layout.window)
    }

    /// None: a key leaves with the insertion that is W after its last.
    fn slack(&self) -> u64 {
        0
    }

    fn npws(&self) -> f64 {
        0.0
    }

    /// In groups of 64 fingerprints.
    fn expected_accesses(&self) -> Accesses {
        self.shape.expected_accesses(self.cells.layout.window)
    }

    /// An insertion writes the slot's bit into each word of its group. A query reads the first line of every group of the
    /// window, half of them when it finds the key.
    fn cache_lines(&self) -> Lines {
        let bits = f64::from(self.shape.fingerprint_bits);
        let (groups, insert) = (self.cells.words.as_slice().len() as f64 / bits, (bits / 8.0).ceil());
        Lines { insert, hit: groups / 2.0, miss: groups }
    }

    fn false_positive_rate(&self) -> f64 {
        self.cells.match_rates()[0]
    }

    fn clone_box(&self) -> Box<dyn Filter> {
        Box::new(self.clone())
    }
}
