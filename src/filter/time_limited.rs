//! The time-limited Bloom filter (paper 3: Rodrigues, Shtul, Baquero, Almeida, *Time-limited Bloom Filter*, 2023): an
//! age-partitioned filter for a span of time in which nobody knows how many keys will come.
//!
//! Slices have sizes of their own. An insertion sets one bit in each of the k newest; a shift puts a new slice before
//! them, sized by the rate seen; a slice whose last update is older than the span is stale, is passed over by queries and
//! dropped by the next shift. So slices come and go with the rate, and a key is there when k consecutive live slices
//! have its bits. The formulas are in [`sizing::time_limited`](crate::sizing::time_limited).
//!
//! Where this differs from the paper:
//! - A generation ends when its keys are in (equation 5) and also, unlike there, after the l-th part of the span: where
//!   the rate falls, a generation that waits for its keys would keep all of them, and no slack could be stated.
//! - A shift is made by the insertion that needs it, which also updates the new slice.
//! - The target (equation 6) is at most the number of keys the filter holds: keys of one and the same moment have no
//!   rate. In a burst it grows with each generation, so sizes follow within a few times k shifts.
//! - After a gap longer than the span the filter begins anew, with k slices of the first size (or of the largest there
//!   is, where that is smaller). In the paper the next insertion makes the newest slices live again, with all the
//!   expired keys in them.
//! - Lateness lengthens the span: a late key is taken as of the latest moment seen.
//!
//! A shift moves the live slices into new memory, so for that moment the filter takes up to twice its bytes. At a steady
//! rate the filter is copied once per generation: at 1 %, where l = 20, that is 54 bytes per insertion. A shift that
//! cannot have its memory is an error that leaves the filter as it was before the key; the keys before it are inserted.

use super::saved::{as_damage, damaged, narrow};
use super::{Filter, Lines};
use crate::Error;
use crate::batch::{Engine, in_flight};
use crate::bits::Address;
use crate::cells::{Cells, Slice as Bits, share_of_ones};
use crate::clock::{Clock, Moments, Window};
use crate::inference::Likelihood;
use crate::inference::ring::{Ring, not_ruled_out};
use crate::inference::time_limited::{MOST_SLICES, Noted, generations};
use crate::sizing::runs::{self, Accesses};
use crate::sizing::time_limited::{
    LEAST_BITS, Load, MOST_BITS, Shape, bits, capacity, generation, new_capacity, target,
};
use crate::words::Words;

/// Words before the table: number of slices, begin of the open generation, number of the newest slice's hash function.
const HEAD: usize = 3;
/// Words of a slice in the table: words of its bits, capacity, count, last update.
const ROW: usize = 4;

/// One slice, as its row in the table says.
#[derive(Clone, Copy)]
struct Slice {
    /// The word its bits begin at.
    start: usize,
    bits: Bits,
    load: Load,
    /// t: when it was last updated, in nanoseconds since the epoch.
    updated: i64,
    /// Its hash function: slices k apart share one, since no run contains both (paper 3, section 6; erratum TLBF-6).
    function: usize,
}

/// The slices, the newest first, and where they are in time.
#[derive(Clone)]
struct Slices {
    shape: Shape,
    /// Bits of each of the first k slices.
    first_bits: u64,
    clock: Clock,
    /// Head, table and bits: all there is to save.
    words: Words,
    /// The table, as `words` has it.
    table: Vec<Slice>,
    /// When the open generation began.
    opened: i64,
}

impl Slices {
    fn new(shape: Shape, first_bits: u64, clock: Clock) -> Result<Self, Error> {
        let mut new = Self { shape, first_bits, clock, words: Words::zeroed(0)?, table: Vec::new(), opened: 0 };
        new.lay_out(new.empty_slices(first_bits, 0), 0)?;
        Ok(new)
    }

