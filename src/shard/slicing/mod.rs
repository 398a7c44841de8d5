//! A filter over several sites (paper 4, section 3): how often it errs, whole and with sites that have failed, and how
//! many sites a lookup reads.
//!
//! All ways of slicing are one: a key belongs to one of G groups of V sites, and its k cells lie on the sites of its
//! group. Horizontal filters have V = 1, vertical ones G = 1, and diced ones neither; h-v and v-h differ in which of
//! the paper's S and S' is which.
//!
//! Where this differs from the paper:
//! - The load of a group is Binomial(n, 1/G), not n/G in each (erratum OIE-5).
//! - Of all G V sites exactly f have failed. So the failures in a group are hypergeometric, and those of diced filters
//!   likelier to come together than by eq. 7 (with erratum OIE-3): its f/(G V) for each cell on its own is too low.
//!   With V = 1 that is eq. 5, with G = 1 eq. 6.
//! - Cells lie anywhere in one array, as in the paper. A partitioned or timing filter has a section of the row for each
//!   of the k, and its cells lie on different sites where there are k or more: with many sites that changes little.

mod loads;
mod lost;

pub use loads::capacity;

use crate::Error;
use crate::family::bloom::shape::Array;
use crate::inference::MAX_SLICES;
use loads::loads;
use lost::{binomial, hypergeometric};

/// Greatest number of sites.
const SITES: u64 = 1 << 20;

/// How the sites are arranged, and the cells of a key on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sites {
    /// G: number of groups; a key belongs to one.
    pub groups: u64,
    /// V: number of sites of a group.
    pub spread: u64,
    /// k: number of cells of a key.
    pub k: u32,
}

impl Sites {
    /// Creates sites: at least one group, one site of each and one cell, at most 2^20 sites and 128 cells.
    pub fn new(groups: u64, spread: u64, k: u32) -> Result<Self, Error> {
        let sites = groups.saturating_mul(spread);
        if !(1..=SITES).contains(&sites) {
            return Err(Error::value(format!("sites must lie in 1 .. 2**20, got {groups} * {spread}")));
        }
        if !(1..=MAX_SLICES).contains(&k) {
            return Err(Error::value(format!("k must lie in 1 .. {}, got {k}", MAX_SLICES)));
        }
        Ok(Self { groups, spread, k })
    }

    /// Returns the chance that a fresh key is reported while `cells` cells of all sites together hold `keys` distinct
    /// keys, no site has failed, and nothing has expired: the mean over the loads of its group (eq. 4 with erratum
    /// OIE-5; eq. 3 of one group).
    pub fn false_positive_rate(&self, keys: u64, cells: u64) -> Result<f64, Error> {
        let of_group = cells / self.groups;
        if of_group < 1 || cells > 1 << 46 {
            return Err(Error::value(format!("cells must lie in {} .. 2**46, got {cells}", self.groups)));
        }
        let loads = loads(keys, self.groups)?;
        let (mut array, mut held) = (None, 0);
        let rate = |(load, chance): (u64, f64)| {
            let array = array.get_or_insert_with(|| {
                held = load;
                Array::new(self.k, of_group, load)
            });
            (held..load).for_each(|_| array.insert());
            held = load;
            chance * array.rate()
        };
        Ok(loads.map(rate).sum())
    }

