//! The slices of the time-limited filter: where they lie, which of them are live, and the shift that adds another.

pub(crate) mod slicewise;

use super::shape::{Load, MIN_BITS, TimeLimitedShape, bits, capacity, generation, new_capacity, target};
use crate::Error;
use crate::clock::{Clock, Moments, Window};
use crate::family::arrays::{OneBit, SliceCells as _};
use crate::family::growth::split;
use crate::memory::Words;

/// Words of a file between the number of slices and their rows: the moment at which the open generation began, and the
/// number of the newest slice's hash function.
const HEAD: usize = 2;
/// Words of a row: the number of words, the capacity, the count, and the last update.
const ROW: usize = 4;

/// Where the bit of a key lies in a slice.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) bits: OneBit,
    /// The number of the hash function. Slices k apart share one, since no run contains both (paper 3, section 6;
    /// erratum TLBF-6).
    pub(crate) function: usize,
}

/// A slice of a time-limited filter.
#[derive(Clone)]
pub(crate) struct Slice {
    pub(crate) words: Words,
    pub(crate) place: Place,
    pub(crate) load: Load,
    /// t: the moment of the last update, in nanoseconds since the epoch.
    pub(crate) updated: i64,
}

impl Slice {
    /// Returns an empty slice.
    fn empty(bits: u64, function: usize, now: i64) -> Result<Self, Error> {
        let (place, load) = (Place { bits: OneBit::new(bits), function }, Load { capacity: capacity(bits), count: 0 });
        Ok(Self { words: Words::zeroed((bits / 64) as usize)?, place, load, updated: now })
    }
}

/// The engine of a time-limited filter: its slices, the newest first, and their clock.
#[derive(Clone)]
pub struct Slices {
    pub(crate) shape: TimeLimitedShape,
    pub(crate) clock: Clock,
    pub(crate) table: Vec<Slice>,
    /// The moment at which the open generation began.
    pub(crate) opened: i64,
}

impl Slices {
    /// Returns the slices that [`head`](Self::head) and their words describe; without words, empty ones.
    pub(crate) fn new(shape: TimeLimitedShape, clock: Clock, words: &Words) -> Result<Self, Error> {
        let mut new = Self { shape, clock, table: Vec::new(), opened: 0 };
        match words.as_slice() {
            [] => new.table = new.empty_slices(shape.first_bits, 0)?,
            words => new.read(words)?,
        }
        Ok(new)
    }

    /// Reads slices, and rejects damaged ones.
    fn read(&mut self, all: &[u64]) -> Result<(), Error> {
        let damaged = || Error::format("the table of slices is damaged");
        let len = |row: &[u64]| usize::try_from(row[0]).ok().filter(|&len| len > 0);
        let (head, slices) = split(all, [HEAD, ROW], len).ok_or_else(damaged)?;
        let (opened, k) = (head[0] as i64, self.k());
        let first = usize::try_from(head[1]).ok().filter(|&function| function < k).ok_or_else(damaged)?;
        let mut newer = self.clock.latest().unwrap_or(0);
        if slices.len() < k || opened > newer {
            return Err(damaged());
        }
        for (i, (row, words)) in slices.iter().enumerate() {
            let (len, updated, load) = (row[0], row[3] as i64, Load { capacity: row[1], count: row[2] });
            if load.capacity > 64 * len || load.count > load.capacity || updated > newer {
                return Err(damaged());
            }
            newer = updated;
            // One less per slice, modulo k: a multiple of k at least as large as i keeps it from going below 0.
            let function = (first + slices.len() * k - i) % k;
            let (words, place) =
                (Words::copied(bytemuck::cast_slice(words))?, Place { bits: OneBit::new(64 * len), function });
            self.table.push(Slice { words, place, load, updated });
        }
        self.opened = opened;
        Ok(())
    }

    /// Returns what a file contains before the bits of the slices.
    pub(crate) fn head(&self) -> Vec<u64> {
        let mut head = vec![self.table.len() as u64, self.opened as u64, self.table[0].place.function as u64];
        for Slice { words, load, updated, .. } in &self.table {
            head.extend([words.as_slice().len() as u64, load.capacity, load.count, *updated as u64]);
        }
        head
    }

    /// Returns k empty slices of `bits` bits.
    fn empty_slices(&self, bits: u64, now: i64) -> Result<Vec<Slice>, Error> {
        (0..self.k()).rev().map(|function| Slice::empty(bits, function, now)).collect()
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

    /// Opens the generation of an insertion at `now`, and adds its slices (sections 6.1 to 6.3). A call that returns an
    /// error has changed nothing.
    pub(crate) fn shift(&mut self, now: i64) -> Result<(), Error> {
        let (k, live) = (self.k(), self.live(now));
        if live == 0 {
            let largest = self.table.iter().map(|slice| slice.place.bits.bits()).max().unwrap_or(MIN_BITS);
            (self.table, self.opened) = (self.empty_slices(largest.min(self.shape.first_bits), now)?, now);
            return Ok(());
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
            let function = (table[0].place.function + 1) % k;
            table.insert(0, Slice::empty(bits(new_capacity(&older, target)), function, now)?);
        }
        // A generation cut short by time begins where the last one ended, so that none is ever longer.
        self.opened = if passed > 0 { now.saturating_sub_unsigned(elapsed % length) } else { now };
        self.table = table;
        Ok(())
    }

    /// Counts `inserted` keys, the last of them at the latest moment, into the k newest slices.
    pub(crate) fn count_keys(&mut self, inserted: usize) {
        let (k, now) = (self.k(), self.now(i64::MIN));
        for slice in &mut self.table[..k] {
            slice.load.count = slice.load.count.saturating_add(inserted as u64);
            slice.updated = now;
        }
    }
}
