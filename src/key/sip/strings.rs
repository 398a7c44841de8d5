//! SipHash of many byte strings at once: as many side by side as a vector has words.
//!
//! A string is words of eight bytes, and a last word of the bytes that remain, fewer than eight, with the length above
//! them. Strings side by side take a step together for each word. The state of strings that end before the longest of
//! them is kept aside. So a step costs the same for one string as for all, and strings of like lengths cost least.

use super::SipKey;
use super::side_by_side::Messages;
use super::vectors::{Vectors, finish, start, step};

/// Returns the hashes of `N` strings side by side.
#[inline(always)]
fn hashes_of<const N: usize, M: Vectors<N>>(machine: M, key: SipKey, strings: &[&[u8]; N]) -> [u64; N] {
    let whole = strings.map(|string| (string.len() / 8) as u64);
    let (least, most) = whole.iter().fold((u64::MAX, 0), |(least, most), &words| (least.min(words), most.max(words)));
    let (whole, rest) = (machine.words(whole), machine.rest(strings));
    let mut v = start(machine, key);
    let mut ended = v;
    let mut number = 0;
    while number <= most {
        let chunk = machine.next(strings, number as usize);
        for word in chunk {
            if number < least {
                v = step(machine, v, word);
            } else {
                let ends = machine.are(whole, number);
                v = step(machine, v, machine.xor(word, machine.only(ends, rest)));
                for i in 0..4 {
                    ended[i] = machine.choose(ends, v[i], ended[i]);
                }
            }
            number += 1;
            if number > most {
                break;
            }
        }
    }
    finish(machine, ended)
}

/// Work that hashes strings.
pub(super) struct HashStrings<'a> {
    pub key: SipKey,
    pub strings: &'a [&'a [u8]],
    pub hashes: &'a mut [u64],
}

impl Messages for HashStrings<'_> {
    #[inline(always)]
    fn n_at_a_time<const N: usize>(self, machine: impl Vectors<N>) {
        let (groups, strings) = self.strings.as_chunks::<N>();
        let (hashes, hashes_of_rest) = self.hashes.as_chunks_mut::<N>();
        for (strings, hashes) in groups.iter().zip(hashes) {
            *hashes = hashes_of(machine, self.key, strings);
        }
        HashStrings { strings, hashes: hashes_of_rest, ..self }.one_by_one();
    }

    #[inline(always)]
    fn one_by_one(self) {
        self.hashes.iter_mut().zip(self.strings).for_each(|(hash, string)| *hash = self.key.hash(string));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instructions::Instructions;
    use crate::key::sip::side_by_side::SideBySide;

    /// Under Miri or AddressSanitizer this also shows that no byte beyond a string is read, since each has memory of
    /// its own.
    #[test]
    fn strings_hash_alike_side_by_side_and_alone() {
        let key = SipKey([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);
        let mut random = 1u64;
        let mut below = |end: usize| {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (random >> 33) as usize % end
        };
        let step = if cfg!(miri) { 37 } else { 1 };
        // Strings of one length, of two, and of any; in vectors that are full, and a partial one.
        for len in (0..=200).step_by(step) {
            for lens in [[len, len], [len, len + 1], [len, below(200)], [len, 0], [below(9), below(40)]] {
                let bytes: Vec<Box<[u8]>> =
                    (0..19).map(|i| (0..lens[[0, below(2)][i % 2]]).map(|_| below(256) as u8).collect()).collect();
                check(key, &bytes.iter().map(|bytes| &**bytes).collect::<Vec<_>>());
            }
            let lens: Vec<usize> = (0..19).map(|_| below(len + 1)).collect();
            let bytes: Box<[u8]> = (0..lens.iter().sum()).map(|_| below(256) as u8).collect();
            // Strings in sequence: at any alignment, and the last at the end.
            let mut rest = &*bytes;
            let strings: Vec<&[u8]> =
                lens.iter().map(|&len| rest.split_off(..len).expect("the lengths add up")).collect();
            check(key, &strings);
        }
    }

    fn check(key: SipKey, strings: &[&[u8]]) {
        let expected: Vec<u64> = strings.iter().map(|string| key.hash(string)).collect();
        for machine in Instructions::available() {
            let mut hashes = vec![0; strings.len()];
            machine.run(SideBySide(HashStrings { key, strings, hashes: &mut hashes }));
            let lens: Vec<usize> = strings.iter().map(|string| string.len()).collect();
            assert_eq!(hashes, expected, "{lens:?} {machine:?}");
        }
    }
}
