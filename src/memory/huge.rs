//! Huge pages for large memory: cells, answers, and hashes of keys that have been read.

#![allow(unsafe_code, reason = "advice to the kernel about memory")]

/// The least number of bytes for which huge pages are requested. Below 4 MiB they gain nothing.
pub const FROM: usize = 4 << 20;

/// Requests huge pages for memory. The kernel may ignore the advice. The first touch of a small page took 1.8
/// microseconds: a list of 5 million integers was read and tested in 14.5 ns each, and in 11 ns with huge pages.
pub fn advise<T>(memory: &[T]) {
    #[cfg(all(target_os = "linux", not(miri)))]
    give(memory, libc::MADV_HUGEPAGE);
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = memory;
}

/// Refuses huge pages for memory, which some systems give unasked. Huge pages can be [requested](advise) later.
pub fn refuse<T>(memory: &[T]) {
    #[cfg(all(target_os = "linux", not(miri)))]
    give(memory, libc::MADV_NOHUGEPAGE);
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = memory;
}

/// Gives advice about the whole pages of memory that is so large that huge pages gain something.
#[cfg(all(target_os = "linux", not(miri)))]
fn give<T>(memory: &[T], advice: libc::c_int) {
    /// The size of the largest small pages of any kernel.
    const PAGE: usize = 64 << 10;
    if size_of_val(memory) >= FROM {
        let first = memory.as_ptr().cast::<u8>();
        let before = first.align_offset(PAGE);
        let bytes = (size_of_val(memory) - before) / PAGE * PAGE;
        // SAFETY: these are whole pages within the memory, and the advice does not change their contents.
        let _ = unsafe { libc::madvise(first.add(before).cast_mut().cast(), bytes, advice) };
    }
}

/// Gives the last of the first `bytes` of a mapping back to the system, a huge page. Returns the number of bytes before
/// it, which keep their contents.
#[cfg(all(target_os = "linux", not(miri)))]
pub fn release(map: &mut memmap2::MmapMut, bytes: usize) -> usize {
    /// The size of a huge page of most processors.
    const HUGE: usize = 2 << 20;
    let (start, end) = (map.as_ptr().addr(), bytes.min(map.len()));
    let from = ((start + end).saturating_sub(1) / HUGE * HUGE).saturating_sub(start);
    // SAFETY: `from..end` lies within the mapping and begins a page. It is zeros afterwards.
    let _ = unsafe { libc::madvise(map.as_mut_ptr().add(from).cast(), end - from, libc::MADV_DONTNEED) };
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_does_not_change_memory() {
        for len in [0, 1, FROM - 1, FROM, FROM + 100_000, 9 * FROM + 1] {
            let vec: Vec<u8> = (0..len).map(|i| i as u8).collect();
            advise(&vec);
            assert!(vec.iter().enumerate().all(|(i, &byte)| byte == i as u8));
        }
        advise(&[(); usize::MAX]);
    }
}