    /// Reads the table that [`lay_out`](Self::lay_out) wrote, trusting nothing.
    fn read(shape: Shape, first_bits: u64, clock: Clock, words: Words) -> Result<Self, Error> {
        let damaged = || Error::format("the table of slices is damaged");
        let all = words.as_slice();
        let [slices, opened, function, ref rest @ ..] = *all else {
            return Err(damaged());
        };
        let (opened, k) = (opened as i64, shape.k as usize);
        let slices = usize::try_from(slices).ok().filter(|&n| n >= k && n <= rest.len() / ROW).ok_or_else(damaged)?;
        let function = usize::try_from(function).ok().filter(|&f| f < k).ok_or_else(damaged)?;
        let (mut start, mut newer) = (HEAD + ROW * slices, clock.latest().unwrap_or(0));
        if opened > newer {
            return Err(damaged());
        }
        let mut table = Vec::with_capacity(slices);
        for (i, row) in rest.chunks_exact(ROW).take(slices).enumerate() {
            let (len, updated, load) = (row[0], row[3] as i64, Load { capacity: row[1], count: row[2] });
            let end = usize::try_from(len).ok().and_then(|len| start.checked_add(len)).filter(|&end| end <= all.len());
            let end = end.ok_or_else(damaged)?;
            if len == 0 || load.capacity > 64 * len || load.count > load.capacity || updated > newer {
                return Err(damaged());
            }
            let function = (function + slices * k - i) % k;
            table.push(Slice { start, bits: Bits::new(64 * len), load, updated, function });
            (start, newer) = (end, updated);
        }
        if start != all.len() {
            return Err(damaged());
        }
        Ok(Self { shape, first_bits, clock, words, table, opened })
    }

    /// k empty slices of so many bits.
    fn empty_slices(&self, bits: u64, now: i64) -> Vec<Slice> {
        let load = Load { capacity: capacity(bits), count: 0 };
        let slice = Slice { start: 0, bits: Bits::new(bits), load, updated: now, function: 0 };
        let k = self.k();
        (0..k).map(|i| Slice { function: k - 1 - i, ..slice }).collect()
    }

    /// Moves to memory of their own these slices, whose bits are in the present words, or all zero if they have not
    /// been there (`start` 0), and opens a generation at `opened`. On an error nothing has changed.
    fn lay_out(&mut self, mut table: Vec<Slice>, opened: i64) -> Result<(), Error> {
        let len = |slice: &Slice| (slice.bits.bits() / 64) as usize;
        let cells = table.iter().map(len).fold(HEAD + ROW * table.len(), usize::saturating_add);
        let mut words = Words::zeroed(cells)?;
        let (present, new) = (self.words.as_slice(), words.to_mut()?);
        new[..HEAD].copy_from_slice(&[table.len() as u64, opened as u64, table[0].function as u64]);
        let mut start = HEAD + ROW * table.len();
        for (i, slice) in table.iter_mut().enumerate() {
            if slice.start > 0 {
                new[start..start + len(slice)].copy_from_slice(&present[slice.start..slice.start + len(slice)]);
            }
            slice.start = start;
            new[HEAD + ROW * i] = len(slice) as u64;
            write_row(new, i, slice);
            start += len(slice);
        }
        (self.words, self.table, self.opened) = (words, table, opened);
        Ok(())
    }

    /// The slices whose matches are evidence.
    fn telling(&self) -> &[Slice] {
        &self.table[..self.table.len().min(MOST_SLICES)]
    }

    fn k(&self) -> usize {
        self.shape.k as usize
    }

    /// T, in nanoseconds: a slice is live for so long after its last update.
    fn span(&self) -> u64 {
        match self.clock.window() {
            Window::Time { span, lateness, .. } => span + lateness,
            Window::Count { .. } => unreachable!("refused by TimeLimited::check"),
        }
    }

    /// The moment that a key of `moment` is taken as of.
    fn now(&self, moment: i64) -> i64 {
        self.clock.latest().map_or(moment, |latest| latest.max(moment))
    }

    /// How many slices are live at `now` (equation 3), none before the first insertion. Older ones have older updates.
    fn live(&self, now: i64) -> usize {
        let live = |slice: &Slice| now.abs_diff(slice.updated) <= self.span();
        if self.clock.latest().is_some() { self.table.partition_point(live) } else { 0 }
    }

    /// The last moment at which so many slices are live.
    fn last_moment(&self, live: usize) -> i64 {
        live.checked_sub(1).map_or(i64::MAX, |oldest| self.table[oldest].updated.saturating_add_unsigned(self.span()))
    }

    /// Keys the open generation can still take (equation 5 less those it has, which are those of the newest slice).
    fn room(&self) -> usize {
        let made = self.table[0].load.count;
        let when_opened = |slice: &Slice| Load { count: slice.load.count.saturating_sub(made), ..slice.load };
        let filling: Vec<Load> = self.table[..self.k()].iter().map(when_opened).collect();
        usize::try_from(generation(&filling).saturating_sub(made)).unwrap_or(usize::MAX)
    }

    /// How many keys from `i` on act in the open generation with the same `live` slices, if any does.
    fn run(&self, at: Moments<'_>, i: usize, len: usize, live: usize) -> usize {
        let length = self.clock.window().generation(self.shape.l);
        let now = self.now(at.moment(i));
        if self.clock.latest().is_none() || now.abs_diff(self.opened) >= length {
            return 0;
        }
        let end = self.opened.saturating_add_unsigned(length).min(self.last_moment(live).saturating_add(1));
        at.run(i, len, |_| i64::MIN..end).map_or(0, |(_, run)| run.min(self.room()))
    }

