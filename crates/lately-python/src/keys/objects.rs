//! Batches of Python objects.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyList, PyTuple};

use super::scalar::{plain, small_integer};
use super::{Keys, Reader, at};
use crate::errors::raise;
use lately::memory::fallible;
use lately::memory::prefetch::Address;

/// Objects between two checks for Ctrl-C: about a millisecond.
const SIGNALS_EVERY: usize = 1 << 16;
/// Objects that are fetched together. Where they do not lie in the order of the list, as is the case after a sort, 1
/// million integers take 12 ns each and URLs 15; fetched one by one they took 55 and 120, by 32 they take 16 and 20.
const TOGETHER: usize = 64;
/// Words of an object that are fetched, as far as three lines go: a string of a hundred letters.
const LINES: [usize; 3] = [0, 8, 16];

/// Hashes the elements of a list, which may change meanwhile: those that it has when their turn comes, and no more than
/// it had at first.
pub fn read_list(list: &Bound<'_, PyList>, reader: Reader<'_>) -> PyResult<Keys> {
    let lend = |index| {
        // SAFETY: a list that has such an element, and a thread that is attached. Nobody else changes the list before
        // Python runs.
        unsafe { Borrowed::from_ptr(list.py(), ffi::PyList_GetItem(list.as_ptr(), index as isize)) }
    };
    with_critical_section(list, || read(list.py(), || list.len(), reader, lend))
}

/// Hashes the elements of a tuple.
pub fn read_tuple(tuple: &Bound<'_, PyTuple>, reader: Reader<'_>) -> PyResult<Keys> {
    // SAFETY: a tuple never changes, and has all elements that it is asked for.
    read(tuple.py(), || tuple.len(), reader, |index| unsafe { tuple.get_borrowed_item_unchecked(index) })
}

/// Hashes objects that are lent until Python runs, when there may be fewer of them, or others: as many as there are at
/// first, if there are so many still.
pub fn read<'a, 'py>(
    py: Python<'py>,
    len: impl Fn() -> usize,
    reader: Reader<'_>,
    lend: impl Fn(usize) -> Borrowed<'a, 'py, PyAny>,
) -> PyResult<Keys> {
    let most = len();
    let mut hashes = Hashes { reader, found: fallible::with_room(most).map_err(raise)?, hashed: 0 };
    loop {
        let start = hashes.found.len();
        if start > 0 && start.is_multiple_of(SIGNALS_EVERY) {
            py.check_signals()?;
        }
        let (places, mut lent) = (start..most.min(start + TOGETHER).min(len()), [None; TOGETHER]);
        if places.is_empty() {
            break;
        }
        for (place, lent) in places.clone().zip(&mut lent) {
            let object = lend(place);
            LINES.into_iter().for_each(|line| Address::at(object.as_ptr().cast()).fetch(line));
            *lent = Some(object);
        }
        // Most often all are integers, or none.
        let integers = lent.iter().map_while(|object| small_integer(object.as_ref()?));
        hashes.found.extend(integers.map(|integer| integer as u64));
        let (count, mut python) = (hashes.found.len() - start, false);
        for (place, lent) in places.zip(lent).skip(count) {
            let object = if python { (place < len()).then(|| lend(place)) } else { lent };
            let Some(object) = object else { break };
            python |= !hashes.push(object)?;
        }
    }
    hashes.hash_integers();
    Ok(Keys::made(hashes.found))
}

/// The hashes of objects, one after the other.
struct Hashes<'a> {
    reader: Reader<'a>,
    /// Hashes, and then from `hashed` on integers, which are hashed together.
    found: Vec<u64>,
    hashed: usize,
}

impl Hashes<'_> {
    /// Hashes one more, which is lent until Python runs. Says whether it is certain that none has run.
    #[inline(always)]
    fn push(&mut self, object: Borrowed<'_, '_, PyAny>) -> PyResult<bool> {
        if let Some(integer) = small_integer(&object) {
            self.found.push(integer as u64);
            return Ok(true);
        }
        let object = object.to_owned();
        let plain = plain(&object, self.reader);
        let hash = match plain {
            Some(hash) => hash,
            None => {
                let index = self.found.len();
                self.reader.key(&object).map_err(|error| at(object.py(), format!("key {index}"), error))?
            }
        };
        self.hash_integers();
        self.found.push(hash);
        self.hashed = self.found.len();
        Ok(plain.is_some())
    }

    #[inline]
    fn hash_integers(&mut self) {
        if self.hashed < self.found.len() {
            self.reader.hasher.integers(&mut self.found[self.hashed..]);
        }
    }
}
