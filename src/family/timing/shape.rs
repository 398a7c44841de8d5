//! The timing Bloom filter and its block variant (paper 4, section 4: *One is Enough: Distributed Filtering for
//! Duplicate Elimination*; paper 5, section 3: J. L. Dautrich, C. V. Ravishankar, *Inferring Insertion Times and
//! Optimizing Error Penalties in Time-Decaying Bloom Filters*, 2019): its costs and promises.
//!
//! The cells are timers of a few bits. A timer stores the block of insertions in which it was last set, modulo the
//! number of timestamps; 0 is empty. An insertion sets k of them. A key is there when its k timers are all set and none
//! has expired. Blocks of one insertion are the timing Bloom filter, longer ones the block variant.
//!
//! Where this differs from the papers:
//! - The k timers of a key lie in k slices, one each, so they are always distinct (erratum INF-7) and the rate of false
//!   positives is a power of the fill, exactly.
//! - A block ends when the insertion that needs the next one arrives, so N full blocks and one key more are always
//!   there: B = ceil((W - 1) / N). A timer has expired at age N + 1, which is paper 5's ceil((w - b) / B) + 1 where B
//!   divides W - 1 (there b, the insertions into the open block, is never 0 here).
//! - Paper 4's timers count down; here they are timestamps as in paper 5. As time passes only the sweep writes, which
//!   does its share at the beginning of each block, not after each insertion.
//! - Of dynamic size (paper 4, section 5) a filter grows as a whole, not slice by slice, so that a part matches as one.

use super::equal_timers;
use crate::Error;
use crate::clock::Window;
use crate::family::budget::{Budget, MAX_BYTES, reject_below, too_few_bytes, too_much_memory, within_slack};
use crate::family::search::{self, Candidate};
use crate::family::{CacheLines, Parameters, Shape, fill};

/// Greatest number of timers that a key sets. 2^-64 is the error floor of the hash, which 64 half-filled slices reach.
pub const MAX_HASHES: u32 = 64;

/// Greatest number of blocks of a window: a gap of time opens each of them, in some 0.15 s at this number, and a finer
/// division than a sixteen-millionth of the window is of no use.
pub const MAX_BLOCKS: u32 = 1 << 24;

/// Greatest number of blocks with equal timers, whose rates take blocks * k^2 steps: 0.5 s at this number and k = 64.
pub const MAX_BLOCKS_EQUAL: u32 = 1 << 14;

/// The shape of a timing Bloom filter: everything that determines its size and its errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimingShape {
    /// k: number of timers that a key sets, one in each of k slices.
    pub k: u32,
    /// Number of bits per timer, 2 to 32.
    pub bpt: u32,
    /// Number of full generations retained: the window is that many blocks of B insertions, or spans of time. With a
    /// block for every insertion but one, B = 1, this is the plain timing Bloom filter.
    pub blocks: u32,
    /// Number of 64-bit words of each slice; timers do not straddle them.
    pub words: u64,
    /// k': number of timers of a key that must be equal for it to be reported; 1, which always are, keeps the promise.
    pub equal_timers: u32,
}

impl TimingShape {
    /// Creates a shape whose parameters are in range. `slice_timers`, the timers of each of the k slices, are rounded
    /// up to whole words.
    pub fn new(k: u32, bpt: u32, blocks: u32, slice_timers: u64, equal_timers: u32) -> Result<Self, Error> {
        if !(1..=MAX_HASHES).contains(&k) {
            return Err(Error::value(format!("k must lie in 1..={MAX_HASHES}, got {k}")));
        }
        check_timers(bpt, blocks)?;
        if slice_timers == 0 {
            return Err(Error::value("slice_timers must be at least 1, got 0"));
        }
        if !(1..=k).contains(&equal_timers) {
            return Err(Error::value(format!("equal_timers must lie in 1..=k, here {k}, got {equal_timers}")));
        }
        if equal_timers > 1 && blocks > MAX_BLOCKS_EQUAL {
            return Err(Error::value(format!(
                "blocks must be at most {MAX_BLOCKS_EQUAL} with equal_timers, got {blocks}"
            )));
        }
        let shape = Self { k, bpt, blocks, words: slice_timers.div_ceil(u64::from(64 / bpt)), equal_timers };
        if shape.nbytes() > MAX_BYTES {
            return Err(Error::value(format!("{k} slices of slice_timers={slice_timers} are more than 2**60 bytes")));
        }
        Ok(shape)
    }

    /// Reads a shape of one size from parameters.
    pub fn read(parameters: &Parameters<'_>) -> Result<Self, Error> {
        Self::new(
            parameters.read_u32("k")?,
            parameters.read_u32("bpt")?,
            parameters.read_u32("blocks")?,
            parameters.read_u64("slice_timers")?,
            parameters.get("equal_timers").map_or(Ok(1), |_| parameters.read_u32("equal_timers"))?,
        )
    }

    /// Returns m / k, the timers of each slice.
    pub fn slice_timers(&self) -> u64 {
        self.words * u64::from(64 / self.bpt)
    }

