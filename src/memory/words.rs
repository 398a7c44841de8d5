//! The memory of a filter: 64-bit words that are owned, shared or lent, and copied by the first write.
//!
//! One type serves a fresh filter, a copy of it, a memory-mapped file and the buffer of an unpickled filter. Cloning
//! shares the words; the first write to shared or lent words copies them. Words in a file that several processes write
//! to are the exception: they are written in place, and a clone is a copy.

use std::sync::Arc;
use std::sync::atomic::{Ordering::Acquire, fence};

use bytemuck::{Pod, Zeroable};
use memmap2::MmapMut;

use super::huge;
use super::mapped::{LiveClock, Mapped};
use crate::Error;

/// The least number of bytes that are mapped from the system, as zeros that become pages when they are first written
/// to. Less is zeroed at once, which takes some 50 microseconds at this size.
const MAP_FROM: usize = 256 << 10;

/// The owner of lent memory, which must not change it while it is lent.
pub type Lender = Box<dyn AsRef<[u8]> + Send + Sync>;

/// A cache line: small filters consist of these, so that they are aligned like mapped ones.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct CacheLine([u64; 8]);

// SAFETY: eight words fill the line, and all bits of a word are valid.
#[allow(unsafe_code, reason = "the derive macro would triple the build time")]
unsafe impl Zeroable for CacheLine {}
// SAFETY: as above.
#[allow(unsafe_code, reason = "the derive macro would triple the build time")]
unsafe impl Pod for CacheLine {}

/// The memory that words lie in.
enum Region {
    Small(Vec<CacheLine>),
    Mapped(MmapMut),
    Lent {
        bytes: Lender,
        offset: usize,
    },
    /// A file that other processes write to as well.
    File(Mapped),
}

/// A fixed number of 64-bit words, copied on write.
pub struct Words {
    region: Arc<Region>,
    len: usize,
    /// The number of keys after which [huge pages are requested](Self::request_huge).
    huge_from: u64,
}

/// Number of keys of a batch that may wait for huge pages.
const LONG: usize = 1 << 14;
/// Number of words for each of which one key is enough to have written to all of some memory: 16 keys for a huge page.
const WORDS_PER_KEY: usize = 1 << 14;

impl Clone for Words {
    fn clone(&self) -> Self {
        match *self.region {
            Region::File(_) => self.own().expect("there is memory for a copy"),
            _ => Self { region: self.region.clone(), ..*self },
        }
    }
}

impl Words {
    /// Returns `len` words, all zero. Many lie on huge pages, if there are any, which gain a factor of 1.5 at 32 MiB
    /// and of 1.7 to 2.9 above.
    pub fn zeroed(len: usize) -> Result<Self, Error> {
        let mut words = Self::zeroed_in_pages(len)?;
        words.request_huge(u64::MAX, 0);
        Ok(words)
    }

    /// Returns `len` words, all zero, in small pages, for keys that come in single calls. The first write to a small
    /// page takes some 2 microseconds, and to a huge page .3 to 3 milliseconds.
    pub fn zeroed_in_pages(len: usize) -> Result<Self, Error> {
        let not_enough = || Error::Memory { bytes: (len as u64).saturating_mul(8) };
        let bytes = len.checked_mul(8).ok_or_else(not_enough)?;
        // Some targets have no mappings.
        if bytes >= MAP_FROM
            && let Ok(map) = MmapMut::map_anon(bytes)
        {
            huge::refuse(&map);
            let huge_from = if bytes < huge::FROM { u64::MAX } else { (len / WORDS_PER_KEY) as u64 };
            return Ok(Self { region: Arc::new(Region::Mapped(map)), len, huge_from });
        }
        let mut lines = Vec::new();
        lines.try_reserve_exact(bytes.div_ceil(64)).map_err(|_| not_enough())?;
        lines.resize(bytes.div_ceil(64), CacheLine::zeroed());
        Ok(Self { region: Arc::new(Region::Small(lines)), len, huge_from: u64::MAX })
    }

    /// Requests huge pages for words in small ones, once enough keys were `inserted` that they have been written to
    /// everywhere, or before a batch of many `keys`. The system joins small pages that have been written to in the
    /// background.
    #[inline(always)]
    pub fn request_huge(&mut self, inserted: u64, keys: usize) {
        if self.huge_from != u64::MAX && (inserted >= self.huge_from || keys >= LONG) {
            self.huge_from = u64::MAX;
            if let Region::Mapped(map) = &*self.region {
                huge::advise(map);
            }
        }
    }

