//! The equal-timers heuristic (paper 4, section 4): a key is reported when all of its k timers are live and at least k'
//! of them are equal. It trades false positives for false negatives; both follow from one walk over the generations.
//!
//! Each of the k timers lies in a slice of its own, so they are independent. Just before a shift, when all generations
//! hold `keys` keys, a fresh key finds in each slice a timer last set j generations ago with chance q^(j keys) (1 -
//! q^keys), where q = 1 - 1/s for slices of s timers. A key inserted j generations ago finds its own time where no
//! later generation has set the timer, with chance q^(j keys), and otherwise what a fresh key would find. Paper 4's
//! (1 - e^(-k/m))^k is the chance to meet one other key only (erratum OIE-9).

/// What the heuristic does.
#[derive(Debug, Clone, PartialEq)]
pub struct Rates {
    /// Chance that a fresh key is reported.
    pub false_positive: f64,
    /// Chance that a key inserted so many generations ago is missed, the newest first.
    pub false_negative: Vec<f64>,
}

/// Both kinds of error for `k` timers of which `equal`, 2 to k, must be equal, in slices of `timers`, when each of
/// `generations` generations holds `keys` distinct keys.
///
/// The walk keeps, for every number of timers already met, the chance that no `equal` of them were of one generation
/// (`unequal`), and that some were (`found`). All terms are positive, so small rates are as accurate as large ones.
/// It takes generations * k^2 steps.
pub fn rates(k: u32, equal: u32, timers: u64, generations: u32, keys: f64) -> Rates {
    let (k, equal) = (k as usize, equal as usize);
    let log_missed = keys * (-1.0 / timers as f64).ln_1p(); // by one generation
    let set = -log_missed.exp_m1();
    let choose = binomials(k);
    let mut unequal = vec![0.0; k + 1];
    let mut found = vec![0.0; k + 1];
    unequal[0] = 1.0;
    let mut false_negative = Vec::with_capacity(generations as usize);
    for age in 0..generations {
        let untouched = (f64::from(age) * log_missed).exp();
        let missed = |own: usize| unequal[k - own] * untouched.powi(own as i32);
        false_negative.push((0..equal).map(missed).sum::<f64>().min(1.0)); // near 1 the sum may round beyond it
        let share = untouched * set;
        for met in (0..=k).rev() {
            let (mut all_unequal, mut some_equal, mut power) = (0.0, 0.0, 1.0);
            for here in 0..=met {
                let weight = choose[k - met + here][here] * power;
                some_equal += weight * found[met - here];
                *(if here < equal { &mut all_unequal } else { &mut some_equal }) += weight * unequal[met - here];
                power *= share;
            }
            (unequal[met], found[met]) = (all_unequal, some_equal);
        }
    }
    Rates { false_positive: found[k].min(1.0), false_negative }
}

/// Pascal's triangle up to row `n`.
fn binomials(n: usize) -> Vec<Vec<f64>> {
    let mut rows = vec![vec![1.0; n + 1]; n + 1];
    for row in 1..=n {
        for i in 1..row {
            rows[row][i] = rows[row - 1][i - 1] + rows[row - 1][i];
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chance that at least `equal` of `k` independent draws are alike, by trying all of them.
    fn some_equal(k: u32, equal: usize, chances: &[f64]) -> f64 {
        let outcomes = chances.len().pow(k);
        let rate = |mut outcome: usize| {
            let mut counts = vec![0; chances.len()];
            let mut chance = 1.0;
            for _ in 0..k {
                counts[outcome % chances.len()] += 1;
                chance *= chances[outcome % chances.len()];
                outcome /= chances.len();
            }
            if counts.into_iter().any(|count| count >= equal) { chance } else { 0.0 }
        };
        (0..outcomes).map(rate).sum()
    }

    #[test]
    fn rates_are_those_of_all_outcomes() {
        for (k, timers, generations, keys) in [(2, 30, 4, 5.0), (3, 10, 5, 4.0), (5, 8, 3, 2.5), (4, 1000, 6, 10.0)] {
            for equal in 2..=k {
                let rates = rates(k, equal, timers, generations, keys);
                let missed = |j: u32| (1.0 - 1.0 / timers as f64).powf(f64::from(j) * keys);
                let found = |j| missed(j) - missed(j + 1);
                let fresh: Vec<f64> = (0..generations).map(found).collect();
                let exact = some_equal(k, equal as usize, &fresh);
                assert!((rates.false_positive / exact - 1.0).abs() < 1e-10, "{k} {equal}: {rates:?} {exact}");
                for (age, rate) in (0..).zip(&rates.false_negative) {
                    let own: Vec<f64> = (0..age).map(found).chain([missed(age)]).collect();
                    let exact = 1.0 - some_equal(k, equal as usize, &own);
                    assert!((rate - exact).abs() < 1e-12, "{k} {equal} {age}: {rate} {exact}");
                }
            }
        }
    }

    #[test]
    fn all_equal_needs_one_generation_for_all() {
        let rates = rates(7, 7, 500, 20, 30.0);
        let missed = |j: i32| (1.0 - 1.0_f64 / 500.0).powi(30 * j);
        let exact: f64 = (0..20).map(|j| (missed(j) - missed(j + 1)).powi(7)).sum();
        assert!((rates.false_positive / exact - 1.0).abs() < 1e-12);
        assert_eq!(rates.false_negative[0], 0.0);
    }
}
