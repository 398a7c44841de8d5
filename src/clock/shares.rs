//! Generations that end by time or by count, whichever comes first: those of lines in a window of time.
//!
//! A burst would crowd its keys into one generation that ends by time alone. So the open generation also ends when it
//! has taken its *share* of the capacity. Keys are kept for the *retention* R, which is span and lateness together.
//! Time ends a generation each R / t, and the cells retain n generations.
//!
//! - **Which keys count.** A table contains for each *group* of g generations the moment at which its last one ended:
//!   that of the last key before the end. A group is *live* at a moment m if it is open, or ended at m - R or later. A
//!   query counts the generations from the oldest live group on. A key of the window came at m - R or later, so its
//!   group is live. A key that is older than R by a generation and a group does not count, whatever its bits are.
//! - **Why they are there.** Let h be a live group, e the generation after its last one, and s = e - g its first. The
//!   clock stands at generation S and in period T of time. Then S - e = c + (T - T(h)), where T(h) is the period in
//!   which h ended and c are the ends by count since. A generation ends by count only if c <= n - t - g afterwards, for
//!   every live group. As long as h is live at most R passes, which is at most t periods. So S - s <= n: the cells
//!   retain all live groups, and every end by time is possible at any moment.
//! - **Why the rate holds.** Keys that came since h ended came within R, so at most the capacity K, planned for R, of
//!   them. Each end by count took a share K / (n - t - g) of these. So within the capacity no end by count is refused.
//!   The keys that count are those of R, and those of one generation and one group before. Beyond the capacity the open
//!   generation takes the rest, and the rate suffers.
//!
//! All numbers are compared with saturation. Where a file has a table that no clock has written, a query counts at most
//! the generations that the cells retain.

use std::ops::Range;

use super::{Clock, Moments, Window};
use crate::Error;
use crate::memory::mapped::TABLE;

/// Groups in the table: those that the cells retain, the open one and one more. In a file two words come first: the
/// keys so far when the open generation began, and the moment until which it may have keys.
const GROUPS: usize = TABLE - 2;

/// How generations end: the constants of the text above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Keys after which a generation ends.
    pub share: u64,
    /// Greatest number of ends by count while a group is live: n - t - g.
    most: i64,
    /// Generations of a group, g.
    pub group: i64,
    /// Generations that the cells retain, n.
    pub retained: i64,
    /// Nanoseconds for which keys are kept, R.
    pub retention: u64,
}

impl Plan {
    /// Returns the plan for a window of time, of which `retained` generations are kept and `timed` end by time.
    pub fn new(window: Window, timed: u32, retained: u32) -> Option<Self> {
        let Window::Time { span, lateness, capacity } = window else { return None };
        let group = Self::group(retained);
        let (most, retention) = (retained.saturating_sub(timed + group).max(1), span.saturating_add(lateness));
        let keys = (u128::from(capacity) * u128::from(retention)).div_ceil(u128::from(span));
        let share = u64::try_from(keys.div_ceil(most.into())).unwrap_or(u64::MAX).max(1);
        Some(Self { share, most: most.into(), group: group.into(), retained: retained.into(), retention })
    }

    /// Returns the number of generations of a group.
    pub fn group(retained: u32) -> u32 {
        retained.div_ceil(GROUPS as u32 - 2)
    }

    /// Returns the place of a group in a table.
    pub fn place(group: i64) -> usize {
        group.rem_euclid(GROUPS as i64) as usize
    }

    /// Returns the oldest group that is live at a moment, if any, from `first` on, and the moments at which it is the
    /// oldest. `end` returns the end of a group up to the `open` one, or the latest moment so far.
    pub fn oldest(&self, first: i64, open: i64, moment: i64, end: impl Fn(i64) -> i64) -> (Option<i64>, Range<i64>) {
        let (earliest, mut start) = (moment.saturating_sub_unsigned(self.retention), i64::MIN);
        for group in first.max(open.saturating_sub(GROUPS as i64 - 1))..=open {
            let end = end(group);
            let until = end.saturating_add_unsigned(self.retention).saturating_add(1);
            if end >= earliest {
                return (Some(group), start..until);
            }
            start = until;
        }
        (None, start..i64::MAX)
    }

