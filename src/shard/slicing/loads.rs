//! How many keys come to one of several groups, if each key chooses a group uniformly.

use super::SITES;
use crate::Error;

/// Greatest number of keys: loads are summed over each by itself, some 20 sqrt(n / G) of them.
const KEYS: u64 = 1 << 40;

/// Greatest chance that any slice gets more keys than it is planned for.
const OVERFULL: f64 = 0.001;

/// Returns the keys to plan each of `slices` horizontal slices for: the least c with S P(Binomial(n, 1/S) > c) at most
/// .001, a bound for the chance that any slice gets more than c of `keys` distinct keys.
pub fn capacity(keys: u64, slices: u64) -> Result<u64, Error> {
    let loads: Vec<_> = loads(keys, slices)?.collect();
    let mut more = 0.0;
    for &(load, chance) in loads.iter().rev() {
        more += slices as f64 * chance;
        if more > OVERFULL {
            return Ok(load);
        }
    }
    Ok(loads.first().map_or(0, |&(load, _)| load))
}

/// Returns the loads of one of `groups`, each with its chance, where `keys` choose independently: Binomial(n, 1/G),
/// except loads that together have a chance of 1e-19 or less.
pub(super) fn loads(keys: u64, groups: u64) -> Result<impl Iterator<Item = (u64, f64)>, Error> {
    if keys > KEYS {
        return Err(Error::value(format!("keys must be at most 2**40, got {keys}")));
    }
    if !(1..=SITES).contains(&groups) {
        return Err(Error::value(format!("slices must lie in 1 .. 2**20, got {groups}")));
    }
    let mean = keys as f64 / groups as f64;
    // Chernoff: loads more than t below the mean have weight below exp(-t^2 / (2 mean)), here e^-45; above it below
    // exp(-t^2 / (2 (mean + t / 3))).
    let first = if groups == 1 { keys } else { (mean - (90.0 * mean).sqrt()).max(0.0) as u64 };
    let last = (mean + (90.0 * mean).sqrt() + 30.0).min(keys as f64) as u64;
    let weights = move || {
        (first..=last.max(first)).scan(1.0, move |weight, load| {
            let this = *weight;
            *weight *= (keys - load) as f64 / ((load + 1) as f64 * (groups.max(2) - 1) as f64);
            Some((load, this))
        })
    };
    let total: f64 = weights().map(|(_, weight)| weight).sum();
    Ok(weights().map(move |(load, weight)| (load, weight / total)))
}
