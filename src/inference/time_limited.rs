//! When the generations of a time-limited filter began, from what its table of slices notes: how many keys each slice
//! took, and when it took the last one.

/// Slices whose matches are evidence: as many as a `u128` has bits. Only a burst makes more.
pub const MOST_SLICES: usize = u128::BITS as usize;

/// What the table notes of one slice.
#[derive(Debug, Clone, Copy)]
pub struct Noted {
    /// Keys that it took.
    pub count: u64,
    /// Seconds since its last one.
    pub since_last: f64,
}

/// How many seconds ago the generation of each slice began, the newest first, when the open one began `opened` ago and
/// none is longer than `length`.
///
/// A slice takes the keys of k generations, its own and the k - 1 that follow, so the keys of each generation are told
/// by the differences of counts. One without any, as the first k - 1 slices and those of a gap have, takes no time.
/// Generation j begins when the one before is over, whose last key was the last of slice j + k; where that slice is
/// gone, j is taken to have lasted as long as it may.
pub fn begins(k: usize, opened: f64, length: f64, slices: &[Noted]) -> Vec<f64> {
    let mut keys: Vec<u64> = Vec::with_capacity(slices.len());
    let mut begins: Vec<f64> = Vec::with_capacity(slices.len());
    for (j, slice) in slices.iter().enumerate() {
        let newer = j.checked_sub(1).map_or(0, |newer| slices[newer].count);
        let left = j.checked_sub(k).map_or(0, |left| keys[left]);
        keys.push((slice.count + left).saturating_sub(newer));
        let began_next = begins.last().copied().unwrap_or(0.0);
        begins.push(match (j, keys[j], slices.get(j + k)) {
            (0, ..) => opened,
            (_, 0, _) => began_next,
            (_, _, Some(before)) => before.since_last.max(began_next),
            (_, _, None) => began_next + length,
        });
    }
    begins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_begin_where_the_table_says() {
        let noted = |slices: &[(u64, f64)]| -> Vec<Noted> {
            slices.iter().map(|&(count, since_last)| Noted { count, since_last }).collect()
        };
        // k = 2; generations of 3, 4, 5 and 6 keys, the newest first, of which the oldest has lost a slice.
        let slices = noted(&[(3, 0.0), (7, 0.0), (9, 1.5), (11, 3.5), (6, 7.0)]);
        assert_eq!(begins(2, 1.0, 10.0, &slices), [1.0, 3.5, 7.0, 17.0, 17.0]);
        // The first generation: its k slices hold the same keys.
        assert_eq!(begins(3, 2.0, 10.0, &noted(&[(8, 0.0); 3])), [2.0; 3]);
    }
}
