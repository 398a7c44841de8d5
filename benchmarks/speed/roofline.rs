//! What share of the speed of memory do queries reach? `cargo run --release --example roofline -- ROUNDS WINDOW…`
//!
//! In one process and in turn: a read of one random cache line per key, fetched ahead, out of as many bytes as the
//! filter in lines has; and queries of that filter and of the paper's layout, both made for 1 %, of hashes and of
//! integers still to be hashed. Half of the queried keys are in the window. Each is timed just after it was done with
//! as many other keys, so that none finds its memory as another has left the caches; and each round begins with
//! another. A line of the output is a round of one window: the window, bytes of the filter in lines and of the other,
//! then nanoseconds per key, in the order of [`NAMES`].

use std::hint::black_box;
use std::time::Instant;

use lately::clock::{Moments, Window};
use lately::family::slices::shape::Paper;
use lately::family::{AnyFilter, Budget, Shape as _, lines, slices};
use lately::key::KeyHasher;
use lately::memory::Words;
use lately::memory::bits::scale;
use lately::memory::prefetch::Address;

const NAMES: &str = "window\tbytes\tpaper_bytes\troof\tline\tline_hashing\tpaper\tpaper_hashing";
/// Keys queried in one timing.
const QUERIED: usize = 1 << 20;
/// Keys hashed at a time, as the Python bindings do it.
const BLOCK: usize = 4096;
/// Lines in flight, refilled in groups, as in the filter; and how long before that their hashes are fetched.
const AHEAD: usize = 64;
const GROUP: usize = 8;
const HASHES_AHEAD: usize = 128;

/// Words of a cache line.
const LINE: u64 = 8;

/// Keys to query, and their hashes.
struct Queried {
    keys: Vec<i64>,
    hashes: Vec<u64>,
}

/// Reads a line per hash; the sum keeps the reads from being left out.
fn read_lines(words: &[u64], hashes: &[u64]) -> u64 {
    let (address, lines) = (Address::of(words), words.len() as u64 / LINE);
    let place = |hash: u64| (scale(hash, lines) * LINE) as usize;
    let mut sum = 0u64;
    for start in (0..hashes.len()).step_by(GROUP) {
        Address::of(hashes).fetch(start + AHEAD + HASHES_AHEAD);
        for &hash in hashes.iter().skip(start + AHEAD).take(GROUP) {
            address.fetch(place(hash));
        }
        for &hash in &hashes[start..hashes.len().min(start + GROUP)] {
            sum = sum.wrapping_add(words[place(hash)]);
        }
    }
    sum
}

fn query(filter: &AnyFilter, hashes: &[u64], present: &mut [bool]) {
    for (hashes, present) in hashes.chunks(BLOCK).zip(present.chunks_mut(BLOCK)) {
        filter
            .engine()
            .query(hashes, Moments::Untimed, present)
            .expect("a window of insertions has no times to refuse");
    }
}

fn hash_and_query(filter: &AnyFilter, hasher: KeyHasher, keys: &[i64], present: &mut [bool]) {
    let mut hashes = [0; BLOCK];
    for (keys, present) in keys.chunks(BLOCK).zip(present.chunks_mut(BLOCK)) {
        let hashes = &mut hashes[..keys.len()];
        hashes.iter_mut().zip(keys).for_each(|(hash, &key)| *hash = key as u64);
        hasher.integers(hashes);
        query(filter, hashes, present);
    }
}

/// Inserts keys until the filter has turned once, the last of them `insertions - 1`.
fn fill(filter: &mut AnyFilter, hasher: KeyHasher, insertions: i64) {
    for start in (0..insertions).step_by(BLOCK) {
        let hashes: Vec<_> = (start..insertions.min(start + BLOCK as i64)).map(|key| hasher.integer(key)).collect();
        filter.engine_mut().insert(&hashes, Moments::Untimed).expect("a window of insertions has no times to refuse");
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<u64> = std::env::args().skip(1).map(|argument| argument.parse()).collect::<Result<_, _>>()?;
    let (rounds, windows) = arguments.split_first().ok_or("how many rounds, and which windows?")?;
    println!("{NAMES}");
    for &insertions in windows {
        let (window, rate, hasher) = (Window::Count { insertions }, Budget::Rate(0.01), KeyHasher::new(0));
        let shape = lines::shape::choose(window, rate, None, Paper::AgePartitioned)?;
        let mut in_lines = AnyFilter::new(shape, window, 0)?;
        let mut paper =
            AnyFilter::new(slices::shape::choose(window, rate, None, None, Paper::AgePartitioned)?, window, 0)?;
        let inserted = 2 * insertions as i64;
        fill(&mut in_lines, hasher, inserted);
        fill(&mut paper, hasher, inserted);

        let mut words = Words::zeroed(shape.bytes(window) as usize / 8)?;
        words.to_mut()?.fill(1);
        let (mut present, bytes) = (vec![false; QUERIED], paper.engine().words().as_slice().len() * 8);
        for round in 0..*rounds {
            // Any hash does to choose one in two at random, and a key of the window or a fresh one.
            let key = |i| match hasher.unsigned(i) {
                odd if odd % 2 == 1 => inserted - 1 - scale(odd, insertions) as i64,
                even => i64::MIN + (even >> 1) as i64,
            };
            let queried = [2 * round, 2 * round + 1].map(|queried| {
                let keys: Vec<i64> = (queried * QUERIED as u64..(queried + 1) * QUERIED as u64).map(key).collect();
                Queried { hashes: keys.iter().map(|&key| hasher.integer(key)).collect(), keys }
            });
            let mut times = [0.0; 5];
            for turn in 0..times.len() {
                let subject = (turn + round as usize) % times.len();
                let filter = if subject < 3 { &in_lines } else { &paper };
                let mut act = |queried: &Queried| match subject {
                    0 => _ = black_box(read_lines(words.as_slice(), &queried.hashes)),
                    1 | 3 => query(filter, &queried.hashes, &mut present),
                    _ => hash_and_query(filter, hasher, &queried.keys, &mut present),
                };
                act(&queried[0]);
                let start = Instant::now();
                act(&queried[1]);
                times[subject] = start.elapsed().as_nanos() as f64 / QUERIED as f64;
                let missed = queried[1].keys.iter().zip(&present).any(|(&key, &present)| key >= 0 && !present);
                assert!(subject == 0 || !missed, "a key of the window is missing");
            }
            println!(
                "{insertions}\t{}\t{bytes}\t{}",
                shape.bytes(window),
                times.map(|time| time.to_string()).join("\t")
            );
        }
    }
    Ok(())
}
