//! The promise on random streams beside a map, in both directions; then rates and loads.

use std::collections::HashMap;

use super::line::{Now, rejection};
use super::operations::LineWork;
use super::shape::{AgedCuckooShape, FORMATS, LineFormat};
use super::vectors::ByteVectors;
use super::{AgedCuckoo, Line, lines, operations};
use crate::clock::{Clock, Moments, Window};
use crate::engine::chain::Chain;
use crate::engine::{Aged, Engine, Refresh};
use crate::family::Shape;
use crate::inference::EvidenceSource;
use crate::instructions::{Instructions, Portable};
use crate::memory::Words;

fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

struct Draws(u64);

impl Draws {
    fn either(&mut self, a: u64, b: u64) -> u64 {
        let most = self.of([a, b]);
        self.below(most)
    }

    fn of<const N: usize>(&mut self, all: [u64; N]) -> u64 {
        all[self.below(N as u64) as usize]
    }

    fn below(&mut self, most: u64) -> u64 {
        self.0 = mix(self.0);
        self.0 % most
    }
}

fn engine(shape: AgedCuckooShape, window: Window) -> Aged<AgedCuckoo> {
    let words = Words::zeroed((shape.pages * u64::from(shape.lines) * 8) as usize).unwrap();
    Aged { layout: AgedCuckoo::new(shape), words, clock: Clock::new(window, shape.epochs) }
}

fn shape(format: LineFormat, epochs: u32, pages: u64, lines: u32) -> AgedCuckooShape {
    AgedCuckooShape { format, epochs, pages, lines, distinct: None, grows: false, guessed: false }
}

/// Number of trials: many in a campaign.
fn trials(quick: u64) -> u64 {
    if std::env::var_os("LATELY_CAMPAIGN").is_some() { 100 * quick } else { quick }
}

/// A key is reported as long as its epoch is live; and a key is reported only if a live entry of its lines has its
/// fingerprint, or both lines have rejected keys. Hashes of few places collide often.
#[test]
fn answers_are_those_of_a_map_of_places() {
    let mut draws = Draws(1);
    for trial in 0..trials(120) {
        let format = FORMATS[trial as usize % FORMATS.len()];
        let timed = draws.below(2) == 0;
        let (pages, lines_of_page) = (1 + draws.below(3), draws.of([2, 4, 8, 30, 80]) as u32);
        let epochs = draws.of([1, 2, 3, 50, 63, 130, 200]) as u32;
        let slots = pages * u64::from(lines_of_page) * u64::from(format.slots);
        let load = 30 + draws.below(120);
        let window = 1 + slots * load / 100;
        let window = match timed {
            true => Window::Time { span: window * 1000, lateness: 0, capacity: window },
            false => Window::Count { insertions: window },
        };
        let mut filter = engine(shape(format, epochs, pages, lines_of_page), window);
        if draws.below(3) == 0 {
            filter.layout.instructions = Instructions::Portable(Portable);
        }
        let (mut newest, mut history) = (HashMap::<(u32, u32, u64), i64>::new(), Vec::<u64>::new());
        let (few, mut now) = (1 + draws.below(64), 0);
        for _ in 0..30 {
            // Sometimes nothing comes for some epochs, or for all of them.
            let pause = draws.of([0, 0, 0, 3, 300]) * filter.clock.window().length() / 200;
            now += if timed { pause } else { 0 };
            let count = 1 + draws.below(slots / 2 + 2);
            let hashes: Vec<u64> = (0..count)
                .map(|_| match draws.below(3) {
                    0 => mix(draws.below(few)),
                    1 => mix(draws.below(slots)),
                    _ => mix(draws.below(u64::MAX)),
                })
                .collect();
            let times: Vec<i64> = hashes.iter().map(|_| (now += draws.below(2000), now as i64).1).collect();
            let at = if timed { Moments::of(&times) } else { Moments::Untimed };
            let mut seen = vec![false; hashes.len()];
            filter.duplicated(&hashes, at, Refresh::Always, &mut seen).unwrap();
            history.extend_from_slice(&hashes);
            let mut clock = filter.clock.clone();
            for (i, (&hash, &seen)) in hashes.iter().zip(&seen).enumerate() {
                let generation = match timed {
                    true => clock.generation_at(times[i]),
                    false => {
                        clock = clock.resumed(filter.clock.inserted() - count + i as u64 + 1, None);
                        clock.generation()
                    }
                };
                let place = filter.layout.pages.place(hash);
                let pair = (place.first.min(place.second), place.first.max(place.second), place.fingerprint);
                let before = newest.insert(pair, generation);
                // On the count clock the key is looked up before it opens an epoch.
                let opens =
                    i64::from(!timed && before.is_some_and(|before| generation - before == i64::from(epochs) + 1));
                if before.is_some_and(|before| generation - before - opens <= i64::from(epochs)) && opens == 0 {
                    assert!(seen, "missed: trial {trial}, {format:?}, {window:?}, key {i}");
                }
            }
            let open = filter.clock.generation();
            let now = Now::new(open, Some(epochs));
            let rejects = |line: u32| now.live.contain(rejection(&lines(filter.words.as_slice())[line as usize]));
            let fresh = (0..200).map(|_| mix(draws.below(u64::MAX)));
            let queried: Vec<u64> = history.iter().rev().take(20_000).copied().chain(fresh).collect();
            let mut present = vec![false; queried.len()];
            filter.layout_query(&queried, &mut present);
            for (&hash, present) in queried.iter().zip(present) {
                let place = filter.layout.pages.place(hash);
                let pair = (place.first.min(place.second), place.first.max(place.second), place.fingerprint);
                let is_live = newest.get(&pair).is_some_and(|&epoch| open - epoch <= i64::from(epochs));
                assert!(present || !is_live, "missed: trial {trial}");
                assert!(!present || is_live || rejects(place.first) && rejects(place.second), "unexplained: {trial}");
            }
        }
    }
}