    /// Returns the bytes of all k slices.
    pub fn nbytes(&self) -> u64 {
        self.words.saturating_mul(8 * u64::from(self.k))
    }

    /// Returns the chance that a fresh key finds a live timer in a slice when the last `live` keys still count,
    /// exactly.
    pub fn fill(&self, live: u64) -> f64 {
        fill::slice(self.slice_timers(), live)
    }

    fn equal_timer_rates(&self, window: Window) -> equal_timers::Rates {
        let generations = self.blocks + 1;
        let keys = live_keys(window, self.blocks) as f64 / f64::from(generations);
        // Keys do not come in fractions: with less than one to a block some blocks have one, and the others do not
        // count.
        let (with_keys, keys_each) = (f64::from(generations) * keys.min(1.0), keys.max(1.0));
        let rates =
            equal_timers::rates(self.k, self.equal_timers, self.slice_timers(), with_keys.ceil() as u32, keys_each);
        let at_age = |age: u32| rates.false_negative[(f64::from(age) * keys.min(1.0)) as usize];
        equal_timers::Rates { false_negative: (0..generations).map(at_age).collect(), ..rates }
    }
}

impl Shape for TimingShape {
    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("k", self.k.into()),
            ("bpt", self.bpt.into()),
            ("blocks", self.blocks.into()),
            ("slice_timers", self.slice_timers()),
            ("equal_timers", self.equal_timers.into()),
            ("part_keys", 0),
            ("part_timers", 0),
        ]
    }

    fn retained(&self) -> u32 {
        self.blocks
    }

    fn bytes(&self, _: Window) -> u64 {
        self.nbytes()
    }

    /// Returns the probability that a key never inserted is reported, just before a rotation, the worst phase.
    ///
    /// Each slice has timers and a hash function of its own, so they match independently, and the k-th power of the
    /// expected fill is exact. Over one common array of m timers, as in the papers, the k timers of a key may coincide
    /// (erratum INF-7) and the power is only an approximation, too low for small m.
    fn fpr(&self, window: Window) -> f64 {
        match self.equal_timers {
            1 => {
                let live = live_keys(window, self.blocks);
                fill::or_same_hash(self.fill(live).powi(self.k as i32), live)
            }
            _ => self.equal_timer_rates(window).false_positive,
        }
    }

    fn slack(&self, window: Window) -> u64 {
        window.slack(self.blocks, 1)
    }

    /// Returns the whole of the oldest block, (B - 1) / W where B divides W - 1 (paper 5, section 3.2.2: "B/2 on
    /// average", which erratum INF-20 makes (B - 1) / 2). With equal timers at most that.
    fn npws(&self, window: Window) -> f64 {
        window.npws(self.blocks, 1.0)
    }

    /// Returns one line in each slice: a query reads all slices.
    fn cache_lines(&self, _: Window) -> CacheLines {
        CacheLines::each(self.k)
    }

    /// Returns zeros, except with equal timers.
    fn false_negative_rates(&self, window: Window) -> Vec<f64> {
        match self.equal_timers {
            1 => vec![0.0; self.blocks as usize + 1],
            _ => self.equal_timer_rates(window).false_negative,
        }
    }
}

/// Rejects timers of impossible size, and more blocks than they can distinguish.
fn check_timers(bpt: u32, blocks: u32) -> Result<(), Error> {
    if !(2..=32).contains(&bpt) {
        return Err(Error::value(format!("bpt must lie in 2..=32, got {bpt}")));
    }
    let most = MAX_BLOCKS.min(timestamps(bpt) - 1);
    if !(1..=most).contains(&blocks) {
        return Err(Error::value(format!("blocks must lie in 1..={most} at bpt={bpt}, got {blocks}")));
    }
    Ok(())
}

/// Returns the number of distinct timestamps: 2^bpt - 1, since 0 is the empty timer. (T_Omega + 1 in paper 5.)
pub fn timestamps(bpt: u32) -> u32 {
    u32::MAX >> (32 - bpt)
}

/// Returns the number of parts into which the timers are divided; whenever a block begins, the sweep clears the expired
/// timers of one. It is P - N for P timestamps and N blocks, less one to spare if there is one to spare.
///
/// Why that is often enough: a timer set in generation g counts until generation g + N ends. At the opening of g + N +
/// 1 it is expired and can be recognized as such, and so on until that of g + P, where its timestamp is the one that
/// begins: nothing has been set in that generation yet, so the timer is still recognized as old. That makes P - N
/// openings, at which the sweep, which goes through its parts in turn, comes by at least once when there are no more
/// than P - N parts. So no timer older than P - 1 generations is ever there to be misread. (Paper 5, section
/// 3.2.3, needs one timestamp more, T_Omega >= ceil(w/B) + 1 with T_Omega + 1 of them: its sweep may come
/// after the block's first insertion.)
pub fn sweeps(bpt: u32, blocks: u32) -> u32 {
    (timestamps(bpt) - blocks - 1).max(1)
}

