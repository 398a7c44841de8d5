//! Posteriors of filters in lines, against streams drawn from the prior, and laws for any cells.

use std::collections::HashMap;

use crate::inference::check_laws;
use crate::support::calibration::Calibration;
use crate::support::{insert, key, trials};
use lately::clock::{Moments, Window};
use lately::family::AnyFilter;
use lately::family::lines::shape::LineShape;
use lately::inference::{Evidence, Hazard, Inference, PerKey, Posterior, Question};

/// Returns a window of insertions, or of as many seconds.
fn window(insertions: u64, timed: bool) -> Window {
    if timed {
        Window::Time { span: insertions * 1_000_000_000, lateness: 0, capacity: insertions }
    } else {
        Window::Count { insertions }
    }
}

/// Returns a filter for this many keys between two rotations of a page.
fn filter(k: u32, l: u32, lines: u32, pages: u64, keys: u64, timed: bool) -> AnyFilter {
    let shape = LineShape::age_partitioned(k, l, pages, lines).unwrap();
    AnyFilter::new(shape, window(keys * u64::from(l), timed), 0).unwrap()
}

/// Returns filters with some percent of false positives.
fn small_filters(timed: bool) -> Vec<(&'static str, AnyFilter)> {
    vec![
        ("k = 1 of 32 lanes", filter(1, 31, 1, 1, 200, timed)),
        ("k = 2 of 8 lanes", filter(2, 6, 1, 3, 1800, timed)),
        ("k = 3 of 16 lanes", filter(3, 13, 1, 2, 600, timed)),
        ("k = 2 of 8 lanes, two lines", filter(2, 6, 2, 3, 1300, timed)),
        ("k = 1 of 16 lanes, four lines", filter(1, 15, 4, 1, 250, timed)),
    ]
}

fn uniform(stream: u64, i: u64) -> f64 {
    (key(stream, i) >> 11) as f64 / (1u64 << 53) as f64
}

