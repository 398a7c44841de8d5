//! A new family in one file, as `CONTRIBUTING.md` shows it: it is planned, read, and answers in batches.

mod list;

use lately::clock::{Clock, Moments, Window};
use lately::engine::Refresh;
use lately::family::{Budget, Parameters, Request};
use lately::key::Seed;
use lately::memory::Words;
use list::LIST;

use crate::support::key;

#[test]
fn a_family_of_one_file_keeps_its_promise() {
    let window = Window::Count { insertions: 100 };
    let planned = LIST.plan(&Request::of(window, Budget::Rate(0.01))).unwrap();
    let shape = LIST.read(&Parameters(&planned.parameters())).unwrap();
    assert_eq!((shape.bytes(window), LIST.form(&*shape).kind), (800, 999));

    let words = Words::zeroed(100).unwrap();
    let engine = LIST.rows[0].engine;
    let mut filter = engine(&*shape, Clock::new(window, shape.retained()), Seed::Public(0), words).unwrap();
    let keys: Vec<u64> = (0..1000).map(|i| key(0, i % 150)).collect();
    let mut seen = vec![false; keys.len()];
    filter.duplicated(&keys, Moments::Untimed, Refresh::Always, &mut seen).unwrap();
    assert!(seen.iter().all(|&seen| !seen), "each key comes again after 150 insertions");
    let mut present = vec![false; 150];
    filter.query(&keys[..150], Moments::Untimed, &mut present).unwrap();
    let expected: Vec<bool> = (0..150).map(|i| (0..1000).rev().take(100).any(|at| at % 150 == i)).collect();
    assert_eq!(present, expected);
}
