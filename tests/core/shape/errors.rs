//! Parameters and requests that cannot be are named, in every family.

use std::sync::Arc;

use lately::Error;
use lately::clock::Window;
use lately::family::{Budget, Family, Parameters, Request, Shape, VARIANTS, Variant, Windows};

const MINUTES: Window = Window::Time { span: 600_000_000_000, lateness: 0, capacity: 1000 };
const NO_TIME: Window = Window::Time { span: 0, lateness: 0, capacity: 9 };
const LATE: Window = Window::Time { span: 1_000_000_000, lateness: 5, capacity: 100 };

const fn count(insertions: u64) -> Window {
    Window::Count { insertions }
}

/// Legal parameters of a family; below them other values of some, with which they are not, and words of the error.
const READ: &str = "
age-partitioned k=3 l=4 slice_bits=64
    k=0: k must be at least 1, got 0
    l=0: l must be at least 1, got 0
    k=100 l=29: k + l must be at most 128, got k=100, l=29
    k=4294967295 l=1: k=4294967295, l=1
    slice_bits=0: slice_bits must be at least 1, got 0
    slice_bits=18446744073709551615: 2**60
age-partitioned k=3 l=4 blocks=1 block_bits=64 parts=4
    blocks=0: blocks must be at least 1, got 0
    block_bits=96: block_bits must be 64 or 512, got 96
    parts=3: parts must be 1, 2, 4 or 8, got 3
age-partitioned k=1 l=127 blocks=1<<47 block_bits=512 parts=8
    blocks=18446744073709551615,2305843009213693951: 2**60
age-partitioned k=2 l=6 pages=1 lines=1
    l=7: k + l must be 8, 16 or 32 in the line layout, got k=2, l=7
    k=8 l=0: k + l must be 8, 16 or 32 in the line layout, got k=8, l=0
    k=4294967295 l=9: got k=4294967295, l=9
    k=0 l=8: k must lie in 1..=4 in the line layout, got 0
    k=5 l=11: k must lie in 1..=4 in the line layout, got 5
guarded-epoch r=3 k=4 segment_bits=64
    r=0: r must lie in 1..=127, got 0
    r=128: r must lie in 1..=127, got 128
    r=4294967295: r must lie in 1..=127
    k=0: k must lie in 1..=64, got 0
    k=65: k must lie in 1..=64, got 65
    segment_bits=3: segment_bits must be at least k=4, got 3
    segment_bits=18446744073709551615: 2**60
guarded-epoch r=3 blocks=1 block_bits=64 parts=4
    blocks=0: blocks must be at least 1, got 0
    block_bits=96: block_bits must be 64 or 512, got 96
    parts=3: parts must be 1, 2, 4 or 8, got 3
guarded-epoch r=127 blocks=1<<47 block_bits=512 parts=8
    blocks=18446744073709551615: 2**60
guarded-epoch r=63 k=64 positions=64
    r=6: r must be 7, 15, 31 or 63 in the transposed layout, got 6
    r=4294967295: r must be 7, 15, 31 or 63
    positions=3: positions must be at least k=64, got 3
    k=0: k must lie in 1..=64, got 0
    k=65: k must lie in 1..=64, got 65
    positions=18446744073709551615: 2**60
guarded-epoch r=31 pages=134217727 lines=4
    r=8: r must be 7, 15 or 31 in the line layout, got 8
    r=4294967295: r must be 7, 15 or 31
    pages=0: pages must lie in 1..=134217727 in the line layout, got 0
    pages=1<<27: pages must lie in
    lines=0: lines must lie in 1..=4
    lines=5: lines must lie in 1..=4 in the line layout, got 5
timing k=3 bpt=4 blocks=3 slice_timers=10 equal_timers=1
    k=0: k must lie in 1..=64, got 0
    k=65: k must lie in 1..=64, got 65
    bpt=1: bpt must lie in 2..=32, got 1
    bpt=33: bpt must lie in 2..=32, got 33
    blocks=0: blocks must lie in 1..=14 at bpt=4, got 0
    blocks=15: blocks must lie in 1..=14 at bpt=4, got 15
    slice_timers=0: slice_timers must be at least 1, got 0
    slice_timers=18446744073709551615: 2**60
    equal_timers=0: equal_timers must lie in 1..=k, here 3, got 0
    equal_timers=4: equal_timers must lie in 1..=k, here 3, got 4
