//! The beginnings of the generations of a time-limited filter, computed from its table of slices: how many keys each
//! slice took, and when it took its last one.

use crate::inference::MAX_SLICES;
use crate::inference::ring::Generation;

/// Returns how many generations share a bit of the evidence: more than one only if a burst has made more slices than
/// evidence has bits.
pub fn group_width(slices: usize) -> usize {
    slices.div_ceil(MAX_SLICES as usize)
}

/// Returns `width` generations at a time as one, with the chance that a fresh key matches all k slices of one of them.
pub fn grouped(width: usize, k: usize, generations: &[Generation], rates: &[f64]) -> (Vec<Generation>, Vec<f64>) {
    let rate = |slice: usize| rates.get(slice).copied().unwrap_or(1.0);
    let run = |first: usize| (first..first + k).map(rate).product::<f64>();
    let group = |first: usize| {
        let last = (first + width).min(rates.len()) - 1;
        let exposure = generations[first..=last].iter().map(|one| one.exposure).sum();
        // Of runs that overlap, the oldest is counted.
        let matches = run(last) + (first..last).map(|j| run(j) * (1.0 - rate(j + k))).sum::<f64>();
        (Generation { ended: generations[first].ended, began: generations[last].began, exposure }, matches.min(1.0))
    };
    (0..rates.len()).step_by(width).map(group).unzip()
}

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
/// of each generation. Generation j + 1 took its last key when slice j + k did. The next key, `gap` later, began
/// generation j, but no longer than `length` before the end of j: the time between is a pause, in which no key came. If
/// that slice is gone, j is taken to have lasted as long as it may. A generation without keys, as the first k - 1
/// slices and those of a pause have, takes no time. One with keys took at least `gap`, though they may all have come at
/// one moment. Generations that ended at one moment share the time before it by their keys.
pub fn generations(k: usize, opened: f64, length: f64, gap: f64, slices: &[SliceRecord]) -> Vec<Generation> {
    let mut keys: Vec<u64> = Vec::with_capacity(slices.len());
    let mut generations: Vec<Generation> = Vec::with_capacity(slices.len());
    for (j, slice) in slices.iter().enumerate() {
        let newer = j.checked_sub(1).map_or(0, |newer| slices[newer].count);
        let left = j.checked_sub(k).map_or(0, |left| keys[left]);
        keys.push((slice.count + left).saturating_sub(newer));
        let next = generations.last().map_or(0.0, |next| next.began);
        if j > 0 && keys[j] == 0 {
            generations.push(Generation { ended: next, began: next, exposure: 0.0 });
            continue;
        }
        let last = j.checked_sub(1).and_then(|newer| slices.get(newer + k));
        let ended = last.map_or(next, |last| last.since_last.max(next));
        let began = match slices.get(j + k) {
            _ if j == 0 => opened,
            Some(before) => (before.since_last - gap).clamp(ended, ended + length),
            None => ended + length,
        };
        generations.push(Generation { ended, began, exposure: began - ended + gap });
    }
    let with_keys: Vec<usize> = (0..generations.len()).filter(|&j| j == 0 || keys[j] > 0).collect();
    let ended: Vec<f64> = generations.iter().map(|one| one.ended).collect();
    for at_once in with_keys.chunk_by(|&newer, &older| ended[newer] == ended[older]) {
        let exposure: f64 = at_once.iter().map(|&j| generations[j].exposure).sum();
        let all: u64 = at_once.iter().map(|&j| keys[j].max(1)).sum();
        at_once.iter().for_each(|&j| generations[j].exposure = exposure * keys[j].max(1) as f64 / all as f64);
    }
    generations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(k: usize, slices: &[(u64, f64)]) -> Vec<(f64, f64, f64)> {
        let record = |&(count, since_last): &(u64, f64)| SliceRecord { count, since_last };
        let slices: Vec<SliceRecord> = slices.iter().map(record).collect();
        generations(k, 1.0, 10.0, 0.25, &slices).iter().map(|each| (each.ended, each.began, each.exposure)).collect()
    }

    #[test]
    fn generations_begin_and_end_as_in_the_table() {
        // k = 2; generations of 3, 4, 5 and 6 keys, the newest first, of which the oldest has lost a slice.
        let steady = spans(2, &[(3, 0.0), (7, 0.0), (9, 1.5), (11, 3.5), (6, 7.0)]);
        let older = [(1.5, 3.25, 2.0), (3.5, 6.75, 3.5), (7.0, 17.0, 10.25), (17.0, 17.0, 0.0)];
        assert_eq!(steady, [&[(0.0, 1.0, 1.25)], &older[..]].concat());
        // A key, a pause of 599 seconds with a generation of its own, and the open generation.
        let pause = spans(2, &[(1, 0.0), (1, 0.0), (1, 600.0), (1, 600.0)]);
        assert_eq!(pause, [(0.0, 1.0, 1.25), (1.0, 1.0, 0.0), (600.0, 610.0, 10.25), (610.0, 610.0, 0.0)]);
        // The first generation: its k slices hold the same keys.
        assert_eq!(spans(3, &[(8, 0.0); 3]), [(0.0, 1.0, 1.25), (1.0, 1.0, 0.0), (1.0, 1.0, 0.0)]);
        // Two generations at one moment.
        let moment = spans(1, &[(3, 0.0), (5, 1.0), (5, 1.0), (9, 4.0)]);
        assert_eq!(moment[1..3], [(1.0, 1.0, 1.625), (1.0, 3.75, 1.625)]);
    }
}
