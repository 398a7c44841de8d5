//! The growth of a timing filter: when it opens another part, and what the parts cost (paper 4, section 5, "dynamic
//! size").
//!
//! A part is a whole timing filter. Keys go to the newest; once it is full another is opened, and queries read all.
//! Each reports a fresh key with probability P at most, so F of them do with 1 - (1 - P)^F at most, and with just that
//! while all are full: the rate is kept per part, not in total, and erratum OIE-10 corrects the paper's "slightly
//! worse". At P = 1 % that is 2 % for 2 parts, 9.6 % for 10, 63 % for 100.
//!
//! At the planned rate the total stays at P: the keys that the newest part has gained, the older one has lost, and
//! since x^k is convex the sum of both rates is greatest if one of the two is empty.

use super::cells::{TimerRotation, TimersInSlices};
use super::likelihood::PartsLikelihood;
use super::shape::{self, live_keys};
use crate::Error;
use crate::clock::{Clock, Window};
use crate::family::growth::{Growth, Table};
use crate::family::request::Grow;
use crate::family::{CacheLines, Layout, Parameters, fill};
use crate::inference::{Evidence, Likelihood};
use crate::memory::prefetch::{Address, in_flight};

/// The limit of a part. When a part reaches it, another is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// n: number of keys that the part did not contain when they came, live or not by now.
    Keys(u64),
    /// z: number of timers set over all slices, including those that have expired and not been swept yet.
    Timers(u64),
}

impl Limit {
    /// Returns the limit at which a part has the rate of the whole plan: the keys of `blocks` + 1 generations, or the
    /// timers that these are expected to set.
    pub fn planned(grow: Grow, shape: shape::TimingShape, window: Window) -> Self {
        let keys = live_keys(window, shape.blocks);
        match grow {
            Grow::Cardinality => Self::Keys(keys),
            Grow::Density => Self::Timers((shape.fill(keys) * timers(shape)) as u64),
        }
    }

    /// Rejects filters that cannot grow: windows of insertions, equal timers, a limit that one key exceeds.
    pub fn check(self, shape: shape::TimingShape, window: Window) -> Result<Self, Error> {
        const MAX_KEYS: u64 = 1 << 62;
        if let Window::Count { .. } = window {
            return Err(Error::value(
                "grow is for windows of time: a window of insertions never holds more keys than its length; leave \
                 grow out",
            ));
        }
        if shape.equal_timers > 1 {
            return Err(Error::value(format!("grow takes equal_timers=1, got {}", shape.equal_timers)));
        }
        match self {
            Self::Keys(keys) if !(1..=MAX_KEYS).contains(&keys) => {
                Err(Error::value(format!("part_keys must lie in 1..=2**62, got {keys}")))
            }
            Self::Timers(set) if set < shape.k.into() || set as f64 > timers(shape) => Err(Error::value(format!(
                "part_timers must lie in k..=k * slice_timers, here {}..={}, got {set}",
                shape.k,
                timers(shape)
            ))),
            limit => Ok(limit),
        }
    }

    /// Returns the limit as a number.
    pub fn most(self) -> u64 {
        match self {
            Self::Keys(most) | Self::Timers(most) => most,
        }
    }

    /// Returns the most that one key adds.
    pub fn step(self, shape: shape::TimingShape) -> u64 {
        match self {
            Self::Keys(_) => 1,
            Self::Timers(_) => shape.k.into(),
        }
    }

    /// Returns P, the probability that a full part reports a key never inserted. By keys it is exact in expectation. By
    /// timers it is an upper bound for the timers as they are: the product of the k fills is at most the k-th power of
    /// their mean.
    pub fn false_positive_rate(self, shape: shape::TimingShape) -> f64 {
        let (fill, keys) = match self {
            Self::Keys(keys) => (shape.fill(keys), keys),
            Self::Timers(set) => {
                let fill = set as f64 / timers(shape);
                (fill, ((-fill).ln_1p() / (-1.0 / shape.slice_timers() as f64).ln_1p()) as u64)
            }
        };
        fill::or_same_hash(fill.powi(shape.k as i32), keys)
    }
}

/// A timing Bloom filter of dynamic size: the shape of its parts, and their limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Growing {
    /// The shape of a part.
    pub part: shape::TimingShape,
    /// The limit of a part. When a part reaches it, another is opened.
    pub limit: Limit,
}

impl Growing {
    /// Reads the shape from parameters, one of which is the limit of a part.
    pub fn read(parameters: &Parameters<'_>) -> Result<Self, Error> {
        let limit = match (parameters.get("part_keys"), parameters.get("part_timers")) {
            (Some(keys), None) => Limit::Keys(keys),
            (None, Some(timers)) => Limit::Timers(timers),
            _ => return Err(Error::value("give part_keys or part_timers, and not both")),
        };
        Ok(Self { part: shape::TimingShape::read(parameters)?, limit })
    }
}

impl crate::family::Shape for Growing {
    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let (name, most) = match self.limit {
            Limit::Keys(keys) => ("part_keys", keys),
            Limit::Timers(timers) => ("part_timers", timers),
        };
        let mut parameters = self.part.parameters();
        parameters.iter_mut().filter(|(own, _)| *own == name).for_each(|(_, value)| *value = most);
        parameters
    }

    fn check(&self, window: Window) -> Result<(), Error> {
        self.limit.check(self.part, window.check()?).map(|_| ())
    }

    fn retained(&self) -> u32 {
        self.part.retained()
    }

    /// Returns the bytes of one part, its row in the table and the head of the table.
    fn bytes(&self, window: Window) -> u64 {
        8 * 3 + self.part.bytes(window)
    }

    fn grows(&self) -> bool {
        true
    }

    /// Returns the rate of one full part.
    fn fpr(&self, _: Window) -> f64 {
        self.limit.false_positive_rate(self.part)
    }

    fn slack(&self, window: Window) -> u64 {
        self.part.slack(window)
    }

    fn npws(&self, window: Window) -> f64 {
        self.part.npws(window)
    }

    /// Returns the lines of one part.
    fn cache_lines(&self, window: Window) -> CacheLines {
        self.part.cache_lines(window)
    }

    fn false_negative_rates(&self, window: Window) -> Vec<f64> {
        self.part.false_negative_rates(window)
    }
}

