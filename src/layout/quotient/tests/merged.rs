//! Merged filters.

use super::*;
use crate::clock::Moments;
use crate::engine::Engine;
use crate::instructions::Portable;

/// One filter has old entries of some keys, the other has just rejected these keys: merged, they are young.
#[test]
fn keys_that_were_rejected_lately_are_young_in_merged_filters() {
    const WINDOW: u64 = 20_000;
    let shape = loaded((7, 3), WINDOW, 3.0);
    let filter = |hashes: Vec<u64>| {
        let mut filter = engine(shape, Window::Count { insertions: WINDOW }, Instructions::best());
        filter.insert(&hashes, Moments::Untimed).unwrap();
        filter
    };
    let keys = (0..500).map(|i| mix(1 << 40 | i));
    let quiet = filter(keys.clone().chain((0..WINDOW).map(|_| mix(7))).collect());
    let crowded = filter((0..WINDOW).map(mix).chain(keys.clone()).collect());
    for (mut one, other) in [(quiet.clone(), &crowded), (crowded.clone(), &quiet)] {
        one.merge(other).unwrap();
        let mut present = [false; 500];
        one.query_within(&keys.clone().collect::<Vec<_>>(), Moments::Untimed, Some(500), &mut present).unwrap();
        assert!(present.iter().all(|&present| present));
    }
}

/// A merged filter reports every key of both, with the younger age.
#[test]
fn merged_filters_contain_the_keys_of_both() {
    for (load, format) in [(0.4, (7, 3)), (0.6, (13, 4)), (1.5, (9, 5))] {
        const WINDOW: u64 = 20_000;
        let shape = loaded(format, WINDOW, load);
        let filter = |stream: u64| {
            let mut filter = engine(shape, Window::Count { insertions: WINDOW }, Instructions::best());
            let hashes: Vec<u64> = (0..3 * WINDOW).map(|i| mix((i / 3 * (1 + stream % 2)) | (stream / 2))).collect();
            filter.insert(&hashes, Moments::Untimed).unwrap();
            (filter, hashes[2 * WINDOW as usize..].to_vec())
        };
        let ((mut one, of_one), (other, of_other)) = (filter(1), filter(2));
        let rotation = one.layout.rotation(one.clock.generation(), 0);
        let age = |filter: &Aged<Quotient>, hash: u64| {
            let (pages, location) = (filter.layout.pages, filter.layout.pages.location(hash));
            let page = pages.page(filter.words.as_slice().as_chunks().0, location.page);
            pages.age(Portable, page, &location, rotation.tag(&pages, location.page)).map_or(u32::MAX, |(age, _)| age)
        };
        let before = one.clone();
        one.merge(&other).unwrap();
        assert!(one.check().is_ok());
        for (hashes, filter) in [(&of_one, &before), (&of_other, &other)] {
            let mut present = vec![false; hashes.len()];
            one.query(hashes, Moments::Untimed, &mut present).unwrap();
            assert!(present.iter().all(|&present| present), "{load}");
            for window in [1, WINDOW / 30, WINDOW / 3, WINDOW] {
                let live = &hashes[(WINDOW - window) as usize..];
                one.query_within(live, Moments::Untimed, Some(window), &mut present[..live.len()]).unwrap();
                assert!(present.iter().all(|&present| present), "{load} {window}");
            }
            for &hash in hashes {
                assert!(age(&one, hash) <= age(filter, hash));
            }
        }
    }
}
