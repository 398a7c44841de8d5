//! SWAMP, the sliding-window approximate measurement protocol (Assaf, Ben Basat, Einziger, Friedman, *Pay for a Sliding
//! Bloom Filter and Get Counting, Distinct Elements, and Entropy for Free*, INFOCOM 2018).
//!
//! A cyclic buffer has the fingerprints of the last W insertions, and a table counts how often each of them occurs
//! there. An insertion writes over the oldest fingerprint of the buffer and takes it off its count: a key leaves exactly
//! when W others have followed, without slack. A key is there when its fingerprint has a count.
//!
//! Where this differs from the paper:
//! - The table is a quotient filter with counts, where the paper has a TinyTable: it cannot overflow. See [`table`].
//! - Fingerprints are any of S * 2^r, not of a power of two: the table may have any size.

mod slots;
mod table;

use super::saved::{as_damage, check_cells, damaged, narrow};
use super::{Filter, Lines};
use crate::Error;
use crate::clock::{BY_INSERTION, Clock, Window};
use crate::engine::{Aged, Engine};
use crate::inference::ring::Ring;
use crate::inference::{Likelihood, Question};
use crate::layout::Layout;
use crate::memory::Words;
use crate::memory::bits::scale;
use crate::memory::packed;
use crate::memory::prefetch::Address;
use crate::shape::runs::Accesses;
use crate::shape::swamp::Shape;
use table::Table;

/// Insertions ahead of the one that takes a fingerprint off the table, at which its place there is fetched.
const AHEAD: usize = 16;
/// Blocks of slots that tell how many fingerprints are taken, where there are more: right to 1 % where half are in use.
const SAMPLE: usize = 1 << 8;

/// The cyclic buffer, and behind it the table.
#[derive(Clone, Copy)]
struct Buffered {
    /// W: fingerprints in the buffer.
    window: usize,
    fingerprint_bits: u32,
    fingerprints: u64,
    table: Table,
}

/// Which fingerprint of the buffer is the newest, and how many there are.
#[derive(Clone, Copy)]
struct Phase {
    newest: usize,
    filled: usize,
}

impl Buffered {
    fn new(shape: Shape, window: u64) -> Self {
        let start = shape.buffer_words(window) as usize;
        Self {
            window: window as usize,
            fingerprint_bits: shape.fingerprint_bits(),
            fingerprints: shape.fingerprints(),
            table: Table::new(start, shape.slots as usize, shape.remainder_bits),
        }
    }

    #[inline(always)]
    fn fingerprint(&self, hash: u64) -> u64 {
        scale(hash, self.fingerprints)
    }

    /// A fingerprint of the buffer; damaged cells may hold what is none.
    #[inline(always)]
    fn buffered(&self, words: &[u64], slot: usize) -> u64 {
        packed::get(words, self.fingerprint_bits, slot).min(self.fingerprints - 1)
    }

    /// Starts fetching where a fingerprint is in the table.
    #[inline(always)]
    fn fetch(&self, words: Address, fingerprint: u64) {
        self.table.place(fingerprint).into_iter().for_each(|word| words.fetch(word));
    }

    fn count(&self, words: &[u64], hash: u64) -> u64 {
        self.table.count(words, self.fingerprint(hash))
    }

    /// Makes the table of the first `filled` fingerprints of the buffer.
    #[cold]
    fn rebuild(&self, words: &mut [u64], filled: usize) {
        words[self.table.slots.start..].fill(0);
        for slot in 0..filled {
            let fingerprint = self.buffered(words, slot);
            let counted = self.table.add(words, fingerprint);
            debug_assert!(counted, "a sound table has room for the whole buffer");
        }
    }
}

impl Layout for Buffered {
    type Phase = Phase;

    fn generations(&self) -> u64 {
        self.window as u64
    }

    /// A generation is one insertion, so its number says where in the buffer the fingerprint belongs.
    fn phase(&self, generation: i64, _pending: u64) -> Phase {
        let generation = generation as u64;
        let window = self.window as u64;
        Phase { newest: (generation % window) as usize, filled: generation.saturating_add(1).min(window) as usize }
    }

    #[inline(always)]
    fn fetch_newest(&self, words: Address, _phase: Phase, hash: u64) {
        self.fetch_all(words, hash);
    }

    #[inline(always)]
    fn fetch_all(&self, words: Address, hash: u64) {
        self.fetch(words, self.fingerprint(hash));
    }

    fn insert(&self, words: &mut [u64], Phase { newest, filled }: Phase, hash: u64) {
        let fingerprint = self.fingerprint(hash);
        packed::set(words, self.fingerprint_bits, newest, fingerprint);
        // Only a damaged table has no place for it, and any buffer makes a sound one.
        if !self.table.add(words, fingerprint) {
            self.rebuild(words, filled);
        }
    }

