//! Runs of matching slices, against every pattern of matches and Algorithm 1 to the letter.

use lately::family::runs::*;

/// Returns fills without any pattern, some of them 0 and 1.
fn fills(k: u32, l: u32) -> Vec<f64> {
    (0..k + l).map(|i| f64::from((7 * i + 3 * k + 5 * l) % 11) / 10.0).collect()
}

/// Returns the fills as seen by a key that was inserted into the slices `own`.
fn with_own(r: &[f64], own: std::ops::Range<usize>) -> Vec<f64> {
    let mut seen = r.to_vec();
    seen[own].fill(1.0);
    seen
}

/// Returns every match pattern of k + l slices (bit i: slice i matches) with its probability.
fn patterns(r: &[f64]) -> impl Iterator<Item = (u32, f64)> + '_ {
    (0..1_u32 << r.len()).map(|pattern| {
        let chance = |(i, &r): (usize, &f64)| if pattern >> i & 1 == 1 { r } else { 1.0 - r };
        (pattern, r.iter().enumerate().map(chance).product())
    })
}

/// Returns whether a pattern has a run by the definition of section 5.1: k consecutive matches from some j in 0..=l.
fn has_run(pattern: u32, k: u32, l: u32) -> bool {
    (0..=l).any(|j| (pattern >> j).trailing_ones() >= k)
}

/// Runs Algorithm 1, to the letter: returns the answer and the accesses.
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
