//! The family that a user gets for a request.

use std::time::Duration;

use lately::clock::Window;
use lately::family::budget::allowed_slack;
use lately::family::request::first_guess;
use lately::family::{Budget, Choice, Prefer, Request, VARIANTS, Variant, choose, compare};

const MILLION: Window = Window::Count { insertions: 1_000_000 };
const MINUTE: Window = Window::Time { span: 60_000_000_000, lateness: 0, capacity: 1_000_000 };

fn rate(window: Window, fpr: f64) -> Request {
    Request::of(window, Budget::Rate(fpr))
}

fn chosen(request: &Request) -> Choice {
    choose(request).unwrap()
}

#[test]
fn names_of_variants_are_their_own() {
    for variant in VARIANTS.iter() {
        assert!(std::ptr::eq(Variant::named(&variant.name()).unwrap(), variant), "{}", variant.name());
    }
}

#[test]
fn the_default_keeps_keys_at_most_a_64th_of_the_window_too_long() {
    for window in [MILLION, MINUTE] {
        for fpr in [0.1, 1e-2, 1e-3, 1e-6] {
            let choice = chosen(&rate(window, fpr));
            assert_eq!(choice.variant.name(), "aged-cuckoo");
            assert!(choice.shape.slack(window) <= window.length() / 64, "{fpr}");
            assert!(choice.shape.fpr(window) <= fpr);
            assert!(choice.shape.bytes(window) <= 4096 + 16 * window.capacity());
        }
    }
}

#[test]
fn a_long_lateness_takes_no_memory_before_keys_come() {
    for days in [0, 1, 30] {
        let lateness = Duration::from_secs(86_400 * days);
        // The last window is so short that far fewer than one of the first keys would come within it.
        for window in [60_000, 3_600_000, 1].map(|ms| lately::Window::time(Duration::from_millis(ms))) {
            let filter = lately::Filter::builder(window).lateness(lateness).fpr(1e-3).build().unwrap();
            assert!(filter.nbytes() < 1 << 16, "{days} days: {} bytes", filter.nbytes());
            let (span, lateness) = (window.span().unwrap().as_nanos() as u64, lateness.as_nanos() as u64);
            let window = Window::Time { span, lateness, capacity: first_guess(span, lateness) };
            let request = Request { unknown_rate: true, ..rate(window, 1e-3) };
            let limited = Variant::named("time-limited").unwrap().plan(&request).unwrap();
            assert!(limited.bytes(window) < 1 << 16, "{days} days: {} bytes", limited.bytes(window));
        }
    }
}

#[test]
fn the_default_grows_with_the_keys_where_their_number_is_unknown() {
    let request = Request { unknown_rate: true, ..rate(MINUTE, 0.01) };
    let choice = chosen(&request);
    assert!(choice.shape.grows() && choice.shape.slack(MINUTE) <= MINUTE.length() / 64);
    let bytes = Request { budget: Budget::Bytes(1 << 20), ..request };
    assert!(choose(&bytes).is_err());
}

#[test]
fn a_preference_is_met() {
    let small = |window, budget| Request { prefer: Some(Prefer::Memory), ..Request::of(window, budget) };
    let for_use = |request: &Request| -> Vec<Choice> {
        let rows = compare(request).unwrap().rows.into_iter();
        rows.filter(|(variant, _)| variant.family.is_for_use()).flat_map(|(_, choice)| choice).collect()
    };
    for window in [5, 1000, 1_000_000].map(|insertions| Window::Count { insertions }) {
        for request in [0.05, 1e-6].map(|fpr| small(window, Budget::Rate(fpr))) {
            let bytes = for_use(&request).iter().map(|choice| choice.shape.bytes(window)).min();
            assert_eq!(Some(chosen(&request).shape.bytes(window)), bytes, "{request:?}");
        }
    }
    for request in [1_600_000, 4_000_000].map(|bytes| small(MILLION, Budget::Bytes(bytes))) {
        let least = for_use(&request).iter().map(|choice| choice.shape.fpr(MILLION)).fold(1.0, f64::min);
        assert_eq!(chosen(&request).shape.fpr(MILLION), least, "{request:?}");
    }
    let fastest = |window, fpr| chosen(&Request { prefer: Some(Prefer::Speed), ..rate(window, fpr) }).variant.name();
    assert_eq!(fastest(MILLION, 0.01), "age-partitioned-line");
    assert_eq!(fastest(MILLION, 0.009), "aged-cuckoo");
    assert_eq!(fastest(MINUTE, 0.01), "aged-cuckoo", "lines would break their rate in a burst");
}

