//! Damaged and hostile bytes: each is rejected, or is a legal filter on which every call works.
//!
//! Overflow checks are on in tests, so arithmetic that hostile numbers could lead astray shows as a panic.

use crate::fuzzed::saved::{HEADER, bytes_of, reread, seal, set_word, use_all, word};
use crate::support::{campaign, trials};
use lately::Error;
use lately::format::{self, SaveError};

pub const GOLDEN: [&str; 29] = [
    "exact",
    "exact_timed",
    "plain",
    "blocks",
    "words",
    "timed",
    "fresh",
    "epochs",
    "epochs_in_blocks",
    "epochs_timed",
    "blocks_of_keys",
    "single_keys",
    "timed_blocks",
    "grown",
    "grown_dense",
    "limited",
    "fingerprints",
    "swamp",
    "counting",
    "stable",
    "bloom",
    "bloom_in_slices",
    "generalized",
    "side_by_side",
    "epochs_side_by_side",
    "transposed",
    "transposed_timed",
    "aged_cuckoo",
    "aged_cuckoo_chain",
];

pub fn golden(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/golden/{name}.lately", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Reads the bytes and makes every call on the result; returns whether they were a filter.
pub fn try_all(bytes: &[u8]) -> bool {
    match format::from_bytes(Box::new(bytes.to_vec())) {
        Ok(filter) => {
            use_all(filter, bytes, None);
            true
        }
        Err(Error::Format(_)) => false,
        // The table of an exact window has room for all of its keys, however many the file has.
        Err(Error::Memory { .. }) if bytes[10..12] == [15, 0] => false,
        Err(error) => panic!("{error:?} is not an error of the format"),
    }
}

/// Numbers at which arithmetic may overflow.
const EDGES: [u64; 24] = [
    0,
    1,
    2,
    3,
    63,
    64,
    65,
    127,
    128,
    129,
    512,
    1 << 31,
    u32::MAX as u64,
    1 << 32,
    1 << 60,
    (1 << 61) + 1,
    (1 << 62) - 1,
    1 << 62,
    (1 << 62) + 1,
    i64::MAX as u64,
    1 << 63,
    (1 << 63) + 1,
    u64::MAX - 1,
    u64::MAX,
];

/// splitmix64
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Returns an edge, or a number of any magnitude.
    pub fn number(&mut self) -> u64 {
        match self.below(3) {
            0 => EDGES[self.below(EDGES.len())],
            1 => EDGES[self.below(EDGES.len())].wrapping_add(self.below(5) as u64).wrapping_sub(2),
            _ => {
                let shift = self.below(64);
                self.next() >> shift
            }
        }
    }
}

#[test]
fn golden_files_are_read() {
    for name in GOLDEN {
        let bytes = golden(name);
        assert_eq!(bytes_of(&reread(&bytes)), bytes);
        assert!(bytes.len() <= 768 + 4096 && try_all(&bytes));
    }
}

#[test]
fn every_truncation_and_every_extension_is_rejected() {
    for name in GOLDEN {
        let bytes = golden(name);
        for len in 0..bytes.len() {
            let mut cut = bytes[..len].to_vec();
            assert!(!try_all(&cut), "{name} cut to {len}");
            seal(&mut cut);
            assert!(!try_all(&cut), "{name} cut to {len} and sealed");
        }
        assert!(!try_all(&[&bytes[..], &[0]].concat()) && !try_all(&[&bytes[..], &[0; 8]].concat()));
    }
}

/// Returns what changes a byte: each bit by itself and several at once, or in a campaign every other value.
fn changes() -> Vec<u8> {
    if campaign() { (1..=255).collect() } else { vec![1, 2, 4, 8, 16, 32, 64, 128, 170, 255] }
}

#[test]
fn every_change_of_a_byte_is_rejected() {
    for name in GOLDEN {
        let bytes = golden(name);
        for at in 0..bytes.len() {
            for change in changes() {
                let mut changed = bytes.clone();
                changed[at] ^= change;
                assert!(!try_all(&changed), "{name}[{at}] ^ {change}");
            }
        }
    }
}

/// The checksums guard against damage only: with correct ones a changed byte may be any other filter, or none.
#[test]
fn every_change_of_a_byte_under_right_sums_is_rejected_or_legal() {
    let (changes, all) = (changes(), campaign());
    for name in GOLDEN {
        let bytes = golden(name);
        let mut cells = HEADER + word(&bytes, 24) as usize;
        // The table may be rejected, the bits behind it not.
        cells += match name {
            "limited" => 8 * (3 + 4 * word(&bytes, cells) as usize),
            "grown" | "grown_dense" => 8 * (2 + word(&bytes, cells) as usize),
            "aged_cuckoo_chain" => 8 * (1 + 4 * word(&bytes, cells) as usize),
            _ => 0,
        };
        let table = cells;
        // Tables and counters have to count the keys of their windows, and keys lie in order within their window.
        if ["swamp", "counting", "exact", "exact_timed"].contains(&name) {
            cells = bytes.len();
        }
        let mut legal = 0;
        // The sums are written anew. Outside a campaign every 31st byte of the cells is changed: bytes of all places in
        // a word.
        let sums = |at| (40..48).contains(&at) || (56..64).contains(&at);
        for at in (0..bytes.len()).filter(|&at| !sums(at) && (all || at < table || at % 31 == 0)) {
            // And each byte of a table gets one bit of the eight, and several at once.
            let few = [1 << (at / 8 % 8), 170, 255];
            let made = if at >= cells {
                &few[..2]
            } else if at >= HEADER && !all {
                &few
            } else {
                &changes[..]
            };
            for change in made {
                let mut changed = bytes.clone();
                changed[at] ^= change;
                seal(&mut changed);
                // The table of an exact window has room for all its keys: with millions of them a call takes seconds.
                if name == "exact" && (1 << 20..1 << 40).contains(&word(&changed, HEADER + 8)) {
                    continue;
                }
                let read = try_all(&changed);
                assert!(read || at < cells, "any cells are legal");
                legal += usize::from(read && at < cells);
            }
        }
        assert!(legal > changes.len() * 8, "{name}: at least other seeds are read, so the sums were right");
    }
}

