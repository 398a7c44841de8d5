//! How tables of cells come and go: what a family gives to the [chain](crate::engine::chain) of its tables.

use crate::Error;
use crate::clock::Clock;
use crate::family::Layout;
use crate::inference::{Evidence, Likelihood};
use crate::memory::Words;

/// A table of a chain: cells that take keys until they are full.
#[derive(Clone)]
pub struct Table<L> {
    pub(crate) layout: L,
    pub(crate) words: Words,
    /// The [moment](Growth::moment) of the last insertion, or that at which the table was opened.
    pub(crate) last: i64,
    /// What the family counts to see whether the table is full, if it does.
    pub(crate) load: u64,
}

/// The meaning of the open generation for the cells of a family.
pub type RotationOf<G> = <<G as Growth>::Cells as Layout>::Rotation;

/// The table of a family.
pub type TableOf<G> = Table<<G as Growth>::Cells>;

/// The rule of a family by which tables are opened, written and read together. Tables are in the order of their age,
/// the oldest first.
pub trait Growth: Clone + Send + Sync + 'static {
    /// The cells of a table.
    type Cells: Layout + Copy;

    /// Number of words of the [head](Self::head).
    const HEAD: usize;
    /// Number of words of a [row](Self::row).
    const ROW: usize;
    /// Whether a file has the newest table first.
    const NEWEST_FIRST: bool;
    /// Why two chains cannot be merged; `None` if they can be.
    const NOT_MERGEABLE: Option<&'static str>;
    /// Whether tables that take no more keys are swept when a generation opens. Otherwise [`rotation_of`] leaves out
    /// what a sweep would clear.
    ///
    /// [`rotation_of`]: Self::rotation_of
    const SWEEPS_OLDER: bool = true;

    /// Returns the cells of the first table.
    fn first(&self) -> Self::Cells;

    /// Returns the cells of the table that follows these.
    fn next(&self, tables: &[TableOf<Self>], rotation: RotationOf<Self>) -> Self::Cells;

    /// Returns whether the newest table is far too large for the keys of all.
    fn is_sparse(&self, tables: &[TableOf<Self>], rotation: RotationOf<Self>) -> bool {
        let _ = (tables, rotation);
        false
    }

    /// Returns the number of words of cells.
    fn words(cells: &Self::Cells) -> usize;

    /// Returns what a file contains between the number of tables and their rows.
    fn head(&self, newest: &TableOf<Self>) -> Vec<u64>;

    /// Returns the row of a table.
    fn row(&self, table: &TableOf<Self>) -> Vec<u64>;

    /// Reads the cells of a table and its last moment from a row; `None` if it is damaged.
    fn read_row(&self, row: &[u64]) -> Option<(Self::Cells, i64)>;

    /// Reads the head, when the tables have been read. Returns `None` if it is damaged.
    fn read_head(&mut self, head: &[u64], tables: &mut [TableOf<Self>]) -> Option<()>;

    /// Returns the present moment as tables store it.
    fn moment(clock: &Clock) -> i64;

    /// Returns the generation of a moment that a table stores.
    fn generation(clock: &Clock, moment: i64) -> i64;

    /// Returns what the open generation means to a table, if its last insertion may lie generations ago.
    fn rotation_of(table: &TableOf<Self>, rotation: RotationOf<Self>) -> RotationOf<Self> {
        let _ = table;
        rotation
    }

    /// Returns the most generations for which the newest table may wait to be swept. They are swept one with each call;
    /// a table that would have to wait longer takes no more keys. 0 if they are swept at once.
    fn late(&self, newest: &TableOf<Self>) -> u64 {
        let _ = newest;
        0
    }

    /// Sweeps the part of a table that is due with `generation`, in the rotation of the open one.
    fn sweep(&self, table: &mut TableOf<Self>, generation: i64, rotation: RotationOf<Self>) -> Result<(), Error>;

    /// Inserts keys into the newest table until one finds no room: all in one rotation, or each in its own. With
    /// `seen`, writes there which keys that table contains, and inserts only new ones unless it is to refresh them.
    /// Returns the number of keys done.
    fn insert_some(
        &self,
        newest: &mut TableOf<Self>,
        rotations: &[RotationOf<Self>],
        hashes: &[u64],
        seen: Option<(bool, &mut [bool])>,
    ) -> Result<usize, Error>;

    /// Inserts one key into the newest table, and returns whether that contains it. Returns `None` without an effect if
    /// the key may find no room.
    fn seen_one(
        &self,
        newest: &mut TableOf<Self>,
        rotation: RotationOf<Self>,
        hash: u64,
    ) -> Result<Option<bool>, Error> {
        let _ = (newest, rotation, hash);
        Ok(None)
    }

    /// Inserts a key that found no room in the newest table, if that is no reason to open another. Returns whether the
    /// table reported the key.
    fn insert_crowded(
        &self,
        newest: &mut TableOf<Self>,
        rotation: RotationOf<Self>,
        hash: u64,
    ) -> Result<Option<bool>, Error> {
        let _ = (newest, rotation, hash);
        Ok(None)
    }

    /// Returns the number of keys for which the newest table has room, whichever they are. None for cells that cannot
    /// be divided among threads.
    fn room(&self, newest: &TableOf<Self>, rotation: RotationOf<Self>) -> usize {
        let _ = (newest, rotation);
        0
    }

    /// Merges another table into the newest, and returns whether that has room for both.
    fn merge(newest: &mut TableOf<Self>, other: &TableOf<Self>, rotation: RotationOf<Self>) -> Result<bool, Error> {
        let _ = (newest, other, rotation);
        Ok(false)
    }

    /// Numbers the generations of a table anew, such that `to` is what `from` was.
    fn realign(table: &mut TableOf<Self>, from: i64, to: i64) -> Result<(), Error> {
        let _ = (table, from, to);
        Ok(())
    }

    /// Returns the evidence of a table, which `newer` tables followed, and of those before it, if there are any.
    fn evidence(before: Option<Evidence>, own: Evidence, newer: usize) -> Evidence;

    /// Returns the likelihood of the evidence of all tables.
    fn likelihood(&self, tables: &[TableOf<Self>], clock: &Clock) -> Box<dyn Likelihood>;

    /// Returns the [fill](Layout::fill) of all tables.
    fn fill(tables: &[TableOf<Self>], rotation: RotationOf<Self>) -> Vec<f64>;

    /// Returns the [chances](Layout::match_rates) of a match in all tables.
    fn match_rates(tables: &[TableOf<Self>], rotation: RotationOf<Self>) -> Vec<f64>;
}

