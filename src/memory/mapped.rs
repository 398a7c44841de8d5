//! A file that several processes map and write to: the clock of a filter, its cells, and a number behind them.
//!
//! There are two records of the clock. The lowest bit of a number selects the one that holds. A writer, which has the
//! lock of the file, fills the other record and then raises the number, so a process that is killed at any instant
//! leaves a whole record. A reader needs no lock: it reads again if the number has changed.
//!
//! A writer that moves what a reader may look for marks the move beside the number, and raises the number before the
//! move and after it: [`LiveClock::moving`].
//!
//! Behind the records lies the table of a clock whose generations [end by count](crate::clock), once. It is written
//! before the record that needs it. A reader that meets it with an older record finds groups that ended later than they
//! did, so that it counts more generations than it would.
//!
//! The last line of the file repeats the number, after the first one was raised. A program that copies the file from
//! front to back while it is written reads a greater number at the end than at the front: [`is_torn`]. Behind it lie
//! the [claims](crate::claims).

#![allow(unsafe_code, reason = "memory that other processes write to")]
#![cfg_attr(not(feature = "file"), allow(dead_code, reason = "without files there is no record"))]

use std::fs::File;
use std::io::Result;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU64, fence};

use memmap2::{MmapOptions, MmapRaw};

/// Words of a record of the clock.
pub const RECORD: usize = 8;

/// Words of the table of a clock whose generations [end by count](crate::clock).
pub const TABLE: usize = 66;

/// Words of the number and of both records, each in a cache line of its own, and behind them the table of the clock.
pub const LIVE: usize = (RECORDS + TABLE).next_multiple_of(8);

/// Words of the number and of both records.
const RECORDS: usize = 24;

/// A claim of a key in the file.
pub type Place = [AtomicU64; 4];

/// Number of places for claims.
pub const PLACES: usize = 1 << 14;

/// Number of words behind the cells: a line whose first word repeats the number, and the claims.
pub const TAIL: usize = 8 + 4 * PLACES;

/// Returns the words of the record that `number` selects, among the [`LIVE`] words.
pub fn place_of_record(number: u64) -> std::ops::Range<usize> {
    let start = 8 * (1 + (number & 1) as usize);
    start..start + RECORD
}

/// The word that is not zero while something moves, in the line of the number.
pub const MOVING: usize = 1;

/// Returns the table of the clock among the [`LIVE`] words.
pub fn table_of(live: &[u64; LIVE]) -> [u64; TABLE] {
    std::array::from_fn(|i| live[RECORDS + i])
}

/// Returns whether a file with these numbers at its front and its end was copied while it was written.
///
/// A writer writes the end after the front. If it stopped between the two, the end is one less.
pub fn is_torn(front: u64, end: u64) -> bool {
    end > front
}

/// A mapped file: the [`LIVE`] words of a clock, the cells of a filter, and the [`TAIL`] words.
pub struct Mapped {
    map: MmapRaw,
    /// Offset of the clock in bytes, a multiple of 64.
    live: usize,
}

impl Mapped {
    /// Maps a file whose clock begins at byte `live`, and that ends with [`TAIL`] words behind the cells.
    pub fn new(file: &File, live: usize) -> Result<Self> {
        let map = MmapOptions::new().map_raw(file)?;
        assert!(live.is_multiple_of(64) && live + (LIVE + TAIL) * 8 <= map.len(), "the caller measured the file");
        Ok(Self { map, live })
    }

    fn cells(&self) -> (*mut u64, usize) {
        let start = self.live + LIVE * 8;
        (self.map.as_mut_ptr().wrapping_add(start).cast(), (self.map.len() - start) / 8 - TAIL)
    }

    /// Returns the cells, to read.
    pub fn words(&self) -> &[u64] {
        let (cells, len) = self.cells();
        // SAFETY: the cells lie in the mapping, on a boundary of 64 bytes, and live as long as it does. Within this
        // process only `words_mut` writes to them, which borrows the mapping alone. Other processes may write
        // meanwhile: then answers change with them, but every pattern of bits is legal, so nothing is read out of
        // bounds.
        unsafe { std::slice::from_raw_parts(cells, len) }
    }

