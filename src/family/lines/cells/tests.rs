//! All instruction sets compute what the module's text defines, bit for bit.

use std::ops::Range;

use super::*;
use crate::family::Layout;
use crate::inference::{Code, Evidence};
use crate::instructions::Portable;
use crate::memory::bits::ones;

const PAGES: u64 = 5;
/// The number of keys of a test. Miri is slow.
const KEYS: u64 = if cfg!(miri) { 41 } else { 900 };

fn hashes(count: u64) -> Vec<u64> {
    let hash = |i: u64| xxhash_rust::xxh3::xxh3_64(&(i % 300).to_le_bytes());
    (0..count).map(hash).collect()
}

/// Returns runs of any bounds, each with a generation and a number of pending ones.
fn runs(len: usize) -> impl Iterator<Item = (Range<usize>, i64, u64)> {
    let cuts = [0, 1, 2, 7, 8, 9, 40, 41, 130, 203, 300, 512, 513, 700, len];
    let ages = [(-9, 0), (-1, 3), (0, 0), (3, 1), (4, 9), (5, 0), (6, 400), (77, 0), (78, 2), (79, 12), (1 << 60, 0)];
    cuts.map(|cut| cut.min(len))
        .windows(2)
        .zip(ages.into_iter().cycle())
        .map(|(cut, (at, pending))| (cut[0]..cut[1], at, pending))
        // Empty runs are as quick as others, but not under Miri.
        .filter(|(run, ..)| !cfg!(miri) || !run.is_empty())
        .collect::<Vec<_>>()
        .into_iter()
}

/// Returns the final words of a filter after some runs of keys, all answers, and all evidence.
fn everything<const LANES: usize, const LINES: usize>(
    k: u32,
    instructions: Instructions,
) -> (Vec<u64>, Vec<bool>, Vec<Evidence>) {
    let layout = LanesInLines::<LANES> { instructions, ..LanesInLines::new(PAGES, k, LINES as u32) };
    let hashes = hashes(KEYS);
    let mut words = vec![0; (PAGES * PAGE_LINES) as usize * LINE];
    let (mut answers, mut evidence) = (Vec::new(), Vec::new());
    for (run, generation, pending) in runs(hashes.len()) {
        layout.open(&mut words, generation);
        let rotation = layout.rotation(generation, 0);
        let mut seen = vec![false; hashes.len()];
        layout.insert_run(&mut words, rotation, &hashes, run.clone());
        for refresh in [false, true] {
            let inserted = layout.duplicated_run(&mut words, rotation, &hashes, run.clone(), refresh, &mut seen);
            assert!(!refresh || inserted == run.len() as u64);
            answers.extend_from_slice(&seen);
        }
        layout.query_run(&words, layout.rotation(generation, pending), &hashes, 0..hashes.len(), &mut seen);
        answers.extend_from_slice(&seen);
        let mut evidence_of_keys = vec![Evidence::default(); hashes.len()];
        layout.evidence_run(&words, rotation, &hashes, &mut evidence_of_keys);
        layout.query_run(&words, rotation, &hashes, 0..hashes.len(), &mut seen);
        // A key is reported if some generation that still has all of its lanes is not ruled out.
        let whole = ones(LANES as u32 - k + 1);
        assert!(seen.iter().zip(&evidence_of_keys).all(|(&seen, one)| seen == (one.possible() & whole != 0)));
        let mut codes = vec![Code::default(); hashes.len()];
        let decode = layout.codes_run(&words, rotation, &hashes, &mut codes);
        assert_eq!(decode.is_some(), LANES == 8);
        if let Some(decode) = decode {
            assert!(evidence_of_keys.iter().copied().eq(codes.into_iter().map(decode)));
        }
        evidence.extend(evidence_of_keys);
    }
    (words, answers, evidence)
}

fn agree<const LANES: usize, const LINES: usize>() {
    for k in if cfg!(miri) { 2..3 } else { 1..5 } {
        let portable = everything::<LANES, LINES>(k, Instructions::Portable(Portable));
        let share = portable.1.iter().filter(|&&seen| seen).count() as f64 / portable.1.len() as f64;
        assert!(cfg!(miri) || 0.1 < share && share < 0.9, "both answers must occur: {share}");
        for instructions in Instructions::available() {
            assert!(everything::<LANES, LINES>(k, instructions) == portable, "{instructions:?} {LANES} {LINES} {k}");
        }
    }
}

#[test]
fn all_instruction_sets_agree() {
    agree::<8, 1>();
    agree::<16, 2>();
    agree::<32, 3>();
    if cfg!(miri) {
        return;
    }
    agree::<8, 2>();
    agree::<8, 3>();
    agree::<8, 4>();
    agree::<16, 1>();
    agree::<16, 4>();
    agree::<32, 1>();
    agree::<32, 4>();
}

/// Returns the bits of a key as the text defines them: one in each sub-lane of the lanes given by place.
fn bits<const LANES: usize, const LINES: usize>(layout: &LanesInLines<LANES>, hash: u64, lanes: &[u32]) -> Vec<usize> {
    let location = layout.pages.location::<LINES>(hash);
    let sublanes = 32 / LANES;
    let mut bits = Vec::new();
    for t in 0..LINES {
        let within = (location.lines[t] as u64)
            .checked_sub(u64::from(location.page) * PAGE_LINES + t as u64 * (PAGE_LINES / LINES as u64));
        assert!(within.unwrap() < PAGE_LINES / LINES as u64, "a line of the key's page, in its range");
        for sublane in lanes.iter().flat_map(|&lane| lane as usize * sublanes..(lane as usize + 1) * sublanes) {
            let product = location.seeds[t].wrapping_mul(SUBLANES[sublane / 2]);
            let bit = product >> if sublane % 2 == 0 { 24 } else { 28 } & 15;
            bits.push(location.lines[t] * 512 + sublane * 16 + bit as usize);
        }
    }
    bits
}

