//! The fingerprints of the last W insertions, in groups of 64, bit-sliced: word i of a group has bit i of each.

use super::likelihood;
use super::shape::{BufferShape, GROUP};
use crate::clock::Clock;
use crate::family::Layout;
use crate::family::arrays::share_of_ones;
use crate::inference::{Evidence, Likelihood, Question};
use crate::memory::bits::scale;
use crate::memory::prefetch::Address;

/// The layout of a fingerprint buffer: a ring of `window` places, each for one fingerprint.
#[derive(Clone, Copy)]
pub struct FingerprintBuffer {
    pub(crate) window: u64,
    pub(crate) shape: BufferShape,
}

impl FingerprintBuffer {
    /// Returns the number of words of a group.
    fn group(&self) -> usize {
        self.shape.fingerprint_bits as usize
    }

    /// Returns the fingerprint of a key, from 1 to 2^bph - 1.
    #[inline(always)]
    fn fingerprint(&self, hash: u64) -> u64 {
        scale(hash, self.shape.fingerprints()) + 1
    }

    /// Writes a fingerprint, or 0 for none, to a place.
    fn write(&self, words: &mut [u64], place: u64, fingerprint: u64) {
        let (start, place) = ((place / GROUP) as usize * self.group(), place % GROUP);
        for (bit, word) in words[start..start + self.group()].iter_mut().enumerate() {
            *word = *word & !(1 << place) | (fingerprint >> bit & 1) << place;
        }
    }

    /// Returns how many insertions ago a place was written. In a crafted file the places beyond the last one, which no
    /// insertion writes, may have fingerprints too.
    fn age(&self, place: u64, newest: u64) -> u64 {
        (newest + self.window).saturating_sub(place) % self.window
    }

    /// Returns the fingerprints of all places, 0 for an empty one.
    fn fingerprints(&self, words: &[u64]) -> Vec<u64> {
        let in_group = |group: &[u64], place: u64| {
            group.iter().rev().fold(0, |fingerprint, word| fingerprint << 1 | (word >> place & 1))
        };
        words.chunks_exact(self.group()).flat_map(|group| (0..GROUP).map(move |place| in_group(group, place))).collect()
    }
}

/// Returns the places of a group that have this fingerprint, a bit for each.
#[inline(always)]
fn matching(group: &[u64], fingerprint: u64, mut places: u64) -> u64 {
    for (bit, word) in group.iter().enumerate() {
        // The places that have this bit of the fingerprint: the word, or its complement where the bit is 0.
        places &= word ^ (fingerprint >> bit & 1).wrapping_sub(1);
        if places == 0 {
            break;
        }
    }
    places
}

impl Layout for FingerprintBuffer {
    /// The place of the newest fingerprint.
    type Rotation = u64;

    fn generations(&self) -> u64 {
        self.window
    }

    /// Returns the place of the newest fingerprint: a generation is one insertion.
    fn rotation(&self, generation: i64, _pending: u64) -> u64 {
        generation as u64 % self.window
    }

    /// Does nothing: insertions write memory in order, which processors prefetch by themselves.
    #[inline(always)]
    fn prefetch_insert(&self, _words: Address, _newest: u64, _hash: u64) {}

    /// Does nothing: queries read memory in order, which processors prefetch by themselves.
    #[inline(always)]
    fn prefetch_query(&self, _words: Address, _hash: u64) {}

    fn insert(&self, words: &mut [u64], newest: u64, hash: u64) {
        self.write(words, newest, self.fingerprint(hash));
    }

    fn contains(&self, words: &[u64], _newest: u64, hash: u64) -> bool {
        let fingerprint = self.fingerprint(hash);
        words.chunks_exact(self.group()).any(|group| matching(group, fingerprint, u64::MAX) != 0)
    }

    /// Returns the age of the newest fingerprint that equals the key's, as evidence.
    fn evidence(&self, words: &[u64], newest: u64, hash: u64) -> Evidence {
        let fingerprint = self.fingerprint(hash);
        let (own, place) = ((newest / GROUP) as usize, newest % GROUP);
        let groups = words.len() / self.group();
        // The places up to the newest come first, then older and older groups, and last the places to be overwritten
        // next.
        let younger = u64::MAX >> (GROUP - 1 - place);
        for back in 0..=groups {
            let group = (own + groups - back) % groups;
            let places = match back {
                0 => younger,
                _ if back == groups => !younger,
                _ => u64::MAX,
            };
            let found = matching(&words[group * self.group()..][..self.group()], fingerprint, places);
            if found != 0 {
                return Evidence::number(self.age(group as u64 * GROUP + u64::from(found.ilog2()), newest));
            }
        }
        Evidence::ABSENT
    }

    fn fill(&self, words: &[u64], _newest: u64) -> Vec<f64> {
        vec![share_of_ones(words, self.window * u64::from(self.shape.fingerprint_bits))]
    }

    fn match_rates(&self, words: &[u64], _newest: u64) -> Vec<f64> {
        let mut fingerprints = self.fingerprints(words);
        fingerprints.sort_unstable();
        fingerprints.dedup();
        let different = fingerprints.iter().filter(|&&fingerprint| fingerprint != 0).count();
        vec![different as f64 / self.shape.fingerprints() as f64]
    }

    fn likelihood(&self, words: &[u64], clock: &Clock, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        let newest = self.rotation(clock.generation(), 0);
        let places = self.fingerprints(words).into_iter().zip(0..self.window);
        let used = places.filter(|&(fingerprint, _)| fingerprint != 0);
        let mut last: Vec<(u64, u64)> =
            used.map(|(fingerprint, place)| (fingerprint, self.age(place, newest))).collect();
        last.sort_unstable();
        last.dedup_by_key(|&mut (fingerprint, _)| fingerprint);
        let (length, ages) = (clock.inserted().min(self.window), last.into_iter().map(|(_, age)| age));
        Some(Box::new(likelihood::BufferLikelihood::new(self.shape.fingerprints(), length, ages)))
    }

    fn skip(&self, words: &mut [u64], newest: u64) {
        self.write(words, newest, 0);
    }
}
