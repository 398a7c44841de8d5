//! Prefetches cells before they are needed, so that memory latencies overlap.

#![allow(unsafe_code, reason = "prefetching is an intrinsic, or an instruction that has none yet")]

use std::ops::Range;

/// The number of keys that are prefetched ahead. More than 16 to 64 outstanding lines gain nothing and evict each
/// other.
pub const AHEAD: usize = 16;

/// The address of the words of a filter, which is enough to prefetch them and borrows nothing.
#[derive(Clone, Copy)]
pub struct Address(*const u64);

impl Address {
    /// Returns the address of `words`.
    pub fn of(words: &[u64]) -> Self {
        Self(words.as_ptr())
    }

    /// Returns the address in a pointer.
    pub fn at(pointer: *const u8) -> Self {
        Self(pointer.cast())
    }

    /// Prefetches the cache line of one word. This is only a hint, so any address is valid.
    #[inline(always)]
    pub fn fetch(self, word: usize) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch reads nothing and cannot fault, whatever the address; SSE is part of x86_64.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(self.0.wrapping_add(word).cast());
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: a prefetch writes nothing that a program sees, and cannot fault, whatever the address.
        unsafe {
            let address = self.0.wrapping_add(word).addr();
            std::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nomem, nostack, preserves_flags));
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let _ = (self.0, word);
    }
}

/// Calls `apply` with the keys of a run of the batch `hashes`, in order and with their numbers, and prefetches the
/// cells of later keys by `fetch`. Keys of later runs are prefetched as in the rotation of this one, which after a long
/// run is a wrong hint for at most `AHEAD` keys. Locations are computed twice. (Runs of keys in
/// [lines](crate::family::lines::cells) store them in a ring instead.)
#[inline(always)]
pub fn in_flight(hashes: &[u64], run: Range<usize>, fetch: impl Fn(u64), mut apply: impl FnMut(usize, u64)) {
    if run.start == 0 {
        hashes.iter().take(AHEAD).for_each(|&hash| fetch(hash));
    }
    for i in run {
        if let Some(&coming) = hashes.get(i + AHEAD) {
            fetch(coming);
        }
        apply(i, hashes[i]);
    }
}