    /// Returns the generation up to which a clock would have to go for the cells to forget what a query does not count.
    pub fn horizon(&self, oldest: i64) -> i64 {
        oldest.saturating_mul(self.group).saturating_add(self.retained)
    }
}

/// The state of a clock whose generations end by time or by count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shares {
    pub plan: Plan,
    /// Keys so far when the open generation began.
    opened_at: u64,
    /// The moment until which the open generation may have keys, if that is later than the latest one: threads that
    /// share a filter round the latest moment down.
    until: i64,
    /// The oldest group that is live at the latest moment.
    oldest: i64,
    /// When groups ended, by their [place](Plan::place).
    ends: [i64; GROUPS],
}

impl Shares {
    fn end(&self, group: i64, open: i64, latest: i64) -> i64 {
        if group < open { self.ends[Plan::place(group)] } else { latest.max(self.until) }
    }
}

impl Clock {
    /// Creates a clock whose generations also end by count, for cells that retain `retained` generations of which
    /// `timed` are as long as the window. A window of insertions has equal generations.
    pub(crate) fn with_shares(window: Window, timed: u32, retained: u32) -> Self {
        let Some(plan) = Plan::new(window, timed, retained) else { return Self::new(window, retained) };
        let shares = Shares { plan, opened_at: 0, until: i64::MIN, oldest: 0, ends: [i64::MIN; GROUPS] };
        Self { shares: Some(Box::new(shares)), ..Self::new(window, timed) }
    }

    /// Returns whether generations also end by count.
    pub(crate) fn has_shares(&self) -> bool {
        self.shares.is_some()
    }

    /// Returns the number of the period of time in which a key at the latest moment lies.
    pub fn period(&self) -> i64 {
        match (&self.shares, self.latest) {
            (Some(_), Some(latest)) => self.generation_at(latest),
            _ => self.generation,
        }
    }

    /// Returns the number of periods of time that are as long as the window, of a filter that retains `retained` full
    /// generations.
    pub fn periods(&self, retained: u32) -> u32 {
        match &self.shares {
            Some(shares) => shares.plan.retention.div_ceil(self.length).try_into().unwrap_or(u32::MAX),
            None => retained,
        }
    }

    /// Returns how many generations a query at the latest moment does not count, beyond those the cells have dropped.
    #[inline(always)]
    pub(crate) fn expired(&self) -> u64 {
        match (&self.shares, self.latest) {
            (Some(shares), Some(latest)) => self.expired_at(shares, latest, latest).0,
            _ => 0,
        }
    }

    /// Returns the oldest group that is live at a moment, if any, and the moments at which it is the oldest.
    fn oldest_at(&self, shares: &Shares, latest: i64, moment: i64) -> (Option<i64>, Range<i64>) {
        let open = self.generation.div_euclid(shares.plan.group);
        shares.plan.oldest(shares.oldest, open, moment, |group| shares.end(group, open, latest))
    }

    /// Returns how many generations a query at a moment does not count, and the moments of which that is true.
    fn expired_at(&self, shares: &Shares, latest: i64, moment: i64) -> (u64, Range<i64>) {
        let (oldest, moments) = self.oldest_at(shares, latest, moment);
        let expired = oldest.map_or(u64::MAX, |oldest| {
            u64::try_from(shares.plan.horizon(oldest).saturating_sub(self.generation)).unwrap_or(0)
        });
        (expired, moments)
    }

    /// Returns the horizon of a query at the latest moment: the generation up to which a clock would have to go for the
    /// cells to forget what the query does not count. Also returns the first moment at which there will be another.
    pub(crate) fn horizon(&self) -> (i64, i64) {
        let (Some(shares), Some(latest)) = (&self.shares, self.latest) else { return (i64::MIN, i64::MIN) };
        let (oldest, moments) = self.oldest_at(shares, latest, latest);
        let oldest = oldest.unwrap_or_else(|| self.generation.div_euclid(shares.plan.group));
        (shares.plan.horizon(oldest), moments.end)
    }