    /// Returns the cells, to write under the lock of the file, and the clock.
    pub fn words_mut(&mut self) -> (&mut [u64], LiveClock<'_>) {
        let (cells, len) = self.cells();
        // SAFETY: as in `words`; clock and tail lie outside the cells.
        (unsafe { std::slice::from_raw_parts_mut(cells, len) }, self.live())
    }

    /// Returns the clock.
    #[inline]
    pub fn live(&self) -> LiveClock<'_> {
        let words = self.map.as_mut_ptr().wrapping_add(self.live).cast::<[AtomicU64; LIVE]>();
        let tail = self.map.as_mut_ptr().wrapping_add(self.map.len() - TAIL * 8).cast::<AtomicU64>();
        // SAFETY: all lie in the mapping, on boundaries of 8 bytes, and are only ever used as these atomic words.
        unsafe { LiveClock { words: &*words, end: &*tail } }
    }
}

/// The claims at the end of a file, mapped apart from the cells: they are used without the lock of the filter.
pub struct MappedClaims(MmapRaw);

impl MappedClaims {
    /// Maps the claims of a file that ends with them.
    pub fn new(file: &File) -> Result<Self> {
        let start = file.metadata()?.len().saturating_sub((PLACES * size_of::<Place>()) as u64);
        Ok(Self(MmapOptions::new().offset(start).len(PLACES * size_of::<Place>()).map_raw(file)?))
    }

    /// Returns the claims.
    pub fn places(&self) -> &[Place] {
        // SAFETY: they fill the mapping, on a boundary of 8 bytes, and are only ever used as these atomic words.
        unsafe { &*self.0.as_mut_ptr().cast::<[Place; PLACES]>() }
    }
}

/// The clock of a shared filter, in its file.
#[derive(Clone, Copy)]
pub struct LiveClock<'a> {
    words: &'a [AtomicU64; LIVE],
    end: &'a AtomicU64,
}

