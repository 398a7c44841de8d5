//! A filter over several sites (paper 4, section 3): how often it errs, whole and with sites that have failed, and how
//! many sites a lookup asks.
//!
//! All ways of slicing are one: a key belongs to one of G groups of V sites, and its k cells lie on the sites of its
//! group. Horizontal filters have V = 1, vertical ones G = 1, and diced ones neither; h-v and v-h differ in which of
//! the paper's S and S' is which.
//!
//! Where this differs from the paper:
//! - The load of a group is Binomial(n, 1/G), not n/G in each (erratum OIE-5).
//! - Of all G V sites exactly f have failed. So the failures in a group are hypergeometric, and those of diced filters
//!   likelier to come together than eq. 7 says (with erratum OIE-3): its f/(G V) for each cell on its own is too low. With
//!   V = 1 that is eq. 5, with G = 1 eq. 6.
//! - Cells anywhere in one array, as in the paper, lie on sites of their own choice. A partitioned or timing filter has a
//!   stretch of the row for each of the k, and its cells lie on different sites where there are k or more: with half of
//!   many sites failed that changes little, with one of two everything.

mod loads;
mod lost;

pub use loads::capacity;

use super::age_partitioned::MAX_SLICES;
use super::bloom::Array;
use super::fill;
use crate::Error;
use loads::loads;
use lost::hypergeometric;

/// Most sites.
const SITES: u64 = 1 << 20;

/// How the sites are arranged, and the cells of a key on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sites {
    /// G: groups, of which a key belongs to one.
    pub groups: u64,
    /// V: sites of a group.
    pub spread: u64,
    /// k: cells of a key.
    pub k: u32,
    /// Whether each of the k cells has a stretch of its own (a partitioned or a timing filter).
    pub partitioned: bool,
}

impl Sites {
    /// At least one of each, of at most 2^20 sites and 128 cells.
    pub fn new(groups: u64, spread: u64, k: u32, partitioned: bool) -> Result<Self, Error> {
        let sites = groups.saturating_mul(spread);
        if !(1..=SITES).contains(&sites) {
            return Err(Error::value(format!("sites must lie in 1 .. 2**20, got {groups} * {spread}")));
        }
        if !(1..=MAX_SLICES).contains(&k) {
            return Err(Error::value(format!("k must lie in 1 .. {}, got {k}", MAX_SLICES)));
        }
        Ok(Self { groups, spread, k, partitioned })
    }

    /// Chance that a fresh key is reported when `keys` distinct keys are held in `cells` cells of all sites together, no
    /// site has failed, and nothing has expired: the mean over the loads of its group (eq. 4 with erratum OIE-5; eq. 3
    /// of one group).
    pub fn false_positive_rate(&self, keys: u64, cells: u64) -> Result<f64, Error> {
        let (least, k) = (if self.partitioned { u64::from(self.k) } else { 1 }, self.k);
        let of_group = cells / self.groups;
        if of_group < least || cells > 1 << 46 {
            return Err(Error::value(format!("cells must lie in {} .. 2**46, got {cells}", least * self.groups)));
        }
        let loads = loads(keys, self.groups)?;
        if self.partitioned {
            let rate = |load| fill::slice(of_group / u64::from(k), load).powi(k as i32);
            return Ok(loads.map(|(load, chance)| chance * rate(load)).sum());
        }
        let (mut array, mut held) = (None, 0);
        let rate = |(load, chance): (u64, f64)| {
            let array = array.get_or_insert_with(|| {
                held = load;
                Array::new(k, of_group, load)
            });
            (held..load).for_each(|_| array.insert());
            held = load;
            chance * array.rate()
        };
        Ok(loads.map(rate).sum())
    }

