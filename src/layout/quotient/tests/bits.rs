//! Lines whose bits an attacker may have chosen.

use super::*;
use crate::clock::Moments;
use crate::engine::{Engine, Refresh};
use crate::inference::EvidenceSource;
use crate::layout::quotient::format::Format;

/// Lines whose runs do not end are rejected. Whatever the other bits are, no key is missed, and no call panics or
/// hangs.
#[test]
fn sound_lines_of_any_bits_lose_no_keys() {
    let (mut random, mut unsound) = (Random(3), 0);
    for (f, t) in formats() {
        for (pages, lines) in [(1, 3), (1, 17), (2, 63), (1, 127)] {
            let shape = shape((f, t), pages, lines, 500);
            let mut filter = engine(shape, Window::Count { insertions: 500 }, Instructions::best());
            let format = filter.layout.pages.format;
            let stride = filter.layout.pages.stride();
            for (i, line) in filter.words.to_mut().unwrap().as_chunks_mut().0.iter_mut().enumerate() {
                *line = std::array::from_fn(|_| random.below(u64::MAX));
                if i % stride > 0 && !format.is_sound(line) {
                    unsound += 1;
                    make_sound(format, line);
                }
            }
            assert!(filter.check().is_ok());
            let mut other = filter.clone();
            let first = &mut other.words.to_mut().unwrap()[8];
            *first ^= 1 << crate::layout::quotient::format::OCCUPIED;
            assert!(other.check().is_err());
            let hashes: Vec<u64> = (0..300).map(|i| mix(i % 200)).collect();
            for round in 0..6 {
                let mut seen = vec![false; hashes.len()];
                filter.insert(&hashes, Moments::Untimed).unwrap();
                let refresh = if round % 2 == 0 { Refresh::Always } else { Refresh::Delivered };
                filter.duplicated(&hashes, Moments::Untimed, refresh, &mut seen).unwrap();
                filter.query(&hashes, Moments::Untimed, &mut seen).unwrap();
                assert!(seen.iter().all(|&seen| seen), "{shape:?}");
                let mut evidence = vec![Evidence::default(); hashes.len()];
                filter.evidence(&hashes, &mut evidence);
                assert!((0.0..=1.0).contains(&filter.false_positive_rate()));
                assert!(filter.layout.distinct(filter.words.as_slice(), &filter.clock, 100) >= 0.0);
                let mut other = filter.clone();
                other.merge(&filter).unwrap();
                assert!(filter.check().is_ok() && other.check().is_ok());
            }
        }
    }
    assert!(unsound > 1000);
}

/// Makes a line sound with as few changes as possible.
fn make_sound(format: &Format, line: &mut Line) {
    let ends = format.ends.get(line);
    let runs = format.occupied(line).count_ones();
    let (mut retained, mut left) = (0, ends);
    for _ in 0..runs.min(ends.count_ones()) {
        retained |= left & left.wrapping_neg();
        left &= left.wrapping_sub(1);
    }
    let mut excess = runs.saturating_sub(ends.count_ones());
    for bucket in 0..format.shape.buckets + format.shape.eviction_buckets {
        if excess > 0 && format.occupied(line) >> bucket & 1 == 1 {
            line[0] &= !(1 << (crate::layout::quotient::format::OCCUPIED + bucket));
            excess -= 1;
        }
    }
    format.ends.set(line, retained);
    let used = u64::MAX.checked_shr(retained.leading_zeros()).unwrap_or(0);
    for plane in &format.planes {
        plane.set(line, plane.get(line) & used);
    }
    format.set_evicted_buckets(line, format.evicted_buckets(line).min(format.shape.eviction_buckets));
}
