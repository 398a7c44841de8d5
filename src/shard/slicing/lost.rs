//! How many of a key's cells are lost with the sites that have failed.

use super::Sites;

/// Greatest number of sites of a group in which the cells of a partitioned filter are followed from site to site: 0.1 s
/// where half have failed. In larger groups each cell is taken to have sites of its own: at k = 7 the chances are then
/// off by 1e-3 or less.
const FOLLOWED: u64 = 64;

impl Sites {
    /// Returns the chances that 0 ..= k of a key's cells lie on failed sites, if its group has `failed` failed sites.
    pub fn lost(&self, failed: u64) -> Vec<f64> {
        let (k, sites) = (u64::from(self.k), self.spread);
        if !self.partitioned {
            return binomial(self.k, failed as f64 / sites as f64);
        }
        if sites > FOLLOWED {
            let mut lost = vec![0.0; self.k as usize + 1];
            for (n, chance) in hypergeometric(sites, failed, k) {
                lost[n as usize] = chance;
            }
            return lost;
        }
        // From site to site along the row, in units of which a site has k and a section `sites`: by how many sites have
        // failed, how much of the section so far lies on them, and how many cells of the sections before.
        let (failed, section, cells) = (failed as usize, sites as usize, self.k as usize);
        let at = |sites: usize, on: usize, lost: usize| (sites * (section + 1) + on) * (cells + 1) + lost;
        let mut chances = vec![0.0; at(failed, section, cells) + 1];
        chances[0] = 1.0;
        for site in 0..section {
            let mut next = vec![0.0; chances.len()];
            for so_far in 0..=failed.min(site) {
                let fails = (failed - so_far) as f64 / (section - site) as f64;
                for (fails, chance) in [(true, fails), (false, 1.0 - fails)] {
                    if chance <= 0.0 {
                        continue;
                    }
                    for on in 0..=section {
                        for lost in 0..=cells {
                            let chance = chance * chances[at(so_far, on, lost)];
                            if chance > 0.0 {
                                let mut follow = |on, lost, chance: f64| {
                                    next[at(so_far + usize::from(fails), on, lost)] += chance;
                                };
                                walk(site, cells, section, fails, (on, lost, chance), &mut follow);
                            }
                        }
                    }
                }
            }
            chances = next;
        }
        (0..=cells).map(|lost| chances[at(failed, 0, lost)]).collect()
    }
}

/// Follows the row through one site: from `on` of the section and `lost` cells so far to what they are at its end.
fn walk(
    site: usize,
    k: usize,
    section: usize,
    fails: bool,
    (on, lost, chance): (usize, usize, f64),
    follow: &mut impl FnMut(usize, usize, f64),
) {
    let (start, end) = (site * k, (site + 1) * k);
    // Chances by cells lost within this site, whose sections end here one after the other.
    let (mut from, mut on, mut lost_here) = (start, on, vec![chance]);
    loop {
        let section_end = (from / section + 1) * section;
        let to = section_end.min(end);
        on += if fails { to - from } else { 0 };
        if to < section_end {
            break;
        }
        let lose = on as f64 / section as f64;
        let mut next = vec![0.0; lost_here.len() + 1];
        for (n, chance) in lost_here.into_iter().enumerate() {
            next[n] += chance * (1.0 - lose);
            next[n + 1] += chance * lose;
        }
        (lost_here, on, from) = (next, 0, to);
        if to == end {
            break;
        }
    }
    for (n, chance) in lost_here.into_iter().enumerate().filter(|&(_, chance)| chance > 0.0) {
        follow(on, lost + n, chance);
    }
}

/// Returns the chances of 0 ..= n successes of n, each with chance `p`.
fn binomial(n: u32, p: f64) -> Vec<f64> {
    let mut chances = vec![1.0];
    for _ in 0..n {
        let mut next = vec![0.0; chances.len() + 1];
        for (successes, chance) in chances.into_iter().enumerate() {
            next[successes] += chance * (1.0 - p);
            next[successes + 1] += chance * p;
        }
        chances = next;
    }
    chances
}

/// Returns how many of `drawn` sites may have failed, if `failed` of `sites` have: each number with its chance.
pub fn hypergeometric(sites: u64, failed: u64, drawn: u64) -> Vec<(u64, f64)> {
    let (least, most) = ((failed + drawn).saturating_sub(sites), failed.min(drawn));
    // Logarithms, since the first weight may be smaller than any number.
    let mut log = 0.0_f64;
    let logs: Vec<_> = (least..=most)
        .map(|failures| {
            let this = log;
            let (to_fail, to_draw) = ((failed - failures) as f64, (drawn - failures) as f64);
            let others = (failures + 1) as f64 * (sites + failures + 1 - failed - drawn) as f64;
            log += (to_fail * to_draw / others).ln();
            (failures, this)
        })
        .collect();
    let largest = logs.iter().map(|&(_, log)| log).fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = logs.iter().map(|(_, log)| (log - largest).exp()).sum();
    logs.into_iter().map(|(failures, log)| (failures, (log - largest).exp() / total)).collect()
}