timing k=3 bpt=32 blocks=1<<14 slice_timers=10 equal_timers=2
    blocks=1<<24+1: 1..=16777216 at bpt=32, got 16777217
    blocks=1<<17: blocks must be at most 16384 with equal_timers, got 131072
time-limited k=3 l=5 slice_bits=512
    k=0: k must be at least 1, got 0
    l=0: l must be at least 1, got 0
    k=100 l=29: k + l must be at most 128
    slice_bits=511,520,448,1152921504606847040: slice_bits must be a multiple of 64
bloom k=4 bits=1<<60
    k=0: k must lie in 1 .. 128, got 0
    bits=0,1<<60+1: bits must lie in
bloom k=4 slice_bits=1<<58
    k=129: k must lie in 1 .. 128, got 129
    slice_bits=0,1<<58+1: slice_bits must lie in
counting k=2 slice_cells=1<<59
    k=0: k must lie in 1 .. 128, got 0
    k=129: k must lie in 1 .. 128, got 129
    slice_cells=0: slice_cells
    slice_cells=1<<59+1: 2**60
stable k=2 slice_cells=10 bits=4 decrements=1
    bits=3: bits must be
    decrements=0: decrements must lie in 1 .. slice_cells = 10, got 0
    decrements=11: decrements must lie in 1 .. slice_cells = 10, got 11
fingerprint-buffer fingerprint_bits=64
    fingerprint_bits=0,65,4294967295: fingerprint_bits must lie in 1 .. 64
generalized bits=9 k1=1 k0=1
    bits=1: bits must lie in 2 .. 2**60, got 1
    bits=1<<61: bits must lie in 2 .. 2**60
    k1=0: k1 must lie in 1 .. 64, got 0
    k0=65: k0 must lie in 1 .. 64, got 65
swamp slots=64 remainder_bits=57
    slots=0,63,65: slots must be a multiple of 64
    slots=128: remainder_bits must
    remainder_bits=0,58,4294967295: remainder_bits must
swamp slots=64 remainder_bits=2
    slots=1<<62: remainder_bits must
swamp slots=64 remainder_bits=1
    slots=1<<61: 2**59 bytes
aged-cuckoo fingerprint_bits=16 epochs=64 pages=1 lines=54
    fingerprint_bits=0,15,4294967295: fingerprint_bits must be one of 10, 13, 16, 20, 25, 28, 32, 37, got
    epochs=0,201,4294967295: epochs must lie in 1..=200, got
    lines=0,1,3,2049,2050: lines must be an even number in 2..=2048, got
    pages=0: pages must lie in 1..=79536431 for this window, got 0
    pages=79536432: pages must lie in 1..=79536431 for this window, got 79536432";

/// Reads a number of the table, such as 5, 1<<58 or 1<<58+1.
fn number(text: &str) -> u64 {
    let (text, more) = text.strip_suffix("+1").map_or((text, 0), |text| (text, 1));
    let parsed = |text: &str| text.parse::<u64>().unwrap();
    more + text.split_once("<<").map_or_else(|| parsed(text), |(one, bits)| parsed(one) << parsed(bits))
}

fn pair<T>(text: &str, value: impl Fn(&str) -> T) -> (&str, T) {
    let (name, values) = text.split_once('=').unwrap();
    (name, value(values))
}