/// Draws streams in which each insertion is one of `queried` keys with probability `p` each and otherwise fresh. On a
/// clock of time each of these keys comes at a rate of `p` per second, among others at a rate of 1 and later 3. Stops
/// at any phase and compares the posteriors of these keys, for that prior, with what was inserted.
fn check_against_streams((name, empty): &(&str, AnyFilter), p: f64, streams: u64, queried: u64) {
    let window = empty.engine().clock().window();
    let (length, timed) = match window {
        Window::Count { insertions } => (insertions, false),
        Window::Time { capacity, .. } => (capacity, true),
    };
    let mut calibrations: HashMap<(u64, &str), Calibration> = HashMap::new();
    for stream in 0..streams {
        let mut filter = empty.clone();
        // On a clock of time a filter does not store its beginning: it must lie beyond all ages in question.
        let inserted = if timed { 2 * length } else { length } + key(7, stream) % (3 * length / 2);
        let others = |i: u64| {
            if !timed {
                1.0 - p * queried as f64
            } else if 2 * i > inserted {
                3.0
            } else {
                1.0
            }
        };
        let queried_key = |i: u64| key(1 << 22, stream * queried + i);
        let (mut moments, mut hashes, mut last) = (Vec::new(), Vec::new(), vec![f64::NEG_INFINITY; queried as usize]);
        let mut now = 0.0;
        for i in 0..inserted {
            let rate = others(i) + p * queried as f64;
            now += if timed { -(1.0 - uniform(stream + (1 << 21), i)).ln() / rate } else { 1.0 };
            let one = (uniform(stream + (1 << 20), i) * rate / p) as u64;
            let hash = if one < queried { queried_key(one) } else { key(stream, i) };
            if one < queried {
                last[one as usize] = now;
            }
            hashes.push(hash);
            moments.push((now * 1e9) as i64);
        }
        let at = if timed { Moments::Each(&moments) } else { Moments::Untimed };
        filter.engine_mut().insert(&hashes, at).unwrap();
        let now = if timed { now + (stream % 3) as f64 * length as f64 / 40.0 } else { now };
        let each = |i: usize, posterior: &Posterior<'_>| {
            let age = now - last[i];
            for (share, window) in [(0.3, "short window"), (1.0, "window"), (1.15, "longer window")] {
                let ages = share * length as f64;
                let predicted = posterior.within(ages);
                calibrations.entry(((predicted * 10.0) as u64, window)).or_default().note(predicted, age < ages);
            }
            for tenth in 0..13 {
                let [from, to] = [tenth, tenth + 1].map(|edge| edge as f64 * 0.1 * length as f64);
                let predicted = posterior.within(to) - posterior.within(from);
                calibrations.entry((tenth, "age")).or_default().note(predicted, (from..to).contains(&age));
            }
        };
        let queried: Vec<u64> = (0..queried).map(queried_key).collect();
        let at = if timed { Moments::At((now * 1e9) as i64) } else { Moments::Untimed };
        let end = if timed { f64::INFINITY } else { inserted as f64 };
        let inference = Inference::new(filter.engine()).unwrap();
        inference.each(&queried, at, PerKey::All(p), end, each).unwrap();
    }
    let wrong: Vec<String> = calibrations
        .iter()
        .filter(|(_, calibration)| !calibration.holds())
        .map(|((tenth, what), Calibration { trials, predicted, happened })| {
            format!("{name}, p {p}, {what}, tenth {tenth}: {happened} of {trials}, predicted {predicted:.1}")
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns a chance with which a tenth of the queried keys are in the window.
fn rare(filter: &AnyFilter) -> f64 {
    match filter.engine().clock().window() {
        Window::Count { insertions } => 0.1 / insertions as f64,
        Window::Time { capacity, .. } => 0.1 / capacity as f64,
    }
}

#[test]
fn posteriors_are_the_shares_of_streams() {
    for timed in [false, true] {
        for named in small_filters(timed) {
            check_against_streams(&named, rare(&named.1), trials(400), 50);
        }
    }
}

/// Page ranges of two pages.
#[test]
fn posteriors_of_many_pages_are_the_shares_of_streams() {
    let named = ("100 pages", filter(2, 6, 1, 100, 60_000, false));
    check_against_streams(&named, rare(&named.1), 10, 4000);
}

/// With hardly a key in a line the evidence leaves one generation to each key: the one it was inserted in.
#[test]
fn a_key_lies_in_its_generation() {
    for pages in [1, 2, 5, 63, 64, 65, 100, 128, 129, 300] {
        for (k, l, lines) in [(1, 7, 2), (2, 14, 2)] {
            let keys = 10 * pages;
            let mut filter = filter(k, l, lines, pages, keys, false);
            let inserted = keys * u64::from(l) * 3 / 2 + 7;
            let hashes: Vec<u64> = (0..inserted).map(|i| key(0, i)).collect();
            insert(&mut filter, &hashes);
            let window = u64::from(l - 1) * keys;
            let recent = &hashes[(inserted - window) as usize..];
            let inference = Inference::new(filter.engine()).unwrap();
            // Pages of a range have one age, that of the middle one; one insertion is for rounding.
            let off = if pages <= 64 { 0.0 } else { keys as f64 / 64.0 + 1.0 };
            let step = (keys / pages) as f64;
            let mut right = 0;
            let each = |i: usize, posterior: &Posterior<'_>| {
                let age = (window - 1 - i as u64) as f64;
                let around = |more: f64| posterior.within(age + more + 1.0) - posterior.within(age - more);
                let generation = around(keys as f64 + step + off);
                right += u64::from(generation > 0.999 && around(off) > 0.0);
            };
            inference.each(recent, Moments::Untimed, PerKey::All(1e-6), f64::INFINITY, each).unwrap();
            assert!(right * 100 > window * 99, "{right} of {window}: {pages} pages, k {k}, l {l}");
        }
    }
}

#[test]
fn no_state_and_no_prior_breaks_the_laws() {
    for (shape, pages) in [((1, 7, 1), 1), ((4, 12, 2), 3), ((2, 30, 4), 70)] {
        let (k, l, lines) = shape;
        for inserted in [0, 1, 20, 1000, 300_000] {
            let mut filter = filter(k, l, lines, pages, 5000, false);
            let hashes: Vec<u64> = (0..inserted).map(|i| key(0, i)).collect();
            insert(&mut filter, &hashes);
            let mut queried: Vec<u64> = hashes.iter().rev().step_by(997).take(40).copied().collect();
            queried.extend((0..40).map(|i| key(1, i)));
            let mut evidence = vec![Evidence::default(); queried.len()];
            filter.engine().evidence(&queried, &mut evidence);
            let likelihood = filter.engine().likelihood(&Question::default()).unwrap();
            for p in [0.0, 5e-324, 1e-300, 1e-12, 1e-3, 0.5, 1.0 - 1e-16, 1.0] {
                for &evidence in &evidence {
                    let (mut spans, hazard) = (Vec::new(), Hazard::per_insertion(p));
                    likelihood.last_inserted(evidence, hazard, &mut spans);
                    check_laws(&spans, hazard, 0.0, inserted as f64).unwrap();
                    assert!(p > 0.0 || Posterior::new(&spans, hazard, 0.0, f64::INFINITY).ever() == 0.0, "{spans:?}");
                }
            }
        }
    }
}