/// Returns the sum of what several tables have at each age.
pub(crate) fn summed(of_tables: impl Iterator<Item = Vec<f64>>) -> Option<Vec<f64>> {
    of_tables.reduce(|a, b| a.into_iter().zip(b).map(|(a, b)| a + b).collect())
}

/// The row and the cells of a table, as a file has them.
type Saved<'a> = (&'a [u64], &'a [u64]);

/// Splits the words that a file has for several tables: their number, a head, a row for each, then the cells of each in
/// the order of the rows. `len` returns how many words of cells a row states. Returns the head, and the row and the
/// cells of each table, of which there is one at least; `None` if the words are damaged.
pub(crate) fn split(
    words: &[u64],
    [head, row]: [usize; 2],
    len: impl Fn(&[u64]) -> Option<usize>,
) -> Option<(&[u64], Vec<Saved<'_>>)> {
    let (&count, rest) = words.split_first()?;
    let (head, rest) = rest.split_at_checked(head)?;
    let (rows, mut cells) = rest.split_at_checked(usize::try_from(count).ok()?.checked_mul(row)?)?;
    let mut tables = Vec::new();
    for row in rows.chunks(row) {
        tables.push((row, cells.split_off(..len(row)?)?));
    }
    (count > 0 && cells.is_empty()).then_some((head, tables))
}
