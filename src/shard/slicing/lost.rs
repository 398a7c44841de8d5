//! How many sites have failed of a group, and how many of the cells of a key lie on them.

/// Returns the chances of 0 ..= n successes of n, each with chance `p`.
pub fn binomial(n: u32, p: f64) -> Vec<f64> {
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