#[test]
fn an_insertion_sets_the_defined_bits_and_a_query_needs_them_all() {
    fn check<const LANES: usize, const LINES: usize>(k: u32) {
        let layout = LanesInLines::<LANES>::new(PAGES, k, LINES as u32);
        for (i, hash) in hashes(60).into_iter().enumerate() {
            let generation = 3 * i as i64;
            let rotated = (generation as u64 % PAGES, generation as u64 / PAGES);
            // A page counts its rotations; the lane before the last in the ring is the next to be the newest.
            let rotations = rotated.1 + u64::from(u64::from(layout.pages.location::<LINES>(hash).page) <= rotated.0);
            let newest = (1 + LANES as u64 * 1000 - rotations) % LANES as u64;
            let lanes: Vec<u32> = (0..k).map(|age| (newest as u32 + age) % LANES as u32).collect();
            let mut words = vec![0u64; (PAGES * PAGE_LINES) as usize * LINE];
            let rotation = layout.rotation(generation, 0);
            layout.insert(&mut words, rotation, hash);
            let mut expected = bits::<LANES, LINES>(&layout, hash, &lanes);
            let mut set: Vec<usize> =
                (0..64 * words.len()).filter(|bit| words[bit / 64] >> (bit % 64) & 1 == 1).collect();
            expected.sort_unstable();
            set.sort_unstable();
            assert_eq!(set, expected, "{LANES} {LINES} {k} {i}");
            assert!(layout.contains(&words, rotation, hash));
            for bit in expected {
                words[bit / 64] ^= 1 << (bit % 64);
                assert!(!layout.contains(&words, rotation, hash), "every bit counts");
                words[bit / 64] ^= 1 << (bit % 64);
            }
        }
    }
    check::<8, 1>(2);
    check::<8, 4>(1);
    check::<16, 3>(3);
    check::<32, 2>(4);
}

#[test]
fn fills_and_chances_are_those_of_the_bits() {
    let layout = LanesInLines::<16>::new(PAGES, 2, 2);
    let mut words = vec![0; (PAGES * PAGE_LINES) as usize * LINE];
    for generation in 0..40 {
        layout.open(&mut words, generation);
        let rotation = layout.rotation(generation, 0);
        hashes(90)[..60]
            .iter()
            .for_each(|&hash| layout.insert(&mut words, rotation, hash ^ (generation as u64 * 0x0123_4567_89ab)));
    }
    let rotation = layout.rotation(39, 0);
    let ones: u32 = words.iter().map(|word| word.count_ones()).sum();
    let fill: f64 = layout.fill(&words, rotation).iter().sum();
    assert!((fill - f64::from(ones) / (64 * words.len() / 16) as f64).abs() < 1e-12);
    // The oldest generation is no longer written, the newest only once.
    let rates = layout.match_rates(&words, rotation);
    assert!(rates[0] < rates[1] && rates.iter().all(|rate| (0.0..1.0).contains(rate)));
    let full = vec![u64::MAX; words.len()];
    assert_eq!(
        (layout.match_rates(&full, rotation), layout.false_positive_rate(&full, rotation)),
        (vec![1.0; 16], 1.0)
    );
    assert_eq!(layout.false_positive_rate(&vec![0; words.len()], rotation), 0.0);
}

#[test]
fn a_run_of_lanes_matches_as_often_as_lines_contain_all_of_it() {
    let layout = LanesInLines::<16>::new(PAGES, 3, 2);
    // Half of the lines are full, half empty: all lanes of one match, or none.
    let mut words = vec![0; (PAGES * PAGE_LINES) as usize * LINE];
    words.as_chunks_mut::<LINE>().0.iter_mut().step_by(2).for_each(|line| line.fill(u64::MAX));
    let rates: Vec<f64> = layout.run_rates(layout.chances(&words, layout.rotation(7, 0))).collect();
    assert_eq!(rates, vec![0.5; 3 * 16]);
    // In empty lines half a key is assumed: its four bits of one lane, eight of two, twelve of three.
    let nothing = vec![0; words.len()];
    let rates = layout.run_rates(layout.chances(&nothing, layout.rotation(7, 0)));
    let least = |lanes: i32| 0.5 * 16f64.powi(-4 * lanes) / (PAGES * PAGE_LINES / 2) as f64;
    assert!(rates.eq([1, 2, 3].map(least).into_iter().cycle().take(3 * 16)));
}

#[test]
fn a_lane_matches_by_the_share_of_the_bits_in_each_of_its_sublanes() {
    for (lanes, sublanes, expected) in [
        (u64::MAX, 4, 1.0),
        (0xffff_00ff_8001_7fff, 4, 1.0 * 0.5 * 0.125 * 15.0 / 16.0),
        (0xffff_ffff_0000_ffff, 2, 0.0),
        (0xffff_ffff_0000_1110, 1, 3.0 / 16.0),
    ] {
        assert_eq!(sublanes_match(lanes, sublanes), expected, "{lanes:x}");
    }
}