    /// Chances that a fresh key is reported, and that a held one is missed, when `failed` sites have failed, share `density`
    /// of the cells is set, and a duplicate needs `least` = x cells on sites that have not (0: "duplicate", k: "distinct").
    ///
    /// With i of k cells on failed sites: a false positive if k - i >= x, density^(k - i); a false negative if k - i < x
    /// (eq. 6 and the heuristic's rates, with errata OIE-1 and OIE-2).
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
            for (lost, of_cells) in (0..).zip(self.lost(of_group)) {
                match self.k - lost {
                    answered if answered >= least => reported += chance * of_cells * density.powi(answered as i32),
                    _ => missed += chance * of_cells,
                }
            }
        }
        Ok((reported.min(1.0), missed.min(1.0)))
    }

    /// Sites that a lookup asks, in expectation: all that have a cell of the key, at once, or one after the other up to
    /// the first with an empty cell (section 3.2, "Parallelism & Pipelining"), where share `density` of the cells is set
    /// and share `duplicates` of the keys is held.
    pub fn messages(&self, pipelined: bool, density: f64, duplicates: f64) -> Result<f64, Error> {
        share("density", density)?;
        share("duplicates", duplicates)?;
        let all = self.asked(1.0);
        if !pipelined {
            return Ok(all);
        }
        Ok(duplicates * all + (1.0 - duplicates) * self.asked(density))
    }

    /// Sites asked in turn about a key whose cells are each set with chance `set`.
    fn asked(&self, set: f64) -> f64 {
        let (k, sites) = (self.k as usize, self.spread as f64);
        if self.partitioned {
            // Site i is asked if all cells before it are set and not all others lie behind it.
            let before = |i: u64, j: usize| (i as f64 * k as f64 / sites - j as f64).clamp(0.0, 1.0);
            let asked = |i: u64| {
                let (mut all_set, mut passed) = (1.0, 1.0);
                for j in 0..k {
                    let (earlier, here) = (before(i, j), before(i + 1, j) - before(i, j));
                    all_set *= earlier * set + 1.0 - earlier;
                    passed *= earlier * set + 1.0 - earlier - here;
                }
                all_set - passed
            };
            return (0..self.spread).map(asked).sum();
        }
        // The next site is asked after v if cell j is the first on another, all before it are set, and of those behind it
        // every one that is on these v sites.
        let mut occupied = vec![0.0; k + 1]; // by v: chance that the cells so far lie on v sites and are set
        (occupied[0], occupied[1]) = (1.0, 0.0);
        let mut asked = 0.0;
        for j in 0..k {
            let on = |v: usize| v as f64 / sites;
            asked += (0..=j)
                .map(|v| occupied[v] * (1.0 - on(v)).max(0.0) * (1.0 - on(v) * (1.0 - set)).powi((k - 1 - j) as i32))
                .sum::<f64>();
            for v in (0..=j + 1).rev() {
                let new = if v > 0 { occupied[v - 1] * (1.0 - on(v - 1)).max(0.0) } else { 0.0 };
                occupied[v] = set * (occupied[v] * on(v) + new);
            }
        }
        asked
    }
}

/// The bound on a rate that a number of sites is to keep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// Most that the chance of a false positive may be.
    FalsePositives(f64),
    /// Of a false negative.
    FalseNegatives(f64),
}

/// S_f: the least number of sites with which a filter keeps a bound when `failed` of them have failed (definition 3).
/// `sites` arranges so many of them; all else is as in [`Sites::failure_rates`].
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

#[cfg(test)]
mod tests {
    use super::*;

    const ANYWHERE: bool = false;

    fn rates(groups: u64, spread: u64, k: u32, partitioned: bool, failed: u64, density: f64, least: u32) -> (f64, f64) {
        Sites::new(groups, spread, k, partitioned).unwrap().failure_rates(failed, density, least).unwrap()
    }

    #[track_caller]
    fn assert_close(rates: (f64, f64), exact: (f64, f64)) {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(close(rates.0, exact.0) && close(rates.1, exact.1), "{rates:?} is not {exact:?}");
    }

