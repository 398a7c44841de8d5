//! Runs of k matching slices: false positives, probability-weighted slack and accesses of an age-partitioned filter.
//!
//! `r[i]` is the chance that a fresh key matches logical slice i, slice 0 the newest; there are k + l of them. Slices
//! have independent hashes, so given the keys they hold they match independently, and every probability here is linear
//! in each single fill. The expectation over the random bits therefore is the same formula at the *expected* fills:
//! what [`super::fill`] gives makes these values exact, not approximate.

/// Probability that some `k` consecutive slices all match: F(k, l, 0, 0) of paper 1, section 5.3.
///
/// The recursion of the paper, turned so that it takes k + l steps: the run that is *first* complete, counted from the
/// newest slice, starts at slice s when s..s+k match, s-1 does not, and no run lies within 0..s-1. All terms are
/// positive, so a rate of 1e-30 is as accurate as one of 0.1; below 1e-308 it underflows to 0.
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

/// Peak normalized probability-weighted slack: of the keys that have left the window, how many are still reported, as
/// a multiple of the window's l generations (paper 1, definition 2; the exact form of erratum APBF-8).
///
/// With the fills just before a shift, generation j (0 the current one) lies in slices j..j+k, as far as these still
/// exist; those of the slack are l..l+k. A key is reported when its own slices, which match, and coincidental matches
/// of the others make up a run. The paper takes every missing slice as half full: .285 instead of .260 at (10, 7).
pub fn npws(k: u32, l: u32, r: &[f64]) -> f64 {
    let reported: f64 = (l as usize..r.len()).map(|j| false_positive_rate(k, &with_own(r, j..r.len()))).sum();
    reported / f64::from(l)
}

/// Mean number of segments read by one query of Algorithm 1 (paper 1, section 5.4), by what the query finds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Accesses {
    /// For a key of the window, averaged over its generations 0..l.
    pub in_window: f64,
    /// For a key never inserted that is reported present; NaN when that cannot happen.
    pub false_positive: f64,
    /// For a key reported absent; NaN when that cannot happen.
    pub absent: f64,
}

/// Expected accesses of Algorithm 1 at the fills `r` (paper 1, section 5.4; erratum APBF-6 for the three conditions).
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

/// The fills as a key sees them that was inserted into the slices `own`.
fn with_own(r: &[f64], own: std::ops::Range<usize>) -> Vec<f64> {
    let mut seen = r.to_vec();
    seen[own].fill(1.0);
    seen
}

/// Where Algorithm 1 ends: the probability of each answer, and the expected accesses on the paths that lead to it.
#[derive(Default)]
struct Walk {
    found: f64,
    accesses_found: f64,
    absent: f64,
    accesses_absent: f64,
}

impl Walk {
    /// Sends the whole probability through the algorithm at once. Every jump leads to an older start, further down in
    /// index, with p matches carried over; so the starts are settled in falling order, each (start, p) once: at most
    /// (l + 1) k^2 / 2 steps, where the recursion of the paper, which carries the count of accesses, is exponential.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills without any pattern, some of them 0 and 1.
    fn fills(k: u32, l: u32) -> Vec<f64> {
        (0..k + l).map(|i| f64::from((7 * i + 3 * k + 5 * l) % 11) / 10.0).collect()
    }

