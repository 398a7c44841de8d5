//! The beginnings of the generations of a time-limited filter, computed from its table of slices: how many keys each
//! slice took, and when it took its last one.

use super::ring::Generation;

/// Greatest number of slices whose matches are evidence: the bits of a `u128`. Only a burst makes more.
pub const MAX_SLICES: usize = u128::BITS as usize;

/// A row of the table of slices.
#[derive(Debug, Clone, Copy)]
pub struct SliceRecord {
    /// Number of keys that the slice took.
    pub count: u64,
    /// Seconds since the last key of the slice.
    pub since_last: f64,
}

/// Returns the generation of each slice, the newest first. The open one began `opened` seconds ago, none is longer than
/// `length`, and a key takes `gap` at the planned rate.
///
/// A slice takes the keys of k generations, its own and the k - 1 that follow, so differences of counts give the keys
/// of each generation. One without keys, like the first k - 1 slices and those of a gap, takes no time. One with keys
/// took at least `gap`, though they may all have come at one moment. Generation j, the open one too, begins `gap` after
/// the last key of the generation before, which was also the last of slice j + k: a time without keys belongs to the
/// generation that follows. If that slice is gone, j is taken to have lasted as long as it may.
pub fn generations(k: usize, opened: f64, length: f64, gap: f64, slices: &[SliceRecord]) -> Vec<Generation> {
    let mut keys: Vec<u64> = Vec::with_capacity(slices.len());
    let mut generations: Vec<Generation> = Vec::with_capacity(slices.len());
    for (j, slice) in slices.iter().enumerate() {
        let newer = j.checked_sub(1).map_or(0, |newer| slices[newer].count);
        let left = j.checked_sub(k).map_or(0, |left| keys[left]);
        keys.push((slice.count + left).saturating_sub(newer));
        let next = generations.last().map_or(0.0, |next| next.began);
        let (began, exposure) = match (j, keys[j], slices.get(j + k)) {
            (0, _, before) => {
                let began = before.map_or(opened, |before| (before.since_last - gap).max(opened));
                (began, began + gap)
            }
            (_, 0, _) => (next, 0.0),
            (_, _, before) => {
                let began = before.map_or(next + length, |before| before.since_last - gap).max(next);
                (began, (began - next).max(gap))
            }
        };
        generations.push(Generation { began, exposure });
    }
    generations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn began(k: usize, slices: &[(u64, f64)]) -> Vec<(f64, f64)> {
        let record = |&(count, since_last): &(u64, f64)| SliceRecord { count, since_last };
        let slices: Vec<SliceRecord> = slices.iter().map(record).collect();
        generations(k, 1.0, 10.0, 0.25, &slices).iter().map(|each| (each.began, each.exposure)).collect()
    }

    #[test]
    fn generations_begin_as_in_the_table() {
        // k = 2; generations of 3, 4, 5 and 6 keys, the newest first, of which the oldest has lost a slice.
        let steady = began(2, &[(3, 0.0), (7, 0.0), (9, 1.5), (11, 3.5), (6, 7.0)]);
        assert_eq!(steady, [(1.25, 1.5), (3.25, 2.0), (6.75, 3.5), (16.75, 10.0), (16.75, 0.0)]);
        // No key came for 600 seconds before the open generation: the one before it is as old as its last key.
        assert_eq!(began(2, &[(1, 0.0), (2, 0.0), (1, 600.0)]), [(599.75, 600.0), (609.75, 10.0), (609.75, 0.0)]);
        // The first generation: its k slices hold the same keys.
        assert_eq!(began(3, &[(8, 0.0); 3]), [(1.0, 1.25), (1.0, 0.0), (1.0, 0.0)]);
        // Two generations at one moment.
        assert_eq!(began(1, &[(3, 0.0), (5, 1.0), (5, 1.0), (9, 4.0)])[1..3], [(1.0, 0.25), (3.75, 2.75)]);
    }
}
