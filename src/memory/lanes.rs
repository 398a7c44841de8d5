//! Small numbers within words. They are read and written singly, and compared or decremented all at once.
//!
//! No number straddles two words. So each costs one load, and a word is swept without its neighbours. The cost is the
//! `64 % bits` bits at the top of every word: 1.6 % at 3, 7 or 9 bits, 6 % at 5, 10 or 12, 20 % at 17, and nothing if
//! `bits` divides 64.

use crate::memory::bits::scale;

/// The division of words into `64 / bits` numbers of `bits` bits, 1 to 32.
#[derive(Clone, Copy)]
pub struct Lanes {
    bits: u32,
    /// The number of numbers in a word.
    count: u64,
    /// The lowest bit of every number.
    lows: u64,
    /// 2^64 divided by `count`, rounded up: a factor that replaces a division.
    per_number: u64,
}

impl Lanes {
    /// Returns lanes of `bits` bits, 1 to 32.
    pub const fn new(bits: u32) -> Self {
        let (count, mut lows, mut lane) = (64 / bits, 0, 0);
        while lane < count {
            lows |= 1 << (lane * bits);
            lane += 1;
        }
        Self { bits, count: count as u64, lows, per_number: u64::MAX / count as u64 + 1 }
    }

    /// Returns how many numbers a word has.
    pub fn per_word(&self) -> u64 {
        self.count
    }

    /// Returns the word of a number that a hash chooses, and the shift in it. The number is `scale(hash, words *
    /// per_word)` of all numbers in `words` words. This needs no division: the bits left over from the choice of the
    /// word choose within it.
    #[inline(always)]
    pub fn place(&self, hash: u64, words: u64) -> (usize, u32) {
        let product = u128::from(hash) * u128::from(words);
        ((product >> 64) as usize, scale(product as u64, self.count) as u32 * self.bits)
    }

    /// Returns the word of number `number`, and the shift in it. `number` is below 2^59, unless `bits` divides 64.
    ///
    /// The reciprocal is exact if `bits` divides 64. Otherwise it is too large by less than 2^-64, so the product is
    /// too large by less than 2^-5. That is less than 1 / `count`, with `count` at most 21, and the quotient is at
    /// least 1 / `count` below the next whole number.
    #[inline(always)]
    pub fn at(&self, number: u64) -> (usize, u32) {
        let word = scale(number, self.per_number);
        (word as usize, (number - word * self.count) as u32 * self.bits)
    }

    /// Returns the number of bits of a number.
    #[inline(always)]
    pub fn bits(&self) -> u64 {
        self.bits.into()
    }

    /// Returns the place in the word of the number at a shift.
    #[inline(always)]
    pub fn lane(&self, shift: u32) -> u64 {
        (shift / self.bits).into()
    }

    /// Returns the shift of a number, from its place in the word.
    #[inline(always)]
    pub fn shift(&self, lane: u64) -> u32 {
        lane as u32 * self.bits
    }

    /// Returns the number at a shift.
    #[inline(always)]
    pub fn get(&self, word: u64, shift: u32) -> u64 {
        word >> shift & self.most()
    }

    /// Returns the word with another number at a shift.
    #[inline(always)]
    pub fn with(&self, word: u64, shift: u32, number: u64) -> u64 {
        word & !(self.most() << shift) | number << shift
    }

    /// Returns the word with only the numbers in the cyclic range `first..=last`. All others become zero.
    #[inline(always)]
    pub fn keep(&self, word: u64, first: u64, last: u64) -> u64 {
        let tops = self.within(word, first, last);
        word & (tops | (tops - (tops >> (self.bits - 1))))
    }

    /// Returns how many numbers of the word are not zero and lie in the cyclic range `first..=last`.
    #[inline(always)]
    pub fn count_within(&self, word: u64, first: u64, last: u64) -> u32 {
        (self.within(word, first, last) & self.not_zero(word)).count_ones()
    }

    /// Returns how many numbers of the word equal `number`, which is not zero.
    #[inline(always)]
    pub fn count(&self, word: u64, number: u64) -> u32 {
        let others = self.not_zero(word ^ (self.lows * number));
        self.count as u32 - others.count_ones()
    }

    /// Returns the top bit of each number in `first..=last`, or, if `last < first`, in `0..=last` or `first..`.
    #[inline(always)]
    fn within(&self, word: u64, first: u64, last: u64) -> u64 {
        let (from, to) = (self.at_least(word, self.lows * first), self.at_least(self.lows * last, word));
        if first <= last { from & to } else { from | to }
    }

    /// Returns the top bit of each lane whose number in `a` is at least that in `b`.
    ///
    /// If the top bits differ, they decide. If they are equal, the rest decides. The difference of the rest cannot
    /// borrow from the next lane, because it has a one above it.
    #[inline(always)]
    fn at_least(&self, a: u64, b: u64) -> u64 {
        let tops = self.lows << (self.bits - 1);
        let rest = (a | tops) - (b & !tops & (self.lows * self.most()));
        ((a & !b) | (!(a ^ b) & rest)) & tops
    }

    /// Returns the top bit of each number that is not zero. The sum with the greatest value below the top bit carries
    /// into it.
    #[inline(always)]
    fn not_zero(&self, word: u64) -> u64 {
        let tops = self.lows << (self.bits - 1);
        (((word & !tops) + (tops - self.lows)) | word) & tops
    }

