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
use crate::inference::{Likelihood, Question, buffer};
use crate::layout::Layout;
use crate::layout::cells::share_of_ones;
use crate::memory::Words;
use crate::memory::bits::scale;
use crate::memory::prefetch::Address;
use crate::shape::fingerprint_buffer::{GROUP, Shape};
use crate::shape::runs::Accesses;

/// The buffer, a ring of `window` places.
#[derive(Clone, Copy)]
struct Buffer {
    window: u64,
    shape: Shape,
}

impl Buffer {
    /// Words of a group.
    fn group(&self) -> usize {
        self.shape.fingerprint_bits as usize
    }

    /// 1 to 2^bph - 1.
    #[inline(always)]
    fn fingerprint(&self, hash: u64) -> u64 {
        scale(hash, self.shape.fingerprints()) + 1
    }

    /// How many insertions ago a place was written.
    fn age(&self, place: u64, newest: u64) -> u64 {
        (newest + self.window - place) % self.window
    }

    /// The fingerprints of all places, 0 where there is none.
    fn fingerprints(&self, words: &[u64]) -> Vec<u64> {
        let in_group = |group: &[u64], place: u64| {
            group.iter().rev().fold(0, |fingerprint, word| fingerprint << 1 | (word >> place & 1))
        };
        words.chunks_exact(self.group()).flat_map(|group| (0..GROUP).map(move |place| in_group(group, place))).collect()
    }
}

/// Those of the places in a group that have this fingerprint.
#[inline(always)]
fn alike(group: &[u64], fingerprint: u64, mut places: u64) -> u64 {
    for (bit, word) in group.iter().enumerate() {
        // Places that have the fingerprint's bit: the word, or its complement where that is 0.
        places &= word ^ (fingerprint >> bit & 1).wrapping_sub(1);
        if places == 0 {
            break;
        }
    }
    places
}

impl Layout for Buffer {
    /// The place of the newest fingerprint.
    type Phase = u64;

    fn generations(&self) -> u64 {
        self.window
    }

    /// A generation is one insertion.
    fn phase(&self, generation: i64, _pending: u64) -> u64 {
        generation as u64 % self.window
    }

    /// Insertions follow each other through memory, which is fetched without being told.
    #[inline(always)]
    fn fetch_newest(&self, _words: Address, _newest: u64, _hash: u64) {}

    #[inline(always)]
    fn fetch_all(&self, _words: Address, _hash: u64) {}

    fn insert(&self, words: &mut [u64], newest: u64, hash: u64) {
        let (start, place) = ((newest / GROUP) as usize * self.group(), newest % GROUP);
        let fingerprint = self.fingerprint(hash);
        for (bit, word) in words[start..start + self.group()].iter_mut().enumerate() {
            *word = *word & !(1 << place) | (fingerprint >> bit & 1) << place;
        }
    }

    fn contains(&self, words: &[u64], _newest: u64, hash: u64) -> bool {
        let fingerprint = self.fingerprint(hash);
        words.chunks_exact(self.group()).any(|group| alike(group, fingerprint, u64::MAX) != 0)
    }

    /// The age of the newest fingerprint that is the key's.
    fn evidence(&self, words: &[u64], newest: u64, hash: u64) -> u128 {
        let fingerprint = self.fingerprint(hash);
        let (own, place) = ((newest / GROUP) as usize, newest % GROUP);
        let groups = words.len() / self.group();
        // Places up to the newest, then older and older groups, and at last the places that will be overwritten next.
        let younger = u64::MAX >> (GROUP - 1 - place);
        for back in 0..=groups {
            let group = (own + groups - back) % groups;
            let places = match back {
                0 => younger,
                _ if back == groups => !younger,
                _ => u64::MAX,
            };
            let found = alike(&words[group * self.group()..][..self.group()], fingerprint, places);
            if found != 0 {
                return self.age(group as u64 * GROUP + u64::from(found.ilog2()), newest).into();
            }
        }
        buffer::ABSENT
    }

    fn likelihood(&self, words: &[u64], clock: &Clock, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        let newest = self.phase(clock.generation(), 0);
        let places = self.fingerprints(words).into_iter().zip(0..self.window);
        let there = places.filter(|&(fingerprint, _)| fingerprint != 0);
        let mut last: Vec<(u64, u64)> = there.map(|(print, place)| (print, self.age(place, newest))).collect();
        last.sort_unstable();
        last.dedup_by_key(|&mut (fingerprint, _)| fingerprint);
        let (kept, ages) = (clock.inserted().min(self.window), last.into_iter().map(|(_, age)| age));
        Some(Box::new(buffer::Buffer::new(self.shape.fingerprints(), kept, ages)))
    }

    /// Nothing: the insertion that opens a generation writes over the oldest fingerprint.
    fn open(&self, _words: &mut [u64], _generation: i64) {}

    fn fill(&self, words: &[u64], _newest: u64) -> Vec<f64> {
        vec![share_of_ones(words, self.window * u64::from(self.shape.fingerprint_bits))]
    }

    fn match_rates(&self, words: &[u64], _newest: u64) -> Vec<f64> {
        let mut fingerprints = self.fingerprints(words);
        fingerprints.sort_unstable();
        fingerprints.dedup();
        let different = fingerprints.iter().filter(|&&fingerprint| fingerprint != 0).count();
        vec![different as f64 / self.shape.fingerprints() as f64]
    }
}

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
