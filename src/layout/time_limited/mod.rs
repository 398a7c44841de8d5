//! The slices of the time-limited filter: where they lie, which are live, and the shift that begins another.

pub(crate) mod slicewise;

use crate::Error;
use crate::clock::{Clock, Moments, Window};
use crate::inference::time_limited::MOST_SLICES;
use crate::layout::cells::{Cells, OneBit};
use crate::layout::parts::{self, Part};
use crate::memory::Words;
use crate::shape::time_limited::{LEAST_BITS, Load, Shape, bits, capacity, generation, new_capacity, target};

/// Words before the table: number of slices, begin of the open generation, number of the newest slice's hash function.
const HEAD: usize = 3;

/// One slice, as in its row of the table.
#[derive(Clone, Copy)]
pub(crate) struct Slice {
    /// The word its bits begin at.
    pub(crate) start: usize,
    pub(crate) bits: OneBit,
    pub(crate) load: Load,
    /// t: when it was last updated, in nanoseconds since the epoch.
    pub(crate) updated: i64,
    /// Its hash function: slices k apart share one, since no run contains both (paper 3, section 6; erratum TLBF-6).
    pub(crate) function: usize,
}

impl Slice {
    /// Its words.
    pub(crate) fn of<'a>(&self, words: &'a [u64]) -> &'a [u64] {
        &words[self.start..][..self.len()]
    }

    /// Its words, to write.
    pub(crate) fn of_mut<'a>(&self, words: &'a mut [u64]) -> &'a mut [u64] {
        &mut words[self.start..][..self.len()]
    }
}

impl Part for Slice {
    /// Words of its bits, capacity, count, last update.
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

/// The slices, the newest first, and their clock.
#[derive(Clone)]
pub struct Slices {
    pub(crate) shape: Shape,
    pub(crate) clock: Clock,
    /// Head, table and bits: all that is saved.
    pub(crate) words: Words,
    /// The table, as `words` has it.
    pub(crate) table: Vec<Slice>,
    /// When the open generation began.
    pub(crate) opened: i64,
}

impl Slices {
    /// The slices that [`lay_out`](Self::lay_out) wrote into these words; without words, the first ones.
    pub(crate) fn new(shape: Shape, clock: Clock, words: Words) -> Result<Self, Error> {
        let mut new = Self { shape, clock, words, table: Vec::new(), opened: 0 };
        if !new.words.as_slice().is_empty() {
            return new.read();
        }
        new.lay_out(new.empty_slices(shape.first_bits, 0), 0)?;
        Ok(new)
    }

    /// Reads the table, trusting nothing.
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
        let table = parts::read(all, HEAD, slices, |i, row| {
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

    /// k empty slices of `bits` bits.
    fn empty_slices(&self, bits: u64, now: i64) -> Vec<Slice> {
        let load = Load { capacity: capacity(bits), count: 0 };
        let slice = Slice { start: 0, bits: OneBit::new(bits), load, updated: now, function: 0 };
        let k = self.k();
        (0..k).map(|i| Slice { function: k - 1 - i, ..slice }).collect()
    }

    /// Replaces the slices, and opens a generation at `opened`. On an error nothing has changed.
    fn lay_out(&mut self, mut table: Vec<Slice>, opened: i64) -> Result<(), Error> {
        let head = [table.len() as u64, opened as u64, table[0].function as u64];
        parts::lay_out(&mut self.words, &head, &mut table)?;
        (self.table, self.opened) = (table, opened);
        Ok(())
    }

    /// The slices whose matches are evidence.
    pub(crate) fn telling(&self) -> &[Slice] {
        &self.table[..self.table.len().min(MOST_SLICES)]
    }

    /// Bits of each slice there is, the newest first, stale ones included.
    pub fn slice_bits(&self) -> Vec<u64> {
        self.table.iter().map(|slice| slice.bits.bits()).collect()
    }

    pub(crate) fn k(&self) -> usize {
        self.shape.k as usize
    }

    /// T, in nanoseconds: how long a slice is live after its last update.
    fn span(&self) -> u64 {
        match self.clock.window() {
            Window::Time { span, lateness, .. } => span + lateness,
            Window::Count { .. } => unreachable!("refused by its shape"),
        }
    }

    /// The moment at which a key of `moment` counts.
    pub(crate) fn now(&self, moment: i64) -> i64 {
        self.clock.latest().map_or(moment, |latest| latest.max(moment))
    }

    /// How many slices are live at `now` (equation 3); none before the first insertion. Older slices have older
    /// updates.
    pub(crate) fn live(&self, now: i64) -> usize {
        let live = |slice: &Slice| now.abs_diff(slice.updated) <= self.span();
        if self.clock.latest().is_some() { self.table.partition_point(live) } else { 0 }
    }

    /// The last moment at which this many slices are live.
    pub(crate) fn last_moment(&self, live: usize) -> i64 {
        live.checked_sub(1).map_or(i64::MAX, |oldest| self.table[oldest].updated.saturating_add_unsigned(self.span()))
    }

    /// Keys that the open generation can still take (equation 5, less those it has, which are those of the newest
    /// slice).
    fn room(&self) -> usize {
        let made = self.table[0].load.count;
        let when_opened = |slice: &Slice| Load { count: slice.load.count.saturating_sub(made), ..slice.load };
        let filling: Vec<Load> = self.table[..self.k()].iter().map(when_opened).collect();
        usize::try_from(generation(&filling).saturating_sub(made)).unwrap_or(usize::MAX)
    }

    /// How many keys from `i` on act in the open generation with the same `live` slices, if any.
    pub(crate) fn run(&self, at: Moments<'_>, i: usize, len: usize, live: usize) -> usize {
        let length = self.clock.window().generation(self.shape.l);
        let now = self.now(at.moment(i));
        if self.clock.latest().is_none() || now.abs_diff(self.opened) >= length {
            return 0;
        }
        let end = self.opened.saturating_add_unsigned(length).min(self.last_moment(live).saturating_add(1));
        at.run(i, len, |_| i64::MIN..end).map_or(0, |(_, run)| run.min(self.room()))
    }

    /// Begins the generation that an insertion at `now` needs (sections 6.1 to 6.3).
    pub(crate) fn shift(&mut self, now: i64) -> Result<(), Error> {
        let (k, live) = (self.k(), self.live(now));
        if live == 0 {
            let largest = self.table.iter().map(|slice| slice.bits.bits()).max().unwrap_or(LEAST_BITS);
            return self.lay_out(self.empty_slices(largest.min(self.shape.first_bits), now), now);
        }
        // Never fewer than k: the newest k have all been updated by the last insertion.
        let mut table = self.table[..live.max(k)].to_vec();
        let length = self.clock.window().generation(self.shape.l);
        let elapsed = now.abs_diff(self.opened);
        let held: u128 = table.iter().map(|slice| u128::from(slice.load.count)).sum::<u128>() / k as u128;
        let held = u64::try_from(held).unwrap_or(u64::MAX);
        let target = target(table[0].load.count, elapsed, length, held);
        // Generations without keys pass in a gap as well, and older slices leave the newest k in time. With k new ones
        // all have left.
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

    /// Notes `inserted` keys in the slices that took them, the last of them at `now`.
    pub(crate) fn note(&mut self, inserted: u64, now: i64) -> Result<(), Error> {
        let k = self.k();
        let words = self.words.to_mut()?;
        for (i, slice) in self.table[..k].iter_mut().enumerate() {
            slice.load.count = slice.load.count.saturating_add(inserted);
            slice.updated = now;
            slice.write(parts::row::<Slice>(words, HEAD, i));
        }
        Ok(())
    }
}
