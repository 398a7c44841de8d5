//! Where the bits of a key lie: what the engine needs from a filter's cells, and a file or folder per layout.

pub mod bloom;
pub mod buffer;
pub mod cells;
pub mod counters;
pub mod counting;
mod cut;
pub mod generalized;
pub mod line;
pub(crate) mod parts;
pub mod quotient;
pub mod ring;
pub mod stable;
pub mod swamp;
pub mod time_limited;
pub mod timers;
pub mod transposed;

use std::ops::{Range, RangeInclusive};

use crate::Error;
use crate::clock::Clock;
use crate::inference::{Code, Evidence, Likelihood, Question};
use crate::memory::Words;
use crate::memory::prefetch::Address;
use crate::memory::prefetch::in_flight;

/// Some cells of a filter and a layout for them alone: they are all cells of the keys whose hashes lie in a range.
pub struct Part<'a, L> {
    /// The layout of the whole, restricted to keys of this part and to these words.
    pub layout: L,
    /// Its words.
    pub words: &'a mut [u64],
    /// The hashes of its keys.
    pub hashes: RangeInclusive<u64>,
}

/// Where the bits of a key lie in the words of a filter, and what a new generation does to them.
///
/// Generations are numbered by the [`Clock`]. A layout keeps no state: the words and the clock are
/// all there is to save.
pub trait Layout: Copy + Send + Sync + 'static {
    /// What the generation means for the cells, worked out once per run of keys.
    type Phase: Copy;

    /// Whether an insertion only sets bits, and a generation only clears some, whatever they are: then several
    /// processes may [share](crate::shared) the cells.
    const SETS_BITS: bool = false;

    /// Generations after which a key has left no trace.
    fn generations(&self) -> u64;

    /// The phase of the cells when generation `generation` is open, as they will be once `pending` more have begun.
    fn phase(&self, generation: i64, pending: u64) -> Self::Phase;

    /// The phase of a query for what was inserted in the open generation and the `back` before it, if cells of this
    /// kind know how old keys are.
    fn phase_within(&self, generation: i64, back: u64) -> Option<Self::Phase> {
        let _ = (generation, back);
        None
    }

    /// Prefetches the cells that an insertion writes; a few generations later it may write others.
    fn fetch_newest(&self, words: Address, phase: Self::Phase, hash: u64);

    /// Prefetches the cells that a query reads, which include those that an insertion writes.
    fn fetch_all(&self, words: Address, hash: u64);

    /// Writes a key into the open generation.
    fn insert(&self, words: &mut [u64], phase: Self::Phase, hash: u64);

    /// Leaves the open generation without a key, where a generation is one insertion and this one is only asked for.
    /// What lay where its key would lie is gone already, or goes here.
    #[inline(always)]
    fn pass(&self, words: &mut [u64], phase: Self::Phase) {
        let _ = (words, phase);
    }

    /// Whether the cells hold a key.
    fn contains(&self, words: &[u64], phase: Self::Phase, hash: u64) -> bool;

    /// What the cells say about a key, for the [likelihood](Self::likelihood) to read: all bits that are there, expired
    /// or not.
    #[inline(always)]
    fn evidence(&self, words: &[u64], phase: Self::Phase, hash: u64) -> Evidence {
        Evidence::there(self.contains(words, phase, hash))
    }

    /// Writes what the cells say about each key of a batch.
    fn evidence_run(&self, words: &[u64], phase: Self::Phase, hashes: &[u64], evidence: &mut [Evidence]) {
        let address = Address::of(words);
        let fetch = |hash| self.fetch_all(address, hash);
        in_flight(hashes, 0..hashes.len(), fetch, |i, hash| evidence[i] = self.evidence(words, phase, hash));
    }

    /// How codes are read, if all evidence has one.
    fn coded(&self) -> Option<fn(Code) -> Evidence> {
        None
    }

    /// Writes the codes of what the cells say about each key of a batch.
    fn codes_run(&self, words: &[u64], phase: Self::Phase, hashes: &[u64], codes: &mut [Code]) {
        let _ = (words, phase, hashes, codes);
        unreachable!("evidence of these cells has no codes");
    }

    /// What evidence tells about ages in the current state of the cells, if this layout has a likelihood. It may sample
    /// the cells, but is the same for the same cells.
    fn likelihood(&self, words: &[u64], clock: &Clock, question: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        let _ = (words, clock, question);
        None
    }

    /// Inserts the keys of a run, a part of the batch `hashes`, in order.
    fn insert_run(&self, words: &mut [u64], phase: Self::Phase, hashes: &[u64], run: Range<usize>) {
        let address = Address::of(words);
        let fetch = |hash| self.fetch_newest(address, phase, hash);
        in_flight(hashes, run, fetch, |_, hash| self.insert(words, phase, hash));
    }

    /// Writes to `present`, which is as long as the batch, which keys of a run the cells hold.
    fn query_run(&self, words: &[u64], phase: Self::Phase, hashes: &[u64], run: Range<usize>, present: &mut [bool]) {
        let address = Address::of(words);
        let fetch = |hash| self.fetch_all(address, hash);
        in_flight(hashes, run, fetch, |i, hash| present[i] = self.contains(words, phase, hash));
    }

    /// For each key of a run in order: writes to `seen` whether the cells hold it, then inserts it; without `refresh`
    /// only if it was not held. Returns how many it inserted.
    fn duplicated_run(
        &self,
        words: &mut [u64],
        phase: Self::Phase,
        hashes: &[u64],
        run: Range<usize>,
        refresh: bool,
        seen: &mut [bool],
    ) -> u64 {
        let (mut inserted, address) = (0, Address::of(words));
        let fetch = |hash| self.fetch_all(address, hash);
        in_flight(hashes, run, fetch, |i, hash| {
            seen[i] = self.contains(words, phase, hash);
            if refresh || !seen[i] {
                self.insert(words, phase, hash);
                inserted += 1;
            }
        });
        inserted
    }

    /// Whether opening `generation` changes these cells.
    #[inline(always)]
    fn turns(&self, generation: i64) -> bool {
        let _ = generation;
        true
    }

    /// Clears the cells that `generation` will write first, just before it opens.
    fn open(&self, words: &mut [u64], generation: i64);

    /// Cuts the cells into at most `parts`, 2 or more, so that threads can work side by side. Possible if all cells of
    /// a key lie together, by its hash.
    fn cut<'a>(&self, words: &'a mut [u64], parts: usize) -> Vec<Part<'a, Self>> {
        let _ = (words, parts);
        Vec::new()
    }

    /// Keys from one look at how full the cells are to the next, if they grow.
    #[inline(always)]
    fn looks_every(&self) -> Option<u64> {
        None
    }

    /// After a look the cells as they lie from now on, if they grow or shrink.
    fn regrown(&self, words: &[u64], phase: Self::Phase) -> Option<(Self, Words)> {
        let _ = (words, phase);
        None
    }

    /// The cells grown as far as those of another filter, if that has grown further.
    fn grown_as(&self, other: &Self, words: &[u64], phase: Self::Phase) -> Result<Option<(Self, Words)>, Error> {
        let _ = (other, words, phase);
        Ok(None)
    }

    /// Refuses words that are none of its own, read from somewhere: most layouts make sense of any bits.
    fn check(&self, words: &[u64]) -> Result<(), Error> {
        let _ = words;
        Ok(())
    }

    /// Refuses words that no insertions leave, and that would miss keys to come. Of a file that is mapped and not to be
    /// verified it is not asked.
    fn verify(&self, words: &[u64], clock: &Clock) -> Result<(), Error> {
        let _ = (words, clock);
        Ok(())
    }

    /// Share of the bits set in each part that rotates as one, the newest first.
    fn fill(&self, words: &[u64], phase: Self::Phase) -> Vec<f64>;

    /// Chance that a fresh key matches in each part that rotates as one, the newest first.
    fn match_rates(&self, words: &[u64], phase: Self::Phase) -> Vec<f64>;

    /// Chance that a fresh key is reported now; the default is for a single part.
    fn false_positive_rate(&self, words: &[u64], phase: Self::Phase) -> f64 {
        self.match_rates(words, phase)[0]
    }

    /// Merges `others` into `words`, both in this phase, if cells of this kind can be united.
    fn unite(&self, words: &mut [u64], others: &[u64], phase: Self::Phase) -> Result<(), Error> {
        let _ = (words, others, phase);
        Err(Error::value("filters of this family cannot be united"))
    }
}
