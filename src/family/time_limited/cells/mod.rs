//! The slices of the time-limited filter: where they lie, which of them are live, and the shift that adds another.

pub(crate) mod slicewise;

use super::shape::{Load, MIN_BITS, TimeLimitedShape, bits, capacity, generation, new_capacity, target};
use crate::Error;
use crate::clock::{Clock, Moments, Window};
use crate::family::arrays::{OneBit, SliceCells};
use crate::family::segments::{self, Segment};
use crate::memory::Words;

/// Words before the table of slices: the number of slices, the moment at which the open generation began, and the
/// number of the newest slice's hash function.
const HEAD: usize = 3;

/// One slice, as its row of the table stores it.
#[derive(Clone, Copy)]
pub(crate) struct Slice {
    /// The word at which the bits begin; 0 while the slice has none.
    pub(crate) start: usize,
    pub(crate) bits: OneBit,
    pub(crate) load: Load,
    /// t: the moment of the last update, in nanoseconds since the epoch.
    pub(crate) updated: i64,
    /// The number of the hash function. Slices k apart share one, since no run contains both (paper 3, section 6;
    /// erratum TLBF-6).
    pub(crate) function: usize,
}

impl Slice {
    /// Returns the words of this slice.
    pub(crate) fn of<'a>(&self, words: &'a [u64]) -> &'a [u64] {
        &words[self.start..][..self.len()]
    }

    /// Returns the words of this slice, to write.
    pub(crate) fn of_mut<'a>(&self, words: &'a mut [u64]) -> &'a mut [u64] {
        &mut words[self.start..][..self.len()]
    }
}

impl Segment for Slice {
    /// The number of words, the capacity, the count, and the last update.
    const ROW: usize = 4;

    fn len(&self) -> usize {
        (self.bits.bits() / 64) as usize
    }

    fn start(&mut self) -> &mut usize {
        &mut self.start
    }

    fn write(&self, row: &mut [u64]) {
        row.copy_from_slice(&[self.len() as u64, self.load.capacity, self.load.count, self.updated as u64]);
    }
}

/// The engine of a time-limited filter: its slices, the newest first, and their clock.
#[derive(Clone)]
pub struct Slices {
    pub(crate) shape: TimeLimitedShape,
    pub(crate) clock: Clock,
    /// Head, table and bits: all that is saved.
    pub(crate) words: Words,
    /// The table, as `words` stores it.
    pub(crate) table: Vec<Slice>,
    /// The moment at which the open generation began.
    pub(crate) opened: i64,
}

impl Slices {
    /// Returns the slices that [`lay_out`](Self::lay_out) wrote into these words; without words, empty
    /// ones.
    pub(crate) fn new(shape: TimeLimitedShape, clock: Clock, words: Words) -> Result<Self, Error> {
        let mut new = Self { shape, clock, words, table: Vec::new(), opened: 0 };
        if !new.words.as_slice().is_empty() {
            return new.read();
        }
        new.lay_out(new.empty_slices(shape.first_bits, 0), 0)?;
        Ok(new)
    }

    /// Reads the table of slices, and rejects one that is damaged.
    fn read(mut self) -> Result<Self, Error> {
        let damaged = || Error::format("the table of slices is damaged");
        let all = self.words.as_slice();
        let [slices, opened, function, ..] = *all else {
            return Err(damaged());
        };
        let (opened, k) = (opened as i64, self.k());
        let function = usize::try_from(function).ok().filter(|&f| f < k).ok_or_else(damaged)?;
        let mut newer = self.clock.latest().unwrap_or(0);
        if slices < u64::from(self.shape.k) || opened > newer {
            return Err(damaged());
        }
        let table = segments::read(all, HEAD, slices, |i, row| {
            let (len, updated, load) = (row[0], row[3] as i64, Load { capacity: row[1], count: row[2] });
            let possible = (1..=all.len() as u64).contains(&len) && load.capacity <= 64 * len;
            if !possible || load.count > load.capacity || updated > newer {
                return None;
            }
            newer = updated;
            // One less per slice, modulo k: a multiple of k at least as large as i keeps it from going below 0.
            let function = (function + slices as usize * k - i) % k;
            Some(Slice { start: 0, bits: OneBit::new(64 * len), load, updated, function })
        });
        (self.table, self.opened) = (table.ok_or_else(damaged)?, opened);
        Ok(self)
    }

    /// Returns k empty slices of `bits` bits.
    fn empty_slices(&self, bits: u64, now: i64) -> Vec<Slice> {
        let load = Load { capacity: capacity(bits), count: 0 };
        let slice = Slice { start: 0, bits: OneBit::new(bits), load, updated: now, function: 0 };
        let k = self.k();
        (0..k).map(|i| Slice { function: k - 1 - i, ..slice }).collect()
    }