impl Aged<AgedCuckoo> {
    fn layout_query(&self, hashes: &[u64], present: &mut [bool]) {
        use crate::family::Layout;
        let rotation = self.layout.rotation(self.clock.generation(), 0);
        self.layout.query_run(self.words.as_slice(), rotation, hashes, 0..hashes.len(), present);
    }
}

/// Numbers that compilers know give what numbers of a value give.
#[test]
fn every_format_fits_its_line_and_returns_what_was_written() {
    struct Check<'a>(LineFormat, &'a mut Draws);

    impl LineWork for Check<'_> {
        type Output = ();

        fn run(self, known: LineFormat, machine: impl ByteVectors) {
            let Self(format, draws) = self;
            assert_eq!(known, format);
            let bits = 8 * known.planes() + known.slots() * known.bits();
            assert!(bits <= 8 * 63 && known.slots() <= 31 && bits <= 128 + 8 * known.planes().min(48));
            let (mut line, mut written): (Line, Vec<(u64, u8)>) = ([0; 64], vec![(0, 0); known.slots()]);
            for _ in 0..500 {
                let slot = draws.below(known.slots() as u64) as usize;
                let (fingerprint, tag) = (draws.below(1 << format.fingerprint_bits), 1 + draws.below(255) as u8);
                let mut other = line;
                known.write(&mut line, slot, fingerprint, tag);
                format.write(&mut other, slot, fingerprint, tag);
                assert_eq!(line, other);
                written[slot] = (fingerprint, tag);
                let now = Now::new(draws.below(1000) as i64, Some(draws.below(201) as u32));
                let [(live, found)] = known.look(machine, [&line], fingerprint, now.live, true);
                assert_eq!([(live, found)], format.look(Portable, [&line], fingerprint, now.live, false));
                for (i, &(other, tag)) in written.iter().enumerate() {
                    assert_eq!((known.fingerprint(&line, i), line[i]), (other, tag));
                    assert_eq!(live >> i & 1 == 1, now.live.contain(tag));
                    assert_eq!(found >> i & 1 == 1, now.live.contain(tag) && other == fingerprint);
                }
                assert_eq!((live >> known.slots(), rejection(&line)), (0, 0));
            }
        }
    }
    for format in FORMATS {
        operations::run(Instructions::best(), format, Check(format, &mut Draws(format.slots.into())));
    }
}

