//! Saved filters of any parameters, with correct sums: each is rejected, or is a legal filter on which every call
//! works.

use crate::fuzzed::saved::{HEADER, seal, set_word};
use crate::hostile::{Random, golden, try_all};

/// Returns whether a file of the kind of a golden one is a filter, with any clock, these parameters and any cells: from
/// hardly any bit set to all.
fn is_filter(random: &mut Random, kind: &str, own: &[u64], words: u64) -> bool {
    let timed = random.below(2) as u64;
    let time = |number: u64| if timed == 1 { number } else { 0 };
    let clock = [
        timed,
        random.number(),
        time(random.number() >> random.below(2)),
        time(random.number()),
        random.number(),
        time(random.below(2) as u64),
        random.number(),
    ];
    let mut bytes = golden(kind)[..HEADER].to_vec();
    set_word(&mut bytes, 24, 128);
    set_word(&mut bytes, 32, 8 * words);
    bytes.extend(clock.iter().chain(own).flat_map(|word| word.to_le_bytes()));
    bytes.resize(HEADER + 128, 0);
    let dense = random.below(4);
    for _ in 0..words {
        let (a, b, c) = (random.next(), random.next(), random.next());
        bytes.extend([a, a & b & c, a | b & c, !0][dense].to_le_bytes());
    }
    seal(&mut bytes);
    try_all(&bytes)
}

/// The golden file whose kind a file has, its own parameters, its words, and whether these parameters are in range.
type Drawn = (&'static str, Vec<u64>, u64, bool);
type Draw = fn(&mut Random) -> Drawn;

/// Rings of slices and of epochs, plain and in blocks.
fn ring(random: &mut Random) -> Drawn {
    let slices = if random.below(8) == 0 { 129 } else { 2 + random.below(127) as u64 };
    let k = 1 + random.below(slices as usize - 1) as u64;
    let units = 1 + random.below(3) as u64;
    let (bits, in_blocks, words) = match random.below(3) {
        0 => (64 * units - random.below(64) as u64, [0, 0, 0], units),
        1 => (0, [units, 64, 1 << random.below(4)], units),
        _ => (0, [units, 512, 1 << random.below(4)], 8 * units),
    };
    let (kind, shape) = match (random.below(2), bits) {
        (0, bits) => ("plain", [k, slices - k, bits]),
        (_, 0) => ("epochs", [slices - 1, 0, 0]),
        (_, bits) => ("epochs", [slices - 1, 1 + random.below(bits.min(66) as usize) as u64, bits]),
    };
    (kind, [shape, in_blocks].concat(), words * slices, slices <= 128)
}

/// Rings in lines of one to three pages.
fn lines(random: &mut Random) -> Drawn {
    let lanes = [8, 16, 32, 9][random.below(4)];
    let (k, lines, pages) = (random.below(6) as u64, random.below(6) as u64, 1 + random.below(3) as u64);
    let epochs = random.below(2) == 1;
    let shape = if epochs { vec![lanes - 1, pages, lines] } else { vec![k, lanes - k, pages, lines] };
    let in_range = lanes != 9 && (1..=4).contains(&lines) && (epochs || (1..=4).contains(&k));
    (if epochs { "epochs_side_by_side" } else { "side_by_side" }, shape, 512 * pages, in_range)
}

/// Transposed rings, whether or not positions fill their words.
fn transposed(random: &mut Random) -> Drawn {
    let epochs = [8, 16, 32, 64, 9][random.below(5)];
    let (k, positions) = (random.below(70) as u64, random.below(200) as u64);
    let in_range = epochs != 9 && (1..=64).contains(&k) && k <= positions;
    ("transposed", vec![epochs - 1, k, positions], epochs * positions.div_ceil(64), in_range)
}

/// Timers of any width, of blocks mostly within what the width allows.
fn timers(random: &mut Random) -> Drawn {
    let (k, bpt, words) = (1 + random.below(8) as u64, 1 + random.below(33) as u64, 1 + random.below(3) as u64);
    let blocks = match random.below(4) {
        0 => random.number(),
        _ => 1 + random.number() % (1 << bpt.min(12)),
    };
    let shape = vec![k, bpt, blocks, words * (64 / bpt) - random.below(2) as u64, random.below(k as usize + 2) as u64];
    ("blocks_of_keys", shape, words * k, (2..=32).contains(&bpt))
}

#[test]
fn filters_of_any_parameters_are_rejected_or_legal() {
    let draws: [(usize, Draw); 4] = [(5_000, ring), (1_000, lines), (1_000, transposed), (3_000, timers)];
    for (rounds, draw) in draws {
        let (mut random, mut legal) = (Random(2), 0);
        for _ in 0..rounds {
            let (kind, own, words, in_range) = draw(&mut random);
            let read = is_filter(&mut random, kind, &own, words);
            assert!(!read || in_range, "{kind} {own:?}");
            legal += usize::from(read);
        }
        assert!(legal > rounds / 10, "{legal} of {rounds} were filters");
    }
}
