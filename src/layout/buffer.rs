//! Fingerprints of the last W insertions, in groups of 64, bit-sliced: word i of a group has bit i of each.

use crate::clock::Clock;
use crate::inference::{Evidence, Likelihood, Question, buffer};
use crate::layout::Layout;
use crate::layout::cells::share_of_ones;
use crate::memory::bits::scale;
use crate::memory::prefetch::Address;
use crate::shape::fingerprint_buffer::{GROUP, Shape};

/// The buffer, a ring of `window` places.
#[derive(Clone, Copy)]
pub struct Buffer {
    pub(crate) window: u64,
    pub(crate) shape: Shape,
}

impl Buffer {
    /// Words of a group.
    fn group(&self) -> usize {
        self.shape.fingerprint_bits as usize
    }

    /// 1 to 2^bph - 1.
    #[inline(always)]
    fn fingerprint(&self, hash: u64) -> u64 {
        scale(hash, self.shape.fingerprints()) + 1
    }

    /// Writes a fingerprint, or 0 for none, over what a place has.
    fn write(&self, words: &mut [u64], place: u64, fingerprint: u64) {
        let (start, place) = ((place / GROUP) as usize * self.group(), place % GROUP);
        for (bit, word) in words[start..start + self.group()].iter_mut().enumerate() {
            *word = *word & !(1 << place) | (fingerprint >> bit & 1) << place;
        }
    }

    /// How many insertions ago a place was written. In a crafted file those behind the last one, which nobody writes,
    /// may have fingerprints too.
    fn age(&self, place: u64, newest: u64) -> u64 {
        (newest + self.window).saturating_sub(place) % self.window
    }

    /// The fingerprints of all places, 0 for an empty one.
    fn fingerprints(&self, words: &[u64]) -> Vec<u64> {
        let in_group = |group: &[u64], place: u64| {
            group.iter().rev().fold(0, |fingerprint, word| fingerprint << 1 | (word >> place & 1))
        };
        words.chunks_exact(self.group()).flat_map(|group| (0..GROUP).map(move |place| in_group(group, place))).collect()
    }
}

/// The places of a group that have this fingerprint.
#[inline(always)]
fn alike(group: &[u64], fingerprint: u64, mut places: u64) -> u64 {
    for (bit, word) in group.iter().enumerate() {
        // Places that have the fingerprint's bit: the word, or its complement where that is 0.
        places &= word ^ (fingerprint >> bit & 1).wrapping_sub(1);
        if places == 0 {
            break;
        }
    }
    places
}

impl Layout for Buffer {
    /// The place of the newest fingerprint.
    type Phase = u64;

    fn generations(&self) -> u64 {
        self.window
    }

    /// A generation is one insertion.
    fn phase(&self, generation: i64, _pending: u64) -> u64 {
        generation as u64 % self.window
    }

    /// Insertions go through memory in order, which processors prefetch by themselves.
    #[inline(always)]
    fn fetch_newest(&self, _words: Address, _newest: u64, _hash: u64) {}

    #[inline(always)]
    fn fetch_all(&self, _words: Address, _hash: u64) {}

    fn insert(&self, words: &mut [u64], newest: u64, hash: u64) {
        self.write(words, newest, self.fingerprint(hash));
    }

    fn pass(&self, words: &mut [u64], newest: u64) {
        self.write(words, newest, 0);
    }

    fn contains(&self, words: &[u64], _newest: u64, hash: u64) -> bool {
        let fingerprint = self.fingerprint(hash);
        words.chunks_exact(self.group()).any(|group| alike(group, fingerprint, u64::MAX) != 0)
    }

    /// The age of the newest fingerprint equal to the key's.
    fn evidence(&self, words: &[u64], newest: u64, hash: u64) -> Evidence {
        let fingerprint = self.fingerprint(hash);
        let (own, place) = ((newest / GROUP) as usize, newest % GROUP);
        let groups = words.len() / self.group();
        // Places up to the newest, then older and older groups, and finally the places to be overwritten next.
        let younger = u64::MAX >> (GROUP - 1 - place);
        for back in 0..=groups {
            let group = (own + groups - back) % groups;
            let places = match back {
                0 => younger,
                _ if back == groups => !younger,
                _ => u64::MAX,
            };
            let found = alike(&words[group * self.group()..][..self.group()], fingerprint, places);
            if found != 0 {
                return Evidence::number(self.age(group as u64 * GROUP + u64::from(found.ilog2()), newest));
            }
        }
        Evidence::ABSENT
    }

    fn likelihood(&self, words: &[u64], clock: &Clock, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        let newest = self.phase(clock.generation(), 0);
        let places = self.fingerprints(words).into_iter().zip(0..self.window);
        let there = places.filter(|&(fingerprint, _)| fingerprint != 0);
        let mut last: Vec<(u64, u64)> = there.map(|(print, place)| (print, self.age(place, newest))).collect();
        last.sort_unstable();
        last.dedup_by_key(|&mut (fingerprint, _)| fingerprint);
        let (kept, ages) = (clock.inserted().min(self.window), last.into_iter().map(|(_, age)| age));
        Some(Box::new(buffer::Buffer::new(self.shape.fingerprints(), kept, ages)))
    }

    /// Nothing: the insertion that opens a generation overwrites the oldest fingerprint.
    fn open(&self, _words: &mut [u64], _generation: i64) {}

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
}