#[test]
fn tags_are_live_for_the_retained_epochs_and_no_longer() {
    for generation in [0, 1, 254, 255, 256, 1_000, -1, -700, i64::MAX / 2] {
        for retained in [0, 1, 63, 200] {
            let now = Now::new(generation, Some(retained));
            for age in 0..254 {
                let tag = Now::new(generation - age, Some(0)).open;
                assert_eq!(now.live.contain(tag), age <= i64::from(retained), "{generation} {retained} {age}");
                assert_eq!(i64::from(now.age(tag)), age);
            }
            assert!(!now.live.contain(0) && !Now::new(generation, None).live.contain(now.open));
        }
    }
}

/// Returns a chain whose first table has this number of lines.
fn chain(format: LineFormat, epochs: u32, lines: u32, window: Window) -> Chain<AgedCuckooShape> {
    let shape = AgedCuckooShape { grows: true, ..shape(format, epochs, 1, lines) };
    Chain::new(shape, Clock::new(window, epochs), &Words::zeroed(0).unwrap()).unwrap()
}

/// Rates that jump between a key and thousands in an epoch, gaps, ticks, and keys that come again; with and without
/// refresh. A key is reported if its last insertion lies within the window, and after it was saved and read.
#[test]
fn a_chain_keeps_every_key_of_the_window_at_any_rate() {
    let mut draws = Draws(7);
    let (mut live_keys, mut tables) = (0u64, 0);
    for trial in 0..trials(40) {
        let format = FORMATS[draws.below(FORMATS.len() as u64) as usize];
        let epochs = draws.of([1, 7, 63, 200]) as u32;
        let span = 1_000 * u64::from(epochs) + draws.below(1_000);
        let window = Window::Time { span, lateness: 0, capacity: 10 };
        let mut filter = chain(format, epochs, draws.of([2, 4, 30]) as u32, window);
        let refresh = [Refresh::Always, Refresh::Unseen][draws.below(2) as usize];
        let (mut last, mut now, keys): (HashMap<u64, i64>, i64, u64) = (HashMap::new(), 5, 1 + draws.below(5_000));
        for _ in 0..60 {
            now += draws.of([0, 1, 1_000, span / 3, span, 3 * span]) as i64;
            let (count, spread) = (draws.of([1, 3, 100, 2_000]), draws.of([0, 1, 50]));
            let hashes: Vec<u64> = (0..count).map(|_| mix(draws.either(keys, 1 << 40))).collect();
            let times: Vec<i64> = hashes.iter().map(|_| (now += draws.below(spread + 1) as i64, now).1).collect();
            let mut seen = vec![false; hashes.len()];
            filter.duplicated(&hashes, Moments::of(&times), refresh, &mut seen).unwrap();
            for ((&hash, &time), &seen) in hashes.iter().zip(&times).zip(&seen) {
                let live = last.get(&hash).is_some_and(|&before| time - before <= span as i64);
                assert!(seen || !live, "missed: trial {trial}, {format:?}, {epochs}");
                live_keys += u64::from(live);
                if refresh == Refresh::Always || !seen {
                    last.insert(hash, time);
                }
            }
            if draws.below(10) == 0 {
                let saved = filter.to_words().unwrap();
                let read = Chain::new(*filter.growth(), filter.clock(), &saved).unwrap();
                assert_eq!(read.pieces().unwrap(), filter.pieces().unwrap());
                filter = read;
            }
            let (queried, late): (Vec<u64>, i64) = (last.keys().copied().collect(), draws.of([0, 1, 500, span]) as i64);
            let mut present = vec![false; queried.len()];
            filter.query(&queried, Moments::At(now + late), &mut present).unwrap();
            for (hash, present) in queried.iter().zip(present) {
                let live = now + late - last[hash] <= span as i64;
                assert!(present || !live, "missed in a query: trial {trial}");
            }
            tables = tables.max(filter.tables());
        }
    }
    assert!(live_keys > 20_000 && tables > 3, "{live_keys} {tables}");
}

