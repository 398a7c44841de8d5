//! Parts of a filter that come and go, all in one piece of memory, so that they are saved as they are: some words at the
//! head, a row for each part, then the cells of each part, in the order of the rows.

use crate::Error;
use crate::words::Words;

/// A part: what its row says, and where its cells are.
pub trait Part {
    /// Words of a row.
    const ROW: usize;

    /// Words of its cells.
    fn len(&self) -> usize;

    /// The word its cells begin at; 0 while it has none.
    fn start(&mut self) -> &mut usize;

    /// Writes its row.
    fn write(&self, row: &mut [u64]);
}

/// Moves these parts to memory of their own, which is returned: those that have cells in `present` take them along, new
/// ones begin with zeros. It costs twice the bytes for that moment; on an error the parts are still where they were.
pub fn lay_out<P: Part>(present: &Words, head: &[u64], parts: &mut [P]) -> Result<Words, Error> {
    let mut start = head.len() + P::ROW * parts.len();
    let len = parts.iter().map(P::len).fold(start, usize::saturating_add);
    let mut words = Words::zeroed(len)?;
    let (present, new) = (present.as_slice(), words.to_mut()?);
    new[..head.len()].copy_from_slice(head);
    for (i, part) in parts.iter_mut().enumerate() {
        let (old, len) = (*part.start(), part.len());
        if old > 0 {
            new[start..start + len].copy_from_slice(&present[old..old + len]);
        }
        *part.start() = start;
        part.write(row::<P>(new, head.len(), i));
        start += len;
    }
    Ok(words)
}

/// The parts in `words`, each as `read` has it from its number and its row, if the table and the cells are all there is.
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
