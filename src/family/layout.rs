//! The traits of all layouts: where the bits of a key lie in the words of a filter.
//!
//! A layout implements [`Layout`]. What takes several calls and few layouts can do, such as the insertion of late keys,
//! has a small trait each in [`abilities`].

use std::ops::Range;

use crate::Error;
use crate::clock::Clock;
use crate::family::abilities::{Late, Partition, Still};
use crate::inference::{Code, Evidence, Likelihood, Question};
use crate::memory::prefetch::{Address, in_flight};

/// Where the bits of a key lie in the words of a filter, and how a new generation changes them.
///
/// The [`Clock`](crate::clock::Clock) numbers the generations. A layout has no state: words and clock are all there is
/// to save.
pub trait Layout: Clone + Send + Sync + 'static {
    /// What the open generation means for the cells, computed once per run of keys.
    type Rotation: Copy;

    /// Returns whether insertions only set bits, and a new generation only clears some, whatever the bits were. Then
    /// filters merge by the OR of their words, and several processes may [share](crate::shared) the words.
    fn sets_bits(&self) -> bool {
        false
    }

    /// Returns the number of generations after which a key has left no trace.
    fn generations(&self) -> u64;

    /// Returns the rotation of the cells while `generation` is open, as it will be after `pending` more generations.
    fn rotation(&self, generation: i64, pending: u64) -> Self::Rotation;

    /// Prefetches the cells that an insertion writes; by default those that a query reads. A few generations later an
    /// insertion may write others.
    #[inline(always)]
    fn prefetch_insert(&self, words: Address, rotation: Self::Rotation, hash: u64) {
        let _ = rotation;
        self.prefetch_query(words, hash);
    }

    /// Prefetches the cells that a query reads, which include those that an insertion writes.
    fn prefetch_query(&self, words: Address, hash: u64);

    /// Inserts a key into the open generation.
    fn insert(&self, words: &mut [u64], rotation: Self::Rotation, hash: u64);

    /// Returns whether the cells contain a key.
    fn contains(&self, words: &[u64], rotation: Self::Rotation, hash: u64) -> bool;

    /// Returns the evidence about a key, for its [likelihood](Self::likelihood): all bits that are set, expired or not.
    /// By default whether the cells contain the key.
    #[inline(always)]
    fn evidence(&self, words: &[u64], rotation: Self::Rotation, hash: u64) -> Evidence {
        Evidence::present(self.contains(words, rotation, hash))
    }

    /// Returns whether the cells contain a key, and inserts it.
    fn seen(&self, words: &mut [u64], rotation: Self::Rotation, hash: u64) -> bool {
        let seen = self.contains(words, rotation, hash);
        self.insert(words, rotation, hash);
        seen
    }

    /// Inserts the keys of a run of the batch `hashes`, in order.
    fn insert_run(&self, words: &mut [u64], rotation: Self::Rotation, hashes: &[u64], run: Range<usize>) {
        let address = Address::of(words);
        let prefetch = |hash| self.prefetch_insert(address, rotation, hash);
        in_flight(hashes, run, prefetch, |_, hash| self.insert(words, rotation, hash));
    }

    /// Writes to `present` which keys of a run the cells contain. `present` is as long as the batch `hashes`.
    fn query_run(
        &self,
        words: &[u64],
        rotation: Self::Rotation,
        hashes: &[u64],
        run: Range<usize>,
        present: &mut [bool],
    ) {
        let address = Address::of(words);
        let prefetch = |hash| self.prefetch_query(address, hash);
        in_flight(hashes, run, prefetch, |i, hash| present[i] = self.contains(words, rotation, hash));
    }

    /// Writes to `seen`, for each key of a run in order, whether the cells contain it, and then inserts it. Without
    /// `refresh` only keys are inserted that the cells did not contain. Returns the number of insertions.
    fn duplicated_run(
        &self,
        words: &mut [u64],
        rotation: Self::Rotation,
        hashes: &[u64],
        run: Range<usize>,
        refresh: bool,
        seen: &mut [bool],
    ) -> u64 {
        let (mut inserted, address) = (0, Address::of(words));
        let prefetch = |hash| self.prefetch_query(address, hash);
        in_flight(hashes, run, prefetch, |i, hash| {
            seen[i] = self.contains(words, rotation, hash);
            if refresh || !seen[i] {
                self.insert(words, rotation, hash);
                inserted += 1;
            }
        });
        inserted
    }

    /// Writes the evidence about each key of a batch.
    fn evidence_run(&self, words: &[u64], rotation: Self::Rotation, hashes: &[u64], evidence: &mut [Evidence]) {
        let address = Address::of(words);
        let prefetch = |hash| self.prefetch_query(address, hash);
        in_flight(hashes, 0..hashes.len(), prefetch, |i, hash| evidence[i] = self.evidence(words, rotation, hash));
    }

    /// Writes the code of the evidence about each key of a batch, and returns the function that decodes codes. By
    /// default evidence has no codes: returns `None` and writes nothing.
    fn codes_run(
        &self,
        words: &[u64],
        rotation: Self::Rotation,
        hashes: &[u64],
        codes: &mut [Code],
    ) -> Option<fn(Code) -> Evidence> {
        let _ = (words, rotation, hashes, codes);
        None
    }

    /// Returns whether the cells store how old keys are, so that they answer queries for a shorter window than the
    /// filter's: by the rotation with as many more generations pending.
    fn has_ages(&self) -> bool {
        false
    }

    /// Divides the cells among threads into at most `count` partitions, and calls `each` with every one, in the order
    /// of their hashes. Does not call it if there would be only one partition, as by default: all cells of a key must
    /// lie together, at a place that grows with its hash.
    fn divide<'a>(&self, words: &'a mut [u64], count: usize, each: &mut dyn FnMut(Partition<'a, Self>)) {
        let _ = (words, count, each);
    }

    /// Returns whether [`open`](Self::open) with `generation` may change these cells. A
    /// [partition](abilities::Partition) of the cells skips the generations that rotate other cells.
    #[inline(always)]
    fn rotates(&self, generation: i64) -> bool {
        let _ = generation;
        true
    }

    /// Clears the cells that `generation` will write first, just before it opens; by default none.
    fn open(&self, words: &mut [u64], generation: i64) {
        let _ = (words, generation);
    }

    /// Returns how many words [`open`](Self::open) writes at most, of this number; by default all.
    fn most_opened(&self, words: usize) -> usize {
        words
    }

    /// Fills the place of an insertion that is skipped, where a generation is one insertion, and each has a place in a
    /// queue. By default there is none.
    #[inline(always)]
    fn skip(&self, words: &mut [u64], rotation: Self::Rotation) {
        let _ = (words, rotation);
    }

    /// Returns how often a key was inserted within the window. By default cells do not count.
    fn count(&self, words: &[u64], hash: u64) -> Option<u64> {
        let _ = (words, hash);
        None
    }

    /// Estimates how many different keys were inserted within the window, from cells that count fingerprints.
    fn distinct(&self, words: &[u64]) -> Option<f64> {
        let _ = words;
        None
    }

    /// Rejects words from a file that is to be verified, if no insertions could have left them and later keys would be
    /// missed. By default accepts all words.
    fn verify(&self, words: &[u64], clock: &Clock) -> Result<(), Error> {
        let _ = (words, clock);
        Ok(())
    }

    /// Returns the likelihood of evidence in the current state of the cells. It may come from a sample of the cells,
    /// but equal cells have equal likelihoods. By default there is none.
    fn likelihood(&self, words: &[u64], clock: &Clock, question: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        let _ = (words, clock, question);
        None
    }

    /// Returns the share of set bits in each segment that rotates as one, the newest first.
    fn fill(&self, words: &[u64], rotation: Self::Rotation) -> Vec<f64>;

    /// Returns the chance that a fresh key matches in each segment that rotates as one, the newest first.
    fn match_rates(&self, words: &[u64], rotation: Self::Rotation) -> Vec<f64>;

    /// Returns the number of entries by age in generations, the youngest first, of cells that store keys as entries.
    fn entries(&self, words: &[u64], rotation: Self::Rotation) -> Option<Vec<f64>> {
        let _ = (words, rotation);
        None
    }

    /// Returns the chance that a fresh key is reported now; by default, for a layout of a single segment, the chance
    /// that it matches there.
    fn false_positive_rate(&self, words: &[u64], rotation: Self::Rotation) -> f64 {
        self.match_rates(words, rotation)[0]
    }

    /// Returns the optional traits that this layout implements: none by default.
    #[inline(always)]
    fn abilities(&self) -> Abilities<'_, Self> {
        Abilities::NONE
    }
}

/// Merges the second words into the first.
pub type Merge<L> = fn(&L, &mut [u64], &[u64], <L as Layout>::Rotation);

/// The optional traits that a layout implements, as references to the layout.
pub struct Abilities<'a, L: Layout> {
    /// Inserts late keys in the generations of their own times.
    pub late: Option<&'a dyn Late<L::Rotation>>,
    /// Inserts keys as long as no entry has to move.
    pub still: Option<&'a dyn Still<L::Rotation>>,
    /// Merges the words of another filter that has the same parameters into the first, both of them in this rotation.
    /// Layouts that [set bits](Layout::sets_bits) merge without it.
    pub merge: Option<Merge<L>>,
}

impl<L: Layout> Abilities<'_, L> {
    /// The abilities of a layout that implements [`Layout`] alone.
    pub const NONE: Self = Self { late: None, still: None, merge: None };
}