    /// Returns the `len` words that begin `offset` bytes into `bytes`: lent if they lie on a word boundary, copied
    /// otherwise.
    pub fn lent(bytes: Lender, offset: usize, len: usize) -> Result<Self, Error> {
        let end = len.checked_mul(8).and_then(|size| size.checked_add(offset));
        let payload = end
            .and_then(|end| (*bytes).as_ref().get(offset..end))
            .ok_or_else(|| Error::format("the cells are cut short"))?;
        if bytemuck::try_cast_slice::<u8, u64>(payload).is_err() {
            return Self::copied(payload);
        }
        Ok(Self { region: Arc::new(Region::Lent { bytes, offset }), len, huge_from: u64::MAX })
    }

    /// Returns a copy of `payload`, whose length is a multiple of 8.
    pub fn copied(payload: &[u8]) -> Result<Self, Error> {
        let mut words = Self::zeroed(payload.len() / 8)?;
        bytemuck::cast_slice_mut(words.to_mut()?).copy_from_slice(payload);
        Ok(words)
    }

    /// Returns the cells of a file that several processes write to.
    pub fn in_file(file: Mapped) -> Self {
        Self { len: file.words().len(), region: Arc::new(Region::File(file)), huge_from: u64::MAX }
    }

    /// Returns the clock beside the cells, if they lie in a file that several processes write to.
    #[inline]
    pub fn live(&self) -> Option<LiveClock<'_>> {
        match &*self.region {
            Region::File(file) => Some(file.live()),
            _ => None,
        }
    }

    /// Returns a clone, or a copy of words in a file; returns an error if there is no memory for it.
    pub fn own(&self) -> Result<Self, Error> {
        match *self.region {
            Region::File(_) => Self::copied(self.as_ref()),
            _ => Ok(self.clone()),
        }
    }

    /// Returns the words, to read.
    #[inline]
    pub fn as_slice(&self) -> &[u64] {
        let words: &[u64] = match &*self.region {
            Region::Small(lines) => bytemuck::cast_slice(lines),
            Region::Mapped(map) => bytemuck::cast_slice(map),
            Region::Lent { bytes, offset } => {
                let bytes: &[u8] = (**bytes).as_ref();
                bytemuck::cast_slice(&bytes[*offset..*offset + self.len * 8])
            }
            Region::File(file) => file.words(),
        };
        &words[..self.len]
    }

    /// Returns the words, to read, if they lie in memory of this process.
    #[inline(always)]
    pub fn private(&self) -> Option<&[u64]> {
        let words: &[u64] = match &*self.region {
            Region::Small(lines) => bytemuck::cast_slice(lines),
            Region::Mapped(map) => bytemuck::cast_slice(map),
            Region::Lent { .. } | Region::File(_) => return None,
        };
        Some(&words[..self.len])
    }

    /// Gives a piece of the memory back to the system, from its end. Returns whether the rest can be dropped in a
    /// moment: nothing is left, or the memory is shared or small. (A call that unmaps 350 MB of small pages takes 25
    /// ms.)
    pub fn release(&mut self) -> bool {
        #[cfg(all(target_os = "linux", not(miri)))]
        if let Some(Region::Mapped(map)) = Arc::get_mut(&mut self.region) {
            self.len = huge::release(map, 8 * self.len) / 8;
            return self.len == 0;
        }
        true
    }

    /// Returns the words, to write. They are copied first if a clone shares them, or they are lent.
    pub fn to_mut(&mut self) -> Result<&mut [u64], Error> {
        self.to_mut_live().map(|(words, _)| words)
    }

    /// Returns the words, to write, and the clock beside them if they lie in a file that several processes write to.
    /// They are copied first if a clone shares them, or they are lent.
    // Inlined, because its result then stays in registers. Through memory, an insertion of a single key took 5 ns more.
    #[inline(always)]
    pub fn to_mut_live(&mut self) -> Result<(&mut [u64], Option<LiveClock<'_>>), Error> {
        if self.has_clones() || matches!(*self.region, Region::Lent { .. }) {
            self.copy()?;
        }
        Ok(self.in_place().expect("lent words are copied above"))
    }

    /// Returns the words, to write, if they lie in memory of this process and no clone shares them.
    #[inline(always)]
    pub fn private_mut(&mut self) -> Option<&mut [u64]> {
        if self.has_clones() {
            return None;
        }
        let (words, live) = self.in_place()?;
        if live.is_some() { None } else { Some(words) }
    }

    /// Returns words that no clone shares, to write where they lie, and the clock beside them if they lie in a file;
    /// `None` if they are lent.
    #[inline(always)]
    #[allow(unsafe_code, reason = "`Arc::get_mut` locks a counter of pointers that do not exist, for each single key")]
    fn in_place(&mut self) -> Option<(&mut [u64], Option<LiveClock<'_>>)> {
        // SAFETY: no other strong pointer to the region exists: both callers have checked that. No weak one is ever
        // made. Only `self`, which is borrowed, can make one.
        let region = unsafe { &mut *Arc::as_ptr(&self.region).cast_mut() };
        let words: &mut [u64] = match region {
            Region::Small(lines) => bytemuck::cast_slice_mut(lines),
            Region::Mapped(map) => bytemuck::cast_slice_mut(map),
            Region::File(file) => {
                let (words, live) = file.words_mut();
                return Some((words, Some(live)));
            }
            Region::Lent { .. } => return None,
        };
        Some((&mut words[..self.len], None))
    }

    /// Returns whether a clone shares the words.
    #[inline(always)]
    fn has_clones(&self) -> bool {
        // No other thread can share them meanwhile: only this value can be cloned.
        let shared = Arc::strong_count(&self.region) > 1;
        // A thread that has dropped its clone has read the words before.
        fence(Acquire);
        shared
    }

    /// Replaces shared or lent words by a copy.
    #[cold]
    fn copy(&mut self) -> Result<(), Error> {
        let mut own = Self::zeroed(self.len)?;
        own.to_mut()?.copy_from_slice(self.as_slice());
        *self = own;
        Ok(())
    }
}

