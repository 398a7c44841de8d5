//! Segments of a filter that come and go, in one piece of memory that is saved as it is: a head of a few words, a table
//! with a row for each segment, then the cells of each segment, in the order of the rows.

use crate::Error;
use crate::memory::Words;

/// A segment, which has a row in the table, and cells.
pub trait Segment {
    /// Words of a row.
    const ROW: usize;

    /// Returns the number of words of the cells.
    fn len(&self) -> usize;

    /// Returns the word at which the cells begin; 0 while the segment has none.
    fn start(&mut self) -> &mut usize;

    /// Writes the row.
    fn write(&self, row: &mut [u64]);
}

/// Makes `segments` the segments in `words`. Segments that have cells there keep them, new ones begin with zeros. A
/// call that returns an error has changed nothing.
///
/// Memory is reused if it has nearly the right size and no segment moves towards its beginning, as when new segments
/// come first. Otherwise the segments move to new memory, and both exist for a moment.
pub fn lay_out<S: Segment>(words: &mut Words, head: &[u64], segments: &mut [S]) -> Result<(), Error> {
    let mut len = head.len() + S::ROW * segments.len();
    let mut starts = Vec::with_capacity(segments.len());
    for segment in segments.iter() {
        starts.push(len);
        len = len.saturating_add(segment.len());
    }
    let upwards = segments.iter_mut().zip(&starts).all(|(segment, &start)| *segment.start() <= start);
    if upwards && let Some(all) = words.resized(len) {
        // From the last segment on, so that none overwrites another that has yet to move.
        for (segment, &start) in segments.iter_mut().zip(&starts).rev() {
            match (*segment.start(), segment.len()) {
                (0, len) => all[start..start + len].fill(0),
                (old, len) => all.copy_within(old..old + len, start),
            }
        }
    } else {
        let mut new = Words::zeroed(len)?;
        let (present, all) = (words.as_slice(), new.to_mut()?);
        for (segment, &start) in segments.iter_mut().zip(&starts) {
            let (old, len) = (*segment.start(), segment.len());
            if old > 0 {
                all[start..start + len].copy_from_slice(&present[old..old + len]);
            }
        }
        *words = new;
    }
    let all = words.to_mut()?;
    all[..head.len()].copy_from_slice(head);
    for (i, (segment, &start)) in segments.iter_mut().zip(&starts).enumerate() {
        *segment.start() = start;
        segment.write(row::<S>(all, head.len(), i));
    }
    Ok(())
}

/// Reads `count` segments from `words`, behind a head of `head` words. `read` makes a segment from its number and its
/// row. Returns `None` if `read` does, or if table and cells do not fill the words exactly.
pub fn read<S: Segment>(
    words: &[u64],
    head: usize,
    count: u64,
    mut read: impl FnMut(usize, &[u64]) -> Option<S>,
) -> Option<Vec<S>> {
    let rows = words.get(head..)?;
    let count = usize::try_from(count).ok().filter(|&count| count <= rows.len() / S::ROW)?;
    let mut start = head + S::ROW * count;
    let mut all = Vec::with_capacity(count);
    for (i, row) in rows.chunks_exact(S::ROW).take(count).enumerate() {
        let mut segment = read(i, row)?;
        *segment.start() = start;
        start = start.checked_add(segment.len())?;
        all.push(segment);
    }
    (start == words.len()).then_some(all)
}

/// Returns the row of segment `i`, behind a head of `head` words.
pub fn row<S: Segment>(words: &mut [u64], head: usize, i: usize) -> &mut [u64] {
    &mut words[head + S::ROW * i..][..S::ROW]
}
