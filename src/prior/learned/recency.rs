//! The ages of keys when they come again: by the class they were found in, and over all of them.

use std::f64::consts::LN_2;

use super::sketch::{CLASSES, sightings};

/// Number of buckets of ages: ages below 8 each have one, then there are four to an octave, up to 2^62.
const BUCKETS: usize = 244;

/// Ages of sampled keys when they were inserted again, each weighted by the keys it stands for.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Recency {
    /// Number of insertions, in the sample or not.
    pub insertions: f64,
    /// Padding to whole cache lines, which are easier to divide up.
    unused: f64,
    /// Number of insertions by the class in which their key was found.
    found: [f64; CLASSES],
    /// Number of insertions by class whose key was no older than one half-life.
    recent: [f64; CLASSES],
    /// Number of insertions by the age of their key.
    aged: [f64; BUCKETS],
    /// Number of insertions of keys not seen before, by how far back they would have been seen.
    unseen: [f64; BUCKETS],
}

impl Default for Recency {
    fn default() -> Self {
        bytemuck::Zeroable::zeroed()
    }
}

impl Recency {
    /// Size in bytes.
    pub const BYTES: u64 = size_of::<Self>() as u64;

    /// Counts one insertion of a key found in `class`: its age, or how far back it would have been seen.
    pub fn record(&mut self, class: usize, recent: bool, age: Result<u64, u64>, weight: f64) {
        self.found[class] += weight;
        self.recent[class] += if recent { weight } else { 0.0 };
        match age {
            Ok(age) => self.aged[bucket(age)] += weight,
            Err(unseen) => self.unseen[bucket(unseen)] += weight,
        }
    }

    /// Halves the weight of everything so far.
    pub fn halve(&mut self) {
        for value in bytemuck::cast_slice_mut::<Self, f64>(std::slice::from_mut(self)) {
            *value /= 2.0;
        }
    }

    /// Returns whether saved numbers could have been counted: 2^63 for each insertion that has not faded is below 1e30.
    pub fn is_legal(&self) -> bool {
        let values: &[f64] = bytemuck::cast_slice(std::slice::from_ref(self));
        values.iter().all(|value| (0.0..1e30).contains(value))
            && self.recent.iter().zip(&self.found).all(|(recent, found)| recent <= found)
    }

    /// Returns for each class the cumulated hazard of one half-life: -ln of the chance that a key found in it is older.
    ///
    /// Each class begins with one insertion of the sample that follows the law of independent keys: a key seen c times
    /// in n insertions is older than the last a with chance (1 - a/n)^c, about exp(-c a / n), where n is the mean
    /// memory half-life / ln 2 of the sketch and a the half-life: 2^-c. (p is c/n, not less as Good and Turing have it
    /// for the next insertion: the count states where past sightings lie.) The same law, up to one insertion, is a
    /// floor if too few older keys have been counted. A greater count never makes a key older: neighbouring classes
    /// that would are pooled.
    pub fn hazards(&self, weight: f64) -> [f64; CLASSES] {
        let mut pools: Vec<(f64, f64, usize)> = Vec::with_capacity(CLASSES);
        for class in 0..CLASSES {
            let (independent, all) = ((-sightings(class)).exp2(), self.found[class] + weight);
            let older = self.found[class] - self.recent[class] + weight * independent;
            let mut pool = (older.max(weight.min(independent * all)), all, 1);
            while let Some(&(older, all, classes)) = pools.last()
                && older * pool.1 < pool.0 * all
            {
                pools.pop();
                pool = (pool.0 + older, pool.1 + all, pool.2 + classes);
            }
            pools.push(pool);
        }
        let mut shares = pools.iter().flat_map(|&(older, all, classes)| std::iter::repeat_n(older / all, classes));
        std::array::from_fn(|class| match shares.next() {
            // Saved ages may be so large that the one insertion added to them is lost in rounding.
            Some(older) if older >= f64::MIN_POSITIVE => (-older.ln()).max(f64::EPSILON),
            // The value is less than a float can represent: the independent law applies.
            _ => sightings(class) * LN_2,
        })
    }

