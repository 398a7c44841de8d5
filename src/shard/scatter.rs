//! Scatters the cells of a batch to the sites that hold them, and gathers the sites' answers.

use super::resolve::{Answer, Answered, Earlier, Rule, SeenCells};
use super::{NEVER, Row, SILENT};
use crate::Error;
use crate::memory::fallible;

/// Marks a cell that its key has twice. The other bits are the column in which the cell came first.
const REPEAT: u32 = 1 << 31;

/// Greatest number of sites: they are numbered in 16 bits.
pub const MAX_SITES: u64 = 1 << 16;

/// Chooses one of `parts` for a hash, independently of its places in any filter. Places are high bits of the hash times
/// odd constants. Two rounds of shift and multiplication, with other constants, share no bits with them: a slice then
/// fills like a filter with independent keys.
pub fn part_of(hash: u64, parts: u64) -> u64 {
    let mixed = (hash ^ hash >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xa3b1_9535_4a39_b70d);
    ((mixed >> 32) * parts) >> 32
}

/// The difference between the hashes that two ranges of cells pass to [`part_of`], so that each chooses independently.
const RANGE: u64 = 0x9fb2_1c65_1e98_df25;

/// The ranges of a filter's cells, one for each site, and possibly of several filters (paper 4, section 3.3).
pub struct Ranges {
    row: Row,
    /// The first cell of each range, and the end of the last.
    bounds: Vec<u64>,
    /// The number of such filters. Each key goes to one.
    replicas: u64,
    /// Whether a key goes to one filter in each range, chosen independently, or to the same one in all.
    each: bool,
}

impl Ranges {
    /// Creates the ranges of a filter with this row: `parts` ranges, and `replicas` such filters.
    pub fn new(row: Row, parts: u64, replicas: u64, each: bool) -> Result<Self, Error> {
        if replicas == 0 || parts.checked_mul(replicas).is_none_or(|sites| sites > MAX_SITES) {
            return Err(Error::value(format!("there must be from 1 to {MAX_SITES} sites, not {parts} x {replicas}")));
        }
        Ok(Self { bounds: row.bounds(parts)?, row, replicas, each })
    }

    /// Scatters the cells of a batch. Range p of filter r is on site number `r * parts + p`.
    pub fn scatter(&self, hashes: &[u64]) -> Result<Scattered, Error> {
        let (k, parts) = (self.row.k(), self.bounds.len() - 1);
        let sites = parts * self.replicas as usize;
        let mut cells = fallible::zeroed(hashes.len() * k)?;
        self.row.cells(hashes, &mut cells);
        let mut owners: Vec<u32> = fallible::zeroed(cells.len())?;
        let (mut counts, inner) = (vec![0_usize; sites], &self.bounds[1..parts]);
        for ((&hash, cells), owners) in hashes.iter().zip(cells.chunks_exact(k)).zip(owners.chunks_exact_mut(k)) {
            let replica = if self.replicas == 1 { 0 } else { part_of(hash, self.replicas) };
            for (j, &cell) in cells.iter().enumerate() {
                owners[j] = match cells[..j].iter().position(|&other| other == cell) {
                    Some(first) => REPEAT | first as u32,
                    None => {
                        let part = inner.partition_point(|&bound| bound <= cell) as u64;
                        let replica = match self.each && self.replicas > 1 {
                            true => part_of(hash.wrapping_add(part.wrapping_mul(RANGE)), self.replicas),
                            false => replica,
                        };
                        let site = replica * parts as u64 + part;
                        counts[site as usize] += 1;
                        site as u32
                    }
                };
            }
        }
        Ok(Scattered { k, parts, sites, all: self.bounds[parts], bounds: self.bounds.clone(), cells, owners, counts })
    }
}

/// The cells of a batch of n keys by their sites.
pub struct Scattered {
    k: usize,
    parts: usize,
    sites: usize,
    /// Number of cells of one filter.
    all: u64,
    bounds: Vec<u64>,
    cells: Vec<u64>,
    owners: Vec<u32>,
    counts: Vec<usize>,
}

/// Number of keys whose cells are prefetched: 7 cells each are 56 cache lines in flight.
const AHEAD: usize = 8;

impl Scattered {
    /// Returns the number of keys of the batch.
    pub fn keys(&self) -> usize {
        self.cells.len() / self.k
    }

    /// Returns the number of sites, whether they hold cells of the batch or not.
    pub fn sites(&self) -> usize {
        self.sites
    }

    /// Returns the number of cells of the batch at each site.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// Returns the site of each cell.
    fn owner(&self, at: usize) -> u32 {
        match self.owners[at] {
            owner if owner & REPEAT == 0 => owner,
            owner => self.owners[at / self.k * self.k + (owner ^ REPEAT) as usize],
        }
    }