impl LiveClock<'_> {
    /// Returns the record that was written last. Neither a lock nor a killed process delays it.
    pub fn read(self) -> [u64; RECORD] {
        loop {
            let number = self.words[0].load(Acquire);
            let record = &self.words[place_of_record(number)];
            let read = std::array::from_fn(|word| record[word].load(Relaxed));
            if self.is_unchanged(number) {
                return read;
            }
        }
    }

    /// Returns what `look` finds, and whether nothing was written to the clock meanwhile, and nothing moved.
    pub fn look<T>(self, look: impl FnOnce() -> T) -> (T, bool) {
        let (number, moving) = (self.words[0].load(Acquire), self.is_moving());
        let found = look();
        (found, !moving && self.is_unchanged(number))
    }

    /// Returns whether something may be moving: a writer is at it, or was killed meanwhile.
    pub fn is_moving(self) -> bool {
        self.words[MOVING].load(Acquire) != 0
    }

    /// Moves something that a reader may look for, under the lock of the file.
    pub fn moving<T>(self, work: impl FnOnce() -> T) -> T {
        let record = self.read();
        self.words[MOVING].store(1, Release);
        self.write(record);
        let done = work();
        self.write(record);
        self.words[MOVING].store(0, Release);
        done
    }

    /// Ends a move that a killed process has left, under the lock of the file.
    pub fn end_move(self) {
        if self.is_moving() {
            self.write(self.read());
            self.words[MOVING].store(0, Release);
        }
    }

    /// Looks for something that may move meanwhile. Returns what `look` finds, once that is something, or nothing was
    /// there all the while.
    ///
    /// Nothing was there if the number stayed the same and nothing moved. While one thing moves, it is written at its
    /// new place before it is removed from the old one. A look that misses it has read the new place before and the old
    /// one after that; then the next look finds it.
    pub fn settled<T>(self, is_found: impl Fn(&T) -> bool, mut look: impl FnMut() -> T) -> T {
        loop {
            let (number, moving) = (self.words[0].load(Acquire), self.is_moving());
            let mut found = look();
            if moving && !is_found(&found) {
                fence(SeqCst);
                found = look();
            }
            if is_found(&found) || self.is_unchanged(number) {
                return found;
            }
            std::hint::spin_loop();
        }
    }

    /// Returns the table of the clock.
    pub fn table(self) -> [u64; TABLE] {
        std::array::from_fn(|i| self.words[RECORDS + i].load(Acquire))
    }

    /// Writes the table of the clock, under the lock of the file, before the record that needs it.
    pub fn write_table(self, table: &[u64; TABLE]) {
        for (word, &value) in self.words[RECORDS..].iter().zip(table) {
            if word.load(Relaxed) != value {
                word.store(value, Release);
            }
        }
    }

    /// Returns whether nothing was written to the clock since `number` was read.
    fn is_unchanged(self, number: u64) -> bool {
        fence(Acquire);
        self.words[0].load(Relaxed) == number
    }

    /// Returns whether the file was [copied while it was written](is_torn).
    pub fn is_torn(self) -> bool {
        // The end is read first, since the file may be written to meanwhile.
        let end = self.end.load(Acquire);
        is_torn(self.words[0].load(Acquire), end)
    }

    /// Writes a record, under the lock of the file. Cells that were written before are visible to every reader of the
    /// record; cells that are written later come later.
    pub fn write(self, record: [u64; RECORD]) {
        let number = self.words[0].load(Relaxed).wrapping_add(1);
        // The record must not be written before the number that led readers away from it.
        fence(SeqCst);
        for (word, value) in self.words[place_of_record(number)].iter().zip(record) {
            word.store(value, Relaxed);
        }
        self.words[0].store(number, Release);
        self.end.store(number, Release);
        fence(SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::mpsc::sync_channel;

    use super::*;

    /// Returns a mapping of a new file with this number of words, and another of the same file.
    fn mapped(words: usize) -> [Mapped; 2] {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![0; 64 + (LIVE + words + TAIL) * 8]).unwrap();
        [(); 2].map(|()| Mapped::new(&file, 64).unwrap())
    }

    /// A writer moves a word in four steps: it begins, copies, removes and ends. A reader reads both places, in either
    /// order, and the writer takes each step before the first look, or before, between or after its reads.
    #[test]
    fn a_reader_finds_what_a_writer_moves_meanwhile() {
        let [mut ours, theirs] = mapped(2);
        let points = (0..5 * 5 * 5 * 5).map(|n| [n / 125, n / 25 % 5, n / 5 % 5, n % 5]);
        let all = points.filter(|steps| steps.is_sorted());
        for (steps, order) in all.flat_map(|steps| [(steps, [0, 1]), (steps, [1, 0])]) {
            let (words, live) = ours.words_mut();
            words.copy_from_slice(&[7, 0]);
            let ((go, started), (done, finished)) = (sync_channel(0), sync_channel(0));
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    let step = || started.recv().unwrap();
                    let next = || (done.send(()).unwrap(), step());
                    step();
                    live.moving(|| {
                        next();
                        words[1] = 7;
                        next();
                        words[0] = 0;
                        next();
                    });
                    done.send(()).unwrap();
                });
                let (mut point, mut taken) = (1, 0);
                let mut write_until = |point: usize| {
                    while steps.get(taken).is_some_and(|&step| step <= point) {
                        go.send(()).unwrap();
                        finished.recv().unwrap();
                        taken += 1;
                    }
                };
                write_until(0);
                let look = || {
                    let [first, second] = order.map(|place| {
                        write_until(point);
                        point += 1;
                        theirs.words()[place] == 7
                    });
                    write_until(point);
                    point += 1;
                    first || second
                };
                let found = theirs.live().settled(|found| *found, look);
                write_until(usize::MAX);
                assert!(found && !theirs.live().is_moving(), "{steps:?} {order:?}");
            });
        }
    }

    #[test]
    fn readers_see_whole_records_while_they_are_written() {
        let [mut ours, theirs] = mapped(10);
        assert_eq!(ours.words().len(), 10);
        ours.words_mut().0[9] = 7;
        assert_eq!(theirs.words()[9], 7, "both are mappings of one file");
        std::thread::scope(|scope| {
            scope.spawn(|| (1..=100_000).for_each(|i| ours.live().write([i; RECORD])));
            let mut last = 0;
            while last < 100_000 {
                let read = theirs.live().read();
                assert!(read.iter().all(|&word| word == read[0]) && read[0] >= last, "{read:?} after {last}");
                last = read[0];
            }
        });
    }
}
