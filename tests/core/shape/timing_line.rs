//! Rates of timers in lines, against all starts, places and loads.

use lately::clock::Window;
use lately::family::lines::shape::MAX_PAGES;
use lately::family::timing::shape::line::*;

const fn count(insertions: u64) -> Window {
    Window::Count { insertions }
}

#[test]
fn the_largest_shape_has_rates() {
    let largest = TimingLineShape::new(16, 2, 2, MAX_PAGES, 2).unwrap();
    assert!((0.0..1e-9).contains(&largest.false_positive_rate(count(1 << 20))));
    assert!((largest.false_positive_rate(count(1 << 62)) - 1.0).abs() < 1e-9);
    assert_eq!((largest.nbytes(), largest.k_of(0), largest.k_of(1)), (MAX_PAGES << 12, 8, 8));
    let odd = TimingLineShape::new(7, 2, 2, 1, 2).unwrap();
    assert_eq!((odd.k_of(0), odd.k_of(1)), (4, 3));
}

/// Returns the chance that all k timers of a fresh key, which begin in word 0, are live after this many keys of its
/// line: by which of them are, key by key, over all starts and places.
fn by_enumeration(k: u32, per_word: f64, keys: u32) -> Vec<f64> {
    let mut states = vec![0.0; 1 << k];
    states[0] = 1.0;
    let mut all_live = vec![states[states.len() - 1]];
    for _ in 0..keys {
        let mut next = vec![0.0; 1 << k];
        for start in 0..WORDS {
            let mut after = states.clone();
            for word in (start..start + k).map(|word| word % WORDS).filter(|&word| word < k) {
                for set in (0..after.len()).filter(|set| set >> word & 1 == 0) {
                    let touched = after[set] / per_word;
                    after[set | 1 << word] += touched;
                    after[set] -= touched;
                }
            }
            next.iter_mut().zip(after).for_each(|(next, after)| *next += after / f64::from(WORDS));
        }
        states = next;
        all_live.push(states[states.len() - 1]);
    }
    all_live
}

/// Returns the weights of a binomial load, by Pascal's triangle in floating point.
fn binomial(keys: u32, chance: f64) -> Vec<f64> {
    let mut weights = vec![1.0];
    for _ in 0..keys {
        let before = weights.clone();
        weights.push(0.0);
        weights.iter_mut().for_each(|weight| *weight *= 1.0 - chance);
        weights[1..].iter_mut().zip(before).for_each(|(weight, before)| *weight += before * chance);
    }
    weights
}

#[test]
fn one_line_is_what_enumeration_gives() {
    for (k, bpt, keys, pages) in
        [(1, 2, 300, 1), (3, 4, 400, 1), (5, 2, 900, 1), (6, 3, 500, 1), (8, 2, 1000, 1), (4, 32, 200, 2)]
    {
        let of_load = by_enumeration(k, f64::from(64 / bpt), keys);
        let exact: f64 =
            binomial(keys, 1.0 / (64 * pages) as f64).iter().zip(of_load).map(|(weight, live)| weight * live).sum();
        let line = [LineRates::new(k, bpt)];
        assert!(line[0].terms.len() <= 13);
        let value = TimingLineShape::new(k, bpt, 1, pages, 1).unwrap().rate(keys.into(), &line);
        let same_timers = f64::from(keys) / (64 * pages) as f64 / 2_f64.powi(32);
        assert!((value - exact - same_timers).abs() < 1e-9 * exact + 1e-13, "{k} {bpt}: {value} is not {exact}");
    }
}

#[test]
fn two_lines_are_the_mean_over_the_loads_of_a_page() {
    for (k, bpt, keys, pages, off) in
        [(6, 2, 2000, 3, 1e-3), (10, 2, 3000, 8, 2e-3), (7, 4, 2000, 5, 2e-3), (2, 3, 500, 1, 1e-6)]
    {
        let shape = TimingLineShape::new(k, bpt, 1, pages, 2).unwrap();
        let lines = [0, 1].map(|line| LineRates::new(shape.k_of(line), bpt));
        let of_page = |keys: usize| lines.iter().map(|line| line.all_live(keys as f64, 32.0)).product::<f64>();
        let exact: f64 =
            binomial(keys, 1.0 / pages as f64).iter().enumerate().map(|(keys, weight)| weight * of_page(keys)).sum();
        let value = shape.rate(keys.into(), &lines);
        assert!((value / exact - 1.0).abs() < off, "{shape:?}: {value} is not {exact}");
    }
}

#[test]
fn more_keys_and_fewer_pages_are_worse() {
    for (k, bpt, lines) in [(6, 2, 1), (8, 8, 1), (10, 2, 2), (15, 4, 2)] {
        let rate = |insertions, pages| {
            TimingLineShape::new(k, bpt, 2, pages, lines).unwrap().false_positive_rate(count(insertions))
        };
        let rates = [1, 100, 3000, 10_000, 40_000, 1 << 40, 1 << 60].map(|insertions| rate(insertions, 7));
        assert!(rates.windows(2).all(|pair| pair[1] > pair[0] - 1e-12), "{rates:?}");
        assert!((rates[6] - 1.0).abs() < 1e-9, "{rates:?}");
        assert!([500, 50, 5, 2, 1].map(|pages| rate(9000, pages)).is_sorted());
    }
}