    /// Begins the generation that an insertion at `now` needs (sections 6.1 to 6.3).
    fn shift(&mut self, now: i64) -> Result<(), Error> {
        let (k, live) = (self.k(), self.live(now));
        if live == 0 {
            let largest = self.table.iter().map(|slice| slice.bits.bits()).max().unwrap_or(LEAST_BITS);
            return self.lay_out(self.empty_slices(largest.min(self.first_bits), now), now);
        }
        // Never fewer than k: the newest k have all been updated by the last insertion.
        let mut table = self.table[..live.max(k)].to_vec();
        let length = self.clock.window().generation(self.shape.l);
        let elapsed = now.abs_diff(self.opened);
        let held: u128 = table.iter().map(|slice| u128::from(slice.load.count)).sum::<u128>() / k as u128;
        let held = u64::try_from(held).unwrap_or(u64::MAX);
        let target = target(table[0].load.count, elapsed, length, held);
        // In a gap the generations of no key pass as well, so that older slices leave the newest k in time. With k new
        // ones all have.
        let passed = elapsed / length;
        for _ in 0..passed.clamp(1, k as u64) {
            let older: Vec<Load> = table[..k - 1].iter().map(|slice| slice.load).collect();
            let bits = bits(new_capacity(&older, target));
            let load = Load { capacity: capacity(bits), count: 0 };
            let function = (table[0].function + 1) % k;
            table.insert(0, Slice { start: 0, bits: Bits::new(bits), load, updated: now, function });
        }
        // Generations cut short by time begin where the last one ended, so that none is ever longer.
        let opened = if passed > 0 { now.saturating_sub_unsigned(elapsed % length) } else { now };
        self.lay_out(table, opened)
    }

    /// Notes `inserted` keys in the slices that took them, the last of them at `now`.
    fn count(&mut self, inserted: u64, now: i64) -> Result<(), Error> {
        let k = self.k();
        let words = self.words.to_mut()?;
        for (i, slice) in self.table[..k].iter_mut().enumerate() {
            slice.load.count = slice.load.count.saturating_add(inserted);
            slice.updated = now;
            write_row(words, i, slice);
        }
        self.clock.count(inserted);
        Ok(())
    }

    /// Sets the key's bit in each of the k newest slices.
    #[inline(always)]
    fn set(newest: &[Slice], words: &mut [u64], hash: u64) {
        for slice in newest {
            slice.bits.set(words, slice.start, slice.function, hash);
        }
    }

    #[inline(always)]
    fn fetch(slices: &[Slice], words: Address, hash: u64) {
        for slice in slices {
            words.fetch(slice.start + slice.bits.word(slice.function, hash));
        }
    }

    /// Algorithm 1: looks for k consecutive matches from the k-th last of the live slices on, whatever their number; at
    /// a mismatch it goes k slices towards the newest, taking along the matches it has found below.
    #[inline(always)]
    fn contains(live: &[Slice], k: usize, words: &[u64], hash: u64) -> bool {
        let Some(mut i) = live.len().checked_sub(k) else {
            return false;
        };
        let (mut before, mut matches) = (0, 0);
        loop {
            let slice = &live[i];
            if slice.bits.all_set(words, slice.start, slice.function, hash) {
                (i, matches) = (i + 1, matches + 1);
                if before + matches == k {
                    return true;
                }
            } else if i >= k {
                (i, before, matches) = (i - k, matches, 0);
            } else {
                return false;
            }
        }
    }
}

/// What an insertion changes in a row of the table, and the capacity.
fn write_row(words: &mut [u64], i: usize, slice: &Slice) {
    let row = &mut words[HEAD + ROW * i..][..ROW];
    row[1..].copy_from_slice(&[slice.load.capacity, slice.load.count, slice.updated as u64]);
}

impl Engine for Slices {
    fn insert(&mut self, hashes: &[u64], at: Moments<'_>) -> Result<(), Error> {
        self.clock.check(at, true)?;
        self.words.to_mut()?;
        let mut i = 0;
        while i < hashes.len() {
            let mut run = self.run(at, i, hashes.len(), 0);
            if run == 0 {
                self.shift(self.now(at.moment(i)))?;
                self.clock.reach(at.moment(i));
                run = self.run(at, i, hashes.len(), 0);
            }
            let (newest, words) = (&self.table[..self.shape.k as usize], self.words.to_mut()?);
            let address = Address::of(words);
            in_flight(
                &hashes[i..i + run],
                |hash| Self::fetch(newest, address, hash),
                |_, hash| Self::set(newest, words, hash),
            );
            self.clock.reach(at.latest(i..i + run));
            self.count(run as u64, self.now(i64::MIN))?;
            i += run;
        }
        Ok(())
    }

