//! Huge pages for memory that would touch many small ones: cells, answers, and hashes of keys that have been read.

#![allow(unsafe_code, reason = "advice to the kernel about memory")]

/// From how many bytes on huge pages gain something. Below 4 MiB they gain nothing.
#[cfg_attr(not(feature = "file"), allow(dead_code, reason = "without files there is no advice"))]
pub const FROM: usize = 4 << 20;

/// Asks for huge pages under memory that has not been touched, where the kernel gives them to those that ask: as
/// advice, which it may refuse. The first touch of a small page took 1.8 microseconds, so that a list of 5 million
/// integers was read and tested in 14.5 ns each, and with huge pages in 11.
pub fn advise<T>(memory: &[T]) {
    #[cfg(all(feature = "file", target_os = "linux", not(miri)))]
    if size_of_val(memory) >= FROM {
        use rustix::mm::{Advice, madvise};

        /// No kernel has small pages that are larger.
        const PAGE: usize = 64 << 10;
        let first = memory.as_ptr().cast::<u8>();
        let before = first.align_offset(PAGE);
        let bytes = (size_of_val(memory) - before) / PAGE * PAGE;
        // SAFETY: these are whole pages within the memory, and the advice leaves what is in them.
        let _ = unsafe { madvise(first.add(before).cast_mut().cast(), bytes, Advice::LinuxHugepage) };
    }
    #[cfg(not(all(feature = "file", target_os = "linux", not(miri))))]
    let _ = memory;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_leaves_what_is_there() {
        for len in [0, 1, FROM - 1, FROM, FROM + 100_000, 9 * FROM + 1] {
            let vec: Vec<u8> = (0..len).map(|i| i as u8).collect();
            advise(&vec);
            assert!(vec.iter().enumerate().all(|(i, &byte)| byte == i as u8));
        }
        advise(&[(); usize::MAX]);
    }
}