    /// Returns the curve of distinct keys.
    ///
    /// An insertion is the first of its key among the last j if its key is older than all before it there, so D(j) is
    /// the sum of P(age > i) over i < j. This holds with bursts, not only for independent keys like eq. 15. Keys not
    /// seen before are older than the stream so far: they count as at risk up to there and no further (Kaplan, Meier
    /// 1958). All is relative to all insertions, so a hot key, sampled or not, affects only short ages.
    pub fn distinct(&self) -> Curve {
        let sampled: f64 = self.aged.iter().chain(&self.unseen).sum();
        let mut curve = Curve { points: vec![(1.0, 1.0)], slope: 1.0 };
        let Some(last) = self.aged.iter().rposition(|&insertions| insertions > 0.0) else { return curve };
        let mut at_risk = sampled - self.unseen[0];
        let mut older = sampled / self.insertions.max(1.0);
        let mut distinct = 1.0;
        for age in 1..=last {
            let before = older.min(1.0);
            older *= (1.0 - self.aged[age] / at_risk).max(0.0);
            at_risk -= self.aged[age] + self.unseen[age];
            let after = older.min(1.0);
            // Ages within a bucket are taken as uniform.
            let (low, high) = (lowest(age) as f64, lowest(age + 1) as f64);
            distinct += (high - low) * before - (before - after) * (high - low + 1.0) / 2.0;
            curve.points.push((high, distinct));
            curve.slope = after;
        }
        curve
    }
}

/// D at the bounds of the buckets; eq. 18 between them, and a straight line beyond the oldest age.
pub struct Curve {
    points: Vec<(f64, f64)>,
    slope: f64,
}

impl Curve {
    /// Returns D(j) for any j >= 0; at most j.
    pub fn at(&self, j: f64) -> f64 {
        match self.points.partition_point(|&(known, _)| known <= j) {
            0 => j,
            above if above == self.points.len() => {
                let (last, distinct) = self.points[above - 1];
                if self.slope > 0.0 { distinct + self.slope * (j - last) } else { distinct }
            }
            above => {
                let ((low, fewer), (high, more)) = (self.points[above - 1], self.points[above]);
                (fewer * (more / fewer).powf((j / low).ln() / (high / low).ln())).min(j)
            }
        }
    }
}

/// Returns the bucket of an age.
fn bucket(age: u64) -> usize {
    if age < 8 {
        return age as usize;
    }
    let octave = age.ilog2() as usize;
    (8 + (octave - 3) * 4 + (age >> (octave - 2) & 3) as usize).min(BUCKETS - 1)
}

/// Returns the least age in a bucket.
fn lowest(bucket: usize) -> u64 {
    if bucket < 8 { bucket as u64 } else { (4 + (bucket as u64 & 3)) << ((bucket - 8) / 4 + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_one_another_and_hold_their_ages() {
        for i in 0..BUCKETS - 1 {
            assert!(lowest(i) < lowest(i + 1));
            assert_eq!((bucket(lowest(i)), bucket(lowest(i + 1) - 1)), (i, i));
        }
        assert_eq!(bucket(1 << 62), BUCKETS - 1);
    }

    #[test]
    fn a_class_without_observations_follows_the_independent_law() {
        for (class, hazard) in Recency::default().hazards(1.0).into_iter().enumerate() {
            let expected = sightings(class) * LN_2;
            assert!((hazard / expected - 1.0).abs() < 1e-12, "{class}: {hazard} {expected}");
        }
    }

    #[test]
    fn neighbours_out_of_order_are_pooled() {
        let mut recency = Recency::default();
        for (class, found, recent) in [(3, 1e9, 0.0), (4, 2e9, 1e9), (5, 1e9, 0.0), (6, 1e9, 1e9)] {
            (recency.found[class], recency.recent[class]) = (found, recent);
        }
        let hazards = recency.hazards(1.0);
        for (class, expected) in [(3, 1.0), (4, 2.0 / 3.0), (5, 2.0 / 3.0), (6, 0.0)] {
            assert!(((-hazards[class]).exp() - expected).abs() < 1e-6, "{class}: {hazards:?}");
        }
        assert!(hazards.is_sorted());
    }
}