    #[inline(always)]
    fn contains(&self, words: &[u64], _phase: Phase, hash: u64) -> bool {
        self.count(words, hash) > 0
    }

    /// Takes the fingerprint that will be written over off its count.
    fn open(&self, words: &mut [u64], generation: i64) {
        let newest = self.phase(generation, 0).newest;
        if generation as u64 >= self.window as u64 {
            let oldest = self.buffered(words, newest);
            self.table.remove(words, oldest);
            let coming = self.buffered(words, (newest + AHEAD) % self.window);
            self.fetch(Address::of(words), coming);
        }
    }

    /// Share of the table's slots in use.
    fn fill(&self, words: &[u64], _phase: Phase) -> Vec<f64> {
        vec![self.table.used(words) as f64 / self.table.slots.count as f64]
    }

    /// It tells whether a key is in the window, and nothing of its age: counts are not looked at, and to search the
    /// buffer takes the time of W keys.
    fn likelihood(&self, words: &[u64], clock: &Clock, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        let blocks = self.table.slots.blocks().min(SAMPLE);
        let fingerprints = self.fingerprints as f64 / self.table.slots.blocks() as f64 * blocks as f64;
        let taken = self.table.distinct_in(words, blocks) as f64;
        let length = clock.inserted().min(self.window as u64);
        Some(Box::new(Ring::whole(length, (taken + 0.5) / (fingerprints + 1.0))))
    }

    fn match_rates(&self, words: &[u64], _phase: Phase) -> Vec<f64> {
        vec![self.table.distinct(words) as f64 / self.fingerprints as f64]
    }
}

/// A SWAMP: has a key been inserted within the last `window` insertions, how often, and how many different keys were?
#[derive(Clone)]
pub struct Swamp {
    shape: Shape,
    seed: u64,
    cells: Aged<Buffered>,
}

impl Swamp {
    /// Its number in the saved form.
    pub const KIND: u16 = 11;

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
        let &[slots, remainder_bits, ..] = parameters else {
            return Err(damaged());
        };
        let clock = resume(BY_INSERTION);
        let shape = Shape::new(slots, narrow(remainder_bits)?).map_err(as_damage)?;
        let insertions = shape.check_window(clock.window()).map_err(as_damage)?;
        check_cells(&words, shape.nbytes(insertions) / 8)?;
        Ok(Self::assemble(shape, insertions, clock, seed, words))
    }

    fn assemble(shape: Shape, insertions: u64, clock: Clock, seed: u64, words: Words) -> Self {
        Self { shape, seed, cells: Aged { layout: Buffered::new(shape, insertions), words, clock } }
    }

    /// Its parameters.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Writes how often each key was inserted within the window: never less than it was, and more by those keys of the
    /// window that have the same fingerprint, each with chance 1 / [`Shape::fingerprints`].
    pub fn count(&self, hashes: &[u64], counts: &mut [u64]) {
        for (count, &hash) in counts.iter_mut().zip(hashes) {
            *count = self.cells.layout.count(self.cells.words.as_slice(), hash);
        }
    }

    /// Estimate of the number of different keys in the window, from that of their fingerprints: [`Shape::distinct`].
    pub fn distinct(&self) -> f64 {
        self.shape.distinct(self.cells.layout.table.distinct(self.cells.words.as_slice()), self.window())
    }

    fn window(&self) -> u64 {
        self.cells.layout.window as u64
    }
}

impl Filter for Swamp {
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
        vec![("slots", self.shape.slots), ("remainder_bits", self.shape.remainder_bits.into())]
    }

    fn fpr(&self) -> f64 {
        self.shape.false_positive_rate(self.window())
    }

    /// None: a key leaves with the insertion that is W after its last.
    fn slack(&self) -> u64 {
        0
    }

    fn npws(&self) -> f64 {
        0.0
    }

    /// One place of the table, whatever is found there.
    fn expected_accesses(&self) -> Accesses {
        Accesses { in_window: 1.0, false_positive: 1.0, absent: 1.0 }
    }

    /// The table keeps a key's bits and its remainder in a line or two; an insertion writes those of the key that comes
    /// and of the one that leaves, and one line of the buffer.
    fn cache_lines(&self) -> Lines {
        Lines { insert: 5.0, hit: 2.0, miss: 2.0 }
    }

    fn false_positive_rate(&self) -> f64 {
        self.cells.match_rates()[0]
    }

    fn clone_box(&self) -> Box<dyn Filter> {
        Box::new(self.clone())
    }
}