/// Requests of a variant, with a slack, and words of the error.
const PLANNED: &[(&str, Window, Budget, Option<u64>, &str)] = &[
    ("age-partitioned", count(1 << 60), Budget::Rate(0.2), None, "more than 2**60 bytes"),
    ("age-partitioned", count(1 << 62), Budget::Rate(0.1), None, "fpr must be above 2.6e-1 for this window"),
    ("age-partitioned", count(1_000_000), Budget::Rate(5e-14), None, "fpr must be above 5.5e-14 for this window"),
    ("age-partitioned", count(1000), Budget::Bytes(23), None, "nbytes must be at least 24 "),
    ("age-partitioned", count(1000), Budget::Rate(0.1), Some(7), "at least 8 insertions for this window, got 7"),
    ("age-partitioned-line", count(1 << 45), Budget::Rate(0.01), None, "takes more than 134217727 pages"),
    ("age-partitioned-line", count(1 << 62), Budget::Rate(0.1), None, "fpr must be above "),
    ("age-partitioned-line", count(1000), Budget::Bytes(4095), None, "at least 4096 in the line layout, got 4095"),
    ("age-partitioned-line", count(1000), Budget::Rate(0.1), Some(7), "slack must be at least 56 insertions"),
    // One page would have it, but two of this window take steps of a whole insertion.
    ("age-partitioned-line", count(1449), Budget::Rate(0.01), Some(72), "takes a slack of 87 insertions, got 72"),
    ("guarded-epoch", count(1 << 60), Budget::Rate(0.2), None, "more than 2**60 bytes"),
    ("guarded-epoch", count(1 << 62), Budget::Rate(0.1), None, "fpr must be above 2.6e-1 for this window"),
    ("guarded-epoch", count(1000), Budget::Bytes(23), None, "nbytes must be at least 24 "),
    ("guarded-epoch", count(1000), Budget::Rate(0.1), Some(7), "slack must be at least 8 insertions for this window"),
    ("guarded-epoch-line", count(1 << 45), Budget::Rate(0.01), None, "takes more than 134217727 pages"),
    ("guarded-epoch-line", count(1449), Budget::Rate(0.01), Some(72), "takes a slack of 87 insertions, got 72"),
    ("guarded-epoch-transposed", count(1000), Budget::Bytes(63), None, "nbytes must be at least 64 "),
    ("guarded-epoch-transposed", count(1000), Budget::Rate(0.1), Some(7), "slack must be at least 24 insertions"),
    ("timing", count(1 << 60), Budget::Rate(0.1), None, "more than 2**60 bytes"),
    ("timing", count(1000), Budget::Bytes(7), None, "nbytes must be at least 8, got 7"),
    ("timing", count(1 << 40), Budget::Rate(0.1), Some(7), "slack must be at least 65536 insertions"),
    ("timing", LATE, Budget::Rate(0.1), Some(4), "slack must be at least"),
    ("time-limited", MINUTES, Budget::Rate(1e-30), None, "fpr=0.000000000000000000000000000001"),
    ("time-limited", MINUTES, Budget::Rate(0.01), Some(5), "slack must be at least"),
    ("swamp", count((1 << 32) + 1), Budget::Rate(0.1), None, "2**32"),
    ("swamp", count(1000), Budget::Rate(1e-30), None, "fpr"),
    ("swamp", count(1000), Budget::Bytes(2000), None, "nbytes must be at least 2"),
    ("counting", count(100), Budget::Bytes(807), None, "at least 808"),
    ("fingerprint-buffer", count(1000), Budget::Rate(1e-30), None, "fpr"),
    ("fingerprint-buffer", count(65), Budget::Bytes(15), None, "nbytes must be at least 16"),
    ("generalized", count(1000), Budget::Rate(1e-30), None, "32 hashes"),
    ("generalized", count(1000), Budget::Bytes(0), None, "nbytes=0"),
    ("stable", count(1000), Budget::Bytes(0), None, "nbytes=0"),
    ("aged-cuckoo", count(1 << 45), Budget::Rate(0.01), None, "takes more than 4294967296 lines"),
    ("aged-cuckoo", count(1 << 62), Budget::Rate(0.1), None, "fpr must be above "),
    ("aged-cuckoo", count(1000), Budget::Rate(1e-12), None, "fpr must be at least 6.5e-11"),
    ("aged-cuckoo", count(1000), Budget::Bytes(127), None, "nbytes must be at least 128, got 127"),
    ("aged-cuckoo", count(1_000_000), Budget::Rate(0.1), Some(2), "slack must be at least 5000 insertions"),
];

fn plan(variant: &Variant, window: Window, budget: Budget, slack: Option<u64>) -> Result<Arc<dyn Shape>, Error> {
    variant.plan(&Request { slack, ..Request::of(window, budget) })
}

#[track_caller]
fn assert_names<T>(result: Result<T, Error>, words: &str, of: &str) {
    let error = result.err().map_or_else(|| "no error".to_owned(), |error| error.to_string());
    assert!(error.contains(words), "{of}: {error:?} has no {words:?}");
}

