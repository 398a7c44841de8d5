//! Hashes of a batch of keys: computed beforehand, or block by block as they are needed.

use std::ops::Range;

use super::KeyHasher;
use crate::Error;
use crate::memory::fallible;

type Fill = dyn Fn(usize, &mut [u64]) + Send + Sync;

/// Number of strings that are hashed together: 1 KiB of pointers and lengths.
pub const TOGETHER: usize = 64;

/// A sequence of strings to hash.
pub trait Strings: Send + Sync + 'static {
    /// Returns the bytes of string `i`.
    fn at(&self, i: usize) -> &[u8];
}

/// The hashes of a batch of keys, one per key.
///
/// The memory of the keys belongs to the batch. Computing the hashes cannot fail and needs no Python.
pub struct Keys {
    len: usize,
    hashes: Source,
}

/// The source of the hashes of a batch.
enum Source {
    /// Hashes that exist already.
    Made(Vec<u64>),
    /// A function that computes the hashes of a range when they are needed.
    Filled(Box<Fill>),
}

impl Keys {
    /// Returns `len` keys. `fill(start, out)` writes the hashes of the keys `start..start + out.len()` of them.
    pub fn new(len: usize, fill: impl Fn(usize, &mut [u64]) + Send + Sync + 'static) -> Self {
        Self { len, hashes: Source::Filled(Box::new(fill)) }
    }

    /// Returns `len` keys; `hash(i)` is the hash of key `i`.
    pub fn each(len: usize, hash: impl Fn(usize) -> u64 + Send + Sync + 'static) -> Self {
        Self::new(len, move |start, out| {
            for (i, out) in (start..).zip(out) {
                *out = hash(i);
            }
        })
    }

    /// Returns keys whose hashes exist already.
    pub fn made(hashes: Vec<u64>) -> Self {
        Self { len: hashes.len(), hashes: Source::Made(hashes) }
    }

    /// Returns the keys of several batches, one after the other.
    pub fn chained(parts: Vec<Keys>) -> Result<Self, Error> {
        if let [_] = parts[..] {
            return Ok(parts.into_iter().next().expect("there is one"));
        }
        let mut starts = Vec::with_capacity(parts.len());
        let mut len = 0usize;
        for part in &parts {
            starts.push(len);
            len = len.checked_add(part.len).ok_or_else(|| Error::value("more keys than memory has addresses"))?;
        }
        Ok(Self::new(len, move |mut start, mut out| {
            // The last part that begins at or before `start`; empty parts before it are skipped.
            let mut part = starts.partition_point(|&first| first <= start).saturating_sub(1);
            while !out.is_empty() {
                let within = start - starts[part];
                let (now, later) = out.split_at_mut(out.len().min(parts[part].len - within));
                parts[part].fill(within, now);
                start += now.len();
                out = later;
                part += 1;
            }
        }))
    }

    /// Returns rows from their columns. `len` is given because rows need not have columns.
    pub fn rows(len: usize, columns: Vec<Keys>, hasher: KeyHasher) -> Result<Self, Error> {
        if let Some(column) = columns.iter().find(|column| column.len != len) {
            return Err(Error::value(format!(
                "every column must have one key for each of {len} rows, but one has {}",
                column.len
            )));
        }
        Ok(Self::new(len, move |start, out| {
            // 4 KiB: one column's hashes beside the chains, both within L1.
            let mut elements = [0; 512];
            for (start, chains) in (start..).step_by(elements.len()).zip(out.chunks_mut(elements.len())) {
                let elements = &mut elements[..chains.len()];
                chains.fill(hasher.row_start(columns.len()));
                for column in &columns {
                    column.fill(start, elements);
                    for (chain, &element) in chains.iter_mut().zip(&*elements) {
                        *chain = hasher.row_next(*chain, element);
                    }
                }
            }
        }))
    }

    /// Returns the keys of lists, given all elements in sequence: `range(i)` are those of list `i`. A range beyond the
    /// elements counts as empty.
    pub fn lists(
        self,
        len: usize,
        range: impl Fn(usize) -> std::ops::Range<usize> + Send + Sync + 'static,
        hasher: KeyHasher,
    ) -> Self {
        Self::each(len, move |i| {
            let range = range(i);
            let range = if range.end <= self.len { range } else { 0..0 };
            let mut elements = [0; 64];
            let mut chain = hasher.list_start(range.len());
            for start in range.clone().step_by(elements.len()) {
                let elements = &mut elements[..64.min(range.end - start)];
                self.fill(start, elements);
                chain = elements.iter().fold(chain, |chain, &element| hasher.list_next(chain, element));
            }
            chain
        })
    }

    /// Returns keys that are given as codes into these keys, a dictionary: `code(i)` is the number of key `i` in it. A
    /// code without a key is missing.
    pub fn taken(
        self,
        len: usize,
        code: impl Fn(usize) -> Option<usize> + Send + Sync + 'static,
        missing: u64,
    ) -> Result<Self, Error> {
        if self.len > len {
            // A few rows of a large dictionary: only the entries in use are hashed.
            return Ok(Self::each(len, move |i| match code(i) {
                Some(code) if code < self.len => {
                    let mut hash = [0];
                    self.fill(code, &mut hash);
                    hash[0]
                }
                _ => missing,
            }));
        }
        let table = self.into_vec()?;
        Ok(Self::each(len, move |i| code(i).and_then(|code| table.get(code)).copied().unwrap_or(missing)))
    }