    /// Answers [`pending`](Self::pending) for generations that end by count.
    pub(super) fn pending_by_share(&self, shares: &Shares, moments: Moments<'_>, i: usize, len: usize) -> (u64, usize) {
        let Some(latest) = self.latest else { return (0, len - i) };
        let alike = |moment: i64| {
            let range = self.expired_at(shares, latest, moment.max(latest)).1;
            if range.start <= latest { i64::MIN..range.end } else { range }
        };
        match moments.run(i, len, alike) {
            Some((moment, run)) => (self.expired_at(shares, latest, moment.max(latest)).0, run),
            None => (0, len - i),
        }
    }

    /// Answers [`run`](Self::run) for generations that end by count.
    pub(super) fn run_by_share(&mut self, plan: Plan, moments: Moments<'_>, i: usize, len: usize) -> (u64, usize) {
        let until = |moment: i64| {
            let moment = self.latest.map_or(moment, |latest| latest.max(moment));
            let expiry = match (&self.shares, self.latest) {
                (Some(shares), Some(latest)) => self.expired_at(shares, latest, moment).1.end,
                _ => i64::MAX,
            };
            i64::MIN..self.span_of(self.generation_at(moment)).end.min(expiry)
        };
        let Some((moment, run)) = moments.run(i, len, until) else { return (0, len - i) };
        let end = until(moment).end;
        let (before, latest) = (self.latest.map(|_| self.generation), self.latest);
        self.by_system |= matches!(moments, Moments::Now(_));
        self.advance(moment);
        if before == Some(self.generation) && self.is_full() {
            self.open(1, latest);
        }
        // Of an open generation that takes the rest, a share at a time.
        let taken = self.shares.as_ref().map_or(0, |shares| self.inserted.saturating_sub(shares.opened_at));
        let room = if taken < plan.share { plan.share - taken } else { plan.share };
        let run = run.min(usize::try_from(room).unwrap_or(usize::MAX));
        // Another thread may write to the times while they are read, and make them later: the clock stays consistent.
        let last = moments.latest(i..i + run).min(end.saturating_sub(1));
        self.latest = self.latest.max(Some(last));
        (before.map_or(0, |before| self.generation.abs_diff(before)), run)
    }

    /// Returns whether the open generation has its share, and may end by count.
    pub(crate) fn is_full(&self) -> bool {
        let (Some(shares), Some(latest)) = (&self.shares, self.latest) else { return false };
        self.inserted.saturating_sub(shares.opened_at) >= shares.plan.share && self.has_lanes(shares, latest, 1)
    }

    /// Returns whether no live group has seen too many ends by count, after `more` of them.
    fn has_lanes(&self, shares: &Shares, latest: i64, more: i64) -> bool {
        let Plan { group, most, .. } = shares.plan;
        let (open, now) = (self.generation.div_euclid(group), self.generation_at(latest));
        let first = shares.oldest.max(open.saturating_sub(GROUPS as i64 - 1));
        (first..open).all(|live| {
            let end = shares.ends[Plan::place(live)];
            let periods = now.saturating_sub(self.generation_at(end));
            let since = self.generation.saturating_sub((live + 1).saturating_mul(group));
            // A group that ended before the first key has no keys.
            end < latest.saturating_sub_unsigned(shares.plan.retention)
                || since.saturating_sub(periods).saturating_add(more) <= most
        })
    }

    /// Advances to a moment, if it is later than the latest one: ends the generations that time has ended.
    pub(crate) fn advance(&mut self, moment: i64) {
        let moment = self.latest.map_or(moment, |latest| latest.max(moment));
        let period = self.generation_at(moment);
        match self.latest {
            None => {
                self.generation = period;
                self.open(0, None);
            }
            Some(latest) => {
                let periods = period.saturating_sub(self.generation_at(latest));
                if periods > 0 {
                    self.open(periods, Some(latest));
                }
            }
        }
        self.go_to(moment);
    }

