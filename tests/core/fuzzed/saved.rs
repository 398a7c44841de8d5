//! A saved filter with crafted bytes: its sums are corrected, and every filter that can be read is used.

use lately::clock::{Moments, Window};
use lately::engine::Refresh;
use lately::family::AnyFilter;
use lately::inference::{Inference, PerKey, Posterior, PosteriorCache, Question};
use lately::shard::{Answer, Earlier, NEVER, Ranges, Row, Rule, Shard};
use lately::{Error, format};
use xxhash_rust::xxh3::xxh3_64;

/// Number of bytes of the header.
pub const HEADER: usize = 64;
/// Most bytes of parameters that are tried.
const PARAMETERS: u64 = 192;

/// Returns header, parameters and cells.
pub fn bytes_of(filter: &AnyFilter) -> Vec<u8> {
    let mut bytes = Vec::new();
    format::write(filter, &mut bytes).unwrap();
    bytes
}

/// Returns the little-endian word at this byte.
pub fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Writes a little-endian word.
pub fn set_word(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Corrects both checksums, as far as the lengths locate them: beyond them lie the bytes that they guard.
pub fn seal(bytes: &mut [u8]) {
    if bytes.len() < HEADER {
        return;
    }
    let cells = usize::try_from(word(bytes, 24)).ok().and_then(|length| length.checked_add(HEADER));
    let Some(cells) = cells.filter(|&cells| cells <= bytes.len()) else {
        return;
    };
    let sum_of_cells = xxh3_64(&bytes[cells..]);
    set_word(bytes, 40, sum_of_cells);
    let sum = xxh3_64(&[&bytes[..56], &bytes[HEADER..cells]].concat());
    set_word(bytes, 56, sum);
}

/// Reads the bytes, with magic, version, lengths and sums corrected, and makes every call on the result; returns
/// whether they were a filter.
pub fn run(bytes: &[u8]) -> bool {
    used(bytes, None)
}

/// Runs with few calls, in microseconds. A byte of the sum chooses them, since the sum is written anew.
pub fn run_briefly(bytes: &[u8]) -> bool {
    used(bytes, bytes.get(40).copied())
}

fn used(bytes: &[u8], chosen: Option<u8>) -> bool {
    if bytes.len() < HEADER {
        return false;
    }
    let mut bytes = bytes.to_vec();
    bytes[..10].copy_from_slice(b"\x89LAT\r\n\x1a\n\x01\0");
    let parameters = word(&bytes, 24).min((bytes.len() - HEADER) as u64).min(PARAMETERS) / 64 * 64;
    let cells = (bytes.len() - HEADER - parameters as usize) / 8 * 8;
    bytes.truncate(HEADER + parameters as usize + cells);
    set_word(&mut bytes, 24, parameters);
    set_word(&mut bytes, 32, cells as u64);
    seal(&mut bytes);
    match format::from_bytes(Box::new(bytes.clone())) {
        Ok(filter) => {
            let (call, turn) = chosen.map_or((4, None), |chosen| (chosen % 4, Some(usize::from(chosen / 4))));
            if matches!(call, 0 | 4) {
                infer(&filter, turn);
            }
            if matches!(call, 1 | 4) {
                cut(&filter);
            }
            if matches!(call, 2 | 4) {
                merge(&filter);
            }
            if matches!(call, 3 | 4) {
                use_all(filter, &bytes, turn);
            }
            true
        }
        Err(Error::Format(_)) => false,
        Err(error) => panic!("{error:?} is not an error of the format"),
    }
}

pub fn hashes<const N: usize>() -> [u64; N] {
    std::array::from_fn(|i| xxh3_64(&[i as u8]))
}

pub fn share(share: f64) -> bool {
    (0.0..=1.0).contains(&share)
}

/// Returns the answer of a call, unless crafted numbers made it request more memory than there is.
fn had<T>(answer: Result<T, Error>) -> Option<T> {
    match answer {
        Err(Error::Memory { .. }) => None,
        answer => Some(answer.unwrap()),
    }
}

/// Returns all of these, or the one chosen by the turn.
fn of<T: Copy, const N: usize>(all: [T; N], turn: Option<usize>) -> Vec<T> {
    turn.map_or(all.to_vec(), |turn| vec![all[turn % N]])
}

/// Makes every call of an engine, at later and later moments, and saves and reads before and after.
pub fn use_all(mut filter: AnyFilter, bytes: &[u8], turn: Option<usize>) {
    let window = filter.engine().clock().window();
    let latest = filter.engine().clock().latest();
    let inserted = filter.engine().clock().inserted();
    // Words that do not apply need not be zero, and are saved as zero; the filter is the same.
    let cells = filter.engine().to_words().unwrap();
    assert!(bytes.ends_with(cells.as_ref()));
    assert_eq!(bytes_of(&reread(&bytes_of(&filter))), bytes_of(&filter));

    let keys: [u64; 40] = hashes();
    let mut answers = vec![false; keys.len()];
    let span = match window {
        Window::Count { .. } => 0,
        Window::Time { span, .. } => span as i64,
    };
    let now = latest.unwrap_or(0);
    let moments = [now, now.saturating_add(5), now.saturating_add(span).saturating_add(9), i64::MAX];
    for moment in of(moments, turn) {
        let each: Vec<i64> = (0..keys.len() as i64).map(|i| moment.saturating_add(i / 10)).collect();
        let at = |at| if span == 0 { Moments::Untimed } else { at };
        filter.engine().query(&keys, at(Moments::At(moment)), &mut answers).unwrap();
        let engine = filter.engine_mut();
        let queried = engine.duplicated(&keys[..20], at(Moments::At(moment)), Refresh::Unseen, &mut answers[..20]);
        let inserted = queried.and_then(|()| engine.insert(&keys, at(Moments::Each(&each))));
        if had(inserted).is_none() {
            return;
        }
        engine.query(&keys[39..], at(Moments::At(each[39])), &mut answers[39..]).unwrap();
        assert!(answers[39], "the key inserted last is there");
        let again = engine.duplicated(&keys[39..], at(Moments::At(each[39])), Refresh::Always, &mut answers[39..]);
        if had(again).is_none() {
            return;
        }
        assert!(answers[39]);
    }

    let copy = filter.clone();
    assert!(copy.engine().match_rates().into_iter().all(share), "{:?}", copy.engine().match_rates());
    assert!(copy.engine().fill().into_iter().all(share), "{:?}", copy.engine().fill());
    assert!(share(copy.false_positive_rate()) && share(copy.fpr()), "{} {}", copy.false_positive_rate(), copy.fpr());
    assert!(copy.shape().npws(copy.window()) >= 0.0 && copy.shape().cache_lines(copy.window()).hit >= 0.5);
    assert!(copy.shape().false_negative_rates(copy.window()).into_iter().all(share));
    let _ = (copy.slack(), copy.seed(), copy.family(), copy.parameters());
    if inserted < 1 << 61 {
        assert_eq!(bytes_of(&reread(&bytes_of(&copy))), bytes_of(&copy));
    }
}

/// Returns a filter whose bytes are known to be one.
pub fn reread(bytes: &[u8]) -> AnyFilter {
    format::from_bytes(Box::new(bytes.to_vec())).unwrap()
}

/// Computes ages and posteriors, with priors from 0 to the greatest: every answer is a probability or an age.
pub fn infer(filter: &AnyFilter, turn: Option<usize>) {
    let keys: [u64; 8] = hashes();
    let (timed, latest) = match filter.window() {
        Window::Count { .. } => (false, None),
        Window::Time { .. } => (true, filter.engine().clock().latest()),
    };
    let most = if timed { 1e300 } else { 1.0 };
    let each = [0.0, 1e-300, 1e-9, 0.01, 0.1, 0.125, 0.7, most];
    let known = |at: &[f64]| Some(at.iter().map(|&n| n.min(1e6)).collect::<Vec<f64>>());
    let unknown = |_: &[f64]| None;
    let ages = [0.0, 1.0, 17.0, 1e9];
    let questions = [
        Question::default(),
        Question { ages: &ages, distinct: Some(&known), few: None },
        Question { ages: &ages[..1], distinct: Some(&unknown), few: None },
    ];
    for question in of(questions, turn) {
        let Ok(inference) = Inference::about(filter.engine(), &question) else { return };
        let mut answers = [0.0; 8];
        let later = latest.unwrap_or(0).saturating_add(1_500_000_000);
        for at in if timed { [Moments::At(later), Moments::Now(later)] } else { [Moments::Untimed; 2] } {
            for prior in of([PerKey::All(0.01), PerKey::All(most), PerKey::Each(&each)], turn.map(|turn| turn / 3)) {
                for window in of([0.0, 1.0, 50.5, 1e18, f64::INFINITY], turn) {
                    let mut cache = PosteriorCache::new(keys.len());
                    inference.posterior(&keys, at, prior, window, &mut cache, &mut answers).unwrap();
                    assert!(answers.into_iter().all(share), "{answers:?} within {window} for {prior:?}");
                }
                let sound = |_, posterior: &Posterior<'_>| {
                    let within = ages.map(|age| posterior.within(age));
                    assert!(within.is_sorted() && within.into_iter().all(share), "{within:?}");
                    assert!(share(posterior.ever()));
                    assert!(posterior.most_likely() >= 0.0 && posterior.expected() >= 0.0, "{posterior:?}");
                };
                inference.each(&keys, at, prior, inference.began(), sound).unwrap();
            }
        }
    }
}