/// Late keys in batches and singly, in one table and in a chain: each is reported for a window from its own time on,
/// and for one epoch more at most. Fingerprints are so long that no other key has the same.
#[test]
fn a_late_key_is_reported_for_a_window_from_its_own_time_on() {
    let mut draws = Draws(11);
    let (mut late_keys, mut gone) = (0, 0);
    for trial in 0..trials(60) {
        let format = FORMATS[6 + draws.below(2) as usize];
        let epochs = draws.of([3, 64, 130, 200]) as u32;
        let span = 1_000 * u64::from(epochs) + draws.below(1_000);
        let lateness = draws.of([1, span / 50, span / 2, 2 * span]);
        let window = Window::Time { span, lateness, capacity: 1_000 };
        let (table, of_chain) = (engine(shape(format, epochs, 1, 700), window), chain(format, epochs, 30, window));
        let mut filters: [Box<dyn Engine>; 2] = [Box::new(table), Box::new(of_chain)];
        let filter = &mut filters[draws.below(2) as usize];
        let epoch = window.generation(epochs) as i64;
        let (mut newest, mut latest) = (HashMap::<u64, i64>::new(), 0i64);
        let mut check = |newest: &HashMap<u64, i64>, hash: u64, time: i64, seen: bool| {
            let age = newest.get(&hash).map(|&last| time - last);
            assert!(seen || age.is_none_or(|age| age > span as i64), "missed: trial {trial}, {window:?}, {age:?}");
            assert!(!seen || age.is_some_and(|age| age <= span as i64 + epoch), "stayed: trial {trial}, {age:?}");
            gone += u64::from(!seen && age.is_some());
        };
        for _ in 0..60 {
            latest += draws.of([0, 0, span / 8, span]) as i64;
            let keys: Vec<(u64, i64)> = (0..draws.of([1, 30, 300]))
                .map(|_| {
                    latest += draws.of([0, 0, span / 300]) as i64;
                    let late = draws.of([0, 0, lateness, lateness / 3]);
                    late_keys += u64::from(late > epoch as u64);
                    (mix(draws.below(2_000)), latest - draws.below(late + 1) as i64)
                })
                .collect();
            let refresh = [Refresh::Always, Refresh::Unseen][draws.below(2) as usize];
            let (hashes, times): (Vec<u64>, Vec<i64>) = keys.iter().copied().unzip();
            let mut seen = vec![false; keys.len()];
            if draws.below(2) == 0 {
                filter.duplicated(&hashes, Moments::of(&times), refresh, &mut seen).unwrap();
            } else {
                seen =
                    keys.iter().map(|&(key, time)| filter.seen_one(key, Moments::At(time), refresh).unwrap()).collect();
            }
            for (&(hash, time), seen) in keys.iter().zip(seen) {
                check(&newest, hash, time, seen);
                if refresh == Refresh::Always || !seen {
                    newest.entry(hash).and_modify(|last| *last = time.max(*last)).or_insert(time);
                }
            }
            let queried: Vec<u64> = newest.keys().copied().collect();
            let latest = filter.clock().latest().unwrap();
            let time = latest - draws.below(lateness + 1) as i64 + draws.of([0, 0, span / 2]) as i64;
            let mut present = vec![false; queried.len()];
            filter.query(&queried, Moments::At(time), &mut present).unwrap();
            queried.iter().zip(present).for_each(|(&hash, present)| check(&newest, hash, time, present));
        }
    }
    assert!(late_keys > 20_000 && gone > 20_000, "{late_keys} {gone}");
}

/// Bursts of new keys, ramps, ticks and lulls: in no tenth of a window are more new keys reported than planned, and
/// memory follows the live keys.
#[test]
fn a_chain_keeps_its_rate_and_its_bytes_at_any_rate() {
    let (format, epochs, span) = (FORMATS[1], 64, 64_000u64);
    let window = Window::Time { span, lateness: 0, capacity: 10 };
    // Bytes per key of an even stream: room to spare, and fingerprints of 20 bits.
    let even = 64.0 / 18.0 * 1.3 / 0.95;
    // Keys per epoch, and for how many epochs.
    let phases = [(2u64, 80u64), (2_000, 100), (40, 130), (8_000, 8), (200, 140), (1, 200), (3_000, 70)];
    for spread in [true, false] {
        let mut filter = chain(format, epochs, 32, window);
        let planned = Shape::fpr(filter.growth(), window);
        let (mut next, mut now, mut counts) = (0u64, 0i64, Vec::new());
        for (rate, length) in phases {
            let (mut reported, mut keys) = (0u64, 0u64);
            for epoch in 0..length {
                let hashes: Vec<u64> = (next..next + rate).map(mix).collect();
                next += rate;
                let times: Vec<i64> =
                    (0..rate).map(|i| now + if spread { (i * 1_000 / rate) as i64 } else { 0 }).collect();
                let mut seen = vec![false; hashes.len()];
                filter.duplicated(&hashes, Moments::of(&times), Refresh::Always, &mut seen).unwrap();
                now += 1_000;
                counts.push(rate);
                (reported, keys) = (reported + seen.iter().filter(|&&seen| seen).count() as u64, keys + rate);
                if epoch % 6 == 5 || epoch + 1 == length {
                    let mean = keys as f64 * planned;
                    assert!((reported as f64) <= 1.1 * mean + 6.0 * mean.sqrt() + 8.0, "{reported} of {keys}, {rate}");
                    (reported, keys) = (0, 0);
                }
            }
            let live: u64 = counts.iter().rev().take(epochs as usize + 1).sum();
            let bytes = filter.nbytes() as f64;
            assert!(bytes <= 2.5 * even * live as f64 + 3.0 * 32.0 * 64.0, "{bytes} bytes for {live} keys, {rate}");
        }
    }
}