    fn query(&self, hashes: &[u64], at: Moments<'_>, present: &mut [bool]) -> Result<(), Error> {
        self.clock.check(at, false)?;
        let words = self.words.as_slice();
        let address = Address::of(words);
        let mut i = 0;
        while i < hashes.len() {
            let now = self.now(at.moment(i));
            let live = self.live(now);
            let start = if Some(now) == self.clock.latest() { i64::MIN } else { now };
            let alike = |_| start..self.last_moment(live).saturating_add(1);
            let run = at.run(i, hashes.len(), alike).map_or(hashes.len() - i, |(_, run)| run);
            let (live, present) = (&self.table[..live], &mut present[i..i + run]);
            in_flight(
                &hashes[i..i + run],
                |hash| Self::fetch(live, address, hash),
                |j, hash| present[j] = Self::contains(live, self.k(), words, hash),
            );
            i += run;
        }
        Ok(())
    }

    fn duplicated(&mut self, hashes: &[u64], at: Moments<'_>, refresh: bool, seen: &mut [bool]) -> Result<(), Error> {
        self.clock.check(at, true)?;
        self.words.to_mut()?;
        let (mut i, k) = (0, self.k());
        while i < hashes.len() {
            let now = self.now(at.moment(i));
            let live = self.live(now);
            let run = self.run(at, i, hashes.len(), live);
            if run == 0 {
                // Looked up while the old generation is still open; only an insertion opens the next.
                seen[i] = Self::contains(&self.table[..live], k, self.words.as_slice(), hashes[i]);
                if refresh || !seen[i] {
                    self.shift(now)?;
                    self.clock.reach(now);
                    Self::set(&self.table[..k], self.words.to_mut()?, hashes[i]);
                    self.count(1, now)?;
                }
                self.clock.reach(now);
                i += 1;
                continue;
            }
            let (live, newest, words) = (&self.table[..live], &self.table[..k], self.words.to_mut()?);
            let address = Address::of(words);
            let seen = &mut seen[i..i + run];
            let (mut inserted, mut last) = (0, 0);
            in_flight(
                &hashes[i..i + run],
                |hash| Self::fetch(live, address, hash),
                |j, hash| {
                    seen[j] = Self::contains(live, k, words, hash);
                    if refresh || !seen[j] {
                        Self::set(newest, words, hash);
                        (inserted, last) = (inserted + 1, j);
                    }
                },
            );
            if inserted > 0 {
                self.clock.reach(at.latest(i..i + last + 1));
                self.count(inserted, self.now(i64::MIN))?;
            }
            self.clock.reach(at.latest(i..i + run));
            i += run;
        }
        Ok(())
    }

    /// Slices of different machines differ in number and size.
    fn unite(&mut self, _: &dyn Engine) -> Result<(), Error> {
        Err(Error::value("time-limited filters cannot be united: their slices have grown apart"))
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn words(&self) -> &Words {
        &self.words
    }

    fn fill(&self) -> Vec<f64> {
        let live = &self.table[..self.live(self.now(i64::MIN))];
        let fill = |slice: &Slice| {
            let bits = slice.bits.bits();
            share_of_ones(&self.words.as_slice()[slice.start..][..(bits / 64) as usize], bits)
        };
        live.iter().map(fill).collect()
    }

    fn match_rates(&self) -> Vec<f64> {
        self.fill()
    }

    fn evidence(&self, hashes: &[u64], evidence: &mut [u128]) {
        let (slices, words, k) = (self.telling(), self.words.as_slice(), self.shape.k);
        let address = Address::of(words);
        let set = |slice: &Slice, hash| slice.bits.all_set(words, slice.start, slice.function, hash);
        in_flight(
            hashes,
            |hash| Self::fetch(slices, address, hash),
            |i, hash| {
                let matches = slices.iter().rev().fold(0, |matches, slice| matches << 1 | u128::from(set(slice, hash)));
                evidence[i] = not_ruled_out(matches, k, slices.len() as u32);
            },
        );
    }

    fn likelihood(&self) -> Option<Box<dyn Likelihood>> {
        let (slices, words) = (self.telling(), self.words.as_slice());
        let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
        let since = |moment: i64| seconds(self.clock.latest().map_or(0, |latest| latest.abs_diff(moment)));
        let noted = |slice: &Slice| Noted { count: slice.load.count, since_last: since(slice.updated) };
        let noted: Vec<Noted> = slices.iter().map(noted).collect();
        let length = seconds(self.clock.window().generation(self.shape.l));
        let rate = |slice: &Slice| slice.bits.sampled_match_rate(&words[slice.start..]);
        let rates: Vec<f64> = slices.iter().map(rate).collect();
        let generations = generations(self.k(), since(self.opened), length, self.clock.gap(), &noted);
        Some(Box::new(Ring::new(self.shape.k, generations, &rates)))
    }

    fn clone_box(&self) -> Box<dyn Engine> {
        Box::new(self.clone())
    }
}

/// A time-limited Bloom filter: has a key been inserted within the last span of time, whatever the rate?
#[derive(Clone)]
pub struct TimeLimited {
    seed: u64,
    slices: Slices,
}

impl TimeLimited {
    /// Its number in the saved form.
    pub const KIND: u16 = 4;