    /// Returns the number of a cell among those of all filters. A division takes longer than everything else here.
    fn name(&self, at: usize) -> u64 {
        let replica = if self.sites == self.parts { 0 } else { u64::from(self.owner(at)) / self.parts as u64 };
        replica * self.all + self.cells[at]
    }

    /// Returns whether the cells of each site, counted from its first, fit into 32 bits.
    pub fn narrow(&self) -> bool {
        self.bounds.windows(2).all(|ends| ends[1] - ends[0] <= 1 << 32)
    }

    /// Calls `of` for each cell, with its place in the batch, i * k + j for cell j of key i, and its number among the
    /// cells of its site. Returns the results by site. A cell that a key has twice counts once.
    pub fn scattered<T>(&self, of: impl Fn(usize, u64) -> T) -> Result<Vec<Vec<T>>, Error> {
        let mut scattered = Vec::with_capacity(self.sites);
        for &count in &self.counts {
            scattered.push(fallible::with_room(count)?);
        }
        for (at, &owner) in self.owners.iter().enumerate() {
            if owner & REPEAT == 0 {
                scattered[owner as usize].push(of(at, self.cells[at] - self.bounds[owner as usize % self.parts]));
            }
        }
        Ok(scattered)
    }

    /// Writes for each key when the oldest of its cells was set, or [`NEVER`] if it is new, and whether that is
    /// uncertain. `known` has the verdict that each key was given before, as 1 or 0, or -1.
    pub fn decide(
        &self,
        answers: &[Option<Answer>],
        generations: &[i64],
        known: Option<&[i8]>,
        rule: Rule,
        mut write: impl FnMut(usize, i64, bool),
    ) -> Result<(), Error> {
        self.check(answers, generations, known, rule)?;
        let (k, remembers) = (self.k, matches!(rule.earlier, Earlier::New | Earlier::All));
        let mut room = SeenCells::room(if remembers { self.cells.len() } else { 0 })?;
        let mut set = SeenCells(room.to_mut()?.as_chunks_mut().0);
        let (mut next, mut newest) = (vec![0; self.sites], rule.newest);
        let mut row = Answered::new(k.min(self.cells.len()));
        for (i, &generation) in generations.iter().enumerate() {
            newest = newest.max(generation);
            if remembers && i + AHEAD < generations.len() {
                ((i + AHEAD) * k..(i + AHEAD + 1) * k).for_each(|at| set.fetch(self.name(at)));
            }
            for j in 0..k {
                let owner = self.owners[i * k + j];
                if owner & REPEAT != 0 {
                    row.repeat(j, (owner ^ REPEAT) as usize);
                    continue;
                }
                let at = next[owner as usize];
                next[owner as usize] += 1;
                let earlier = if remembers { set.get(self.name(i * k + j)) } else { NEVER };
                match &answers[owner as usize] {
                    Some(answer) => row.put(j, answer.ages.last(at, answer.base), earlier, answer.missed),
                    None => row.put(j, SILENT, earlier, NEVER),
                }
            }
            let as_of = if rule.earlier == Earlier::Nothing { rule.newest.max(generation) } else { newest };
            let (mut oldest, unsure) = row.oldest(as_of, rule);
            match known.map_or(-1, |known| known[i]) {
                0 => oldest = NEVER,
                1 if oldest == NEVER => oldest = as_of,
                _ => {}
            }
            if rule.earlier == Earlier::All || rule.earlier == Earlier::New && oldest == NEVER {
                (i * k..(i + 1) * k).for_each(|at| set.raise(self.name(at), generation));
            }
            write(i, oldest, unsure);
        }
        Ok(())
    }

    fn check(
        &self,
        answers: &[Option<Answer>],
        generations: &[i64],
        known: Option<&[i8]>,
        rule: Rule,
    ) -> Result<(), Error> {
        rule.check(self.k, generations)?;
        let n = self.keys();
        if answers.len() != self.sites || generations.len() != n || known.is_some_and(|known| known.len() != n) {
            return Err(Error::value(format!("there are {n} keys and {} sites", self.sites)));
        }
        for (site, (answer, &count)) in answers.iter().zip(&self.counts).enumerate() {
            if let Some(Answer { ages, .. }) = answer
                && ages.count() != count
            {
                return Err(Error::value(format!("site {site} answers for {} cells of {count}", ages.count())));
            }
        }
        match known.and_then(|known| Some((known.iter().position(|known| !(-1..=1).contains(known))?, known))) {
            None => Ok(()),
            Some((i, known)) => Err(Error::value(format!("known[{i}] must be -1, 0 or 1, got {}", known[i]))),
        }
    }
}
