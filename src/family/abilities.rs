//! What only some layouts can do: a small trait for each ability. [`Abilities`](super::Abilities) lists those of a
//! layout.
//!
//! The traits are used as trait objects. The engine calls [`Layout::abilities`](super::Layout::abilities) where the
//! compiler knows the layout, so calls through them are resolved at compile time, like calls of
//! [`Layout`](super::Layout).

use std::ops::{Range, RangeInclusive};

/// Inserts keys as long as no entry has to move, for cells whose entries move between the places of their key. Other
/// processes may read them meanwhile, and each move is announced to these.
pub trait Still<R> {
    /// Inserts the keys of a run in order, without `refresh` only new ones, until an entry has to move. Writes to
    /// `seen`, if it is not empty, which of them the cells contained. Returns the number of keys done, and that of
    /// insertions.
    fn process_still(
        &self,
        words: &mut [u64],
        rotation: R,
        hashes: &[u64],
        run: Range<usize>,
        refresh: bool,
        seen: &mut [bool],
    ) -> (usize, u64);
}

/// Inserts a late key in the generation of its own time: for cells that store how old keys are.
///
/// A key is then reported for a window from its own time on, and not from the latest. A query reports what was inserted
/// within the window before its own time, and later.
pub trait Late<R> {
    /// Returns the rotation for keys of the generation `own` before the open one, whose window begins in the generation
    /// `oldest` before it.
    fn rotation_of(&self, generation: i64, own: u64, oldest: u64) -> R;

    /// Inserts keys in order, each in a rotation of its own, all while one generation is open. With `seen` writes there
    /// which keys the cells contain, and without its refresh inserts only those that they do not contain.
    fn process_late(&self, words: &mut [u64], rotations: &[R], hashes: &[u64], seen: Option<(bool, &mut [bool])>);
}

/// Some cells of a filter: all cells of the keys whose hashes lie in one range.
pub struct Partition<'a, L> {
    /// The layout, restricted to these keys and these words.
    pub layout: L,
    /// The words of these cells.
    pub words: &'a mut [u64],
    /// The hashes of these keys.
    pub hashes: RangeInclusive<u64>,
}
