//! A count-min sketch that forgets exponentially: how often a key came lately.
//!
//! A key has four 16-bit cells in one cache line, one in each quarter, and its count is the least of them. Only cells
//! below the new count are raised (conservative update: Estan, Varghese 2002). Forgetting is forward decay (Cormode,
//! Shkapenyuk, Srivastava, Xu 2009): within a half-life new sightings weigh ever more, from 16 to 32, and at its end
//! all cells are halved. So a count, divided by the current weight, is the sum of 2^(-age / half-life) over all
//! sightings, at every phase and not only on average. A single sighting is gone after five half-lives, and counts
//! beyond 2048 are not distinguished.

use std::collections::TryReserveError;

/// Weight of a sighting at the beginning of a half-life. It grows to twice that, so its steps are 6 % or less.
const UNIT: f64 = 16.0;
/// Number of 64-bit words of a cache line.
const LINE: usize = 8;

/// Number of classes of counts: 0 for keys without a trace, then half an octave each.
pub const CLASSES: usize = 35;

/// Returns the sightings that a class represents: the middle of its half-octave, or half of the least for no trace at
/// all.
pub fn sightings(class: usize) -> f64 {
    if class == 0 { 0.25 / UNIT } else { ((class as f64 - 2.5) / 2.0).exp2() / UNIT }
}

/// A sketch of decayed counts.
#[derive(Debug, Clone)]
pub struct Sketch {
    words: Vec<u64>,
}

impl Sketch {
    /// Creates an empty sketch of `bytes` bytes, a whole number of cache lines.
    pub fn new(bytes: usize) -> Result<Self, TryReserveError> {
        let mut words = Vec::new();
        words.try_reserve_exact(bytes / 8)?;
        words.resize(bytes / 8, 0);
        Ok(Self { words })
    }

    /// Returns the cells, four to a word.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Returns the cells, to load saved ones into. Any pattern is legal.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// Returns the first word of a key's cache line.
    #[inline(always)]
    pub fn line(&self, hash: u64) -> usize {
        crate::memory::bits::scale(hash.rotate_left(32), (self.words.len() / LINE) as u64) as usize * LINE
    }

    /// Returns a key's four cells.
    #[inline(always)]
    fn cells(&self, hash: u64) -> [usize; 4] {
        let line = self.line(hash) * 4;
        std::array::from_fn(|quarter| line + quarter * 8 + (hash >> (quarter * 3) & 7) as usize)
    }

    /// Counts one sighting, at this phase of the half-life.
    #[inline]
    pub fn insert(&mut self, hash: u64, phase: f64) {
        let weight = (UNIT * phase.exp2()).round() as u16;
        let own = self.cells(hash);
        let cells: &mut [u16] = bytemuck::cast_slice_mut(&mut self.words);
        let count = own.map(|cell| cells[cell]).into_iter().min().unwrap_or(0).saturating_add(weight);
        for cell in own {
            cells[cell] = cells[cell].max(count);
        }
    }

    /// Returns the class of a key's count, at this phase of the half-life.
    #[inline]
    pub fn class(&self, hash: u64, phase: f64) -> usize {
        let cells: &[u16] = bytemuck::cast_slice(&self.words);
        match self.cells(hash).map(|cell| cells[cell]).into_iter().min() {
            None | Some(0) => 0,
            // The least trace is 1, which late in a half-life is worth half as much: the logarithm is -1 to 16.
            Some(count) => ((2.0 * (f64::from(count).log2() - phase)).floor() + 3.0) as usize,
        }
    }

    /// Ends a half-life.
    pub fn halve(&mut self) {
        for cell in bytemuck::cast_slice_mut::<u64, u16>(&mut self.words) {
            *cell >>= 1;
        }
    }
}