    #[test]
    fn the_rates_of_the_paper() {
        let (k, rho) = (5, 0.45_f64);
        for (sites, failed) in [(1, 0), (1, 1), (10, 3), (40, 8), (40, 40)] {
            let phi = failed as f64 / sites as f64;
            let whole = rho.powi(5);
            // Eq. 5, and where failed sites say "distinct".
            assert_close(rates(sites, 1, k, ANYWHERE, failed, rho, 0), (phi + (1.0 - phi) * whole, 0.0));
            assert_close(rates(sites, 1, k, ANYWHERE, failed, rho, k), ((1.0 - phi) * whole, phi));
            // Eq. 6, and the latter with OIE-1.
            assert_close(rates(1, sites, k, ANYWHERE, failed, rho, 0), ((phi + (1.0 - phi) * rho).powi(5), 0.0));
            let distinct = (((1.0 - phi) * rho).powi(5), 1.0 - (1.0 - phi).powi(5));
            assert_close(rates(1, sites, k, ANYWHERE, failed, rho, k), distinct);
        }
    }

    #[test]
    fn few_cells_are_enough_for_the_heuristic() {
        // 8 of 40 sites failed, k = 8, half full: at x = 3 or 4 both rates are small (section 7, figure 5(d), OIE-2).
        let at = |x| rates(1, 40, 8, ANYWHERE, 8, 0.5, x);
        assert!((0.014..0.016).contains(&at(4).0) && at(4).1 < 0.011, "{:?}", at(4));
        assert!(at(8).1 > 0.8 && (0..8).all(|x| at(x).0 >= at(x + 1).0 && at(x).1 <= at(x + 1).1));
    }

    #[test]
    fn cells_with_stretches_of_their_own_are_lost_together_or_apart() {
        // One of two sites holds 3 of 6 stretches; of 7 it holds 3, and the middle one half.
        assert_close(rates(1, 2, 6, true, 1, 0.5, 3), (0.125, 0.0));
        assert_close(rates(1, 2, 6, true, 1, 0.5, 4), (0.0, 1.0));
        assert_close(rates(1, 2, 7, true, 1, 0.5, 4), (0.5 * 0.0625, 0.5));
        // With a site for each, all of 6 answer where none of 3 failed ones is among 6 of 12 sites.
        let answered = (6.0 * 5.0 * 4.0) / (12.0 * 11.0 * 10.0);
        assert_close(rates(1, 12, 6, true, 3, 1.0, 6), (answered, 1.0 - answered));
        // The sites that two stretches meet in hardly count once there are many.
        for failed in [1, 10, 32] {
            let followed = Sites::new(1, 64, 7, true).unwrap().lost(failed);
            let drawn = hypergeometric(64, failed, 7);
            for (n, chance) in drawn {
                assert!((followed[n as usize] - chance).abs() < 2e-3, "{failed} {n}: {followed:?} {chance}");
            }
        }
    }

    #[test]
    fn the_fault_tolerance_of_the_paper() {
        // Section 3.2: most .15, f = 4: vertical fewer than 20 slices, horizontal more than 30.
        let (k, density) = (4, 0.02_f64.powf(0.25));
        let bound = Bound::FalsePositives(0.15);
        let horizontal = least_sites(|s| Sites::new(s, 1, k, ANYWHERE), 4, density, 0, bound).unwrap();
        let vertical = least_sites(|s| Sites::new(1, s, k, ANYWHERE), 4, density, 0, bound).unwrap();
        let root = 0.15_f64.powf(0.25);
        assert_eq!(horizontal, (4.0 * 0.98 / 0.13_f64).ceil() as u64);
        assert_eq!(vertical, (4.0 * (1.0 - density) / (root - density)).ceil() as u64);
        assert!(horizontal > 30 && vertical < 20);
        assert!(least_sites(|s| Sites::new(1, s, k, ANYWHERE), 4, 0.9, 0, bound).is_err());
        let missed =
            least_sites(|s| Sites::new(1, s, k, ANYWHERE), 1, density, k, Bound::FalseNegatives(0.01)).unwrap();
        assert_eq!(missed, (1.0 / (1.0 - 0.99_f64.powf(0.25))).ceil() as u64);
    }

