//! SipHash of many words at once, each of them a message of eight bytes.

use super::SipKey;
use super::side_by_side::Messages;
use super::vectors::{Vectors, finish, start, step};

/// Work that replaces words by their hashes.
pub(super) struct HashWords<'a> {
    pub key: SipKey,
    pub words: &'a mut [u64],
}

impl Messages for HashWords<'_> {
    #[inline(always)]
    fn n_at_a_time<const N: usize>(self, machine: impl Vectors<N>) {
        // After the word comes the last one: the length, above no bytes.
        let end = machine.words([8 << 56; N]);
        let (groups, words) = self.words.as_chunks_mut::<N>();
        for group in groups {
            let v = step(machine, start(machine, self.key), machine.words(*group));
            *group = finish(machine, step(machine, v, end));
        }
        HashWords { words, ..self }.one_by_one();
    }

    #[inline(always)]
    fn one_by_one(self) {
        self.words.iter_mut().for_each(|word| *word = self.key.hash(&word.to_le_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instructions::Instructions;
    use crate::key::sip::side_by_side::SideBySide;

    #[test]
    fn words_side_by_side_are_hashed_as_alone() {
        let key = SipKey([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);
        for first in [0, 1, u64::MAX - 20, 1 << 63, 0x9e37_79b9_7f4a_7c15] {
            let words: [u64; 21] = std::array::from_fn(|i| first.wrapping_add(i as u64).wrapping_mul(first | 1));
            let expected = words.map(|word| key.hash(&word.to_le_bytes()));
            for end in (0..=words.len()).step_by(if cfg!(miri) { 7 } else { 1 }) {
                for machine in Instructions::available() {
                    let mut hashes = words;
                    machine.run(SideBySide(HashWords { key, words: &mut hashes[..end] }));
                    assert_eq!((&hashes[..end], &hashes[end..]), (&expected[..end], &words[end..]), "{machine:?}");
                }
            }
        }
    }
}
