//! The table of families: every row plans, makes, saves and reads filters of its own.

use std::sync::Arc;

use lately::clock::Window;
use lately::filter::{FAMILIES, Family, Filter, Request, Windows};
use lately::format;
use lately::shape::growing::Grow;
use lately::shape::{Budget, Parameters};

const COUNT: Window = Window::Count { insertions: 5000 };
const TIME: Window = Window::Time { span: 600_000_000_000, lateness: 0, capacity: 5000 };

/// The window of the filters that each family is asked for here.
fn window(family: &Family) -> Window {
    let grows = family.name.starts_with("aged-quotient") && family.name.contains("growing");
    if family.windows == Windows::Time || grows { TIME } else { COUNT }
}

fn check(family: &Family, window: Window, request: &Request) {
    let shape = (family.plan)(window, request).unwrap();
    assert_eq!(shape.family(), family.name);
    let parameters = shape.parameters();
    assert!(parameters.iter().map(|&(name, _)| name).eq(family.parameters.iter().copied()), "{parameters:?}");
    let applying: Vec<_> = parameters.into_iter().filter(|&(_, value)| value != 0).collect();
    let again = (family.read)(&Parameters(&applying)).unwrap();
    assert_eq!(format!("{again:?}"), format!("{shape:?}"));

    let filter = Filter::of(Arc::clone(&shape), window, 7).unwrap();
    let cells: &[u8] = filter.engine().words().as_ref();
    assert_eq!(cells.len() as u64, shape.bytes(window), "{}", family.name);
    assert!(shape.fpr(window) <= 0.01 && filter.fpr() == shape.fpr(window));
    assert_eq!(filter.engine().clock().window(), window);
    let preamble = format::preamble(&filter);
    let opened = format::from_bytes(Box::new([&preamble, cells].concat())).unwrap();
    assert_eq!(format::preamble(&opened), preamble);
}

#[test]
fn every_row_makes_saves_and_reads_its_own() {
    let plain = Request::from(Budget::Rate(0.01));
    for family in &FAMILIES {
        check(family, window(family), &plain);
        check(family, window(family), &Request { block_bits: Some(512), partitioned: true, ..plain });
        assert!(std::ptr::eq(Family::of_kind(family.kind).unwrap(), family), "kinds differ");
        assert!(std::ptr::eq(Family::named(family.name).unwrap(), family), "names differ");
    }
    for grow in [Grow::Cardinality, Grow::Density] {
        check(Family::named("timing").unwrap(), TIME, &Request { grow: Some(grow), ..plain });
    }
}

#[test]
fn a_plan_takes_no_memory() {
    let (window, request) = (Window::Count { insertions: 1 << 50 }, Request::from(Budget::Rate(0.01)));
    let shape = (Family::named("age-partitioned").unwrap().plan)(window, &request).unwrap();
    assert!(shape.bytes(window) > 1 << 50 && shape.fpr(window) <= 0.01);
    assert!(Filter::of(shape, window, 0).is_err(), "nobody has so much");
}

#[test]
fn a_parameter_that_is_missing_or_too_wide_is_named() {
    let family = Family::named("stable").unwrap();
    for (parameters, words) in [
        (&[("k", 3), ("slice_cells", 10), ("bits", 2)][..], "decrements is missing"),
        (&[("k", 1 << 32), ("slice_cells", 10)], "k must lie in 0 .. 2**32 - 1, got 4294967296"),
    ] {
        let error = (family.read)(&Parameters(parameters)).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}