    /// Returns the chances that a fresh key is reported, and that a held one is missed, when `failed` sites have
    /// failed, share `density` of the cells is set, and a duplicate needs `least` = x cells on sites that have not (0:
    /// "duplicate", k: "distinct").
    ///
    /// With i of k cells on failed sites: a false positive if k - i >= x, density^(k - i); a false negative if k - i <
    /// x (eq. 6 and the heuristic's rates, with errata OIE-1 and OIE-2).
    pub fn failure_rates(&self, failed: u64, density: f64, least: u32) -> Result<(f64, f64), Error> {
        let sites = self.groups * self.spread;
        if failed > sites {
            return Err(Error::value(format!("failed must be at most the number of sites, {sites}, got {failed}")));
        }
        share("density", density)?;
        if least > self.k {
            return Err(Error::value(format!("least must be at most k, here {}, got {least}", self.k)));
        }
        let (mut reported, mut missed) = (0.0, 0.0);
        for (of_group, chance) in hypergeometric(sites, failed, self.spread) {
            for (lost, of_cells) in (0..).zip(binomial(self.k, of_group as f64 / self.spread as f64)) {
                match self.k - lost {
                    answered if answered >= least => reported += chance * of_cells * density.powi(answered as i32),
                    _ => missed += chance * of_cells,
                }
            }
        }
        Ok((reported.min(1.0), missed.min(1.0)))
    }

    /// Returns how many sites a lookup reads, in expectation, where share `density` of the cells is set and share
    /// `duplicates` of the keys is held: all that have a cell of the key at once, or one after the other up to the
    /// first with an empty cell (section 3.2, "Parallelism & Pipelining").
    pub fn messages(&self, pipelined: bool, density: f64, duplicates: f64) -> Result<f64, Error> {
        share("density", density)?;
        share("duplicates", duplicates)?;
        let all = self.sites_read(1.0);
        if !pipelined {
            return Ok(all);
        }
        Ok(duplicates * all + (1.0 - duplicates) * self.sites_read(density))
    }

    /// Returns how many sites are read in turn for a key whose cells are each set with chance `set`.
    fn sites_read(&self, set: f64) -> f64 {
        let (k, sites) = (self.k as usize, self.spread as f64);
        // The next site is read after v if cell j is the first on another, all before it are set, and of those behind
        // it every one that is on these v sites.
        let mut occupied = vec![0.0; k + 1]; // by v: chance that the cells so far lie on v sites and are set
        (occupied[0], occupied[1]) = (1.0, 0.0);
        let mut read = 0.0;
        for j in 0..k {
            let on = |v: usize| v as f64 / sites;
            read += (0..=j)
                .map(|v| occupied[v] * (1.0 - on(v)).max(0.0) * (1.0 - on(v) * (1.0 - set)).powi((k - 1 - j) as i32))
                .sum::<f64>();
            for v in (0..=j + 1).rev() {
                let new = if v > 0 { occupied[v - 1] * (1.0 - on(v - 1)).max(0.0) } else { 0.0 };
                occupied[v] = set * (occupied[v] * on(v) + new);
            }
        }
        read
    }
}

/// The bound on a rate that a filter keeps with enough sites.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// Greatest chance of a false positive.
    FalsePositives(f64),
    /// Greatest chance of a false negative.
    FalseNegatives(f64),
}

/// S_f: the least number of sites with which a filter keeps a bound when `failed` of them have failed (definition 3).
/// `sites` arranges a number of them; all else is as in [`Sites::failure_rates`].
pub fn least_sites(
    sites: impl Fn(u64) -> Result<Sites, Error>,
    failed: u64,
    density: f64,
    least: u32,
    bound: Bound,
) -> Result<u64, Error> {
    let (name, most) = match bound {
        Bound::FalsePositives(most) => ("fpr", most),
        Bound::FalseNegatives(most) => ("fnr", most),
    };
    share(name, most)?;
    let never = || Error::value(format!("no number of sites keeps {name}={most} at density={density}"));
    if bound == Bound::FalsePositives(most) && density.powi(sites(1)?.k as i32) > most {
        return Err(never()); // not even without failures
    }
    for number in failed.max(1)..=SITES {
        let (reported, missed) = sites(number)?.failure_rates(failed, density, least)?;
        let rate = if bound == Bound::FalsePositives(most) { reported } else { missed };
        if rate <= most {
            return Ok(number);
        }
    }
    Err(never())
}

fn share(name: &str, value: f64) -> Result<(), Error> {
    match value {
        0.0..=1.0 => Ok(()),
        _ => Err(Error::value(format!("{name} must lie in [0, 1], got {value}"))),
    }
}
