//! The generalized Bloom filter (Laufer, Velloso, Duarte, *A Generalized Bloom Filter to Secure Distributed Network
//! Applications*, 2011), on streams as paper 5, section 5, has it. **It promises no window**: every bit forgets gradually.
//!
//! k1 hashes of a key set bits to one, k0 reset bits to zero, and where both hit, zero wins. A key matches when its
//! zeros are zero and its ones are one: it was inserted lately, as long as no later key changed one of its bits. How
//! lately is a matter of chance, told by [`Memory`](crate::shape::generalized::Memory), and of the query, which may ask
//! for any window: what of the bits matches is [`Evidence`] for it. The window of the filter is what its shape was chosen
//! for, and nothing else.
//!
//! Where this differs from the papers: no double hashing, whose floor of errors lies too high ([`cells`](crate::layout::cells)).

use super::saved::{as_damage, check_cells, damaged, narrow};
use super::{Filter, Lines};
use crate::Error;
use crate::clock::{Clock, Window};
use crate::engine::{Aged, Engine};
use crate::inference::generalized::Evidence;
use crate::layout::generalized::Bits;
use crate::memory::Words;
use crate::shape::generalized::{Shape, insertions};
use crate::shape::runs::Accesses;

/// Full generations that the clock counts for a window: any number would do.
const KEPT: u32 = 1;

/// A generalized Bloom filter: do the bits of a key look as if it had been inserted lately?
#[derive(Clone)]
pub struct Generalized {
    seed: u64,
    bits: Aged<Bits>,
}

impl Generalized {
    /// Its number in the saved form.
    pub const KIND: u16 = 10;

    /// An empty filter; the window counts insertions, and is only what the shape was chosen for.
    pub fn new(shape: Shape, window: Window, seed: u64) -> Result<Self, Error> {
        insertions(window)?;
        let len = usize::try_from(shape.nbytes() / 8).map_err(|_| Error::Memory { bytes: shape.nbytes() })?;
        let (layout, words) = (Bits(shape), Words::zeroed(len)?);
        Ok(Self { seed, bits: Aged { layout, words, clock: Clock::new(window, KEPT) } })
    }

    /// The filter that [`parameters`](Filter::parameters) gave these values for, with these cells.
    pub fn from_saved(
        parameters: &[u64],
        resume: impl FnOnce(u32) -> Clock,
        seed: u64,
        words: Words,
    ) -> Result<Self, Error> {
        let &[bits, k1, k0, ..] = parameters else {
            return Err(damaged());
        };
        let shape = Shape::new(bits, narrow(k1)?, narrow(k0)?).map_err(as_damage)?;
        let clock = resume(KEPT);
        insertions(clock.window()).map_err(as_damage)?;
        check_cells(&words, shape.nbytes() / 8)?;
        Ok(Self { seed, bits: Aged { layout: Bits(shape), words, clock } })
    }

    /// Its parameters.
    pub fn shape(&self) -> Shape {
        self.bits.layout.0
    }

    /// The insertions that its shape was chosen for.
    fn window(&self) -> u64 {
        insertions(self.bits.clock.window()).expect("refused when it was made")
    }

    /// What its bits say of a key.
    pub fn evidence(&self, hash: u64) -> Evidence {
        self.bits.layout.matches(self.bits.words.as_slice(), hash)
    }
}

impl Filter for Generalized {
    fn engine(&self) -> &dyn Engine {
        &self.bits
    }

    fn engine_mut(&mut self) -> &mut dyn Engine {
        &mut self.bits
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn kind(&self) -> u16 {
        Self::KIND
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let Shape { bits, k1, k0 } = self.shape();
        vec![("bits", bits), ("k1", k1.into()), ("k0", k0.into())]
    }

    fn fpr(&self) -> f64 {
        self.shape().false_positive_rate()
    }

    /// No bound: a key may match long after, ever less likely.
    fn slack(&self) -> u64 {
        u64::MAX
    }

    fn npws(&self) -> f64 {
        let window = self.window() as f64;
        self.shape().memory().remembered_from(window) / window
    }

    fn expected_accesses(&self) -> Accesses {
        self.shape().expected_accesses()
    }

    /// One for each hash: all are fetched ahead, whatever the first ones turn out to be.
    fn cache_lines(&self) -> Lines {
        let all = f64::from(self.shape().k0 + self.shape().k1);
        Lines { insert: all, hit: all, miss: all }
    }

    fn false_positive_rate(&self) -> f64 {
        self.bits.match_rates()[0]
    }

    /// Of the key just inserted and of the oldest of the window, a generation of the clock before it; of all ages between
    /// and beyond [`Memory`](crate::shape::generalized::Memory) tells.
    fn false_negative_rates(&self) -> Vec<f64> {
        vec![0.0, self.shape().memory().missed((self.window() - 1) as f64)]
    }

    fn clone_box(&self) -> Box<dyn Filter> {
        Box::new(self.clone())
    }
}