/// Tables so large that they are swept in pieces, with gaps of any length, or so few calls that sweeps come as late
/// as they may: a key is reported for its window and no longer, through all 255 tags.
#[test]
fn a_large_table_is_swept_in_time_after_any_gap() {
    let mut draws = Draws(13);
    for (epochs, seldom) in [(3, false), (64, false), (200, false), (64, true), (200, true)] {
        let window = Window::Time { span: 1_000 * u64::from(epochs), lateness: 0, capacity: 10 };
        let shape = AgedCuckooShape { grows: true, ..shape(FORMATS[7], epochs, 5, 2_000) };
        let mut filter = Chain::new(shape, Clock::new(window, epochs), &Words::zeroed(0).unwrap()).unwrap();
        let (mut keys, mut open, mut tables) = (Vec::<(u64, i64)>::new(), 0i64, 0);
        for _ in 0..if seldom { 3_000 } else { 600 } {
            let (most, eighth) = (u64::from(epochs), u64::from(epochs) / 8);
            let (gap, calls) = match seldom {
                true => (draws.of([0, 0, 0, 0, 0, 0, 0, 0, 0, eighth]), 1),
                false => (draws.of([1, 1, 1, most, most - 1, most / 3]), draws.of([1, 2, 30])),
            };
            open += gap as i64;
            keys.retain(|&(_, epoch)| open - epoch < 600);
            if draws.below(60) == 0 {
                // A file does not contain which sweeps are left.
                filter = Chain::new(*filter.growth(), filter.clock(), &filter.to_words().unwrap()).unwrap();
            }
            for _ in 0..calls {
                let hashes: Vec<u64> = (0..draws.of([1, 3])).map(|_| mix(draws.below(1 << 40))).collect();
                filter.insert(&hashes, Moments::At(1_000 * open)).unwrap();
                keys.extend(hashes.iter().map(|&hash| (hash, open)));
            }
            let hashes: Vec<u64> = keys.iter().map(|&(hash, _)| hash).collect();
            let mut present = vec![false; hashes.len()];
            filter.query(&hashes, Moments::At(1_000 * open), &mut present).unwrap();
            for (&(_, epoch), present) in keys.iter().zip(present) {
                assert_eq!(present, open - epoch <= i64::from(epochs), "{epochs}: {epoch} in {open}");
            }
            tables = tables.max(filter.tables());
        }
        assert!(tables > 1 || epochs < 64 || seldom, "no gap was too long to be swept");
    }
}

#[test]
fn a_chain_answers_for_a_window_of_insertions_as_one_table_does() {
    let mut draws = Draws(3);
    for _ in 0..trials(30) {
        let (format, epochs) = (FORMATS[7], draws.of([1, 7, 64]) as u32);
        let window = 1 + draws.of([1, 100, 3_000]);
        let window = Window::Count { insertions: draws.below(window) + 1 };
        let mut table = engine(shape(format, epochs, 1, 700), window);
        let mut of_chain = chain(format, epochs, 700, window);
        for _ in 0..30 {
            let refresh = [Refresh::Always, Refresh::Unseen, Refresh::Delivered][draws.below(3) as usize];
            let keys = 1 + draws.of([1, 2]) * window.length();
            let hashes: Vec<u64> = (0..1 + draws.below(1_000)).map(|_| mix(draws.below(keys))).collect();
            let mut seen = [vec![false; hashes.len()], vec![false; hashes.len()]];
            table.duplicated(&hashes, Moments::Untimed, refresh, &mut seen[0]).unwrap();
            of_chain.duplicated(&hashes, Moments::Untimed, refresh, &mut seen[1]).unwrap();
            assert_eq!(seen[0], seen[1], "{window:?}, {refresh:?}");
            assert_eq!(table.clock(), of_chain.clock());
        }
        assert_eq!(table.words.as_slice(), of_chain.words().as_slice());
    }
}