/// Returns the number of timers of all slices.
fn timers(shape: shape::TimingShape) -> f64 {
    f64::from(shape.k) * shape.slice_timers() as f64
}

/// A part of the timers.
type Part = Table<TimersInSlices>;

/// All parts have the same hash functions, as in the paper. A key expires from an older part in that part's own time.
impl Growth for Growing {
    type Cells = TimersInSlices;

    /// The load of the newest part.
    const HEAD: usize = 1;
    /// The moment of the last insertion.
    const ROW: usize = 1;
    const NEWEST_FIRST: bool = true;
    const NOT_MERGEABLE: Option<&'static str> = Some("timing filters that grow have parts of different times");

    fn first(&self) -> TimersInSlices {
        TimersInSlices::new(self.part)
    }

    fn next(&self, _: &[Part], _: TimerRotation) -> TimersInSlices {
        self.first()
    }

    fn words(cells: &TimersInSlices) -> usize {
        cells.timers.words()
    }

    fn head(&self, newest: &Part) -> Vec<u64> {
        vec![newest.load]
    }

    fn row(&self, part: &Part) -> Vec<u64> {
        vec![part.last as u64]
    }

    fn read_row(&self, row: &[u64]) -> Option<(TimersInSlices, i64)> {
        Some((self.first(), row[0] as i64))
    }

    fn read_head(&mut self, head: &[u64], parts: &mut [Part]) -> Option<()> {
        parts.last_mut()?.load = head[0];
        (head[0] <= self.limit.most()).then_some(())
    }

    fn moment(clock: &Clock) -> i64 {
        clock.latest().unwrap_or(0)
    }

    fn generation(clock: &Clock, moment: i64) -> i64 {
        clock.generation_at(moment)
    }

    /// Sweeps timers, and counts those that expire off the load.
    fn sweep(&self, part: &mut Part, generation: i64, _: TimerRotation) -> Result<(), Error> {
        let (cells, words) = (part.layout, part.words.to_mut()?);
        let set = |words: &[u64]| match self.limit {
            Limit::Keys(_) => 0,
            Limit::Timers(_) => cells.timers.set(&words[cells.timers.swept(generation)]),
        };
        let before = set(words);
        cells.open(words, generation);
        part.load = part.load.saturating_sub(before - set(words));
        Ok(())
    }

    fn insert_some(
        &self,
        newest: &mut Part,
        rotations: &[TimerRotation],
        hashes: &[u64],
        mut seen: Option<(bool, &mut [bool])>,
    ) -> Result<usize, Error> {
        let rotation = rotations[0];
        let (cells, most, step) = (newest.layout, self.limit.most(), self.limit.step(self.part));
        let (words, load) = (newest.words.to_mut()?, &mut newest.load);
        let need = |words: &[u64], hash: u64| match self.limit {
            Limit::Keys(_) => u64::from(!cells.contains(words, rotation, hash)),
            Limit::Timers(_) => cells.unset(words, hash),
        };
        let (address, mut done) = (Address::of(words), 0);
        while done < hashes.len() {
            // The part has room for this many keys, whichever they are.
            let room = usize::try_from((most - *load) / step).unwrap_or(usize::MAX);
            let hash = hashes[done];
            if room == 0 && *load + need(words, hash) > most {
                let inserts = seen.as_ref().is_none_or(|seen| seen.0) || !cells.contains(words, rotation, hash);
                if inserts {
                    break;
                }
            }
            let run = done..hashes.len().min(done.saturating_add(room.max(1)));
            done = run.end;
            in_flight(
                hashes,
                run,
                |hash| cells.prefetch_query(address, hash),
                |i, hash| {
                    if let Some((refresh, seen)) = &mut seen {
                        seen[i] = cells.contains(words, rotation, hash);
                        if seen[i] && !*refresh {
                            return;
                        }
                    }
                    *load += need(words, hash);
                    cells.insert(words, rotation, hash);
                },
            );
        }
        Ok(done)
    }

    /// Returns the evidence of the newest part that contains the key.
    fn evidence(before: Option<Evidence>, own: Evidence, newer: usize) -> Evidence {
        if own == Evidence::ABSENT { before.unwrap_or(own) } else { own.in_part(newer) }
    }

    fn likelihood(&self, parts: &[Part], clock: &Clock) -> Box<dyn Likelihood> {
        let latest = Self::moment(clock);
        let timers = |part: &Part| {
            let since_last = latest.abs_diff(part.last) as f64 / 1e9;
            (since_last, part.layout.sampled(part.words.as_slice(), clock))
        };
        Box::new(PartsLikelihood::new(parts.iter().rev().map(timers).collect()))
    }

    /// Returns the share of live timers in each slice of each part, the newest part first.
    fn fill(parts: &[Part], rotation: TimerRotation) -> Vec<f64> {
        parts.iter().rev().flat_map(|part| part.layout.fill(part.words.as_slice(), rotation)).collect()
    }

    fn match_rates(parts: &[Part], rotation: TimerRotation) -> Vec<f64> {
        Self::fill(parts, rotation)
    }
}