#[test]
fn a_parameter_out_of_range_is_named() {
    let (mut family, mut legal) = ("", Vec::new());
    for line in READ.trim_start().lines() {
        let read = |given: &[(&str, u64)]| Family::named(family).unwrap().read(&Parameters(given));
        let Some((changed, words)) = line.trim_start().split_once(": ") else {
            let (name, given) = line.split_once(' ').unwrap();
            (family, legal) = (name, given.split(' ').map(|given| pair(given, number)).collect());
            assert!(Family::named(family).unwrap().read(&Parameters(&legal)).is_ok(), "{line}");
            continue;
        };
        let changes: Vec<(&str, Vec<u64>)> =
            changed.split(' ').map(|change| pair(change, |values| values.split(',').map(number).collect())).collect();
        for i in 0..changes[0].1.len() {
            let changed = |name| changes.iter().find(|change| change.0 == name).map(|change| change.1[i]);
            let given = legal.iter().map(|&(name, was)| (name, changed(name).unwrap_or(was)));
            assert_names(read(&given.collect::<Vec<_>>()), words, line);
        }
    }
}

#[test]
fn a_request_that_cannot_be_met_is_named() {
    for &(name, window, budget, slack, words) in PLANNED {
        assert_names(plan(Variant::named(name).unwrap(), window, budget, slack), words, name);
    }
}

#[test]
fn no_variant_takes_a_rate_a_window_or_a_size_that_cannot_be() {
    for variant in VARIANTS.iter() {
        let (name, timed) = (variant.name(), variant.options.grow.is_some() || variant.family.windows == Windows::Time);
        let (window, empty) = if timed { (MINUTES, NO_TIME) } else { (count(1000), count(0)) };
        for fpr in [0.0, 1.0, -0.5, f64::NAN, f64::INFINITY] {
            let words = format!("fpr must lie between 0 and 1, both excluded, got {fpr}");
            assert_names(plan(variant, window, Budget::Rate(fpr), None), &words, &name);
        }
        assert_names(plan(variant, empty, Budget::Rate(0.1), None), "window must be", &name);
        if variant.family.windows == Windows::Insertions {
            let timed = plan(variant, MINUTES, Budget::Rate(0.1), None);
            assert_names(timed, "window must be a number of insertions", &name);
        }
        match plan(variant, window, Budget::Bytes(u64::MAX), None) {
            Ok(shape) => assert!(shape.fpr(window) < 1e-15 && ["swamp", "fingerprint-buffer"].contains(&&*name)),
            Err(error) if variant.family.windows == Windows::Time => assert!(error.to_string().contains("takes fpr")),
            Err(error) => assert!(error.to_string().contains("nbytes must be at most 2**"), "{name}: {error}"),
        }
    }
}

/// Returns the number that an error names after these words.
fn least_named(error: &Error, words: &str) -> Option<u64> {
    let error = error.to_string();
    error.split_once(words)?.1.split(|other: char| !other.is_ascii_digit()).next()?.parse().ok()
}

#[test]
fn the_least_size_slack_and_rate_that_an_error_names_are_enough() {
    let (window, mut sizes, mut slacks, mut rates) = (count(1000), 0, 0, 0);
    for variant in VARIANTS.iter().filter(|variant| variant.rejection(&Request::of(window, Budget::Bytes(1))).is_none())
    {
        let sized = |bytes| plan(variant, window, Budget::Bytes(bytes), None);
        if let Some(least) = sized(0).err().and_then(|error| least_named(&error, "nbytes must be at least ")) {
            assert!(sized(least).is_ok() && sized(least - 1).is_err(), "{} {least}", variant.name());
            sizes += 1;
        }
        let bounded = |slack| plan(variant, window, Budget::Rate(0.1), Some(slack));
        if let Some(least) = bounded(0).err().and_then(|error| least_named(&error, "slack must be at least ")) {
            assert!(bounded(least).is_ok() && bounded(least - 1).is_err(), "{} {least}", variant.name());
            slacks += 1;
        }
        let rated = |fpr| plan(variant, window, Budget::Rate(fpr), None);
        let error = rated(1e-18).err().map(|error| error.to_string()).unwrap_or_default();
        let words = error.split_once("fpr must be ").map_or("", |(_, words)| words);
        if let Some(least) = words.split(' ').find_map(|word| word.parse().ok()) {
            let error = rated(least).err().filter(|error| error.to_string().contains("fpr must be"));
            assert!(error.is_none(), "{} {least}", variant.name());
            rates += 1;
        }
    }
    assert!(sizes > 10 && slacks > 5 && rates > 5, "{sizes} {slacks} {rates}");
}
