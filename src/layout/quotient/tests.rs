//! Lines against a plain list, all instruction sets bit for bit, and the promise at its worst phases.

use std::collections::HashMap;

use super::format::Format;
use super::slots::Slots;
use super::*;
use crate::clock::{Moments, Window};
use crate::engine::run::{AgedMut, Hashes};
use crate::engine::{Aged, Engine, Refresh};
use crate::instructions::{Portable, Work};
use crate::memory::Words;
use crate::shape::quotient::{FINGERPRINT_BITS, MOST_BITS, TAG_BITS};

/// splitmix64 of a number: a bijection.
fn mix(i: u64) -> u64 {
    let mut z = (i.wrapping_add(1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 += 1;
        ((u128::from(mix(self.0)) * u128::from(n)) >> 64) as u64
    }
}

fn formats() -> impl Iterator<Item = (u32, u32)> {
    let all = TAG_BITS.flat_map(|t| FINGERPRINT_BITS.map(move |f| (f, t)));
    all.filter(|(f, t)| f + t <= MOST_BITS)
}

/// A line beside the list that it stands for: bucket and value of each entry, in the order of the slots.
struct Listed {
    format: &'static Format,
    steps: u64,
}

impl<M: Slots> Work<M> for Listed {
    type Output = Vec<Line>;

    fn run(self, machine: M) -> Vec<Line> {
        let Self { format, steps } = self;
        let (mut random, mut line, mut list) = (Random(7), [0; 8], Vec::<(u32, u32)>::new());
        let (buckets, values) = (
            u64::from(format.shape.buckets + format.shape.foreign),
            1u64 << (format.fingerprint_bits + format.tag_bits),
        );
        let tags = 1 << format.tag_bits;
        let mut lines = Vec::new();
        for _ in 0..steps {
            let (bucket, value) = (random.below(buckets) as u32, random.below(values) as u32);
            let start = list.iter().position(|&(b, _)| b >= bucket).unwrap_or(list.len());
            let found = |print: u32, list: &[(u32, u32)]| {
                list.iter().enumerate().fold(0u64, |slots, (slot, &(b, v))| {
                    slots | u64::from(b == bucket && format.print(v) == print) << slot
                })
            };
            match random.below(8) {
                0..4 if (list.len() as u32) < format.shape.slots => {
                    list.insert(start, (bucket, value));
                    format.put(machine, &mut line, bucket, value);
                }
                4 if !list.is_empty() => {
                    let slot = random.below(list.len() as u64) as usize;
                    let (bucket, _) = list.remove(slot);
                    assert_eq!(format.bucket(machine, &line, slot as u32), bucket);
                    format.remove(machine, &mut line, slot as u32, bucket);
                }
                5 if !list.is_empty() => {
                    let slot = random.below(list.len() as u64) as usize;
                    let tag = random.below(tags) as u32;
                    list[slot].1 = format.print(list[slot].1) | tag << format.fingerprint_bits;
                    format.set_tag(&mut line, 1 << slot, tag);
                }
                6 if random.below(4) == 0 => {
                    let tag = random.below(tags.min(3)) as u32;
                    list.retain(|&(_, value)| format.tag(value) != tag);
                    format.expire(machine, &mut line, tag);
                }
                _ => {}
            }
            assert!(format.sound(&line));
            assert_eq!(format.used(&line) as usize, list.len());
            let at_home = list.iter().filter(|(b, _)| *b < format.shape.buckets);
            assert_eq!(format.first_foreign(machine, &line) as usize, at_home.clone().count());
            assert_eq!(format.highest(&line), at_home.map(|(b, _)| *b).max().unwrap_or(0));
            for (slot, &(bucket, value)) in list.iter().enumerate() {
                assert_eq!(format.value(&line, slot as u32), value);
                assert_eq!(format.bucket(machine, &line, slot as u32), bucket);
            }
            for print in [format.print(value), list.get(start).map_or(0, |&(_, value)| format.print(value))] {
                assert_eq!(format.find(machine, &line, bucket, print), found(print, &list));
            }
            lines.push(line);
        }
        lines
    }
}

#[test]
fn a_line_is_the_list_of_its_entries_with_every_instruction_set() {
    // Under Miri a few.
    let (every, steps) = if cfg!(miri) { (9, 40) } else { (1, 600) };
    for (f, t) in formats().step_by(every) {
        let listed = || Listed { format: Format::of(f, t), steps };
        let lines = listed().run(Portable);
        for instructions in Instructions::available() {
            assert!(instructions.run(listed()) == lines, "{f} {t}");
        }
    }
}

/// An engine with these instructions.
fn engine(shape: Shape, window: Window, instructions: Instructions) -> Aged<Quotient> {
    let words = Words::zeroed((shape.nbytes() / 8) as usize).unwrap();
    let layout = Quotient { instructions, ..Quotient::new(shape) };
    Aged { layout, words, clock: Clock::new(window, shape.kept()) }
}

/// The shape whose pages use this share of their slots just before they turn.
fn loaded((f, t): (u32, u32), window: u64, load: f64) -> Shape {
    let of = |pages, lines| Shape::new(f, t, pages, lines, None).unwrap();
    let least = |shape: &Shape| shape.load(shape.keys_per_epoch(Window::Count { insertions: window })) <= load;
    let small = (3..63).map(|lines| of(1, lines)).find(least);
    small.or_else(|| (1..).map(|pages| of(pages, 63)).find(least)).unwrap()
}

const FORMATS: [(u32, u32); 7] = [(7, 3), (6, 4), (10, 4), (13, 4), (16, 4), (5, 3), (16, 8)];

/// Names of streams, and the hash of their insertion i, for a window.
type Stream = fn(u64, u64) -> u64;
const STREAMS: [(&str, Stream); 8] = [
    ("distinct", |i, _| mix(i)),
    ("all in one page", |i, _| mix(i) >> 6),
    ("all in one line", |i, _| mix(i) >> 13),
    ("half repeats", |i, w| {
        let x = mix(i ^ 1 << 50);
        if x & 1 == 0 { mix(i) } else { mix(i.saturating_sub(1 + (x >> 8) % (w + w / 2))) }
    }),
    ("few keys", |i, _| mix(mix(i) % 97)),
    ("one key", |_, _| mix(5)),
    ("bursts of hot keys", |i, _| {
        let x = mix(i ^ 1 << 51);
        if x % 10 < 3 { mix(i / 500 * 10 + x % 7) } else { mix(i) }
    }),
    ("as old as the window", |i, w| mix(i % w)),
];

/// Asks for every key of the window, and of two shorter windows, after each `every` insertions of a stream, which come
/// in batches by `insert` and by `duplicated` in turn. Says how many were asked for.
fn check_promise(
    filter: &mut Aged<Quotient>,
    window: u64,
    insertions: u64,
    every: u64,
    stream: impl Fn(u64) -> u64,
) -> Result<u64, String> {
    let mut last = HashMap::new();
    let stream: Vec<u64> = (0..insertions).map(stream).collect();
    let (mut at, mut asked, mut by_insert) = (0, 0, false);
    while at < stream.len() {
        let end = (at + every as usize).min(stream.len());
        let part = &stream[at..end];
        if by_insert {
            filter.insert(part, Moments::Untimed).unwrap();
            last.extend(part.iter().copied().zip(at..));
        } else {
            let mut seen = vec![false; part.len()];
            filter.duplicated(part, Moments::Untimed, Refresh::Always, &mut seen).unwrap();
            for ((i, &hash), seen) in (at..).zip(part).zip(seen) {
                let before = last.insert(hash, i);
                if !seen && before.is_some_and(|before| i - before <= window as usize) {
                    return Err(format!("insertion {i} was not seen before"));
                }
            }
        }
        by_insert = !by_insert;
        at = end;
        let most = window.min(filter.clock.window().length());
        for asked_for in [window, 1 + mix(at as u64) % most, 1 + mix(at as u64) % most.div_ceil(7)] {
            let live = &stream[at.saturating_sub(asked_for as usize)..at];
            let mut present = vec![false; live.len()];
            if asked_for == window {
                filter.query(live, Moments::Untimed, &mut present).unwrap();
            } else {
                filter.query_within(live, Moments::Untimed, asked_for, &mut present).unwrap();
            }
            asked += live.len() as u64;
            let missing = present.iter().filter(|&&present| !present).count();
            if missing > 0 {
                return Err(format!("{missing} of the last {asked_for} keys are missing after insertion {at}"));
            }
        }
    }
    let pages = filter.layout.pages;
    let lines = pages.all(filter.words.as_slice().as_chunks().0).flat_map(|(_, page)| &page[1..]);
    assert!(lines.into_iter().all(|line| pages.format.sound(line)));
    Ok(asked)
}

/// Windows, loads, insertions, and how often all is asked for.
const CASES: [(u64, f64, u64, u64); 6] = [
    (2_003, 0.92, 12_000, 97),
    (499, 0.92, 3_000, 1),
    (6_007, 1.0, 20_000, 997),
    (6_007, 2.0, 20_000, 997),
    (6_007, 10.0, 20_000, 997),
    (10, 0.9, 1_000, 1),
];

/// An engine that grows, planned for so many different keys.
fn growing(format: (u32, u32), window: u64, distinct: u64, instructions: Instructions) -> Aged<Quotient> {
    let shape = Shape { distinct: Some(distinct), ..loaded(format, distinct, 0.85) }.growing();
    let window = Window::Count { insertions: window };
    let (layout, words) = Quotient::growing(shape, window, Words::zeroed(0).unwrap()).unwrap();
    Aged { layout: Quotient { instructions, ..layout }, words, clock: Clock::new(window, shape.kept()) }
}

/// Few keys, then up to twenty times as many different ones as planned for, then few again.
fn burst(i: u64, window: u64) -> u64 {
    let burst = (2 * window..4 * window).contains(&i);
    if burst { mix(1 << 40 | i) } else { mix(i % (window / 50)) }
}

/// No key of the window is missing while pages double and are merged again, and the bits are those of the keys one by
/// one.
#[test]
fn a_filter_that_grows_keeps_its_window_and_shrinks_again() {
    let campaign = std::env::var_os("LATELY_CAMPAIGN").is_some();
    let mut asked = 0;
    for (i, format) in FORMATS.into_iter().enumerate() {
        for (j, instructions) in Instructions::available().enumerate() {
            for (k, (window, part, every)) in
                [(2_000, 20, 13), (10_000, 5, 97), (30_000, 10, 997)].into_iter().enumerate()
            {
                if !campaign && (i + 2 * j + k) % 9 > 0 {
                    continue;
                }
                let new = || growing(format, window, window / part, instructions);
                let (mut filter, mut most) = (new(), 0);
                let run = |filter: &mut Aged<Quotient>, insertions: u64, from: u64| {
                    check_promise(filter, window, insertions, every, |i| burst(from + i, window))
                };
                asked += run(&mut filter, 4 * window, 0).unwrap();
                most = most.max(filter.layout.pages.level);
                // Two more full windows of few keys, and the memory is as it was.
                asked += run(&mut filter, 3 * window, 4 * window).unwrap();
                assert!(most >= if part > 5 { 3 } else { 2 } && most <= 5, "{format:?} {most}");
                assert_eq!(filter.layout.pages.level, 0, "{format:?} {window} {part}");
            }
        }
    }
    println!("{asked} keys of the window asked for, none missing");
    let hashes: Vec<u64> = (0..14_000).map(|i| burst(i, 2_000)).collect();
    let (mut whole, mut singly) = [0, 1].map(|_| growing((7, 3), 2_000, 200, Instructions::best())).into();
    let mut seen = vec![false; hashes.len()];
    for (part, seen) in hashes.chunks(4999).zip(seen.chunks_mut(4999)) {
        whole.duplicated(part, Moments::Untimed, Refresh::Unseen, seen).unwrap();
    }
    for (&hash, &seen) in hashes.iter().zip(&seen) {
        let mut alone = [false];
        singly.duplicated(&[hash], Moments::Untimed, Refresh::Unseen, &mut alone).unwrap();
        assert_eq!(alone, [seen]);
    }
    assert!(whole.words.as_slice() == singly.words.as_slice());
}

/// Entries keep their place through all levels and back, and what had no room is still there.
#[test]
fn levels_change_nothing_but_where_entries_lie() {
    for (format, load) in [((7, 3), 0.8), ((9, 4), 1.2), ((5, 3), 3.0)] {
        const WINDOW: u64 = 5_000;
        let mut filter = growing(format, WINDOW, (WINDOW as f64 / load) as u64, Instructions::best());
        let hashes: Vec<u64> = (0..2 * WINDOW).map(mix).collect();
        let level = filter.layout.pages.level;
        AgedMut { layout: filter.layout, words: filter.words.to_mut().unwrap(), clock: &mut filter.clock, live: None }
            .insert(Hashes::all(&hashes), Moments::Untimed);
        assert_eq!((level, filter.layout.pages.level), (0, 0));
        let asked: Vec<u64> = (0..100_000).map(|i| mix(1 << 40 | i)).chain(hashes).collect();
        let answers = |filter: &Aged<Quotient>, window: u64| {
            let mut present = vec![false; asked.len()];
            filter.query_within(&asked, Moments::Untimed, window, &mut present).unwrap();
            present
        };
        let before = [WINDOW / 3, WINDOW].map(|window| answers(&filter, window));
        let distinct = |filter: &Aged<Quotient>| filter.layout.distinct(filter.words.as_slice(), &filter.clock, WINDOW);
        let counted = distinct(&filter);
        for level in [1, 4, 3, 0, 2, 1, 0] {
            let phase = filter.layout.phase(filter.clock.generation(), 0);
            let lines = filter.words.as_slice().as_chunks().0;
            (filter.layout, filter.words) = filter.layout.at_level(level, lines, phase).unwrap();
            assert!(filter.check().is_ok());
            for (window, before) in [WINDOW / 3, WINDOW].into_iter().zip(&before) {
                let after = answers(&filter, window);
                let lost = before.iter().zip(&after).filter(|(before, after)| **before && !**after).count();
                let more = before.iter().zip(&after).filter(|(before, after)| !**before && **after).count();
                assert_eq!(lost, 0, "{format:?} {level} {window}");
                // A line that turned a key away may have handed its flag to others.
                assert!(load > 1.0 || more == 0, "{format:?} {level} {window}: {more}");
            }
            assert!(load > 1.0 || (distinct(&filter) / counted - 1.0).abs() < 0.02);
        }
    }
}

/// Some instruction sets with some formats, and in a campaign all with all, six times as long: 10^9 keys asked for.
#[test]
fn no_key_of_the_window_is_ever_missing() {
    let campaign = std::env::var_os("LATELY_CAMPAIGN").is_some();
    let mut asked = 0;
    for (i, format) in FORMATS.into_iter().enumerate() {
        for (j, instructions) in Instructions::available().enumerate() {
            for (k, (window, load, insertions, every)) in CASES.into_iter().enumerate() {
                if !campaign && (i + 2 * j + k) % 6 > 0 {
                    continue;
                }
                let insertions = if campaign { 6 * insertions } else { insertions };
                for (name, stream) in STREAMS {
                    let shape = loaded(format, window, load);
                    let mut filter = engine(shape, Window::Count { insertions: window }, instructions);
                    let checked = check_promise(&mut filter, window, insertions, every, |i| stream(i, window));
                    asked += checked.unwrap_or_else(|error| panic!("{name}: {shape:?}: {error}"));
                }
            }
        }
    }
    println!("{asked} keys of the window asked for, none missing");
    assert!(!campaign || asked > 1_000_000_000);
}

/// A key is asked for in windows that have just left it behind, by an epoch and by less: by an epoch none is there but
/// by chance, and a step before the filter cannot know.
#[test]
fn a_shorter_window_is_left_within_an_epoch() {
    const WINDOW: u64 = 20_000;
    let shape = loaded((16, 4), WINDOW, 0.9);
    let (mut filter, epoch) = (
        engine(shape, Window::Count { insertions: WINDOW }, Instructions::best()),
        Window::Count { insertions: WINDOW }.generation(shape.kept()) * shape.pages,
    );
    let (mut reported, mut sooner, mut asked) = (0, 0, 0);
    for phase in 0..200 {
        let at = 2 * WINDOW + phase * 97;
        let from = if phase == 0 { 0 } else { at - 97 };
        filter.insert(&(from..at).map(mix).collect::<Vec<_>>(), Moments::Untimed).unwrap();
        for window in [1, WINDOW / 7, WINDOW / 2, WINDOW - epoch] {
            let left = |by: u64| {
                let gone: Vec<u64> = (0..20).map(|i| mix(at - window - by - 1 - i)).collect();
                let mut present = [false; 20];
                filter.query_within(&gone, Moments::Untimed, window, &mut present).unwrap();
                present.iter().filter(|&&present| present).count()
            };
            reported += left(epoch);
            sooner += left(epoch / 2);
            asked += 20;
        }
    }
    assert!(reported <= 5, "{reported} of {asked}, at a rate of 1e-5");
    assert!(sooner > asked / 4 && sooner < asked * 3 / 4, "{sooner} of {asked}");
    for window in [0, WINDOW + 1] {
        filter.query_within(&[1], Moments::Untimed, window, &mut [false]).unwrap_err();
    }
}

#[test]
fn the_check_of_the_promise_fails_when_one_step_too_many_is_promised() {
    for window in [1_499, 20_011] {
        let shape = loaded((16, 4), window, 0.9);
        let short = window.div_ceil(u64::from(shape.kept()) + 2);
        let promised = Window::Count { insertions: short * u64::from(shape.kept()) + 1 };
        let mut filter = engine(shape, promised, Instructions::best());
        check_promise(&mut filter, window, 4 * window, 97, mix).unwrap_err();
    }
}

/// Lines whose runs do not end are refused. Whatever the other bits are: keys are kept, nothing panics or loops for
/// ever.
#[test]
fn any_sound_bits_can_be_worked_with() {
    let (mut random, mut unsound) = (Random(3), 0);
    for (f, t) in formats() {
        for (pages, lines) in [(1, 3), (1, 17), (2, 63)] {
            let shape = Shape::new(f, t, pages, lines, None).unwrap();
            let mut filter = engine(shape, Window::Count { insertions: 500 }, Instructions::best());
            let format = filter.layout.pages.format;
            let stride = filter.layout.pages.stride();
            for (i, line) in filter.words.to_mut().unwrap().as_chunks_mut().0.iter_mut().enumerate() {
                *line = std::array::from_fn(|_| random.below(u64::MAX));
                if i % stride > 0 && !format.sound(line) {
                    unsound += 1;
                    make_sound(format, line);
                }
            }
            assert!(filter.check().is_ok());
            let mut other = filter.clone();
            let first = &mut other.words.to_mut().unwrap()[8];
            *first ^= 1 << super::format::OCCUPIED;
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
                other.unite(&filter).unwrap();
                assert!(filter.check().is_ok() && other.check().is_ok());
            }
        }
    }
    assert!(unsound > 1000);
}