/// Divides the cells into shards, which take cells and return when they were set, and decides keys by them.
fn cut(filter: &AnyFilter) {
    let Ok(row) = Row::of(filter) else { return };
    let keys: [u64; 8] = hashes();
    let moments = match filter.window() {
        Window::Count { .. } => Moments::Untimed,
        Window::Time { .. } => Moments::At(filter.engine().clock().latest().unwrap_or(0)),
    };
    let Ok(generations) = row.generations(moments, keys.len()) else { return };
    let all = filter.engine().words().as_slice();
    for parts in 1..4 {
        let Ok(bounds) = row.bounds(parts) else { return };
        assert!(bounds.is_sorted() && bounds.len() as u64 == parts + 1);
        let Some(scattered) = had(Ranges::new(row.clone(), parts, 1, false).and_then(|ranges| ranges.scatter(&keys)))
        else {
            return;
        };
        let shares = scattered.scattered(|_, cell| cell).unwrap();
        let (mut answers, mut start) = (Vec::new(), 0);
        for (part, own) in (0..).zip(&shares) {
            let Some(mut shard) = had(Shard::new(row.clone(), part, parts)) else { return };
            let words = &all[start..start + shard.words().len()];
            start += words.len();
            let newest = generations[0];
            let mut old = Shard::from_words(row.clone(), part, parts, words, newest).unwrap();
            for shard in [&mut old, &mut shard] {
                shard.ages(own).unwrap();
                for later in [0, 1, -1, row.retained().saturating_add(2)] {
                    let generation = if newest == 0 { 0 } else { newest.saturating_add(later).max(NEVER + 1) };
                    if had(shard.touch(own, generation, None)).is_none() {
                        return;
                    }
                }
                let (ages, base) = shard.ages(own).unwrap();
                assert!(share(shard.fill()) && (0..own.len()).all(|i| ages.last(i, base) != NEVER));
            }
            let (ages, base) = shard.ages(own).unwrap();
            answers.push(Some(Answer { ages, base, missed: NEVER }));
        }
        for earlier in [Earlier::Nothing, Earlier::Answered, Earlier::New, Earlier::All] {
            let rule = Rule { newest: NEVER, retained: row.retained(), earlier, least: 0, equal: 1 };
            had(scattered.decide(&answers, &generations, None, rule, |_, _, unsure| assert!(!unsure)));
        }
    }
}

/// Merges a copy of the filter that is further on: all keys of both are there.
fn merge(filter: &AnyFilter) {
    let (mut ours, mut theirs) = (filter.clone(), filter.clone());
    let keys: [u64; 3] = hashes();
    let at = match filter.window() {
        Window::Count { .. } => Moments::Untimed,
        Window::Time { span, .. } => {
            Moments::At(filter.engine().clock().latest().unwrap_or(0).saturating_add(span as i64 / 2))
        }
    };
    if had(theirs.engine_mut().insert(&keys, at)).is_some() && ours.merge(&theirs).is_ok() {
        let mut seen = [false; 3];
        ours.engine().query(&keys, at, &mut seen).unwrap();
        let promised = filter.family().promises;
        let few = match filter.window() {
            Window::Count { insertions } => (insertions as usize).min(3),
            Window::Time { .. } => 3,
        };
        assert!(!promised || seen[3 - few..].iter().all(|&seen| seen), "{seen:?}");
    }
}
