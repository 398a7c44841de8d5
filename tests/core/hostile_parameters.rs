//! Saved filters of any parameters, with correct sums: each is rejected, or is a legal filter on which every call
//! works.

use crate::fuzzed::saved::{HEADER, seal, set_word};
use crate::hostile::{Random, golden, try_all};

/// Header and parameters that agree with each other and with the cells, at the edges of what is allowed and beyond.
#[test]
fn filters_of_any_parameters_are_rejected_or_legal() {
    let mut random = Random(2);
    let mut legal = 0;
    for round in 0..5_000 {
        let slices = if random.below(8) == 0 { 129 } else { 2 + random.below(127) as u64 };
        let k = 1 + random.below(slices as usize - 1) as u64;
        let units = 1 + random.below(3) as u64;
        let epochs = random.below(2) == 1;
        let (bits, in_blocks, words) = match random.below(3) {
            0 => (64 * units - random.below(64) as u64, [0, 0, 0], units),
            1 => (0, [units, 64, 1 << random.below(4)], units),
            _ => (0, [units, 512, 1 << random.below(4)], 8 * units),
        };
        let shape = match (epochs, bits) {
            (false, bits) => [k, slices - k, bits],
            (true, 0) => [slices - 1, 0, 0],
            (true, bits) => [slices - 1, 1 + random.below(bits.min(66) as usize) as u64, bits],
        };
        let timed = random.below(2) as u64;
        let parameters = [
            timed,
            random.number(),
            if timed == 1 { random.number() >> random.below(2) } else { 0 },
            if timed == 1 { random.number() } else { 0 },
            random.number(),
            if timed == 1 { random.below(2) as u64 } else { 0 },
            random.number(),
        ];
        let mut bytes = golden(if epochs { "epochs" } else { "plain" })[..HEADER].to_vec();
        set_word(&mut bytes, 24, 128);
        set_word(&mut bytes, 32, 8 * words * slices);
        bytes.extend(parameters.into_iter().chain(shape).chain(in_blocks).flat_map(u64::to_le_bytes));
        bytes.resize(HEADER + 128, 0);
        let dense = random.below(3);
        for _ in 0..words * slices {
            let cells = [random.next(), random.next() & random.next() & random.next(), !0][dense];
            bytes.extend(cells.to_le_bytes());
        }
        seal(&mut bytes);
        let read = try_all(&bytes);
        assert!(!read || slices <= 128, "round {round}: {parameters:?}");
        legal += usize::from(read);
    }
    assert!(legal > 1_000, "{legal} of 5,000 were filters");
}

/// Returns the clock of a file: the window, and what was seen. Most are legal.
fn any_clock(random: &mut Random) -> [u64; 7] {
    let timed = random.below(2) as u64;
    let time = |number: u64| if timed == 1 { number } else { 0 };
    [
        timed,
        random.number(),
        time(random.number() >> random.below(2)),
        time(random.number()),
        random.number(),
        time(random.below(2) as u64),
        random.number(),
    ]
}

/// Rings in lines of one to three pages, with any parameters.
#[test]
fn filters_in_lines_of_any_parameters_are_rejected_or_legal() {
    let mut random = Random(5);
    let mut legal = 0;
    for round in 0..1_000 {
        let lanes = [8, 16, 32, 9][random.below(4)];
        let (k, lines, pages) = (random.below(6) as u64, random.below(6) as u64, 1 + random.below(3) as u64);
        let epochs = random.below(2) == 1;
        let shape = if epochs { vec![lanes - 1, pages, lines] } else { vec![k, lanes - k, pages, lines] };
        let clock = any_clock(&mut random);
        let mut bytes = golden(if epochs { "epochs_side_by_side" } else { "side_by_side" })[..HEADER].to_vec();
        set_word(&mut bytes, 32, 4096 * pages);
        bytes.extend(clock.into_iter().chain(shape).flat_map(u64::to_le_bytes));
        bytes.resize(HEADER + 128, 0);
        let dense = random.below(3);
        for _ in 0..512 * pages {
            bytes.extend([random.next(), random.next() & random.next() & random.next(), !0][dense].to_le_bytes());
        }
        seal(&mut bytes);
        let read = try_all(&bytes);
        let in_range = lanes != 9 && (1..=4).contains(&lines) && (epochs || (1..=4).contains(&k));
        assert!(!read || in_range, "round {round}: {clock:?}");
        legal += usize::from(read);
    }
    assert!(legal > 100, "{legal} of 1,000 were filters");
}

/// Transposed rings with any parameters, whether or not positions fill their words.
#[test]
fn transposed_filters_of_any_parameters_are_rejected_or_legal() {
    let mut random = Random(6);
    let mut legal = 0;
    for round in 0..1_000 {
        let epochs = [8, 16, 32, 64, 9][random.below(5)];
        let (k, positions) = (random.below(70) as u64, random.below(200) as u64);
        let clock = any_clock(&mut random);
        let words = epochs * positions.div_ceil(64);
        let mut bytes = golden("transposed")[..HEADER].to_vec();
        set_word(&mut bytes, 24, 128);
        set_word(&mut bytes, 32, 8 * words);
        bytes.extend(clock.into_iter().chain([epochs - 1, k, positions]).flat_map(u64::to_le_bytes));
        bytes.resize(HEADER + 128, 0);
        let dense = random.below(3);
        for _ in 0..words {
            bytes.extend([random.next(), random.next() & random.next() & random.next(), !0][dense].to_le_bytes());
        }
        seal(&mut bytes);
        let read = try_all(&bytes);
        assert!(!read || epochs != 9 && (1..=64).contains(&k) && k <= positions, "round {round}: {clock:?}");
        legal += usize::from(read);
    }
    assert!(legal > 100, "{legal} of 1,000 were filters");
}

/// Timers of any width, with any parameters.
#[test]
fn timing_filters_of_any_parameters_are_rejected_or_legal() {
    let mut random = Random(4);
    let mut legal = 0;
    for round in 0..3_000 {
        let k = 1 + random.below(8) as u64;
        let bpt = 1 + random.below(33) as u64;
        let words = 1 + random.below(3) as u64;
        // Mostly within what the width allows, else anything.
        let blocks = match random.below(4) {
            0 => random.number(),
            _ => 1 + random.number() % (1 << bpt.min(12)),
        };
        let clock = any_clock(&mut random);
        let shape = [k, bpt, blocks, words * (64 / bpt) - random.below(2) as u64, random.below(k as usize + 2) as u64];
        let mut bytes = golden("blocks_of_keys")[..HEADER].to_vec();
        set_word(&mut bytes, 24, 128);
        set_word(&mut bytes, 32, 8 * words * k);
        bytes.extend(clock.into_iter().chain(shape).flat_map(u64::to_le_bytes));
        bytes.resize(HEADER + 128, 0);
        for _ in 0..words * k {
            bytes.extend((random.next() | random.next() & random.next()).to_le_bytes());
        }
        seal(&mut bytes);
        let read = try_all(&bytes);
        assert!(!read || (2..=32).contains(&bpt), "round {round}: {clock:?} {shape:?}");
        legal += usize::from(read);
    }
    assert!(legal > 500, "{legal} of 3,000 were filters");
}
