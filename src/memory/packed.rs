//! Numbers of a few bits each, packed into words without gaps.

/// Returns the number at `index`, of `width` bits, 1 to 64.
#[inline(always)]
pub fn get(words: &[u64], width: u32, index: usize) -> u64 {
    window(words, width, index) & (u64::MAX >> (64 - width))
}

/// Returns the 64 bits that begin with the number at `index`, with zeros after the last word.
///
/// The second word is always read: which numbers straddle words is hard to predict.
#[inline(always)]
pub fn window(words: &[u64], width: u32, index: usize) -> u64 {
    let (word, bit) = place(width, index);
    let next = words.get(word + 1).copied().unwrap_or(0);
    words[word] >> bit | next << 1 << (63 - bit)
}

/// Writes the number at `index`; `value` has at most `width` bits.
#[inline(always)]
pub fn set(words: &mut [u64], width: u32, index: usize, value: u64) {
    let (word, bit) = place(width, index);
    let mask = u64::MAX >> (64 - width);
    words[word] = words[word] & !(mask << bit) | value << bit;
    if let Some(next) = words.get_mut(word + 1) {
        *next = *next & !(mask >> 1 >> (63 - bit)) | value >> 1 >> (63 - bit);
    }
}

/// Inserts a number, of at most 63 bits, at `index` of `words`, which are full, and moves later ones up by one place.
/// Returns the last one, for which there is no room.
#[inline(always)]
pub fn insert(words: &mut [u64], width: u32, index: usize, value: u64) -> u64 {
    let (first, bit) = place(width, index);
    let (old, from) = (words[first], !0 << bit);
    words[first] = old & !from | (old & from) << width | value << bit;
    let mut over = (old & from) >> (64 - width) | value >> 1 >> (63 - bit);
    for word in &mut words[first + 1..] {
        (*word, over) = (*word << width | over, *word >> (64 - width));
    }
    over
}

/// Removes the number, of at most 63 bits, at `index` of `words`, which are full, and moves later ones down by one
/// place. `last` fills the last place.
#[inline(always)]
pub fn remove(words: &mut [u64], width: u32, index: usize, last: u64) {
    let (first, bit) = place(width, index);
    let (old, from) = (words[first], !0 << bit);
    let mut low = old >> width & from | old & !from;
    let mut keep = from;
    for word in first + 1..words.len() {
        let next = words[word];
        words[word - 1] = low | next << (64 - width) & keep;
        (low, keep) = (next >> width, !0);
    }
    words[words.len() - 1] = low | last << (64 - width) & keep;
}

/// Returns the word in which a number begins, and the bit in it.
#[inline(always)]
fn place(width: u32, index: usize) -> (usize, u32) {
    let bit = index * width as usize;
    (bit / 64, (bit % 64) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_any_width_is_written_without_touching_others() {
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
    fn numbers_are_inserted_and_removed_as_in_a_list() {
        for width in 1..=63 {
            let value = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - width);
            let mut list: Vec<u64> = (1..=64).map(value).collect();
            let mut words = vec![0; width as usize];
            list.iter().enumerate().for_each(|(i, &value)| set(&mut words, width, i, value));
            for index in (0..64).chain([0, 63, 63, 31, 7]) {
                list.insert(index, value(100 + index as u64));
                assert_eq!(Some(insert(&mut words, width, index, list[index])), list.pop(), "{width} {index}");
                assert!((0..64).all(|i| get(&words, width, i) == list[i]), "{width} {index}");
                let from = (index * 17 + 3) % 64;
                list.remove(from);
                list.push(value(200 + from as u64));
                remove(&mut words, width, from, list[63]);
                assert!((0..64).all(|i| get(&words, width, i) == list[i]), "{width} {from}");
            }
        }
    }
}
