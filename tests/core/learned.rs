//! The learned prior of crafted bytes: a correct sum proves nothing.

use lately::clock::Moments;
use lately::prior::learned::Learned;
use xxhash_rust::xxh3::xxh3_64;

/// The places of the header, the ages, the sightings and the cells in a prior of 8192 bytes.
const HEADER: usize = 8;
const AGES: usize = HEADER + 80;
const SIGHTINGS: usize = AGES + 4480;
const CELLS: usize = SIGHTINGS + 2048;
const END: usize = CELLS + 8192 - 4480 - 2048;

fn taught() -> Learned {
    let mut prior = Learned::new(8192, 50, 3).unwrap();
    let keys: Vec<u64> = (0..2000u64).map(|i| (i * i % 300).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let at: Vec<i64> = (0..2000).map(|i| i * 1_000_000_000).collect();
    prior.insert(&keys, Moments::Each(&at));
    prior
}

/// Returns the prior with these words at this place, under a correct sum.
fn forged(place: usize, words: &[u64]) -> Result<Learned, lately::Error> {
    let mut bytes = taught().to_bytes().unwrap();
    assert_eq!(bytes.len(), END + 8);
    for (word, place) in words.iter().zip((place..).step_by(8)) {
        bytes[place..place + 8].copy_from_slice(&word.to_le_bytes());
    }
    let sum = xxh3_64(&bytes[..END]).to_le_bytes();
    bytes[END..].copy_from_slice(&sum);
    Learned::from_bytes(&bytes)
}

/// Whatever bytes it was read from, the prior goes on and its answers are in range.
fn assert_answers(mut prior: Learned) {
    let keys: Vec<u64> = (0..3000u64).map(|i| i.wrapping_mul(0x2545_f491_4f6c_dd1d)).collect();
    prior.insert(&keys, Moments::Untimed);
    let mut answers = vec![0.0; keys.len()];
    prior.probability(&keys, &mut answers);
    assert!(answers.iter().all(|p| (0.0..=1.0).contains(p) && *p > 0.0));
    if prior.rate(&keys, &mut answers).is_some() {
        assert!(answers.iter().all(|rate| *rate >= 0.0));
    }
    let insertions: Vec<f64> = (0..60).map(|octave| f64::from(octave).exp2()).collect();
    let mut distinct = vec![0.0; insertions.len()];
    prior.distinct(&insertions, &mut distinct);
    assert!(distinct.iter().zip(&insertions).all(|(d, j)| (0.0..=j * (1.0 + 1e-12)).contains(d)), "{distinct:?}");
    assert!(distinct.is_sorted(), "{distinct:?}");
}

#[test]
fn a_saved_prior_reads_as_it_was() {
    let prior = taught();
    let again = Learned::from_bytes(&prior.to_bytes().unwrap()).unwrap();
    assert_eq!(again.to_bytes().unwrap(), prior.to_bytes().unwrap());
    assert_answers(prior);
}

#[test]
fn parameters_out_of_range_are_rejected() {
    let field = |i: usize| HEADER + 8 * i;
    let (nan, negative) = (f64::NAN.to_bits(), (-1.0f64).to_bits());
    for (i, value) in [
        (0, 99),
        (1, 8192 + 64),
        (1, u64::MAX),
        (1, 0),
        (2, 0),
        (2, u64::MAX),
        (4, u64::MAX),
        (5, 64),
        (6, nan),
        (6, negative),
        (7, f64::INFINITY.to_bits()),
        (8, 2),
    ] {
        assert!(forged(field(i), &[value]).is_err(), "field {i} as {value}");
    }
    for value in [f64::NAN, -1.0, f64::INFINITY, 1e300] {
        assert!(forged(AGES, &[value.to_bits()]).is_err(), "{value}");
    }
}

#[test]
fn a_table_without_room_or_from_the_future_is_rejected() {
    // Probing would not end.
    let full: Vec<u64> = (0..256).map(|i| if i % 2 == 0 { i * 77 } else { 1 }).collect();
    assert!(forged(SIGHTINGS, &full).is_err());
    assert!(forged(SIGHTINGS, &[5, 2001]).is_err());
    assert_answers(forged(SIGHTINGS, &[5, 2000]).unwrap());
}

#[test]
fn a_prior_of_any_legal_cells_ages_and_sightings_answers_in_range() {
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ state >> 29
    };
    for _ in 0..50 {
        let cells: Vec<u64> = (0..(END - CELLS) / 8).map(|_| random()).collect();
        assert_answers(forged(CELLS, &cells).unwrap());
        // Nothing was recent, which fits every number of sightings.
        let ages: Vec<u64> = (0..560usize)
            .map(|i| if (37..72).contains(&i) { 0.0 } else { (random() % 1000) as f64 * 1e20 })
            .map(f64::to_bits)
            .collect();
        assert_answers(forged(AGES, &ages).unwrap());
        // Half of the places taken, anywhere.
        let sightings: Vec<u64> = (0..256)
            .map(|i| match i % 4 {
                1 => random() % 2000,
                3 => 0,
                _ => random(),
            })
            .collect();
        assert_answers(forged(SIGHTINGS, &sightings).unwrap());
    }
}
