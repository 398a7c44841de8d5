//! The operations that SipHash needs from an [instruction set](crate::instructions), to hash several messages side by
//! side. Loops over lanes are not enough: whether a compiler vectorises them depends on the code around them.

use super::SipKey;
use crate::instructions::Machine;

/// Number of words of a string that are loaded together.
pub const CHUNK: usize = 4;

/// The operations of an instruction set on a word of each of `N` strings.
pub trait Vectors<const N: usize>: Machine {
    /// A word of each string.
    type Words: Copy;
    /// A subset of the strings.
    type Strings: Copy;

    /// Creates the words from an array.
    fn words(self, words: [u64; N]) -> Self::Words;

    /// Returns the words as an array.
    fn array(self, words: Self::Words) -> [u64; N];

    /// Returns the next words of each string, from number `first` on: zero beyond its end. No byte beyond a string is
    /// read.
    fn next(self, strings: &[&[u8]; N], first: usize) -> [Self::Words; CHUNK];

    /// Returns the part of the last word of each string that [`next`](Self::next) leaves out.
    fn rest(self, strings: &[&[u8]; N]) -> Self::Words;

    /// Returns the strings whose words are `number`.
    fn are(self, words: Self::Words, number: u64) -> Self::Strings;

    /// Returns the words of these strings, and zero for the others.
    fn only(self, strings: Self::Strings, words: Self::Words) -> Self::Words;

    /// Returns `one` for these strings, and `other` for the others.
    fn choose(self, strings: Self::Strings, one: Self::Words, other: Self::Words) -> Self::Words;

    /// Returns the exclusive or.
    fn xor(self, a: Self::Words, b: Self::Words) -> Self::Words;

    /// Returns the state after a round of SipHash.
    fn round(self, v: [Self::Words; 4]) -> [Self::Words; 4];
}

/// Returns the state before the first word.
#[inline(always)]
pub fn start<const N: usize, M: Vectors<N>>(machine: M, SipKey([k0, k1]): SipKey) -> [M::Words; 4] {
    // "somepseudorandomlygeneratedbytes", as in the paper.
    [
        machine.words([k0 ^ 0x736f_6d65_7073_6575; N]),
        machine.words([k1 ^ 0x646f_7261_6e64_6f6d; N]),
        machine.words([k0 ^ 0x6c79_6765_6e65_7261; N]),
        machine.words([k1 ^ 0x7465_6462_7974_6573; N]),
    ]
}

/// Returns the state after one more word.
#[inline(always)]
pub fn step<const N: usize, M: Vectors<N>>(
    machine: M,
    [v0, v1, v2, v3]: [M::Words; 4],
    word: M::Words,
) -> [M::Words; 4] {
    let [v0, v1, v2, v3] = machine.round([v0, v1, v2, machine.xor(v3, word)]);
    [machine.xor(v0, word), v1, v2, v3]
}

/// Returns the hashes, after the last word.
#[inline(always)]
pub fn finish<const N: usize, M: Vectors<N>>(machine: M, [v0, v1, v2, v3]: [M::Words; 4]) -> [u64; N] {
    let mut v = [v0, v1, machine.xor(v2, machine.words([0xff; N])), v3];
    for _ in 0..3 {
        v = machine.round(v);
    }
    let [v0, v1, v2, v3] = v;
    machine.array(machine.xor(machine.xor(v0, v1), machine.xor(v2, v3)))
}
