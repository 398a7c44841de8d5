//! The engine of the time-limited filter. Its slices come and go with the rate of keys, so the engine keeps a table of
//! them in addition to words and clock.

use super::{Engine, Refresh, no_ages, not_mergeable};
use crate::Error;
use crate::clock::{Clock, Moments};
use crate::family::arrays::{SliceCells, share_of_ones};
use crate::family::runs;
use crate::family::time_limited::cells::{Slice, Slices, slicewise};
use crate::family::time_limited::likelihood::{SliceRecord, generations, group_width, grouped};
use crate::inference::ring::RingLikelihood;
use crate::inference::{Evidence, EvidenceSource, Likelihood, Question};
use crate::memory::Words;

impl Engine for Slices {
    fn insert(&mut self, hashes: &[u64], at: Moments<'_>) -> Result<(), Error> {
        let at = self.clock.admit(at)?;
        self.words.to_mut()?;
        let mut i = 0;
        while i < hashes.len() {
            let mut run = self.run(at, i, hashes.len(), 0);
            if run == 0 {
                self.shift(self.now(at.moment(i)))?;
                self.clock.reach(at, i..i + 1);
                run = self.run(at, i, hashes.len(), 0);
            }
            let (newest, words) = (&self.table[..self.shape.k as usize], self.words.to_mut()?);
            slicewise::set(newest, words, &hashes[i..i + run]);
            self.clock.reach(at, i..i + run);
            self.count_keys(run as u64, self.now(i64::MIN))?;
            self.clock.count(run as u64);
            i += run;
        }
        Ok(())
    }

    fn query_within(
        &self,
        hashes: &[u64],
        at: Moments<'_>,
        window: Option<u64>,
        present: &mut [bool],
    ) -> Result<(), Error> {
        if window.is_some() {
            return Err(no_ages());
        }
        self.clock.check(at, false)?;
        let at = self.clock.query_moments(at);
        let words = self.words.as_slice();
        let mut i = 0;
        while i < hashes.len() {
            let now = self.now(at.moment(i));
            let live = self.live(now);
            let start = if Some(now) == self.clock.latest() { i64::MIN } else { now };
            let alike = |_| start..self.last_moment(live).saturating_add(1);
            let run = at.run(i, hashes.len(), alike).map_or(hashes.len() - i, |(_, run)| run);
            let run = i..i + run;
            slicewise::query(&self.table[..live], self.k(), words, &hashes[run.clone()], &mut present[run.clone()]);
            i = run.end;
        }
        Ok(())
    }

    fn duplicated(
        &mut self,
        hashes: &[u64],
        at: Moments<'_>,
        refresh: Refresh,
        seen: &mut [bool],
    ) -> Result<(), Error> {
        let at = self.clock.admit(at)?;
        self.words.to_mut()?;
        let (mut i, k) = (0, self.k());
        while i < hashes.len() {
            let now = self.now(at.moment(i));
            let live = self.live(now);
            let run = if live < k { 0 } else { self.run(at, i, hashes.len(), live) };
            if run == 0 {
                // The query comes first, while the old generation is open. Only an insertion opens the next.
                seen[i] = slicewise::contains(&self.table[..live], k, self.words.as_slice(), hashes[i]);
                if refresh.inserts(seen[i]) {
                    self.shift(now)?;
                    self.clock.reach(at, i..i + 1);
                    slicewise::set_one(&self.table[..k], self.words.to_mut()?, hashes[i]);
                    self.count_keys(1, now)?;
                }
                self.clock.reach(at, i..i + 1);
                self.clock.count(1);
                i += 1;
                continue;
            }
            let run = i..i + run;
            let (live, words, seen) = (&self.table[..live], self.words.to_mut()?, &mut seen[run.clone()]);
            slicewise::duplicated(live, k, words, &hashes[run.clone()], refresh == Refresh::Always, seen);
            let new = |&seen: &bool| refresh.inserts(seen);
            if let Some(last) = seen.iter().rposition(new) {
                let inserted = seen.iter().copied().filter(|seen| new(seen)).count() as u64;
                self.clock.reach(at, i..i + last + 1);
                self.count_keys(inserted, self.now(i64::MIN))?;
            }
            self.clock.reach(at, run.clone());
            self.clock.count(run.len() as u64);
            i = run.end;
        }
        Ok(())
    }

    fn slice_bits(&self) -> Option<Vec<u64>> {
        Some(self.table.iter().map(|slice| slice.bits.bits()).collect())
    }

    /// Returns an error: slices of different filters differ in number and size.
    fn merge(&mut self, _: &dyn Engine) -> Result<(), Error> {
        Err(not_mergeable("the slices of time-limited filters differ in number and size"))
    }

    fn set_max_ahead(&mut self, max_ahead: Option<u64>) {
        self.clock = self.clock.with_max_ahead(max_ahead);
    }

    fn words(&self) -> &Words {
        &self.words
    }

    fn fill(&self) -> Vec<f64> {
        let live = &self.table[..self.live(self.now(i64::MIN))];
        let fill = |slice: &Slice| {
            let bits = slice.bits.bits();
            share_of_ones(&self.words.as_slice()[slice.start..][..(bits / 64) as usize], bits)
        };
        live.iter().map(fill).collect()
    }

    fn match_rates(&self) -> Vec<f64> {
        self.fill()
    }

    fn false_positive_rate(&self) -> f64 {
        runs::false_positive_rate(self.shape.k, &self.match_rates())
    }

    fn clone_box(&self) -> Box<dyn Engine> {
        Box::new(self.clone())
    }
}

impl EvidenceSource for Slices {
    fn clock(&self) -> Clock {
        self.clock
    }

    fn evidence(&self, hashes: &[u64], evidence: &mut [Evidence]) {
        let mut groups = vec![0; hashes.len()];
        let width = group_width(self.table.len());
        slicewise::possible(&self.table, self.k(), width, self.words.as_slice(), hashes, &mut groups);
        evidence.iter_mut().zip(groups).for_each(|(evidence, groups)| *evidence = Evidence::generations(groups));
    }

    fn likelihood(&self, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        let words = self.words.as_slice();
        let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
        let since = |moment: i64| seconds(self.clock.latest().map_or(0, |latest| latest.abs_diff(moment)));
        let noted = |slice: &Slice| SliceRecord { count: slice.load.count, since_last: since(slice.updated) };
        let noted: Vec<SliceRecord> = self.table.iter().map(noted).collect();
        let length = seconds(self.clock.window().generation(self.shape.l));
        let rate = |slice: &Slice| slice.bits.sampled_match_rate(&words[slice.start..]);
        let rates: Vec<f64> = self.table.iter().map(rate).collect();
        let generations = generations(self.k(), since(self.opened), length, self.clock.gap(), &noted);
        let likelihood = match group_width(rates.len()) {
            1 => RingLikelihood::new(self.shape.k, generations, &rates),
            width => {
                let (generations, rates) = grouped(width, self.k(), &generations, &rates);
                RingLikelihood::new(1, generations, &rates)
            }
        };
        // A slice with keys of the window is kept. A time without slices, as before the first key, had no keys.
        Some(Box::new(likelihood.complete_to(seconds(self.clock.window().length()))))
    }
}