    #[test]
    fn messages_at_the_limits() {
        for partitioned in [false, true] {
            let asked = |spread, pipelined, density, duplicates| {
                Sites::new(3, spread, 4, partitioned).unwrap().messages(pipelined, density, duplicates).unwrap()
            };
            assert_eq!(asked(1, true, 0.5, 0.2), 1.0);
            assert!((asked(10, true, 0.0, 0.0) - 1.0).abs() < 1e-12);
            assert!((asked(10, true, 0.7, 1.0) - asked(10, false, 0.7, 0.0)).abs() < 1e-12);
            let far = if partitioned { 1e-9 } else { 1e-4 };
            assert!((asked(100_000, true, 0.5, 0.0) - 1.875).abs() < far);
        }
        let all = Sites::new(1, 10, 4, ANYWHERE).unwrap().messages(false, 0.0, 0.0).unwrap();
        assert!((all - 10.0 * (1.0 - 0.9_f64.powi(4))).abs() < 1e-12);
    }

    #[test]
    fn one_group_is_the_filter_and_many_are_worse() {
        let rate = |groups, partitioned| {
            Sites::new(groups, 1, 4, partitioned).unwrap().false_positive_rate(1000, 8000).unwrap()
        };
        assert!((rate(1, ANYWHERE) / super::super::bloom::array_rate(4, 8000, 1000) - 1.0).abs() < 1e-12);
        assert!((rate(1, true) / fill::slice(2000, 1000).powi(4) - 1.0).abs() < 1e-12);
        for partitioned in [false, true] {
            let rates = [1, 2, 10, 40].map(|groups| rate(groups, partitioned));
            assert!(rates.is_sorted(), "{rates:?}");
        }
        assert_eq!(Sites::new(5, 1, 4, true).unwrap().false_positive_rate(0, 8000).unwrap(), 0.0);
    }

    #[test]
    fn no_slice_gets_more_than_its_capacity() {
        assert_eq!(capacity(1000, 1, 1e-3).unwrap(), 1000);
        assert_eq!([capacity(10, 2, 1.0).unwrap(), capacity(0, 5, 1e-3).unwrap()], [5, 0]);
        // Two slices of 10 keys: one gets more than 8 with chance 2 * 11 / 1024, more than 9 with 2 / 1024.
        assert_eq!([0.0215, 0.0214, 0.0019].map(|overfull| capacity(10, 2, overfull).unwrap()), [8, 9, 10]);
        let many = capacity(1 << 40, 1 << 10, 1e-3).unwrap() as f64;
        let deviations = (many - (1u64 << 30) as f64) / (1u64 << 30) as f64 * f64::from(1 << 15);
        assert!((4.5..5.5).contains(&deviations), "{deviations}");
    }

    #[test]
    fn what_cannot_be_is_named() {
        for (error, word) in [
            (Sites::new(0, 1, 1, ANYWHERE).unwrap_err(), "sites"),
            (Sites::new(1 << 10, (1 << 10) + 1, 1, ANYWHERE).unwrap_err(), "sites"),
            (Sites::new(1, 1, 129, ANYWHERE).unwrap_err(), "k must"),
            (Sites::new(2, 2, 2, ANYWHERE).unwrap().failure_rates(5, 0.5, 0).unwrap_err(), "failed"),
            (Sites::new(2, 2, 2, ANYWHERE).unwrap().failure_rates(1, f64::NAN, 0).unwrap_err(), "density"),
            (Sites::new(2, 2, 2, ANYWHERE).unwrap().failure_rates(1, 0.5, 3).unwrap_err(), "least"),
            (Sites::new(2, 2, 2, true).unwrap().false_positive_rate(1, 3).unwrap_err(), "cells"),
            (Sites::new(2, 2, 2, true).unwrap().false_positive_rate(1 << 41, 300).unwrap_err(), "keys"),
            (Sites::new(2, 2, 2, true).unwrap().messages(true, 0.5, 1.1).unwrap_err(), "duplicates"),
            (capacity(5, 0, 0.1).unwrap_err(), "slices"),
            (capacity(5, 1, -0.1).unwrap_err(), "overfull"),
        ] {
            assert!(error.to_string().contains(word), "{error}");
        }
    }
}