/// As few changes as make a line that others could have left.
fn make_sound(format: &Format, line: &mut Line) {
    let ends = format.ends.get(line);
    let runs = format.occupied(line).count_ones();
    let (mut kept, mut left) = (0, ends);
    for _ in 0..runs.min(ends.count_ones()) {
        kept |= left & left.wrapping_neg();
        left &= left.wrapping_sub(1);
    }
    let mut excess = runs.saturating_sub(ends.count_ones());
    for bucket in 0..format.shape.buckets + format.shape.foreign {
        if excess > 0 && format.occupied(line) >> bucket & 1 == 1 {
            line[0] &= !(1 << (super::format::OCCUPIED + bucket));
            excess -= 1;
        }
    }
    format.ends.set(line, kept);
    let used = u64::MAX.checked_shr(kept.leading_zeros()).unwrap_or(0);
    for plane in &format.planes {
        plane.set(line, plane.get(line) & used);
    }
    format.set_reach(line, format.reach(line).min(format.shape.foreign));
}

/// Fresh keys are reported as often as the entries say, and that is what the formula says.
#[test]
fn fresh_keys_are_reported_as_often_as_the_formula_says() {
    const WINDOW: u64 = 150_000;
    const TRIALS: u64 = 1 << 20;
    for (format, load) in [((5, 3), 0.93), ((7, 3), 0.93), ((6, 4), 0.92), ((9, 4), 0.91), ((8, 8), 0.85)] {
        let shape = loaded(format, WINDOW, load);
        let window = Window::Count { insertions: WINDOW };
        let mut filter = engine(shape, window, Instructions::best());
        filter.insert(&(0..2 * WINDOW).map(mix).collect::<Vec<_>>(), Moments::Untimed).unwrap();
        let (mut reported, mut now) = (0, 0.0);
        for phase in 0..4 {
            let more: Vec<u64> = (0..WINDOW / 4).map(|i| mix(1 << 40 | phase << 30 | i)).collect();
            filter.insert(&more, Moments::Untimed).unwrap();
            let fresh: Vec<u64> = (0..TRIALS / 4).map(|i| mix(1 << 50 | phase << 30 | i)).collect();
            let mut present = vec![false; fresh.len()];
            filter.query(&fresh, Moments::Untimed, &mut present).unwrap();
            reported += present.iter().filter(|&&present| present).count();
            now += filter.false_positive_rate() / 4.0;
        }
        let (measured, theory) =
            (reported as f64 / TRIALS as f64, shape.false_positive_rate(shape.keys_per_epoch(window)));
        println!("{shape:?}: measured {measured:.3e}, by the entries {now:.3e}, in theory {theory:.3e}");
        assert!((measured - now).abs() <= 5.0 * (now / TRIALS as f64).sqrt(), "{measured} is not {now}");
        // Distinct keys that share an entry take one: the rate itself, of which those of the window are half.
        assert!(now <= theory && now >= theory * (0.97 - theory), "{now} is not {theory}");
    }
}