    /// Sets the latest moment, in the same period.
    pub(crate) fn go_to(&mut self, moment: i64) {
        self.latest = Some(moment);
        let open = self.shares.as_ref().map_or(0, |shares| self.generation.div_euclid(shares.plan.group));
        if let Some(shares) = &mut self.shares {
            let end = |group| shares.end(group, open, moment);
            shares.oldest = shares.plan.oldest(shares.oldest, open, moment, end).0.unwrap_or(open);
        }
    }

    /// Opens the next `count` generations, after a last key at `end`.
    pub(crate) fn open(&mut self, count: i64, end: Option<i64>) {
        let next = self.generation.saturating_add(count);
        let ended = self.groups_between(self.generation, next);
        self.generation = next;
        let Some(shares) = &mut self.shares else { return };
        let next = ended.end;
        for group in ended {
            shares.ends[Plan::place(group)] = end.map_or(i64::MIN, |end| end.max(shares.until));
        }
        if end.is_none() {
            shares.oldest = next;
        }
        if count > 0 {
            (shares.opened_at, shares.until) = (self.inserted, i64::MIN);
        }
    }

    /// Returns the number of periods from the latest moment to a later one.
    pub(crate) fn periods_until(&self, moment: i64) -> i64 {
        self.latest.map_or(0, |latest| self.generation_at(moment).saturating_sub(self.generation_at(latest)))
    }

    /// Returns when the period of the latest moment ends.
    pub(crate) fn period_end(&self) -> i64 {
        self.latest.map_or(i64::MIN, |latest| self.span_of(self.generation_at(latest)).end)
    }

    /// Returns the groups that end when `next` opens after `generation`, as far as the table has them.
    pub(crate) fn groups_between(&self, generation: i64, next: i64) -> Range<i64> {
        let group = self.shares.as_ref().map_or(1, |shares| shares.plan.group);
        let next = next.div_euclid(group);
        generation.div_euclid(group).max(next.saturating_sub(GROUPS as i64))..next
    }

    /// Returns the number of keys at which the open generation has its share.
    pub(crate) fn full_at(&self) -> u64 {
        self.shares.as_ref().map_or(u64::MAX, |shares| shares.opened_at.saturating_add(shares.plan.share))
    }

    /// Sets the number of keys so far.
    pub(crate) fn set_inserted(&mut self, inserted: u64) {
        self.inserted = inserted;
    }

    /// Sets the moment until which the open generation may have keys.
    pub(crate) fn keep_open_until(&mut self, moment: i64) {
        if let Some(shares) = &mut self.shares {
            shares.until = shares.until.max(moment);
        }
    }

    /// Returns how generations end by count, if they do.
    pub(crate) fn plan(&self) -> Option<Plan> {
        self.shares.as_ref().map(|shares| shares.plan)
    }

    /// Returns the table of the ends of groups.
    pub(crate) fn ends(&self) -> impl Iterator<Item = i64> {
        self.shares.iter().flat_map(|shares| shares.ends)
    }

    /// Encodes the table for a file.
    pub(crate) fn to_table(&self) -> Option<[u64; TABLE]> {
        let shares = self.shares.as_ref()?;
        let mut table = [shares.opened_at; TABLE];
        table[1] = shares.until as u64;
        table[2..].iter_mut().zip(shares.ends).for_each(|(word, end)| *word = end as u64);
        Some(table)
    }

    /// Returns this clock in an open generation, with a [table](Self::to_table).
    pub(crate) fn with_table(mut self, generation: i64, table: &[u64; TABLE]) -> Self {
        let Some(latest) = self.latest else { return self };
        if let Some(shares) = &mut self.shares {
            self.generation = generation;
            (shares.opened_at, shares.until) = (table[0], table[1] as i64);
            shares.ends = std::array::from_fn(|i| table[i + 2] as i64);
            shares.oldest = i64::MIN;
            self.advance(latest);
        }
        self
    }