#[test]
fn any_damage_is_rejected_or_legal() {
    let files = GOLDEN.map(golden);
    let mut random = Random(1);
    let (mut legal, trials) = (0, trials(100_000) as usize);
    for _ in 0..trials {
        let mut bytes = files[random.below(files.len())].clone();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len());
            match random.below(8) {
                0 => bytes[at] = random.next() as u8,
                1 => bytes.truncate(at.max(1)),
                2 => bytes.splice(at..at, files[random.below(files.len())].iter().copied().take(64)).for_each(drop),
                3 => {
                    let end = bytes.len().min(at + random.below(64));
                    bytes[at..end].fill(random.next() as u8);
                }
                // The numbers of header and parameters, the latter more often.
                kind => {
                    let words = if kind == 4 { 1..8 } else { 8..22.min(bytes.len() / 8) };
                    if !words.is_empty() {
                        let place = words.start + random.below(words.len());
                        if 8 * place + 8 <= bytes.len() {
                            set_word(&mut bytes, 8 * place, random.number());
                        }
                    }
                }
            }
        }
        if random.below(4) > 0 {
            seal(&mut bytes);
        }
        legal += usize::from(try_all(&bytes));
    }
    assert!((trials / 50..trials / 2).contains(&legal), "{legal} of {trials} were filters: both must occur");
}

/// Tables of parts that agree with the cells, with numbers of any size beside the lengths.
#[test]
fn any_table_of_parts_is_rejected_or_legal() {
    for (name, head, row) in [("limited", 3, 4), ("grown", 2, 1), ("grown_dense", 2, 1)] {
        let mut random = Random(4);
        let file = golden(name);
        let cells = HEADER + word(&file, 24) as usize;
        let parts = word(&file, cells) as usize;
        let mut legal = 0;
        for _ in 0..20_000 {
            let mut bytes = file.clone();
            for _ in 0..=random.below(6) {
                let place = random.below(head + row * parts);
                let (at, old) = (cells + 8 * place, word(&bytes, cells + 8 * place));
                match random.below(3) {
                    0 => set_word(&mut bytes, at, random.number()),
                    1 => set_word(&mut bytes, at, old.wrapping_add(random.below(9) as u64).wrapping_sub(4)),
                    _ => set_word(&mut bytes, at, old.wrapping_sub(random.number())),
                }
            }
            // The word that is 1 if a moment was seen.
            if random.below(10) == 0 {
                set_word(&mut bytes, HEADER + 40, 0);
            }
            seal(&mut bytes);
            legal += usize::from(try_all(&bytes));
        }
        assert!((500..15_000).contains(&legal), "{name}: {legal} of 20,000 were filters, so both outcomes were tried");
    }
}

/// Through files, mapped and read, and with cells that lie off a word boundary.
#[test]
fn files_and_parts_are_read_as_bytes_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.lately");
    let mut random = Random(3);
    for round in 0..if campaign() { 3_000 } else { 1_000 } {
        let mut bytes = golden(GOLDEN[round % GOLDEN.len()]);
        let at = random.below(HEADER + 128);
        match round % 3 {
            0 => bytes.truncate(at),
            1 => bytes[at] = random.next() as u8,
            _ => set_word(&mut bytes, at / 8 * 8, random.number()),
        }
        if random.below(2) == 0 {
            seal(&mut bytes);
        }
        let expected = format::from_bytes(Box::new(bytes.clone()));
        std::fs::write(&path, &bytes).unwrap();
        for opened in [format::open(&path), format::map(&path, true)] {
            match (opened, &expected) {
                (Ok(filter), Ok(expected)) => assert_eq!(filter.equals(expected), Ok(true)),
                (Err(SaveError::Filter(error)), Err(expected)) => assert_eq!(error, *expected),
                (other, _) => panic!("{} is not {}", other.is_ok(), expected.is_ok()),
            }
        }
        let cells = bytes.len().min(HEADER + word(&golden(GOLDEN[round % GOLDEN.len()]), 24) as usize);
        let parts = format::from_parts(&bytes[..cells], Box::new(bytes[cells..].to_vec()));
        assert_eq!(parts.is_ok(), expected.is_ok());
    }
}