    /// An empty filter whose first k slices have `first_bits` bits each.
    pub fn new(shape: Shape, first_bits: u64, window: Window, seed: u64) -> Result<Self, Error> {
        let shape = Self::check(shape, first_bits, window.check()?)?;
        Ok(Self { seed, slices: Slices::new(shape, first_bits, Clock::new(window, shape.l))? })
    }

    /// The filter that [`parameters`](Filter::parameters) gave these values for, with these cells, its clock as
    /// `resume` makes it for the full generations kept.
    pub fn from_saved(
        parameters: &[u64],
        resume: impl FnOnce(u32) -> Clock,
        seed: u64,
        words: Words,
    ) -> Result<Self, Error> {
        let &[k, l, first_bits, ..] = parameters else {
            return Err(damaged());
        };
        let shape = Shape::new(narrow(k)?, narrow(l)?).map_err(as_damage)?;
        let clock = resume(shape.l);
        Self::check(shape, first_bits, clock.window()).map_err(as_damage)?;
        Ok(Self { seed, slices: Slices::read(shape, first_bits, clock, words)? })
    }

    fn check(shape: Shape, first_bits: u64, window: Window) -> Result<Shape, Error> {
        if let Window::Count { .. } = window {
            return Err(Error::value("window must be a span of time for a time-limited filter"));
        }
        if !(LEAST_BITS..=MOST_BITS).contains(&first_bits) || !first_bits.is_multiple_of(64) {
            return Err(Error::value(format!(
                "slice_bits must be a multiple of 64 in {LEAST_BITS} .. 2**60, got {first_bits}"
            )));
        }
        Shape::new(shape.k, shape.l)
    }

    /// k and l.
    pub fn shape(&self) -> Shape {
        self.slices.shape
    }

    /// Bits of each slice there is, the newest first, stale ones included.
    pub fn slice_bits(&self) -> Vec<u64> {
        self.slices.table.iter().map(|slice| slice.bits.bits()).collect()
    }
}

impl Filter for TimeLimited {
    fn engine(&self) -> &dyn Engine {
        &self.slices
    }

    fn engine_mut(&mut self) -> &mut dyn Engine {
        &mut self.slices
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn kind(&self) -> u16 {
        Self::KIND
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let Shape { k, l } = self.slices.shape;
        vec![("k", k.into()), ("l", l.into()), ("slice_bits", self.slices.first_bits)]
    }

    /// While no more than k + l slices are live, as they are at a steady rate.
    fn fpr(&self) -> f64 {
        self.slices.shape.false_positive_rate()
    }

    /// A key leaves its last trace in the slice that was newest with it, which is updated for less than k generations.
    fn slack(&self) -> u64 {
        self.slices.clock.window().slack(self.slices.shape.l, self.slices.shape.k)
    }

    fn npws(&self) -> f64 {
        runs::npws(self.slices.shape.k, self.slices.shape.l, &self.slices.shape.fills())
    }

    fn expected_accesses(&self) -> Accesses {
        runs::expected_accesses(self.slices.shape.k, self.slices.shape.l, &self.slices.shape.fills())
    }

    /// One in each slice: k are written, and a query reads as Algorithm 1 does, over all slices planned.
    fn cache_lines(&self) -> Lines {
        let accesses = self.expected_accesses();
        Lines { insert: self.shape().k.into(), hit: accesses.in_window, miss: accesses.absent }
    }

    fn false_positive_rate(&self) -> f64 {
        runs::false_positive_rate(self.slices.shape.k, &self.slices.match_rates())
    }

    fn clone_box(&self) -> Box<dyn Filter> {
        Box::new(self.clone())
    }
}
