//! A file that several processes map and write to: the cells of a filter, and before them its clock.
//!
//! Of the clock there are two records, and a number that tells which of them holds: the number's lowest bit. Whoever
//! writes, under a lock of the file, fills the other record and then raises the number, so that a process that is
//! killed at any instant leaves a whole record. Who reads needs no lock: it reads again if the number has changed.

#![allow(unsafe_code, reason = "memory that other processes write to")]

use std::fs::File;
use std::io::Result;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU64, fence};

use memmap2::{MmapOptions, MmapRaw};

/// Words of a record of the clock.
pub const RECORD: usize = 6;

/// Words of the number and of both records, each in a cache line of its own.
pub const LIVE: usize = 24;

/// A mapped file whose last words are the cells of a filter, right behind the [`LIVE`] words of its clock.
pub struct Mapped {
    map: MmapRaw,
    /// Where the clock begins, in bytes: a multiple of 64.
    live: usize,
}

impl Mapped {
    /// Maps a file, whose clock begins at byte `live`.
    pub fn new(file: &File, live: usize) -> Result<Self> {
        let map = MmapOptions::new().map_raw(file)?;
        assert!(live.is_multiple_of(64) && live + LIVE * 8 <= map.len(), "the file was measured before");
        Ok(Self { map, live })
    }

    fn cells(&self) -> (*mut u64, usize) {
        let start = self.live + LIVE * 8;
        (self.map.as_mut_ptr().wrapping_add(start).cast(), (self.map.len() - start) / 8)
    }

    /// The cells.
    pub fn words(&self) -> &[u64] {
        let (cells, len) = self.cells();
        // SAFETY: they lie in the mapping, on a boundary of 64 bytes, and live as long as it does. Within this process
        // only `words_mut` writes to them, which borrows the mapping alone. Other processes may write meanwhile: then
        // answers change with them, but every pattern of bits is legal, so nothing is read out of bounds.
        unsafe { std::slice::from_raw_parts(cells, len) }
    }

    /// The cells, to write under the lock of the file, and the clock.
    pub fn words_mut(&mut self) -> (&mut [u64], Live<'_>) {
        let (cells, len) = self.cells();
        // SAFETY: as in `words`; the clock lies before them, apart.
        (unsafe { std::slice::from_raw_parts_mut(cells, len) }, self.live())
    }

    /// The clock.
    pub fn live(&self) -> Live<'_> {
        let live: *mut AtomicU64 = self.map.as_mut_ptr().wrapping_add(self.live).cast();
        // SAFETY: it lies in the mapping, on a boundary of 64 bytes, and is only ever used as these atomic words.
        Live(unsafe { &*live.cast::<[AtomicU64; LIVE]>() })
    }
}

/// The clock of a shared filter, in its file.
#[derive(Clone, Copy)]
pub struct Live<'a>(&'a [AtomicU64; LIVE]);

impl<'a> Live<'a> {
    /// The record that holds under this number.
    fn record(self, number: u64) -> &'a [AtomicU64] {
        let start = 8 * (1 + (number & 1) as usize);
        &self.0[start..start + RECORD]
    }

    /// What was written last. No lock, and nobody who was killed, keeps it waiting.
    pub fn read(self) -> [u64; RECORD] {
        loop {
            let number = self.0[0].load(Acquire);
            let record = self.record(number);
            let read = std::array::from_fn(|word| record[word].load(Relaxed));
            fence(Acquire);
            if self.0[0].load(Relaxed) == number {
                return read;
            }
        }
    }

    /// Writes, under the lock of the file. Whatever was written to the cells before is there for all who read this;
    /// whatever is written to them later comes later.
    pub fn write(self, told: [u64; RECORD]) {
        #[cfg(test)]
        tests::live_on();
        let number = self.0[0].load(Relaxed).wrapping_add(1);
        // Not before the number that told readers to leave this record.
        fence(SeqCst);
        for (word, told) in self.record(number).iter().zip(told) {
            word.store(told, Relaxed);
        }
        self.0[0].store(number, Release);
        fence(SeqCst);
        #[cfg(test)]
        tests::live_on();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;
    use std::io::Write;

    use super::*;

    thread_local! {
        /// How many more times this thread may come to where clocks are told, before and after, until it is killed.
        pub static LIVES: Cell<u32> = const { Cell::new(u32::MAX) };
    }

    /// Ends the thread here, as a kill would, if it has come so far.
    pub fn live_on() {
        let left = LIVES.get();
        LIVES.set(left.wrapping_sub(1));
        assert!(left > 0, "killed, as the test asks");
    }

    #[test]
    fn readers_see_whole_records_while_they_are_written() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[0; 64 + LIVE * 8 + 80]).unwrap();
        let (mut ours, theirs) = (Mapped::new(&file, 64).unwrap(), Mapped::new(&file, 64).unwrap());
        assert_eq!(ours.words().len(), 10);
        ours.words_mut().0[9] = 7;
        assert_eq!(theirs.words()[9], 7, "another mapping of the file");
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
