//! The hashes of a batch of keys: made already, or made block by block where they are wanted.

use crate::key::KeyHasher;

type Fill = dyn Fn(usize, &mut [u64]) + Send + Sync;

/// As many hashes as there are keys in a batch.
///
/// Nothing can go wrong any more and no Python is needed: whatever owns the keys is owned by this.
pub struct Keys {
    len: usize,
    fill: Box<Fill>,
}

impl Keys {
    /// `fill(start, out)` writes the hashes of the keys `start..start + out.len()`, which lie within `len`.
    pub(super) fn new(len: usize, fill: impl Fn(usize, &mut [u64]) + Send + Sync + 'static) -> Self {
        Self { len, fill: Box::new(fill) }
    }

    /// `hash(i)` is the hash of key `i`.
    pub(super) fn each(len: usize, hash: impl Fn(usize) -> u64 + Send + Sync + 'static) -> Self {
        Self::new(len, move |start, out| {
            for (i, out) in (start..).zip(out) {
                *out = hash(i);
            }
        })
    }

    /// Hashes that are there already.
    pub(super) fn made(hashes: Vec<u64>) -> Self {
        Self::new(hashes.len(), move |start, out| out.copy_from_slice(&hashes[start..start + out.len()]))
    }

    /// One batch after another.
    pub(super) fn chained(parts: Vec<Keys>) -> Self {
        if let [_] = parts[..] {
            return parts.into_iter().next().expect("there is one");
        }
        let mut starts = Vec::with_capacity(parts.len());
        let mut len = 0;
        for part in &parts {
            starts.push(len);
            len += part.len;
        }
        Self::new(len, move |mut start, mut out| {
            // The last part that begins at or before `start`; empty parts before it are passed over.
            let mut part = starts.partition_point(|&first| first <= start).saturating_sub(1);
            while !out.is_empty() {
                let within = start - starts[part];
                let (now, later) = out.split_at_mut(out.len().min(parts[part].len - within));
                parts[part].fill(within, now);
                start += now.len();
                out = later;
                part += 1;
            }
        })
    }

    /// Rows, from the columns they are made of. `len` is said, since rows need not have columns.
    pub(super) fn rows(len: usize, columns: Vec<Keys>, hasher: KeyHasher) -> Self {
        debug_assert!(columns.iter().all(|column| column.len == len));
        Self::new(len, move |start, out| {
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
        })
    }

    /// A dictionary: `code(i)` says which of these keys stands at `i`; one that there is not is missing.
    pub(super) fn taken(
        self,
        len: usize,
        code: impl Fn(usize) -> Option<usize> + Send + Sync + 'static,
        missing: u64,
    ) -> Self {
        if self.len > len {
            // A few rows of a large dictionary: hash what is used.
            return Self::each(len, move |i| match code(i) {
                Some(code) if code < self.len => {
                    let mut hash = [0];
                    self.fill(code, &mut hash);
                    hash[0]
                }
                _ => missing,
            });
        }
        let table = self.into_vec();
        Self::each(len, move |i| code(i).and_then(|code| table.get(code)).copied().unwrap_or(missing))
    }

    /// These keys, but `missing` wherever `is_missing(i)`.
    pub(super) fn masked(self, missing: u64, is_missing: impl Fn(usize) -> bool + Send + Sync + 'static) -> Self {
        Self::new(self.len, move |start, out| {
            self.fill(start, out);
            for (i, out) in (start..).zip(out) {
                *out = if is_missing(i) { missing } else { *out };
            }
        })
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Writes the hashes of the keys `start..start + out.len()`.
    ///
    /// # Panics
    ///
    /// If the batch ends before that.
    pub fn fill(&self, start: usize, out: &mut [u64]) {
        assert!(start <= self.len && out.len() <= self.len - start, "hashes beyond the end of a batch");
        (self.fill)(start, out);
    }

    /// All hashes.
    pub fn into_vec(self) -> Vec<u64> {
        let mut hashes = vec![0; self.len];
        self.fill(0, &mut hashes);
        hashes
    }
}
