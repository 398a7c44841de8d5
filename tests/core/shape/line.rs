//! Rates of filters in lines, against every load of every generation.

use lately::clock::Window;
use lately::family::Shape as _;
use lately::family::lines::shape::*;
use lately::family::slices::shape::Paper;

fn shape(lanes: u32, k: u32, lines: u32, pages: u64) -> LineShape {
    LineShape { paper: Paper::AgePartitioned, lanes, k, lines, pages }
}

/// Returns the weights of a binomial load, by Pascal's triangle in floating point.
fn binomial(keys: u32, chance: f64) -> Vec<f64> {
    let mut weights = vec![1.0];
    for _ in 0..keys {
        weights.resize(weights.len() + 1, 0.0);
        for load in (0..weights.len()).rev() {
            weights[load] *= 1.0 - chance;
            if load > 0 {
                weights[load] += weights[load - 1] * chance;
            }
        }
    }
    weights
}

/// Returns the share over every load of every generation, each lane's chance given them, and every pattern of matches:
/// with one line per key.
fn by_enumeration(shape: LineShape, current: u32, full: u32, of: &dyn Fn(u64) -> bool) -> f64 {
    let chance = 1.0 / (shape.pages * PAGE_LINES) as f64;
    let tables: Vec<Vec<f64>> =
        (0..shape.lanes).map(|g| binomial(if g == 0 { current } else { full }, chance)).collect();
    let (k, lanes) = (shape.k as usize, shape.lanes as usize);
    // [loads of the last k - 1 generations and pattern so far], generation after generation from the oldest.
    let mut states = std::collections::BTreeMap::from([((vec![], 0u64), 1.0)]);
    for lane in (0..lanes + k - 1).rev() {
        let mut next = std::collections::BTreeMap::new();
        for ((loads, pattern), chance) in states {
            // Generations older than the oldest lane have left bits only in lanes that are gone.
            let generation = lane as i64 - (k as i64 - 1);
            let table: &[f64] = if generation < 0 { &[1.0] } else { &tables[generation as usize] };
            for (load, weight) in table.iter().enumerate().filter(|(_, weight)| **weight > 1e-9) {
                let mut loads: Vec<usize> = loads.clone();
                loads.push(load);
                if loads.len() < k {
                    *next.entry((loads, pattern)).or_insert(0.0) += chance * weight;
                    continue;
                }
                let all: usize = loads.iter().sum();
                let lane_matches = (1.0 - (15.0_f64 / 16.0).powi(all as i32)).powi(shape.sublanes() as i32);
                loads.remove(0);
                for (bit, matching) in [(0, 1.0 - lane_matches), (1, lane_matches)] {
                    *next.entry((loads.clone(), pattern << 1 | bit)).or_insert(0.0) += chance * weight * matching;
                }
            }
        }
        states = next;
    }
    states.into_iter().filter(|((_, pattern), _)| of(*pattern)).map(|(_, chance)| chance).sum()
}

#[test]
fn one_line_is_what_enumeration_gives() {
    for (k, full, current) in [(1, 300, 120), (2, 200, 90), (3, 130, 50)] {
        let shape = shape(8, k, 1, 1);
        let [of_current, of_full] = [current, full].map(|keys| shape.generation(f64::from(keys)));
        let has_run = |pattern: u64| (0..8).any(|lane| (pattern >> lane).trailing_ones() >= k);
        // The enumeration begins with the oldest lane, so that bit 0 of a pattern is the newest.
        for (from, to) in [(0, k), (1, 1 + k), (0, k + 1), (3, 3 + k), (2, 3)] {
            let window = ((1u64 << (to - from)) - 1) << from;
            let exact = by_enumeration(shape, current, full, &|pattern| pattern & window == window);
            let value = shape.all_match(from, to, &of_current, &of_full);
            // Equal masks, which an enumeration of bits omits, come on top.
            let same_mask = f64::from(full) / 64.0 / 2_f64.powi(32);
            assert!((value - exact).abs() < 1e-5 * exact + same_mask, "{k} {from} {to}: {value} is not {exact}");
        }
        let exact = by_enumeration(shape, current, full, &has_run);
        let value = shape.run_rate(&of_current, &of_full, shape.l());
        // Runs apart share no generation for k = 1 and 2.
        let tolerance = if k <= 2 { 1e-3 } else { 0.02 };
        assert!((value / exact - 1.0).abs() < tolerance, "{k}: {value} is not {exact}");
    }
}

#[test]
fn more_keys_and_fewer_pages_are_worse() {
    for (lanes, k, lines) in [(8, 2, 1), (16, 3, 2), (32, 1, 4), (8, 3, 3)] {
        let rates: Vec<f64> = [0, 1, 100, 3000, 10_000, 40_000, 1 << 40, u64::MAX]
            .map(|keys| shape(lanes, k, lines, 7).false_positive_rate(keys))
            .to_vec();
        let rise = |pair: &[f64]| pair[1] > pair[0] - 1e-12; // near 1 they round
        assert!(rates.windows(2).all(rise) && rates[0] == 0.0, "{rates:?}");
        assert!((rates[7] - 1.0).abs() < 1e-9, "{rates:?}");
        let rates: Vec<f64> =
            [500, 50, 5, 2, 1].map(|pages| shape(lanes, k, lines, pages).false_positive_rate(9000)).to_vec();
        assert!(rates.is_sorted(), "{rates:?}");
    }
}

#[test]
fn one_page_is_taken_at_its_worst_and_many_at_their_mean() {
    let rate = |pages: u64| shape(8, 2, 1, pages).false_positive_rate(300 * pages);
    let mean = shape(8, 2, 1, 1).mean_over_phases(|phase| phase);
    assert_eq!(mean, 1.0);
    assert!((shape(8, 2, 1, 3).mean_over_phases(|phase| phase) - 2.0 / 3.0).abs() < 1e-15);
    assert!((shape(8, 2, 1, 10).mean_over_phases(|phase| phase) - 0.55).abs() < 1e-15);
    assert!(rate(1) > rate(3) && rate(3) > rate(10) && rate(10) > rate(1000));
}

#[test]
fn slack_and_its_weight_follow_from_the_steps() {
    let shape = LineShape::age_partitioned(2, 6, 10, 1).unwrap();
    let window = Window::Count { insertions: 6001 };
    assert_eq!((shape.retained(), shape.keys_per_generation(window), shape.slack(window)), (60, 1000, 8000 - 6001));
    assert!((LineShape::guarded_epoch(7, 1000, 2).unwrap().npws(10_000) - 1.0 / 14.0).abs() < 1e-4);
    let weight = shape.npws(1000);
    assert!(weight > 0.5 / 6.0 && weight < 2.0 / 6.0, "{weight}");
}