    /// Replaces the slices, and opens a generation at `opened`. A call that returns an error has changed nothing.
    fn lay_out(&mut self, mut table: Vec<Slice>, opened: i64) -> Result<(), Error> {
        let head = [table.len() as u64, opened as u64, table[0].function as u64];
        segments::lay_out(&mut self.words, &head, &mut table)?;
        (self.table, self.opened) = (table, opened);
        Ok(())
    }

    /// Returns the number of slices that an insertion writes.
    pub(crate) fn k(&self) -> usize {
        self.shape.k as usize
    }

    /// Returns T, in nanoseconds: how long a slice is live after its last update.
    fn span(&self) -> u64 {
        match self.clock.window() {
            Window::Time { span, lateness, .. } => span + lateness,
            // A shape rejects windows of insertions.
            Window::Count { insertions } => insertions,
        }
    }

    /// Returns the moment at which a key is inserted: a late key counts as one of the latest moment.
    pub(crate) fn now(&self, moment: i64) -> i64 {
        self.clock.latest().map_or(moment, |latest| latest.max(moment))
    }

    /// Returns how many slices are live at `now` (equation 3): none before the first insertion. Older slices have older
    /// updates, so the newest are live.
    pub(crate) fn live(&self, now: i64) -> usize {
        let live = |slice: &Slice| now.abs_diff(slice.updated) <= self.span();
        if self.clock.latest().is_some() { self.table.partition_point(live) } else { 0 }
    }

    /// Returns the last moment at which this many slices are live.
    pub(crate) fn last_moment(&self, live: usize) -> i64 {
        live.checked_sub(1).map_or(i64::MAX, |oldest| self.table[oldest].updated.saturating_add_unsigned(self.span()))
    }

    /// Returns how many keys the open generation still has room for: equation 5, less the keys of the newest slice,
    /// which are those of the generation.
    fn room(&self) -> usize {
        let inserted = self.table[0].load.count;
        let when_opened = |slice: &Slice| Load { count: slice.load.count.saturating_sub(inserted), ..slice.load };
        let filling: Vec<Load> = self.table[..self.k()].iter().map(when_opened).collect();
        usize::try_from(generation(&filling).saturating_sub(inserted)).unwrap_or(usize::MAX)
    }

    /// Returns how many keys from `i` on belong to the open generation, while the same `live` slices are live. May be
    /// 0.
    pub(crate) fn run(&self, at: Moments<'_>, i: usize, len: usize, live: usize) -> usize {
        let length = self.clock.window().generation(self.shape.l);
        let now = self.now(at.moment(i));
        if self.clock.latest().is_none() || now.abs_diff(self.opened) >= length {
            return 0;
        }
        let end = self.opened.saturating_add_unsigned(length).min(self.last_moment(live).saturating_add(1));
        at.run(i, len, |_| i64::MIN..end).map_or(0, |(_, run)| run.min(self.room()))
    }

    /// Opens the generation of an insertion at `now`, and adds its slices (sections 6.1 to 6.3).
    pub(crate) fn shift(&mut self, now: i64) -> Result<(), Error> {
        let (k, live) = (self.k(), self.live(now));
        if live == 0 {
            let largest = self.table.iter().map(|slice| slice.bits.bits()).max().unwrap_or(MIN_BITS);
            return self.lay_out(self.empty_slices(largest.min(self.shape.first_bits), now), now);
        }
        // At least k, because the last insertion updated the newest k.
        let mut table = self.table[..live.max(k)].to_vec();
        let length = self.clock.window().generation(self.shape.l);
        let elapsed = now.abs_diff(self.opened);
        let held: u128 = table.iter().map(|slice| u128::from(slice.load.count)).sum::<u128>() / k as u128;
        let held = u64::try_from(held).unwrap_or(u64::MAX);
        let target = target(table[0].load.count, elapsed, length, held);
        // In a gap, generations pass without keys, and each makes an older slice leave the newest k. After k of them
        // all slices have left.
        let passed = elapsed / length;
        for _ in 0..passed.clamp(1, k as u64) {
            let older: Vec<Load> = table[..k - 1].iter().map(|slice| slice.load).collect();
            let bits = bits(new_capacity(&older, target));
            let load = Load { capacity: capacity(bits), count: 0 };
            let function = (table[0].function + 1) % k;
            table.insert(0, Slice { start: 0, bits: OneBit::new(bits), load, updated: now, function });
        }
        // A generation cut short by time begins where the last one ended, so that none is ever longer.
        let opened = if passed > 0 { now.saturating_sub_unsigned(elapsed % length) } else { now };
        self.lay_out(table, opened)
    }

    /// Counts `inserted` keys, the last of them at `now`, into the k newest slices.
    pub(crate) fn count_keys(&mut self, inserted: u64, now: i64) -> Result<(), Error> {
        let k = self.k();
        let words = self.words.to_mut()?;
        for (i, slice) in self.table[..k].iter_mut().enumerate() {
            slice.load.count = slice.load.count.saturating_add(inserted);
            slice.updated = now;
            slice.write(segments::row::<Slice>(words, HEAD, i));
        }
        Ok(())
    }
}