#[test]
fn the_smallest_with_as_little_slack_stands_in_for_the_default() {
    let request = rate(MILLION, 1e-12);
    let choice = chosen(&request);
    assert!(Variant::named("aged-cuckoo").unwrap().plan(&request).is_err());
    assert!(choice.shape.slack(MILLION) <= 1_000_000 / 64);
    let rows = compare(&request).unwrap().rows.into_iter();
    let as_good = rows.filter(|(variant, _)| variant.family.is_for_use()).flat_map(|(_, choice)| choice);
    let as_good = as_good.filter(|choice| choice.shape.slack(MILLION) <= 1_000_000 / 64);
    assert_eq!(Some(choice.shape.bytes(MILLION)), as_good.map(|choice| choice.shape.bytes(MILLION)).min());
}

#[test]
fn every_choice_keeps_the_requested_slack() {
    for slack in [0, 1000, 100_000, 900_000] {
        for prefer in [None, Some(Prefer::Speed), Some(Prefer::Memory)] {
            let request = Request { slack: Some(slack), prefer, ..rate(MILLION, 0.001) };
            assert!(chosen(&request).shape.slack(MILLION) <= slack);
        }
    }
}

/// Returns windows of few keys and many, and spans that divide evenly and that do not.
fn windows() -> impl Iterator<Item = Window> {
    let counts = [1, 3, 129, 100_003].map(|insertions| Window::Count { insertions });
    let spans = [(4001, 3), (1000, 5000), (1, 99)];
    counts.into_iter().chain(spans.map(|(span, lateness)| Window::Time { span, lateness, capacity: 1000 }))
}

#[test]
fn what_a_variant_plans_keeps_the_rate_the_bytes_and_the_slack() {
    let few = [1, 24, 99, 292, 500].map(Budget::Bytes);
    let budgets = few.into_iter().chain([Budget::Rate(0.001), Budget::Bytes(5_000_000)]);
    let requests: Vec<(Window, Budget)> =
        windows().flat_map(|window| budgets.clone().map(move |budget| (window, budget))).collect();
    let mut planned = 0;
    for (v, variant) in VARIANTS.iter().enumerate() {
        // Every other request: with an odd number of budgets each window and each budget comes.
        for &(window, budget) in requests.iter().skip(v % 2).step_by(2) {
            for slack in [None, Some(window.length() / 16)] {
                let request = Request { slack, ..Request::of(window, budget) };
                if variant.rejection(&request).is_some() {
                    continue;
                }
                let Ok(shape) = variant.plan(&request) else { continue };
                let of = format!("{} {window:?} {budget:?} {slack:?}", variant.name());
                match budget {
                    Budget::Rate(fpr) => assert!(shape.fpr(window) <= fpr, "{of}"),
                    Budget::Bytes(bytes) => assert!(shape.bytes(window) <= bytes, "{of}"),
                }
                // Some filters have no bound, and are not chosen where one is requested.
                let kept = shape.slack(window);
                assert!(kept <= allowed_slack(window, slack) || kept == u64::MAX, "{of}: {kept}");
                planned += 1;
            }
        }
    }
    assert!(planned > 125, "{planned} requests were met");
}

#[test]
fn the_table_contains_the_choice_among_its_rows() {
    for prefer in [None, Some(Prefer::Speed), Some(Prefer::Memory)] {
        let request = Request { prefer, ..rate(MILLION, 0.01) };
        let (choice, every) = (chosen(&request), compare(&request).unwrap());
        let row = every.rows.iter().find(|(variant, _)| std::ptr::eq(*variant, choice.variant)).unwrap();
        assert_eq!(row.1.as_ref().unwrap().shape.parameters(), choice.shape.parameters());
        assert_eq!(every.best.shape.parameters(), choice.shape.parameters());
    }
}
