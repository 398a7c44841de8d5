//! A saved prior with crafted bytes: its size and sum are corrected, and every prior that can be read is used.

use lately::clock::Moments;
use lately::prior::learned::Learned;
use xxhash_rust::xxh3::xxh3_64;

use super::mix;

/// Bytes before the ages: magic and header.
const BEFORE: usize = 88;

/// Moments of insertion, among them the first and the last there are.
const MOMENTS: [Moments<'static>; 4] =
    [Moments::Untimed, Moments::At(5_000_000_000), Moments::At(i64::MAX), Moments::At(i64::MIN)];

/// Reads a prior of as many bytes as there are, 8192 at least; missing bytes are zero. Returns whether it was one.
pub fn run(bytes: &[u8]) -> bool {
    used(bytes, &MOMENTS, 64)
}

/// Runs with a few keys at one moment, in microseconds. A byte without another meaning chooses the moment.
pub fn run_briefly(bytes: &[u8]) -> bool {
    let moment = bytes.first().map_or(0, |&chosen| usize::from(chosen) % MOMENTS.len());
    used(bytes, &MOMENTS[moment..=moment], 6)
}

fn used(bytes: &[u8], moments: &[Moments<'_>], keys: u64) -> bool {
    let mut all = b"LATPRI\x01\x00".to_vec();
    all.extend(bytes);
    all.resize(BEFORE + (all.len().saturating_sub(BEFORE) & !63).max(8192), 0);
    let nbytes = (all.len() - BEFORE) as u64;
    // The scheme and the size are corrected, because nothing is read otherwise.
    all[8..16].copy_from_slice(&1u64.to_le_bytes());
    all[16..24].copy_from_slice(&nbytes.to_le_bytes());
    all.extend(xxh3_64(&all).to_le_bytes());
    let Ok(prior) = Learned::from_bytes(&all) else { return false };
    assert_eq!(prior.to_bytes().unwrap(), all);
    use_all(prior, moments, keys);
    true
}

/// Whatever bytes it was read from, the prior goes on and its answers are in range.
fn use_all(mut prior: Learned, moments: &[Moments<'_>], keys: u64) {
    let keys: Vec<u64> = (0..keys).map(mix).collect();
    let mut answers = vec![0.0; keys.len()];
    for &at in moments {
        prior.insert(&keys, at);
        prior.probability(&keys, &mut answers);
        assert!(answers.iter().all(|p| (0.0..=1.0).contains(p) && *p > 0.0), "{answers:?}");
        if prior.rate(&keys, &mut answers).is_some() {
            assert!(answers.iter().all(|rate| *rate >= 0.0), "{answers:?}");
        }
        let insertions: Vec<f64> = (0..60).map(|octave| f64::from(octave).exp2()).collect();
        let mut distinct = vec![0.0; insertions.len()];
        prior.distinct(&insertions, &mut distinct);
        assert!(distinct.iter().zip(&insertions).all(|(d, j)| (0.0..=j * (1.0 + 1e-12)).contains(d)), "{distinct:?}");
        assert!(distinct.is_sorted(), "{distinct:?}");
    }
    // Rejected if the crafted number of insertions is nearly the greatest there can be.
    if let Ok(again) = Learned::from_bytes(&prior.to_bytes().unwrap()) {
        assert!(again.to_bytes() == prior.to_bytes());
    }
}