/// Each thread fills a filter of the last W insertions. Merged, a key that is k insertions old stays for W - k more.
#[test]
fn merged_windows_of_insertions_keep_the_last_of_each() {
    let mut draws = Draws(5);
    for trial in 0..trials(40) {
        let (epochs, insertions) = (draws.of([1, 7, 64]) as u32, 1 + draws.below(2_000));
        let window = Window::Count { insertions };
        let mut ages = HashMap::<u64, u64>::new();
        let mut filled = |thread: u64, draws: &mut Draws| {
            let mut filter = chain(FORMATS[7], epochs, 2 * insertions.div_ceil(11) as u32 + 2, window);
            let count = draws.either(3 * insertions, 30) + 1;
            let hashes: Vec<u64> = (0..count).map(|i| mix(thread << 32 | i)).collect();
            filter.insert(&hashes, Moments::Untimed).unwrap();
            ages.extend(hashes.iter().rev().zip(1..).map(|(&hash, age)| (hash, age)));
            filter
        };
        let mut merged = filled(1, &mut draws);
        for thread in 2..2 + draws.below(3) {
            merged.merge(&filled(thread, &mut draws)).unwrap();
        }
        let (mut later, mut present) = (0, vec![false; ages.len()]);
        let hashes: Vec<u64> = ages.keys().copied().collect();
        let gone = (u64::from(epochs) + 2) * window.generation(epochs);
        while later < 3 * insertions + 10 {
            merged.query(&hashes, Moments::Untimed, &mut present).unwrap();
            for (hash, &present) in hashes.iter().zip(&present) {
                let age = ages[hash] + later;
                assert!(present || age > insertions, "missed: trial {trial}, {age} of {insertions}");
                assert!(!present || age <= gone, "stayed: trial {trial}, {age} of {insertions}");
            }
            let more = 1 + draws.below(1 + insertions / 3);
            let new: Vec<u64> = (0..more).map(|i| mix((1 << 60) | (later + i))).collect();
            merged.insert(&new, Moments::Untimed).unwrap();
            later += more;
        }
        assert_eq!(merged.tables(), 1);
    }
}

/// Keys that fall on one pair of lines, as an attacker may choose them, take no memory, and are inserted once.
#[test]
fn keys_that_crowd_into_two_lines_open_no_tables() {
    let window = Window::Time { span: 64_000, lateness: 0, capacity: 10 };
    let mut filter = chain(FORMATS[2], 64, 512, window);
    let place = |hash: u64| filter.layout().pages.place(hash);
    let pair = |hash: u64| [place(hash).first, place(hash).second];
    let crowd: Vec<u64> = (0..1u64 << 16).map(|i| i << 39).filter(|&hash| pair(hash) == pair(0)).collect();
    assert!(crowd.len() > 60, "{}", crowd.len());
    let (mut seen, mut alone) = (vec![false; crowd.len()], filter.clone());
    filter.duplicated(&crowd, Moments::At(0), Refresh::Always, &mut seen).unwrap();
    // The first key without room is new. The lines that it marks report the others.
    let room = 2 * FORMATS[2].slots as usize;
    assert_eq!(seen, (0..crowd.len()).map(|i| i > room).collect::<Vec<bool>>());
    let one = |&hash: &u64| alone.seen_one(hash, Moments::At(0), Refresh::Always).unwrap();
    assert_eq!(seen, crowd.iter().map(one).collect::<Vec<bool>>());
    assert_eq!(filter.clock().inserted(), crowd.len() as u64);
    filter.query(&crowd, Moments::At(64_000), &mut seen).unwrap();
    assert!(seen.iter().all(|&seen| seen) && filter.tables() == 1);
}