    /// Returns the number of ends by count, or a negative number where none could have led to this generation.
    pub(super) fn ends_by_count(&self) -> i64 {
        self.latest.map_or(0, |latest| self.generation.saturating_sub(self.generation_at(latest)))
    }

    /// Answers [`merged`](Self::merged) for two clocks that have seen keys and end generations by count.
    ///
    /// The clock that is behind goes on to the generation of the other, as if its generations had ended by count. An
    /// error if its cells, or those of the other, could then not retain all live groups.
    pub(super) fn merged_by_share(&self, other: &Self) -> Result<(Self, u64, u64), Error> {
        let (mut ours, mut theirs) = (self.clone(), other.clone());
        let latest = ours.latest.max(theirs.latest);
        for clock in [&mut ours, &mut theirs] {
            clock.advance(latest.unwrap_or(0));
        }
        let generation = ours.generation.max(theirs.generation);
        for (clock, before) in [(&mut ours, self), (&mut theirs, other)] {
            clock.open(generation.saturating_sub(clock.generation), before.latest);
        }
        let mut merged = ours;
        if let (Some(shares), Some(others)) = (&mut merged.shares, &theirs.shares) {
            shares.ends.iter_mut().zip(others.ends).for_each(|(end, other)| *end = other.max(*end));
            shares.opened_at = shares.opened_at.saturating_add(others.opened_at);
            shares.until = shares.until.max(others.until);
            shares.oldest = shares.oldest.min(others.oldest);
        }
        if let (Some(shares), Some(latest)) = (&merged.shares, latest)
            && !merged.has_lanes(shares, latest, 0)
        {
            return Err(Error::value(
                "cannot merge these filters now, because a burst has ended generations of one of them early and keys \
                 of the other would be missed: merge before a burst or a window after it, or build aged cuckoo filters",
            ));
        }
        merged.advance(latest.unwrap_or(0));
        Ok((merged, generation.abs_diff(self.generation), generation.abs_diff(other.generation)))
    }

    /// Returns how long before the latest moment a generation began, in seconds, as far as the table has it. Within a
    /// group the generations are taken as equally long.
    pub(super) fn began_by_share(&self, shares: &Shares, latest: i64, back: u64) -> Option<f64> {
        let group = shares.plan.group;
        let open = self.generation.div_euclid(group);
        let generation = self.generation.saturating_sub_unsigned(back);
        let (own, within) = (generation.div_euclid(group), generation.rem_euclid(group));
        let begin = shares.ends[Plan::place(own.saturating_sub(1))];
        if own <= open.saturating_sub(GROUPS as i64 - 1) || begin == i64::MIN {
            return None;
        }
        let len = if own < open { group } else { self.generation.rem_euclid(group) + 1 };
        let age = |moment: i64| (i128::from(latest) - i128::from(moment)) as f64 / 1e9;
        let (begin, end) = (age(begin), age(shares.end(own, open, latest)));
        Some(begin + (end - begin) * within as f64 / len as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 40 generations that the cells retain, 10 may end by time while a key lives. So 30 may end by count, of which
    /// the last and the one whose last key is as old as the window are not counted on.
    #[test]
    fn a_burst_of_the_capacity_ends_a_generation_with_each_share_and_then_no_more() {
        let window = Window::Time { span: 1000, lateness: 100, capacity: 10_000 };
        let mut clock = Clock::with_shares(window, 10, 40);
        let mut burst = |keys: usize| {
            let mut i = 0;
            while i < keys {
                let (_, run) = clock.run(Moments::At(5), i, keys);
                clock.count(run as u64);
                i += run;
            }
            clock.generation()
        };
        // As many keys as may come within span and lateness.
        assert_eq!(burst(11_000), 11_000 / 380);
        assert_eq!(burst(100_000), 30);
    }
}