    /// Returns these keys, with `missing` wherever `is_missing(i)` holds; the mask has `len` entries.
    pub fn masked(
        self,
        len: usize,
        missing: u64,
        is_missing: impl Fn(usize) -> bool + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        if self.len != len {
            let message =
                format!("the mask of a column must have one bool for each of {} keys, but has {len}", self.len);
            return Err(Error::value(message));
        }
        Ok(Self::new(self.len, move |start, out| {
            self.fill(start, out);
            for (i, out) in (start..).zip(out) {
                *out = if is_missing(i) { missing } else { *out };
            }
        }))
    }

    /// Returns the keys with `change` applied to each hash.
    pub fn mapped(self, change: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Self {
        Self::new(self.len, move |start, out| {
            self.fill(start, out);
            out.iter_mut().for_each(|hash| *hash = change(*hash));
        })
    }

    /// Returns the keys of integers, given as the bits of an i64 each.
    pub fn of_integers(self, hasher: KeyHasher) -> Self {
        Self::new(self.len, move |start, out| {
            self.fill(start, out);
            hasher.integers(out);
        })
    }

    /// Returns the keys of integers that are not negative, given as their values.
    pub fn of_unsigned(self, hasher: KeyHasher) -> Self {
        Self::new(self.len, move |start, out| {
            self.fill(start, out);
            if out.iter().fold(0, |all, value| all | value) >> 63 == 0 {
                hasher.integers(out);
            } else {
                out.iter_mut().for_each(|value| *value = hasher.unsigned(*value));
            }
        })
    }

    /// Returns the keys of `len` texts.
    pub fn of_texts(len: usize, texts: impl Strings, hasher: KeyHasher) -> Self {
        match hasher.keyed() {
            true => Self::together(len, texts, move |texts, out| hasher.texts(texts, out)),
            false => Self::each(len, move |i| hasher.text(texts.at(i))),
        }
    }

    /// Returns the keys of `len` byte strings.
    pub fn of_byte_strings(len: usize, strings: impl Strings, hasher: KeyHasher) -> Self {
        match hasher.keyed() {
            true => Self::together(len, strings, move |strings, out| hasher.byte_strings(strings, out)),
            false => Self::each(len, move |i| hasher.bytes(strings.at(i))),
        }
    }

    /// Returns the keys of strings that `hash` hashes together. Collecting the strings costs ten instructions each.
    fn together(
        len: usize,
        strings: impl Strings,
        hash: impl Fn(&[&[u8]], &mut [u64]) + Send + Sync + 'static,
    ) -> Self {
        Self::new(len, move |start, out| {
            let mut block = [[].as_slice(); TOGETHER];
            for (start, out) in (start..).step_by(TOGETHER).zip(out.chunks_mut(TOGETHER)) {
                let block = &mut block[..out.len()];
                block.iter_mut().zip(start..).for_each(|(string, i)| *string = strings.at(i));
                hash(block, out);
            }
        })
    }

    /// Returns the number of keys.
    #[allow(clippy::len_without_is_empty, reason = "not needed")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Writes the hashes of the keys `start..start + out.len()`.
    ///
    /// # Panics
    ///
    /// Panics if the batch ends before that.
    pub fn fill(&self, start: usize, out: &mut [u64]) {
        assert!(start <= self.len && out.len() <= self.len - start, "hashes beyond the end of a batch");
        match &self.hashes {
            Source::Made(hashes) => out.copy_from_slice(&hashes[start..start + out.len()]),
            Source::Filled(fill) => fill(start, out),
        }
    }

    /// Returns the hashes of some keys, if they exist already.
    pub fn made_before(&self, range: Range<usize>) -> Option<&[u64]> {
        match &self.hashes {
            Source::Made(hashes) => Some(&hashes[range]),
            Source::Filled(_) => None,
        }
    }

    /// Returns all hashes.
    pub fn into_vec(self) -> Result<Vec<u64>, Error> {
        if let Source::Made(hashes) = self.hashes {
            return Ok(hashes);
        }
        let mut hashes = fallible::zeroed(self.len)?;
        self.fill(0, &mut hashes);
        Ok(hashes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Seed;

    fn hasher() -> KeyHasher {
        KeyHasher::new(7)
    }

    fn counting(range: std::ops::Range<u64>) -> Keys {
        Keys::each(range.clone().count(), move |i| range.start + i as u64)
    }

    /// Any range of a batch gives the same hashes as that part of the whole.
    fn check(make: impl Fn() -> Keys, expected: &[u64]) {
        let keys = make();
        assert_eq!(keys.len(), expected.len());
        for start in 0..=expected.len() {
            for end in start..=expected.len() {
                let mut out = vec![u64::MAX; end - start];
                keys.fill(start, &mut out);
                assert_eq!(out, expected[start..end], "{start}..{end}");
                assert!(keys.made_before(start..end).is_none_or(|made| made == out), "{start}..{end}");
            }
        }
        assert_eq!(make().into_vec().unwrap(), expected);
    }

    #[test]
    fn chunks_follow_each_other() {
        check(|| Keys::made(vec![3, 1, 2]), &[3, 1, 2]);
        assert!(Keys::made(vec![3]).made_before(0..1).is_some());
        check(|| Keys::chained(vec![]).unwrap(), &[]);
        check(|| Keys::chained(vec![counting(0..0)]).unwrap(), &[]);
        check(|| Keys::chained(vec![counting(0..3)]).unwrap(), &[0, 1, 2]);
        let sizes = [0..0, 0..2, 2..2, 2..2, 2..3, 3..7, 7..7];
        check(|| Keys::chained(sizes.clone().map(counting).into()).unwrap(), &[0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn integers_are_hashed_in_a_batch_as_alone() {
        // Some full vectors, and a partial one.
        let many = if cfg!(miri) { 9 } else { 30 };
        for hasher in [hasher(), KeyHasher::of(Seed::Secret([7, 8]))] {
            let value = |i: usize| (i as u64).wrapping_mul(0x7777_7777_7777_7777);
            let signed: Vec<u64> = (0..many).map(|i| hasher.integer(value(i) as i64)).collect();
            check(|| Keys::each(many, value).of_integers(hasher), &signed);
            for largest in [1 << 63, u64::MAX] {
                let value = move |i: usize| value(i) % largest;
                let unsigned: Vec<u64> = (0..many).map(|i| hasher.unsigned(value(i))).collect();
                check(|| Keys::each(many, value).of_unsigned(hasher), &unsigned);
            }
        }
    }

    #[test]
    fn strings_are_hashed_in_a_batch_as_alone() {
        struct TestStrings(Vec<u8>);
        impl Strings for TestStrings {
            fn at(&self, i: usize) -> &[u8] {
                &self.0[i..i + i % 11]
            }
        }
        for hasher in [hasher(), KeyHasher::of(Seed::Secret([7, 8]))] {
            for many in [9, if cfg!(miri) { 17 } else { 70 }] {
                let parts = || TestStrings((0..100).collect());
                let expected: Vec<u64> = (0..many).map(|i| hasher.text(parts().at(i))).collect();
                check(|| Keys::of_texts(many, parts(), hasher), &expected);
            }
        }
    }

    #[test]
    fn codes_take_from_large_and_small_dictionaries() {
        let code = |i: usize| [Some(1), None, Some(0), Some(99)][i];
        for dictionary in [10..12, 10..30] {
            check(|| counting(dictionary.clone()).taken(4, code, 5).unwrap(), &[11, 5, 10, 5]);
        }
        check(|| counting(0..0).taken(2, |_| None, 5).unwrap(), &[5, 5]);
    }

    #[test]
    fn lists_are_chains_of_their_elements() {
        let ends = [0, 3, 3, 70, 200, 99_999];
        let range = move |i: usize| ends[i]..ends[i + 1];
        let list = |range: std::ops::Range<u64>| {
            range.clone().fold(hasher().list_start(range.count()), |chain, element| hasher().list_next(chain, element))
        };
        let expected = [list(0..3), list(3..3), list(3..70), list(70..200), list(0..0)];
        check(|| counting(0..200).lists(5, range, hasher()), &expected);
    }

    #[test]
    fn masks_hide() {
        check(|| counting(0..6).masked(6, 9, |i| i % 3 == 0).unwrap(), &[9, 1, 2, 9, 4, 5]);
    }

    #[test]
    fn rows_are_made_from_any_part_of_their_columns() {
        // Longer than one scratch block.
        let len = 1_100;
        let expected: Vec<u64> =
            (0..len).map(|i| hasher().row_next(hasher().row_next(hasher().row_start(2), i), i + 5)).collect();
        let keys = Keys::rows(len as usize, vec![counting(0..len), counting(5..len + 5)], hasher()).unwrap();
        for start in [0, 1, 511, 512, 513, 1_099] {
            let mut out = vec![0; len as usize - start];
            keys.fill(start, &mut out);
            assert_eq!(out, expected[start..], "{start}");
        }
        check(|| Keys::rows(3, vec![], hasher()).unwrap(), &[hasher().row_start(0); 3]);
    }

    #[test]
    fn parameters_that_do_not_fit_together_are_an_error() {
        assert!(matches!(counting(0..6).masked(5, 9, |_| true), Err(Error::Value(_))));
        assert!(matches!(Keys::rows(3, vec![counting(0..3), counting(0..2)], hasher()), Err(Error::Value(_))));
        assert!(matches!(Keys::chained(vec![counting(0..1), Keys::each(usize::MAX, |_| 0)]), Err(Error::Value(_))));
        assert!(matches!(Keys::each(usize::MAX, |_| 0).into_vec(), Err(Error::Memory { .. })));
    }

    #[test]
    #[should_panic(expected = "beyond the end")]
    fn a_batch_ends_where_it_ends() {
        counting(0..3).fill(2, &mut [0; 2]);
    }
}
