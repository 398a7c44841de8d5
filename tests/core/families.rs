//! Every row of the table of families plans, builds, saves and reads its own filters.

use std::sync::Arc;

use lately::clock::Window;
use lately::family::request::{Grow, Layout};
use lately::family::{AnyFilter, Budget, FAMILIES, Family, Parameters, Request, Windows, meaning};
use lately::format;

const COUNT: Window = Window::Count { insertions: 5000 };
const TIME: Window = Window::Time { span: 600_000_000_000, lateness: 0, capacity: 5000 };

/// Returns the number of the form in which a filter of this request is saved, after a round trip through that form.
fn saved_as(family: &Family, request: &Request) -> u16 {
    let window = request.window;
    let shape = family.plan(request).unwrap();
    let owners =
        FAMILIES.iter().filter(|owner| owner.rows.iter().any(|row| (row.owns)(&*shape))).map(|owner| owner.name);
    assert_eq!(owners.collect::<Vec<_>>(), [family.name], "{shape:?}");
    let form = family.form(&*shape);
    let named = form.named(form.values(&*shape));
    let applying: Vec<_> = shape.parameters().into_iter().filter(|&(_, value)| value != 0).collect();
    assert_eq!(named, applying, "the form leaves nothing out");
    let again = family.read(&Parameters(&named)).unwrap();
    assert_eq!(format!("{again:?}"), format!("{shape:?}"));

    let filter = AnyFilter::of(Arc::clone(&shape), window, 7).unwrap();
    let cells = filter.engine().to_words().unwrap();
    assert_eq!(filter.engine().nbytes() as u64, shape.bytes(window), "{}", family.name);
    assert!(shape.fpr(window) <= 0.01 && filter.fpr() == shape.fpr(window));
    assert_eq!(filter.engine().clock().window(), window);
    let preamble = format::preamble(&filter, &[cells.as_slice()]);
    let opened = format::from_bytes(Box::new([&preamble, cells.as_ref()].concat())).unwrap();
    assert_eq!(format::preamble(&opened, &opened.engine().pieces().unwrap()), preamble);
    assert_eq!(opened.name(), filter.name());
    form.kind
}

#[test]
fn a_filter_of_every_form_is_planned_saved_and_read() {
    let plain = Request::of(COUNT, Budget::Rate(0.01));
    let slices = Request { partitioned: true, ..plain };
    let all = [plain, slices].into_iter().chain(Layout::ALL.map(|layout| Request { layout, ..plain }));
    let mut kinds = Vec::new();
    for family in &FAMILIES {
        let window = if family.windows == Windows::Time { TIME } else { COUNT };
        kinds.extend(all.clone().map(|request| saved_as(family, &Request { window, ..request })));
        assert!(std::ptr::eq(Family::named(family.name).unwrap(), *family), "names differ");
        if family.windows == Windows::Either {
            for grow in [Grow::Cardinality, Grow::Density] {
                let grows = all.clone().map(|request| Request { window: TIME, grow: Some(grow), ..request });
                kinds.extend(grows.map(|request| saved_as(family, &request)));
            }
        }
    }
    kinds.sort_unstable();
    kinds.dedup();
    let mut numbers: Vec<u16> = FAMILIES.iter().flat_map(|family| family.forms()).map(|form| form.kind).collect();
    assert!(numbers.iter().all(|&kind| Family::of_kind(kind).unwrap().1.kind == kind));
    numbers.sort_unstable();
    assert_eq!(kinds, numbers, "each form is planned by some request");
}

#[test]
fn a_plan_takes_no_memory() {
    let window = Window::Count { insertions: 1 << 50 };
    let request = Request::of(window, Budget::Rate(0.01));
    let shape = Family::named("age-partitioned").unwrap().plan(&request).unwrap();
    assert!(shape.bytes(window) > 1 << 50 && shape.fpr(window) <= 0.01);
    assert!(AnyFilter::of(shape, window, 0).is_err(), "no machine has so much memory");
}

#[test]
fn an_error_names_a_parameter_that_is_missing_or_too_wide() {
    let family = Family::named("stable").unwrap();
    for (parameters, words) in [
        (&[("k", 3), ("slice_cells", 10), ("bits", 2)][..], "decrements is missing"),
        (&[("k", 1 << 32), ("slice_cells", 10)], "k must lie in 0 .. 2**32 - 1, got 4294967296"),
    ] {
        let error = family.read(&Parameters(parameters)).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn every_parameter_of_a_row_has_a_meaning() {
    for family in &FAMILIES {
        for name in family.parameters() {
            assert!(!meaning(family.name, name).is_empty(), "{name} of {}", family.name);
        }
    }
}
