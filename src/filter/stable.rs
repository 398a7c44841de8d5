//! The stable Bloom filter (Deng, Rafiei, *Approximately Detecting Duplicates for Streaming Data using Stable Bloom
//! Filters*, SIGMOD 2006), which papers 1 and 2 measure against. **It promises no window**: it forgets at random.
//!
//! An insertion takes one from P random cells of each slice, then sets one cell of each to its maximum. A key is there
//! when none of its cells is zero. The share of zeros falls to a stable point and stays there, however long the stream.
//!
//! Where this differs from that paper:
//! - k slices with P decrements each, not one array with k P: slices are then independent, and the rates exact.
//! - As there, the P cells follow one another from a random one on, which leaves each cell's chance what it is. That one
//!   is XXH3 of the insertion's number under the filter's seed, not the next number of a generator: so words and clock
//!   are all there is to save, a batch is its keys one by one, and a filter that was saved goes on as if it had not been.

use super::saved::{as_damage, check_cells, damaged, narrow};
use super::{Filter, Lines};
use crate::Error;
use crate::clock::{BY_INSERTION, Clock, Window};
use crate::engine::{Aged, Engine};
use crate::layout::counters::CounterSlices;
use crate::layout::stable::Decaying;
use crate::memory::Words;
use crate::shape::runs::Accesses;
use crate::shape::slices::Slices;
use crate::shape::stable::Shape;

/// A stable Bloom filter: was a key inserted lately, most probably? Its window is nominal.
#[derive(Clone)]
pub struct Stable {
    shape: Shape,
    seed: u64,
    cells: Box<dyn Engine>,
}

impl Stable {
    /// Its number in the saved form.
    pub const KIND: u16 = 7;

    /// An empty filter; the window counts insertions, and is only what the shape was chosen for.
    pub fn new(shape: Shape, window: Window, seed: u64) -> Result<Self, Error> {
        window.by_insertion()?;
        let words = usize::try_from(shape.nbytes() / 8).unwrap_or(usize::MAX);
        Ok(Self::assemble(shape, Clock::new(window, BY_INSERTION), seed, Words::zeroed(words)?))
    }

    /// The filter that [`parameters`](Filter::parameters) gave these values for, with these cells.
    pub fn from_saved(
        parameters: &[u64],
        resume: impl FnOnce(u32) -> Clock,
        seed: u64,
        words: Words,
    ) -> Result<Self, Error> {
        let &[k, cells, bits, decrements, ..] = parameters else {
            return Err(damaged());
        };
        let slices = Slices::new(narrow(k)?, cells).map_err(as_damage)?;
        let shape = Shape::new(slices, narrow(bits)?, decrements).map_err(as_damage)?;
        let clock = resume(BY_INSERTION);
        clock.window().by_insertion().map_err(as_damage)?;
        check_cells(&words, shape.nbytes() / 8)?;
        Ok(Self::assemble(shape, clock, seed, words))
    }

    fn assemble(shape: Shape, clock: Clock, seed: u64, words: Words) -> Self {
        fn aged<const BITS: u32>(shape: Shape, clock: Clock, seed: u64, words: Words) -> Box<dyn Engine> {
            let cells = CounterSlices::<BITS> { slices: shape.slices };
            Box::new(Aged { layout: Decaying { cells, decrements: shape.decrements, seed }, words, clock })
        }
        let cells = match shape.bits {
            1 => aged::<1>(shape, clock, seed, words),
            2 => aged::<2>(shape, clock, seed, words),
            4 => aged::<4>(shape, clock, seed, words),
            8 => aged::<8>(shape, clock, seed, words),
            _ => unreachable!("Shape::new allows no other widths"),
        };
        Self { shape, seed, cells }
    }

    /// Its parameters.
    pub fn shape(&self) -> Shape {
        self.shape
    }
}

impl Filter for Stable {
    fn engine(&self) -> &dyn Engine {
        &*self.cells
    }

    fn engine_mut(&mut self) -> &mut dyn Engine {
        &mut *self.cells
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn kind(&self) -> u16 {
        Self::KIND
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let Shape { slices, bits, decrements } = self.shape;
        vec![("k", slices.k.into()), ("slice_cells", slices.cells), ("bits", bits.into()), ("decrements", decrements)]
    }

    fn fpr(&self) -> f64 {
        self.shape.false_positive_rate()
    }

    /// No bound: a key may be remembered by chance, ever less likely.
    fn slack(&self) -> u64 {
        u64::MAX
    }

    fn npws(&self) -> f64 {
        match self.cells.clock().window() {
            Window::Count { insertions } => self.shape.npws(insertions),
            Window::Time { .. } => unreachable!("Window::by_insertion allows no time"),
        }
    }

    fn expected_accesses(&self) -> Accesses {
        self.shape.expected_accesses()
    }

    /// One in each slice, and for an insertion the lines of the cells that decay, which lie together.
    fn cache_lines(&self) -> Lines {
        let accesses = self.expected_accesses();
        Lines { insert: 2.0 * accesses.in_window, hit: accesses.in_window, miss: accesses.absent }
    }

    fn false_positive_rate(&self) -> f64 {
        self.cells.match_rates()[0]
    }

    fn clone_box(&self) -> Box<dyn Filter> {
        Box::new(self.clone())
    }
}
