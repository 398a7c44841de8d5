//! Numbers of a few bits each, packed into words without gaps.

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
}
