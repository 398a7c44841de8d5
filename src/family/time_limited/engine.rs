//! The engine of the time-limited filter, whose slices come and go with the rate of keys. They are no
//! [chain](crate::engine::chain) of tables that answer each for themselves: an insertion writes k slices, and a query
//! reads runs of k.

use std::borrow::Cow;

use super::cells::{Slice, Slices, slicewise};
use super::likelihood::{SliceRecord, generations, group_width, grouped};
use crate::Error;
use crate::clock::Clock;
use crate::engine::{Engine, Insertion, Query, Refresh, no_ages, not_mergeable};
use crate::family::arrays::SliceCells;
use crate::family::runs;
use crate::inference::ring::RingLikelihood;
use crate::inference::{Evidence, EvidenceSource, Likelihood, Question};
use crate::memory::Words;

impl Engine for Slices {
    fn process(&mut self, hashes: &[u64], Insertion { at, refresh, seen }: Insertion<'_>) -> Result<(), Error> {
        let at = self.clock.admit(at)?;
        let (mut i, k) = (0, self.k());
        while i < hashes.len() {
            let now = self.now(at.moment(i));
            // Insertions alone do not depend on which slices are live.
            let live = refresh.map_or(0, |_| self.live(now));
            let run = if refresh.is_some() && live < k { 0 } else { self.run(at, i, hashes.len(), live) };
            if run == 0 {
                // The query comes first, while the old generation is open. Only an insertion opens the next.
                let reported = refresh.is_some() && slicewise::contains(&self.table[..live], k, hashes[i]);
                if refresh.is_none_or(|refresh| refresh.inserts(reported)) {
                    self.shift(now)?;
                    self.clock.reach(at, i..i + 1);
                    slicewise::set_one(&mut self.table[..k], hashes[i])?;
                    self.count_keys(1);
                }
                if let Some(seen) = seen.get_mut(i) {
                    *seen = reported;
                }
                self.clock.reach(at, i..i + 1);
                self.clock.count(1);
                i += 1;
                continue;
            }
            let run = i..i + run;
            let (mut inserted, mut last) = (run.len(), run.end);
            if let Some(refresh) = refresh {
                let (live, seen) = (&mut self.table[..live], &mut seen[run.clone()]);
                slicewise::duplicated(live, k, &hashes[run.clone()], refresh == Refresh::Always, seen)?;
                inserted = seen.iter().filter(|&&seen| refresh.inserts(seen)).count();
                last = i + seen.iter().rposition(|&seen| refresh.inserts(seen)).map_or(0, |last| last + 1);
            } else {
                slicewise::set(&mut self.table[..k], &hashes[run.clone()])?;
            }
            if inserted > 0 {
                self.clock.reach(at, i..last);
                self.count_keys(inserted);
            }
            self.clock.reach(at, run.clone());
            self.clock.count(run.len() as u64);
            i = run.end;
        }
        Ok(())
    }

    fn query_within(&self, Query { hashes, at, window }: Query<'_>, present: &mut [bool]) -> Result<(), Error> {
        if window.is_some() {
            return Err(no_ages());
        }
        self.clock.check(at, false)?;
        let at = self.clock.query_moments(at);
        let mut i = 0;
        while i < hashes.len() {
            let now = self.now(at.moment(i));
            let live = self.live(now);
            let start = if Some(now) == self.clock.latest() { i64::MIN } else { now };
            let alike = |_| start..self.last_moment(live).saturating_add(1);
            let run = at.run(i, hashes.len(), alike).map_or(hashes.len() - i, |(_, run)| run);
            let run = i..i + run;
            slicewise::query(&self.table[..live], self.k(), &hashes[run.clone()], &mut present[run.clone()]);
            i = run.end;
        }
        Ok(())
    }

    fn slice_bits(&self) -> Option<Vec<u64>> {
        Some(self.table.iter().map(|slice| slice.place.bits.bits()).collect())
    }

    /// Returns an error: slices of different filters differ in number and size.
    fn merge(&mut self, _: &dyn Engine) -> Result<(), Error> {
        Err(not_mergeable("the slices of time-limited filters differ in number and size"))
    }

    fn set_max_ahead(&mut self, max_ahead: Option<u64>) {
        self.clock.set_max_ahead(max_ahead);
    }

    fn words(&self) -> &Words {
        &self.table[0].words
    }

    fn nbytes(&self) -> usize {
        8 * (self.head().len() + self.table.iter().map(|slice| slice.words.as_slice().len()).sum::<usize>())
    }

    fn pieces(&self) -> Result<Vec<Cow<'_, [u64]>>, Error> {
        let bits = self.table.iter().map(|slice| Cow::Borrowed(slice.words.as_slice()));
        Ok([Cow::Owned(self.head())].into_iter().chain(bits).collect())
    }

    fn fill(&self) -> Vec<f64> {
        let live = &self.table[..self.live(self.now(i64::MIN))];
        live.iter().map(|slice| slice.place.bits.match_rate(slice.words.as_slice())).collect()
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
        self.clock.clone()
    }

    fn evidence(&self, hashes: &[u64], evidence: &mut [Evidence]) {
        let mut groups = vec![0; hashes.len()];
        let width = group_width(self.table.len());
        slicewise::possible(&self.table, self.k(), width, hashes, &mut groups);
        evidence.iter_mut().zip(groups).for_each(|(evidence, groups)| *evidence = Evidence::generations(groups));
    }

    fn likelihood(&self, _: &Question<'_>) -> Option<Box<dyn Likelihood>> {
        let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
        let since = |moment: i64| seconds(self.clock.latest().map_or(0, |latest| latest.abs_diff(moment)));
        let noted = |slice: &Slice| SliceRecord { count: slice.load.count, since_last: since(slice.updated) };
        let noted: Vec<SliceRecord> = self.table.iter().map(noted).collect();
        let length = seconds(self.clock.window().generation(self.shape.l));
        let rate = |slice: &Slice| slice.place.bits.sampled_match_rate(slice.words.as_slice());
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
