//! Numbers of a few bits each, packed into words without gaps.

use std::ops::Range;

/// The number at `index` of those of `width` bits, 1 to 64.
#[inline(always)]
pub fn get(words: &[u64], width: u32, index: usize) -> u64 {
    let (word, bit) = place(width, index);
    let low = words[word] >> bit;
    let all = if bit + width > 64 { low | words[word + 1] << (64 - bit) } else { low };
    all & (u64::MAX >> (64 - width))
}

/// Writes it; `value` has no more than `width` bits.
#[inline(always)]
pub fn set(words: &mut [u64], width: u32, index: usize, value: u64) {
    let (word, bit) = place(width, index);
    let mask = u64::MAX >> (64 - width);
    words[word] = words[word] & !(mask << bit) | value << bit;
    if bit + width > 64 {
        let high = 64 - bit;
        words[word + 1] = words[word + 1] & !(mask >> high) | value >> high;
    }
}

/// Moves the numbers in `range`, of at most 63 bits, one place up, over the one there.
#[inline(always)]
pub fn move_up(words: &mut [u64], width: u32, range: Range<usize>) {
    let written = bits(width, range.start + 1..range.end + 1);
    for word in covered(&written).rev() {
        let below = word.checked_sub(1).map_or(0, |below| words[below]);
        write(words, word, &written, words[word] << width | below >> (64 - width));
    }
}

/// Moves the numbers in `range`, of at most 63 bits and not the first of all, one place down, over the one there.
#[inline(always)]
pub fn move_down(words: &mut [u64], width: u32, range: Range<usize>) {
    let written = bits(width, range.start - 1..range.end - 1);
    for word in covered(&written) {
        let above = words.get(word + 1).copied().unwrap_or(0);
        write(words, word, &written, words[word] >> width | above << (64 - width));
    }
}

/// The bits of the numbers in `range`.
fn bits(width: u32, range: Range<usize>) -> Range<usize> {
    range.start * width as usize..range.end * width as usize
}

/// The words that have bits of a range.
fn covered(bits: &Range<usize>) -> Range<usize> {
    if bits.is_empty() { 0..0 } else { bits.start / 64..bits.end.div_ceil(64) }
}

/// Writes those bits of a word that lie in a range of all bits.
#[inline(always)]
fn write(words: &mut [u64], word: usize, written: &Range<usize>, value: u64) {
    let start = written.start.saturating_sub(word * 64);
    let end = (written.end - word * 64).min(64);
    let mask = !0 >> (64 - (end - start)) << start;
    words[word] = words[word] & !mask | value & mask;
}

/// The word where a number begins, and the bit in it.
#[inline(always)]
fn place(width: u32, index: usize) -> (usize, u32) {
    let bit = index * width as usize;
    (bit / 64, (bit % 64) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_width_are_kept_apart() {
        for width in 1..=64 {
            let value = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - width);
            let mut words = vec![!0; width as usize * 2];
            for i in (0..128).rev() {
                set(&mut words, width, i, value(i as u64));
            }
            assert!((0..128).all(|i| get(&words, width, i) == value(i as u64)), "{width}");
        }
    }

    #[test]
    fn numbers_are_moved_together_as_one_by_one() {
        for width in 1..=63 {
            let fresh =
                || -> Vec<u64> { (1..=width.into()).map(|i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect() };
            for range in [0..0, 0..1, 0..63, 1..5, 7..7, 20..41, 62..63, 63..63] {
                let (mut together, mut alone) = (fresh(), fresh());
                move_up(&mut together, width, range.clone());
                for i in range.clone().rev() {
                    let moved = get(&alone, width, i);
                    set(&mut alone, width, i + 1, moved);
                }
                assert_eq!(together, alone, "{width} up {range:?}");
                let range = range.start + 1..range.end + 1;
                move_down(&mut together, width, range.clone());
                for i in range.clone() {
                    let moved = get(&alone, width, i);
                    set(&mut alone, width, i - 1, moved);
                }
                assert_eq!(together, alone, "{width} down {range:?}");
            }
        }
    }
}