/// Returns the keys that count just before a rotation: those of `blocks` + 1 generations.
pub fn live_keys(window: Window, blocks: u32) -> u64 {
    let reach = reach(window, blocks);
    match window {
        Window::Count { .. } => u64::try_from(reach).unwrap_or(u64::MAX),
        Window::Time { span, capacity, .. } => {
            u64::try_from((u128::from(capacity) * reach).div_ceil(u128::from(span))).unwrap_or(u64::MAX)
        }
    }
}

/// Returns the greatest age of a timer that counts: `blocks` + 1 generations, in insertions or nanoseconds.
fn reach(window: Window, blocks: u32) -> u128 {
    u128::from(window.generation(blocks)) * u128::from(blocks + 1)
}

/// The useful widths of a timer: of the widths with equally many timers to a word the widest.
pub const WIDTHS: [u32; 13] = [2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 21, 32];

/// Returns the shape for a window and a budget, in the fewest bytes or at the least rate.
///
/// Considers all k and the `WIDTHS`. A width gives as many blocks as leave an eighth of its timestamps for padding.
/// Among these numbers the one of the least slack is chosen, which has the fewest keys to hold. (So the sweep goes over
/// some 0.16 * bpt words per timer set, 0.3 * bpt at 4 bits.) The slack is at most `slack`, by default half the window
/// as for the age-partitioned filter.
///
/// For a window of a million keys at 1 % and 0.1 % the result is timers of 2 bits, two blocks: 28.8 and 43.1 bits per
/// key. A slack of 7 % takes 5 bits (27 blocks), 53.1 and 79.5; none at all, B = 1, takes 21 bits, 204.6 and 306.7.
pub fn choose(window: Window, budget: Budget, slack: Option<u64>) -> Result<TimingShape, Error> {
    let window = window.check()?;
    budget.check()?;
    let timers = timers_within(window, slack)?;
    let of_key = |k| timers.iter().map(move |&(bpt, blocks)| TimingShape { k, bpt, blocks, words: 0, equal_timers: 1 });
    let candidates: Vec<TimingCandidate> =
        (1..=MAX_HASHES).flat_map(of_key).map(|shape| TimingCandidate { shape, window }).collect();
    match budget {
        Budget::Rate(fpr) => {
            reject_below(timers.iter().map(|&(_, blocks)| live_keys(window, blocks)), fpr)?;
            search::for_rate(&candidates, fpr, MAX_BYTES, |least| least)
                .ok_or_else(|| too_much_memory(fpr, "2**60 bytes"))
        }
        Budget::Bytes(bytes) => search::for_memory(&candidates, bytes, |least| least)
            .ok_or_else(|| too_few_bytes(search::least_memory(&candidates), "", bytes)),
    }
}

/// A timing filter as a candidate: its size follows from the budget.
struct TimingCandidate {
    shape: TimingShape,
    window: Window,
}

impl Candidate for TimingCandidate {
    type Shape = TimingShape;

    fn rank(&self) -> u32 {
        self.shape.k
    }

    fn shape(&self, words: u64) -> TimingShape {
        TimingShape { words, ..self.shape }
    }

    fn memory_of_unit(&self) -> u64 {
        8 * u64::from(self.shape.k)
    }

    fn rate_at_most(&self, shape: &TimingShape, limit: f64) -> Option<f64> {
        Some(shape.fpr(self.window)).filter(|&rate| rate <= limit)
    }
}

/// Returns the widths of a timer whose slack is at most this or the default, with the number of blocks for each.
fn timers_within(window: Window, slack: Option<u64>) -> Result<Vec<(u32, u32)>, Error> {
    let all = WIDTHS.map(|bpt| (bpt, blocks_of_least_slack(window, bpt)));
    within_slack(window, slack, all, |&(_, blocks)| window.slack(blocks, 1))
}

/// Returns the number of blocks with the least slack that leaves an eighth of the timestamps for padding.
///
/// Several numbers of blocks may give the same block length; the fewest of them retain keys for the shortest time. So
/// one number is tried for each length, from the shortest on. N blocks retain keys at least 1 + 1/N times as long as
/// they must. Where that is beyond the best, fewer blocks cannot win.
pub fn blocks_of_least_slack(window: Window, bpt: u32) -> u32 {
    let codes = timestamps(bpt);
    let mut blocks = (codes - codes.div_ceil(8)).min(MAX_BLOCKS);
    let kept = match window {
        Window::Count { insertions } => insertions - 1,
        Window::Time { span, lateness, .. } => span + lateness,
    };
    let mut best = blocks;
    while blocks > 0 && u128::from(kept) * u128::from(blocks + 1) <= reach(window, best) * u128::from(blocks) {
        blocks = (kept.div_ceil(window.generation(blocks)) as u32).max(1); // the fewest for this length
        if reach(window, blocks) <= reach(window, best) {
            best = blocks;
        }
        blocks -= 1;
    }
    best
}