    /// Every match pattern of k + l slices (bit i: slice i matches) with its probability.
    fn patterns(r: &[f64]) -> impl Iterator<Item = (u32, f64)> + '_ {
        (0..1_u32 << r.len()).map(|pattern| {
            let chance = |(i, &r): (usize, &f64)| if pattern >> i & 1 == 1 { r } else { 1.0 - r };
            (pattern, r.iter().enumerate().map(chance).product())
        })
    }

    /// The definition of section 5.1: k consecutive matches from some j in 0..=l.
    fn has_run(pattern: u32, k: u32, l: u32) -> bool {
        (0..=l).any(|j| (pattern >> j).trailing_ones() >= k)
    }

    /// Algorithm 1, to the letter: the answer and the accesses.
    fn query(pattern: u32, k: i32, l: i32) -> (bool, f64) {
        let (mut i, mut p, mut c, mut accesses) = (l, 0, 0, 0.0);
        while i >= 0 {
            accesses += 1.0;
            if pattern >> i & 1 == 1 {
                (c, i) = (c + 1, i + 1);
                if p + c == k {
                    return (true, accesses);
                }
            } else {
                (i, p, c) = (i - k, c, 0);
            }
        }
        (false, accesses)
    }

    fn shapes() -> impl Iterator<Item = (u32, u32)> {
        (1..=6).flat_map(|k| (1..=6).map(move |l| (k, l)))
    }

    #[track_caller]
    fn assert_close(value: f64, exact: f64) {
        let both_undefined = value.is_nan() && exact.is_nan();
        assert!(both_undefined || (value - exact).abs() <= 1e-12 * exact.abs(), "{value} is not {exact}");
    }

    #[test]
    fn rate_equals_the_sum_over_all_patterns() {
        for (k, l) in shapes() {
            let r = fills(k, l);
            let exact = patterns(&r).filter(|&(pattern, _)| has_run(pattern, k, l)).map(|(_, chance)| chance).sum();
            assert_close(false_positive_rate(k, &r), exact);
        }
    }

    #[test]
    fn tiny_rates_keep_their_digits() {
        // For l <= k two runs overlap, and F = r^k (1 + l (1 - r)).
        let r = 1e-9_f64;
        assert_close(false_positive_rate(5, &[r; 9]), r.powi(5) * (1.0 + 4.0 * (1.0 - r)));
        assert_eq!(false_positive_rate(5, &[1.0; 9]), 1.0);
        assert_eq!(false_positive_rate(5, &[1.0; 4]), 0.0, "no run fits");
    }

    #[test]
    fn algorithm_1_answers_by_the_definition() {
        for (k, l) in shapes() {
            for pattern in 0..1 << (k + l) {
                assert_eq!(query(pattern, k as i32, l as i32).0, has_run(pattern, k, l), "{k} {l} {pattern:b}");
            }
        }
    }

    #[test]
    fn accesses_equal_the_mean_over_all_patterns() {
        let mean = |k: u32, l: u32, r: &[f64], answer: bool| {
            let (mut chances, mut accesses) = (0.0, 0.0);
            for (pattern, chance) in patterns(r) {
                let (found, read) = query(pattern, k as i32, l as i32);
                if found == answer {
                    chances += chance;
                    accesses += chance * read;
                }
            }
            accesses / chances
        };
        for (k, l) in shapes() {
            let r = fills(k, l);
            let in_generation = |j: usize| mean(k, l, &with_own(&r, j..j + k as usize), true);
            let accesses = expected_accesses(k, l, &r);
            assert_close(accesses.in_window, (0..l as usize).map(in_generation).sum::<f64>() / f64::from(l));
            assert_close(accesses.false_positive, mean(k, l, &r, true));
            assert_close(accesses.absent, mean(k, l, &r, false));
        }
    }

    #[test]
    fn npws_equals_the_patterns_that_hold_the_own_slices() {
        for (k, l) in shapes() {
            // Conditioned on matching, so none of the fills may be 0 here.
            let r: Vec<f64> = fills(k, l).iter().map(|r| 0.05 + 0.9 * r).collect();
            let reported = |j: u32| {
                let own = (j..k + l).fold(0, |own, i| own | 1 << i);
                let (mut run, mut all) = (0.0, 0.0);
                for (pattern, chance) in patterns(&r).filter(|(pattern, _)| pattern & own == own) {
                    all += chance;
                    run += if has_run(pattern, k, l) { chance } else { 0.0 };
                }
                run / all
            };
            assert_close(npws(k, l, &r), (l..l + k).map(reported).sum::<f64>() / f64::from(l));
        }
    }
}
