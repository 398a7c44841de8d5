//! Runs of k matching slices: false positives, probability-weighted slack and accesses of an age-partitioned filter.
//!
//! `r[i]` is the chance that a fresh key matches logical slice i, slice 0 the newest; there are k + l of them. Slices
//! have independent hashes, so given the keys they hold they match independently, and every probability here is linear
//! in each single fill. The expectation over the random bits therefore is the same formula at the *expected* fills:
//! what [`super::fill`] gives makes these values exact, not approximate.

/// Returns the probability that some `k` consecutive slices all match: F(k, l, 0, 0) of paper 1, section 5.3.
///
/// This is the recursion of the paper in k + l steps. The *first* complete run, counted from the newest slice, starts
/// at slice s when s..s+k match, s-1 does not, and no run lies within 0..s-1. All terms are positive, so a rate of
/// 1e-30 is as accurate as one of 0.1; below 1e-308 it underflows to 0.
pub fn false_positive_rate(k: u32, r: &[f64]) -> f64 {
    let k = k as usize;
    if r.len() < k {
        return 0.0;
    }
    let mut found_within = vec![0.0; r.len() + 1]; // [i]: chance of a run within slices 0..i
    let mut up_to_block_end = vec![1.0; k + 1];
    let mut after_block = 1.0;
    for start in 0..=r.len() - k {
        // The product over start..start+k, without division: blocks of k slices, each window spans at most two.
        let offset = start % k;
        if offset == 0 {
            for i in (0..k).rev() {
                up_to_block_end[i] = r[start + i] * up_to_block_end[i + 1];
            }
            after_block = 1.0;
        } else {
            after_block *= r[start + k - 1];
        }
        let run = up_to_block_end[offset] * after_block;
        let none_before = if start == 0 { 1.0 } else { (1.0 - found_within[start - 1]) * (1.0 - r[start - 1]) };
        found_within[start + k] = found_within[start + k - 1] + none_before * run;
    }
    found_within[r.len()].min(1.0) // near 1 the sum may round beyond it
}

/// Returns the probability that some of `segments` match, each with chance `p`: the rate if a run is a single match.
pub fn of_one(segments: u32, p: f64) -> f64 {
    -(f64::from(segments) * (-p).ln_1p()).exp_m1()
}

/// Returns the peak normalized probability-weighted slack: of the keys that have left the window, how many are still
/// reported, as a multiple of the window's l generations (paper 1, definition 2; the exact form of erratum APBF-8).
///
/// With the fills just before a rotation, generation j (0 the current one) lies in slices j..j+k, as far as these still
/// exist; those of the slack are l..l+k. A key is reported when its own slices, which match, and coincidental matches
/// of the others make up a run. The paper counts every missing slice as half full: .285 instead of .260 at (10, 7).
pub fn npws(k: u32, l: u32, r: &[f64]) -> f64 {
    let reported: f64 = (l as usize..r.len()).map(|j| false_positive_rate(k, &with_own(r, j..r.len()))).sum();
    reported / f64::from(l)
}

/// The mean number of segments read by one query of Algorithm 1 (paper 1, section 5.4), by its answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Accesses {
    /// The mean for a key of the window, averaged over its generations 0..l.
    pub in_window: f64,
    /// The mean for a key never inserted that is reported present; NaN when that cannot happen.
    pub false_positive: f64,
    /// The mean for a key reported absent; NaN when that cannot happen.
    pub absent: f64,
}

/// Returns the expected accesses of Algorithm 1 at the fills `r` (paper 1, section 5.4; erratum APBF-6 for the three
/// conditions).
pub fn expected_accesses(k: u32, l: u32, r: &[f64]) -> Accesses {
    let (k, l) = (k as usize, l as usize);
    let fresh = Walk::over(k, l, r);
    let in_window: f64 = (0..l).map(|j| Walk::over(k, l, &with_own(r, j..j + k)).accesses_found).sum();
    Accesses {
        in_window: in_window / l as f64,
        false_positive: fresh.accesses_found / fresh.found,
        absent: fresh.accesses_absent / fresh.absent,
    }
}

/// Returns the fills seen by a key that was inserted into the slices `own`.
fn with_own(r: &[f64], own: std::ops::Range<usize>) -> Vec<f64> {
    let mut seen = r.to_vec();
    seen[own].fill(1.0);
    seen
}

/// The ends of Algorithm 1: the probability of each answer, and the expected accesses on the paths that lead to it.
#[derive(Default)]
struct Walk {
    found: f64,
    accesses_found: f64,
    absent: f64,
    accesses_absent: f64,
}

impl Walk {
    /// Distributes the whole probability over the algorithm at once. Every jump leads to an older start, further down
    /// in index, with p matches carried over. So the starts are processed in falling order, each (start, p) once: at
    /// most (l + 1) k^2 / 2 steps, where the recursion of the paper, which carries the count of accesses, is
    /// exponential.
    fn over(k: usize, l: usize, r: &[f64]) -> Self {
        let mut walk = Self::default();
        let mut arriving = vec![[0.0; 2]; (l + 1) * k]; // [start][p]: probability, expected accesses so far
        arriving[l * k][0] = 1.0;
        for start in (0..=l).rev() {
            for p in 0..k {
                let [mut reach, mut accesses] = arriving[start * k + p];
                for c in 0..k - p {
                    let slice = start + c;
                    accesses += reach;
                    let miss = 1.0 - r[slice];
                    if slice >= k {
                        let next = &mut arriving[(slice - k) * k + c];
                        next[0] += reach * miss;
                        next[1] += accesses * miss;
                    } else {
                        walk.absent += reach * miss;
                        walk.accesses_absent += accesses * miss;
                    }
                    reach *= r[slice];
                    accesses *= r[slice];
                }
                walk.found += reach;
                walk.accesses_found += accesses;
            }
        }
        walk
    }
}
