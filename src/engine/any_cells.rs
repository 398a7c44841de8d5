//! Cells of any layout, behind a pointer: the engine is compiled once for all layouts but the default's.
//!
//! A call through the pointer takes a whole run of keys, so it costs a run some ten instructions. Compiled for each
//! layout, the engine was a fifth of the extension, and took as much of the time to build it.

use std::ops::Range;
use std::sync::Arc;

use super::{Aged, Engine};
use crate::Error;
use crate::clock::Clock;
use crate::family::abilities::Partition;
use crate::family::{Abilities, Layout};
use crate::inference::{Code, Evidence, Likelihood, Question};
use crate::memory::Words;
use crate::memory::prefetch::Address;

/// Cells of any layout.
#[derive(Clone)]
pub struct AnyCells {
    cells: Arc<dyn LayoutMethods>,
    /// What the layout returns, so that a run need not look it up.
    generations: u64,
}

/// The open generation, from which a layout computes its own rotation once per run.
#[derive(Clone, Copy)]
pub struct Opened {
    generation: i64,
    pending: u64,
}

impl Opened {
    #[inline(always)]
    fn rotation_of<L: Layout>(self, layout: &L) -> L::Rotation {
        layout.rotation(self.generation, self.pending)
    }
}

impl AnyCells {
    /// Returns the cells of a layout.
    pub fn of(layout: impl Layout) -> Self {
        let Abilities { late, still, merge } = layout.abilities();
        debug_assert!(late.is_none() && still.is_none() && merge.is_none(), "not forwarded");
        Self { generations: layout.generations(), cells: Arc::new(layout) }
    }

    /// Returns the engine of these cells. A function of its own, so that it is compiled once.
    pub(super) fn engine(self, words: Words, clock: Clock) -> Box<dyn Engine> {
        Box::new(Aged { layout: self, words, clock })
    }
}

/// Defines [`LayoutMethods`] with these methods of a layout, first those of a rotation, and forwards calls to it and
/// from it.
macro_rules! forwarded {
    (
        $(fn $name:ident($words:ident: $words_type:ty, _ $(, $argument:ident: $type:ty)*) $(-> $output:ty)?;)*
        ---
        $(fn $plain:ident($($plain_argument:ident: $plain_type:ty),*) $(-> $plain_output:ty)?;)*
    ) => {
        /// The methods of a layout, without its type of rotations.
        trait LayoutMethods: Send + Sync {
            $(fn $name(&self, $words: $words_type, opened: Opened, $($argument: $type),*) $(-> $output)?;)*
            $(fn $plain(&self, $($plain_argument: $plain_type),*) $(-> $plain_output)?;)*
            fn divide<'a>(&self, words: &'a mut [u64], count: usize, each: &mut dyn FnMut(Partition<'a, AnyCells>));
        }

        impl<L: Layout> LayoutMethods for L {
            $(fn $name(&self, $words: $words_type, opened: Opened, $($argument: $type),*) $(-> $output)? {
                Layout::$name(self, $words, opened.rotation_of(self), $($argument),*)
            })*
            $(fn $plain(&self, $($plain_argument: $plain_type),*) $(-> $plain_output)? {
                Layout::$plain(self, $($plain_argument),*)
            })*

            fn divide<'a>(&self, words: &'a mut [u64], count: usize, each: &mut dyn FnMut(Partition<'a, AnyCells>)) {
                Layout::divide(self, words, count, &mut |Partition { layout, words, hashes }| {
                    each(Partition { layout: AnyCells::of(layout), words, hashes });
                });
            }
        }

        impl Layout for AnyCells {
            type Rotation = Opened;

            #[inline(always)]
            fn rotation(&self, generation: i64, pending: u64) -> Opened {
                Opened { generation, pending }
            }

            #[inline(always)]
            fn generations(&self) -> u64 {
                self.generations
            }

            fn divide<'a>(&self, words: &'a mut [u64], count: usize, each: &mut dyn FnMut(Partition<'a, Self>)) {
                self.cells.divide(words, count, each);
            }

            $(#[inline(always)]
            fn $name(&self, $words: $words_type, opened: Opened, $($argument: $type),*) $(-> $output)? {
                self.cells.$name($words, opened, $($argument),*)
            })*
            $(#[inline(always)]
            fn $plain(&self, $($plain_argument: $plain_type),*) $(-> $plain_output)? {
                self.cells.$plain($($plain_argument),*)
            })*
        }
    };
}

forwarded! {
    fn prefetch_insert(words: Address, _, hash: u64);
    fn insert(words: &mut [u64], _, hash: u64);
    fn contains(words: &[u64], _, hash: u64) -> bool;
    fn seen(words: &mut [u64], _, hash: u64) -> bool;
    fn insert_run(words: &mut [u64], _, hashes: &[u64], run: Range<usize>);
    fn query_run(words: &[u64], _, hashes: &[u64], run: Range<usize>, present: &mut [bool]);
    fn duplicated_run(
        words: &mut [u64], _, hashes: &[u64], run: Range<usize>, refresh: bool, seen: &mut [bool]
    ) -> u64;
    fn evidence_run(words: &[u64], _, hashes: &[u64], evidence: &mut [Evidence]);
    fn codes_run(words: &[u64], _, hashes: &[u64], codes: &mut [Code]) -> Option<fn(Code) -> Evidence>;
    fn skip(words: &mut [u64], _);
    fn fill(words: &[u64], _) -> Vec<f64>;
    fn match_rates(words: &[u64], _) -> Vec<f64>;
    fn entries(words: &[u64], _) -> Option<Vec<f64>>;
    fn false_positive_rate(words: &[u64], _) -> f64;
    ---
    fn sets_bits() -> bool;
    fn has_ages() -> bool;
    fn prefetch_query(words: Address, hash: u64);
    fn rotates(generation: i64) -> bool;
    fn open(words: &mut [u64], generation: i64);
    fn count(words: &[u64], hash: u64) -> Option<u64>;
    fn distinct(words: &[u64]) -> Option<f64>;
    fn verify(words: &[u64], clock: &Clock) -> Result<(), Error>;
    fn likelihood(words: &[u64], clock: &Clock, question: &Question<'_>) -> Option<Box<dyn Likelihood>>;
}