    /// Decrements `count` numbers from number `first` on, unless they are zero, a word at a time.
    #[inline]
    pub fn decrement(&self, words: &mut [u64], first: u64, count: u64) {
        let (mut word, mut shift) = self.at(first);
        let mut left = count * self.bits();
        while left > 0 {
            let here = left.min(self.count * self.bits() - u64::from(shift));
            let touched = u64::MAX >> (64 - here) << shift;
            words[word] -= self.not_zero(words[word]) >> (self.bits - 1) & touched;
            (word, shift, left) = (word + 1, 0, left - here);
        }
    }

    /// Returns the largest number of `bits` bits.
    #[inline(always)]
    pub const fn most(&self) -> u64 {
        (1 << self.bits) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(lanes: &Lanes, word: u64) -> Vec<u64> {
        (0..lanes.count as u32).map(|lane| lanes.get(word, lane * lanes.bits)).collect()
    }

    #[test]
    fn numbers_compared_at_once_equal_those_compared_singly() {
        let mut random = 1u64;
        let mut next = || {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            random ^ random >> 29
        };
        for bits in 1..=32 {
            let lanes = Lanes::new(bits);
            assert_eq!(lanes.per_word(), u64::from(64 / bits));
            for round in 0..3000 {
                let word = [next(), next() & next(), next() | next(), 0, u64::MAX][round % 5];
                let near = numbers(&lanes, word)[0];
                let equal = numbers(&lanes, word).into_iter().filter(|&n| n == near).count() as u32;
                assert_eq!(lanes.count(word, near), equal, "{bits} {word:x}");
                let [first, last] = [near, next()].map(|n| n & lanes.most());
                for (first, last) in [(first, last), (last, first), (first, first), (0, lanes.most()), (1, 0)] {
                    let inside = |n: u64| if first <= last { first <= n && n <= last } else { n <= last || n >= first };
                    let all = numbers(&lanes, word);
                    let kept: Vec<u64> = all.iter().map(|&n| if inside(n) { n } else { 0 }).collect();
                    assert_eq!(numbers(&lanes, lanes.keep(word, first, last)), kept, "{bits} {word:x} {first} {last}");
                    let count = kept.iter().filter(|&&n| n != 0).count() as u32;
                    assert_eq!(lanes.count_within(word, first, last), count, "{bits} {word:x} {first} {last}");
                    let beyond = lanes.count as u32 * bits;
                    assert_eq!(lanes.keep(word, first, last).checked_shr(beyond).unwrap_or(0), 0);
                }
            }
        }
    }

    #[test]
    fn a_number_is_written_without_touching_others() {
        for bits in 1..=32 {
            let lanes = Lanes::new(bits);
            for lane in 0..lanes.count as u32 {
                for word in [0, u64::MAX, 0x0123_4567_89ab_cdef] {
                    let mut expected = numbers(&lanes, word);
                    expected[lane as usize] = 1;
                    assert_eq!(numbers(&lanes, lanes.with(word, lane * bits, 1)), expected);
                }
            }
        }
    }

    #[test]
    fn a_range_is_decremented_like_its_numbers() {
        for bits in [1, 2, 3, 4, 7, 8, 32] {
            let lanes = Lanes::new(bits);
            let start: Vec<u64> =
                (1..=4u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & i.wrapping_mul(!0 / 7)).collect();
            let value = |words: &[u64], number: u64| lanes.get(words[lanes.at(number).0], lanes.at(number).1);
            let total = 4 * lanes.count;
            for first in 0..total {
                for count in 0..=total - first {
                    let mut words = start.clone();
                    lanes.decrement(&mut words, first, count);
                    for number in 0..total {
                        let taken = u64::from((first..first + count).contains(&number));
                        let expected = value(&start, number).saturating_sub(taken);
                        assert_eq!(value(&words, number), expected, "{bits} {first} {count} {number}");
                    }
                    let beyond = lanes.count as u32 * bits;
                    let tops = |words: &[u64]| words.iter().map(|w| w.checked_shr(beyond)).collect::<Vec<_>>();
                    assert_eq!(tops(&words), tops(&start));
                }
            }
        }
    }

    #[test]
    fn places_of_numbers_equal_those_of_a_division() {
        for bits in 1..=32 {
            let (lanes, count) = (Lanes::new(bits), u64::from(64 / bits));
            let words = (0..40).chain((1 << 53) - 40..1 << 53).chain([(1 << 59) / count - 1]);
            for number in words.flat_map(|word| [word * count, word * count + count - 1]) {
                let expected = ((number / count) as usize, (number % count) as u32 * bits);
                assert_eq!(lanes.at(number), expected, "{bits} {number}");
            }
        }
    }

    #[test]
    fn places_are_the_hash_scaled_to_all_numbers() {
        for bits in [1, 2, 3, 7, 12, 32] {
            let lanes = Lanes::new(bits);
            for words in [1, 2, 3, 1000, 1 << 40].into_iter().filter(|&words| usize::try_from(words).is_ok()) {
                for hash in (0..1000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).chain([u64::MAX]) {
                    let (word, shift) = lanes.place(hash, words);
                    let number = word as u64 * lanes.count + u64::from(shift / bits);
                    assert_eq!((number, shift % bits), (scale(hash, words * lanes.count), 0));
                }
            }
        }
    }
}