impl AsRef<[u8]> for Words {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(self.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_to_a_copy_leaves_the_original() {
        for len in [1, 7, 8, 9, MAP_FROM / 8, MAP_FROM / 8 + 3] {
            let mut words = Words::zeroed(len).unwrap();
            words.to_mut().unwrap()[len - 1] = 5;
            let mut copy = words.clone();
            assert!(copy.private_mut().is_none());
            copy.to_mut().unwrap()[len - 1] = 6;
            assert_eq!(copy.private_mut().unwrap()[len - 1], 6);
            assert_eq!((words.as_slice()[len - 1], copy.as_slice()[len - 1]), (5, 6));
            assert_eq!(words.as_slice().len(), len);
        }
    }

    #[test]
    fn lent_words_are_read_in_place_and_copied_by_the_first_write() {
        let bytes: Vec<u64> = (0..12).collect();
        let lender = Words::copied(bytemuck::cast_slice(&bytes)).unwrap();
        let mut lent = Words::lent(Box::new(lender.clone()), 16, 10).unwrap();
        assert_eq!(lent.as_slice(), &bytes[2..]);
        assert_eq!(lent.as_slice().as_ptr(), lender.as_slice()[2..].as_ptr());
        lent.to_mut().unwrap()[0] = 99;
        assert_eq!((lender.as_slice()[2], lent.as_slice()[0]), (2, 99));
    }

    #[test]
    fn lent_words_off_a_word_boundary_are_copied_and_short_ones_rejected() {
        let bytes: Vec<u8> = (0..24).collect();
        let lender = || Box::new(Words::copied(&bytes).unwrap()) as Lender;
        assert_eq!(Words::lent(lender(), 3, 2).unwrap().as_ref(), &bytes[3..19]);
        assert!(matches!(Words::lent(lender(), 16, 2), Err(Error::Format(_))));
        assert!(matches!(Words::lent(lender(), 8, usize::MAX), Err(Error::Format(_))));
    }

    #[test]
    fn released_words_go_in_pieces_and_shared_ones_stay() {
        let mut words = Words::zeroed(3 * huge::FROM / 8 + 100).unwrap();
        words.to_mut().unwrap().fill(7);
        let copy = words.clone();
        assert!(words.release() && copy.as_slice()[0] == 7);
        drop(copy);
        let mut pieces = 1;
        while !words.release() {
            assert!(words.as_slice().iter().all(|&word| word == 7));
            pieces += 1;
        }
        assert!(pieces > 5 || !cfg!(target_os = "linux") || cfg!(miri), "{pieces}");
        assert!(Words::zeroed(80).unwrap().release());
    }

    #[test]
    fn words_that_do_not_fit_memory_are_an_error() {
        for len in [usize::MAX, usize::MAX / 8, usize::try_from(1u64 << 58).unwrap_or(usize::MAX)] {
            assert!(matches!(Words::zeroed(len), Err(Error::Memory { .. })));
        }
    }
}
