//! Reads lists, tuples and arrays of Python objects.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyList, PyTuple};

use super::plain::{self, small_integer};
use super::{KeyReader, Keys, prefixed};
use crate::errors::raise;
use lately::memory::fallible;
use lately::memory::prefetch::Address;

/// Number of objects between two checks for Ctrl-C, about a millisecond.
const SIGNAL_INTERVAL: usize = 1 << 16;
/// Number of objects that are prefetched together. If memory order is not list order, as after a sort, a million
/// integers take 12 ns each and URLs 15. Without prefetching they took 55 and 120, in groups of 32 they take 16 and 20.
const GROUP: usize = 64;
/// Words whose lines are prefetched for an object: three lines, a string of a hundred letters.
const LINES: [usize; 3] = [0, 8, 16];

/// Hashes the elements of a list. If the list changes meanwhile, each element is hashed as it is then, and no more
/// elements than there were at first.
pub fn read_list(list: &Bound<'_, PyList>, reader: KeyReader<'_>) -> PyResult<Keys> {
    let get = |index| {
        // SAFETY: `read` passes indexes below the length. This thread is attached to the interpreter and in a critical
        // section of the list, so the list does not change before Python runs.
        unsafe { Borrowed::from_ptr(list.py(), ffi::PyList_GetItem(list.as_ptr(), index as isize)) }
    };
    with_critical_section(list, || read(list.py(), || list.len(), reader, get))
}

/// Hashes the elements of a tuple.
pub fn read_tuple(tuple: &Bound<'_, PyTuple>, reader: KeyReader<'_>) -> PyResult<Keys> {
    // SAFETY: a tuple never changes, and `read` passes indexes below its length.
    read(tuple.py(), || tuple.len(), reader, |index| unsafe { tuple.get_borrowed_item_unchecked(index) })
}

/// Hashes the objects that `get` returns, each borrowed until Python runs. Python may change them and their number, but
/// no more objects are hashed than there were at first.
pub fn read<'a, 'py>(
    py: Python<'py>,
    len: impl Fn() -> usize,
    reader: KeyReader<'_>,
    get: impl Fn(usize) -> Borrowed<'a, 'py, PyAny>,
) -> PyResult<Keys> {
    let most = len();
    let mut hasher = ObjectHasher { reader, hashes: fallible::with_room(most).map_err(raise)?, hashed: 0 };
    loop {
        let start = hasher.hashes.len();
        if start > 0 && start.is_multiple_of(SIGNAL_INTERVAL) {
            py.check_signals()?;
        }
        let (indexes, mut group) = (start..most.min(start + GROUP).min(len()), [None; GROUP]);
        if indexes.is_empty() {
            break;
        }
        for (index, borrowed) in indexes.clone().zip(&mut group) {
            let object = get(index);
            LINES.into_iter().for_each(|line| Address::at(object.as_ptr().cast()).fetch(line));
            *borrowed = Some(object);
        }
        // In most batches all are integers, or none.
        let integers = group.iter().map_while(|object| small_integer(object.as_ref()?));
        hasher.hashes.extend(integers.map(|integer| integer as u64));
        let (count, mut python_ran) = (hasher.hashes.len() - start, false);
        for (index, borrowed) in indexes.zip(group).skip(count) {
            let object = if python_ran { (index < len()).then(|| get(index)) } else { borrowed };
            let Some(object) = object else { break };
            python_ran |= hasher.push(object)?;
        }
    }
    hasher.hash_integers();
    Ok(Keys::made(hasher.hashes))
}

/// Hashes objects in order. Consecutive integers are hashed together.
struct ObjectHasher<'a> {
    reader: KeyReader<'a>,
    /// Hashes, and from `hashed` on integers that are still to be hashed.
    hashes: Vec<u64>,
    hashed: usize,
}

impl ObjectHasher<'_> {
    /// Hashes an object, which is borrowed until Python runs. Returns whether Python may have run.
    #[inline(always)]
    fn push(&mut self, object: Borrowed<'_, '_, PyAny>) -> PyResult<bool> {
        if let Some(integer) = small_integer(&object) {
            self.hashes.push(integer as u64);
            return Ok(false);
        }
        let object = object.to_owned();
        let plain = plain::hash(&object, self.reader);
        let hash = match plain {
            Some(hash) => hash,
            None => {
                let index = self.hashes.len();
                self.reader.key(&object).map_err(|error| prefixed(object.py(), format!("key {index}"), error))?
            }
        };
        self.hash_integers();
        self.hashes.push(hash);
        self.hashed = self.hashes.len();
        Ok(plain.is_none())
    }

    #[inline]
    fn hash_integers(&mut self) {
        if self.hashed < self.hashes.len() {
            self.reader.hasher.integers(&mut self.hashes[self.hashed..]);
        }
    }
}