/// One filter has had keys for long, the other has no room for them when they come again: together they are young.
#[test]
fn keys_that_were_turned_away_lately_are_young_in_the_union() {
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
        one.unite(other).unwrap();
        let mut present = [false; 500];
        one.query_within(&keys.clone().collect::<Vec<_>>(), Moments::Untimed, 500, &mut present).unwrap();
        assert!(present.iter().all(|&present| present));
    }
}

/// Of two filters together every key of either is there, with the younger age.
#[test]
fn united_filters_have_the_keys_of_both() {
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
        let phase = one.layout.phase(one.clock.generation(), 0);
        let age = |filter: &Aged<Quotient>, hash: u64| {
            let (pages, place) = (filter.layout.pages, filter.layout.pages.place(hash));
            let page = pages.page(filter.words.as_slice().as_chunks().0, place.page);
            pages.age(Portable, page, &place, phase.tag(&pages, place.page)).map_or(u32::MAX, |(age, _)| age)
        };
        let before = one.clone();
        one.unite(&other).unwrap();
        assert!(one.check().is_ok());
        for (hashes, filter) in [(&of_one, &before), (&of_other, &other)] {
            let mut present = vec![false; hashes.len()];
            one.query(hashes, Moments::Untimed, &mut present).unwrap();
            assert!(present.iter().all(|&present| present), "{load}");
            for window in [1, WINDOW / 30, WINDOW / 3, WINDOW] {
                let live = &hashes[(WINDOW - window) as usize..];
                one.query_within(live, Moments::Untimed, window, &mut present[..live.len()]).unwrap();
                assert!(present.iter().all(|&present| present), "{load} {window}");
            }
            for &hash in hashes {
                assert!(age(&one, hash) <= age(filter, hash));
            }
        }
    }
}
