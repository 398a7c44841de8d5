//! Parts of a filter that come and go, in one piece of memory that is saved as it is: some words at the head, a row for
//! each part, then the cells of each part, in the order of the rows.

use crate::Error;
use crate::memory::Words;

/// A part: its row, and the place of its cells.
pub trait Part {
    /// Words of a row.
    const ROW: usize;

    /// Words of its cells.
    fn len(&self) -> usize;

    /// The word its cells begin at; 0 while it has no cells.
    fn start(&mut self) -> &mut usize;

    /// Writes its row.
    fn write(&self, row: &mut [u64]);
}

/// Makes these the parts in `words`. Parts that have cells there keep them, new ones begin with zeros. Memory is reused
/// if it is nearly of the right size and no part moves towards its beginning, as when new parts come first. Otherwise
/// the parts move to new memory, and both exist for a moment. On an error nothing has changed.
pub fn lay_out<P: Part>(words: &mut Words, head: &[u64], parts: &mut [P]) -> Result<(), Error> {
    let mut len = head.len() + P::ROW * parts.len();
    let mut starts = Vec::with_capacity(parts.len());
    for part in parts.iter() {
        starts.push(len);
        len = len.saturating_add(part.len());
    }
    let upwards = parts.iter_mut().zip(&starts).all(|(part, &start)| *part.start() <= start);
    if upwards && let Some(all) = words.resized(len) {
        // From the last part on, so that none is written over another that has yet to move.
        for (part, &start) in parts.iter_mut().zip(&starts).rev() {
            match (*part.start(), part.len()) {
                (0, len) => all[start..start + len].fill(0),
                (old, len) => all.copy_within(old..old + len, start),
            }
        }
    } else {
        let mut new = Words::zeroed(len)?;
        let (present, all) = (words.as_slice(), new.to_mut()?);
        for (part, &start) in parts.iter_mut().zip(&starts) {
            let (old, len) = (*part.start(), part.len());
            if old > 0 {
                all[start..start + len].copy_from_slice(&present[old..old + len]);
            }
        }
        *words = new;
    }
    let all = words.to_mut()?;
    all[..head.len()].copy_from_slice(head);
    for (i, (part, &start)) in parts.iter_mut().zip(&starts).enumerate() {
        *part.start() = start;
        part.write(row::<P>(all, head.len(), i));
    }
    Ok(())
}

/// The parts in `words`, each read by `read` from its number and its row, if the table and the cells fill the words
/// exactly.
pub fn read<P: Part>(
    words: &[u64],
    head: usize,
    parts: u64,
    mut read: impl FnMut(usize, &[u64]) -> Option<P>,
) -> Option<Vec<P>> {
    let rows = words.get(head..)?;
    let parts = usize::try_from(parts).ok().filter(|&parts| parts <= rows.len() / P::ROW)?;
    let mut start = head + P::ROW * parts;
    let mut all = Vec::with_capacity(parts);
    for (i, row) in rows.chunks_exact(P::ROW).take(parts).enumerate() {
        let mut part = read(i, row)?;
        *part.start() = start;
        start = start.checked_add(part.len())?;
        all.push(part);
    }
    (start == words.len()).then_some(all)
}

/// The row of one part.
pub fn row<P: Part>(words: &mut [u64], head: usize, i: usize) -> &mut [u64] {
    &mut words[head + P::ROW * i..][..P::ROW]
}
