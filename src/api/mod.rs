//! The public types of the crate: thin layers over the core's filters.

mod builder;
mod concurrent;
#[cfg(feature = "file")]
mod file;
mod filter;
#[cfg(feature = "inference")]
mod posterior;
#[cfg(feature = "serde")]
mod serde;
mod window;

pub use builder::Builder;
pub use concurrent::ConcurrentFilter;
pub use filter::Filter;
pub use window::Window;

pub use crate::family::Prefer;

use std::alloc::{Layout, handle_alloc_error};
use std::time::SystemTime;

use crate::Error;
use crate::key::{Key, KeyHasher};

/// Number of hashes that are computed before a batch is processed: 32 KiB of them.
const CHUNK: usize = 4096;

/// Returns the value of a call that fails only if memory runs out: then the process ends, as for a `Vec`.
#[inline(always)]
fn infallible<T>(result: Result<T, Error>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => out_of_memory(&error),
    }
}

#[cold]
fn out_of_memory(error: &Error) -> ! {
    let bytes = if let Error::Memory { bytes } = error { *bytes } else { 0 };
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).min(isize::MAX as usize - 63);
    handle_alloc_error(Layout::from_size_align(bytes, 1).unwrap_or(Layout::new::<u64>()))
}

/// Calls `act` on the hashes of keys, chunk by chunk, and collects the answers in order.
fn in_chunks<K: Key>(
    keys: impl IntoIterator<Item = K>,
    hasher: &KeyHasher,
    mut act: impl FnMut(&[u64], &mut [bool]) -> Result<(), Error>,
) -> Result<Vec<bool>, Error> {
    let keys = keys.into_iter();
    let mut answers = Vec::with_capacity(keys.size_hint().0.min(1 << 20));
    each_chunk(keys, hasher, |hashes| {
        let done = answers.len();
        answers.resize(done + hashes.len(), false);
        act(hashes, &mut answers[done..])
    })?;
    Ok(answers)
}

/// Calls `act` on the hashes of keys, chunk by chunk, in memory for one chunk.
fn each_chunk<K: Key>(
    keys: impl IntoIterator<Item = K>,
    hasher: &KeyHasher,
    mut act: impl FnMut(&[u64]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut keys = keys.into_iter();
    let mut hashes = Vec::with_capacity(keys.size_hint().0.min(CHUNK));
    loop {
        hashes.clear();
        hashes.extend(keys.by_ref().take(CHUNK).map(|key| key.to_hash(hasher)));
        if !hashes.is_empty() {
            act(&hashes)?;
        }
        // An iterator that has ended may begin again, so `next` is not called after its end.
        if hashes.len() < CHUNK {
            return Ok(());
        }
    }
}

/// Rejects bytes behind a saved filter.
fn at_end(rest: &[u8]) -> Result<(), Error> {
    match rest.len() {
        0 => Ok(()),
        more => Err(Error::format(format!("{more} bytes follow the filter"))),
    }
}

/// Returns the hashes and the times of events. Rejects a time that no clock of the core has.
fn events<K: Key>(
    events: impl IntoIterator<Item = (K, SystemTime)>,
    hasher: &KeyHasher,
) -> Result<(Vec<u64>, Vec<i64>), Error> {
    events.into_iter().map(|(key, at)| Ok((key.to_hash(hasher), window::moment(at)?))).collect()
}
