//! The equal-timers heuristic (paper 4, section 4): a key is reported when all of its k timers are live and at least k'
//! of them are equal. It trades false positives for false negatives; both follow from one walk over the generations.
//!
//! Each of the k timers lies in a slice of its own, so they are independent. Just before a shift, when all generations
//! hold `keys` keys, a fresh key finds in each slice a timer last set j generations ago with chance q^(j keys) (1 -
//! q^keys), where q = 1 - 1/s for slices of s timers. A key inserted j generations ago finds its own time where no
//! later generation has set the timer, with chance q^(j keys), and otherwise what a fresh key would find. Paper 4's
//! (1 - e^(-k/m))^k is the chance to meet one other key only (erratum OIE-9).

/// The two rates of error of the equal-timers heuristic.
#[derive(Debug, Clone, PartialEq)]
pub struct Rates {
    /// Chance that a fresh key is reported.
    pub false_positive: f64,
    /// Chance that a key is missed, by the generations since it was inserted, the newest first.
    pub false_negative: Vec<f64>,
}

/// Returns both rates of error when `equal` of `k` timers must be equal, 2 to k, in slices of `timers` timers, and each
/// of `generations` generations has `keys` distinct keys.
///
/// The walk keeps, for every number of timers already met, the chance that no `equal` of them were of one generation
/// (`unequal`), and that some were (`found`). All terms are positive, so small rates are as accurate as large ones. The
/// sum takes generations * k^2 steps.
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

/// Returns Pascal's triangle up to row `n`.
fn binomials(n: usize) -> Vec<Vec<f64>> {
    let mut rows = vec![vec![1.0; n + 1]; n + 1];
    for row in 1..=n {
        for i in 1..row {
            rows[row][i] = rows[row - 1][i - 1] + rows[row - 1][i];
        }
    }
    rows
}
