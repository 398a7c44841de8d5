//! Checks that a clock accepts the moments of a batch: its promise must cover them, and none may lie too far ahead.

use super::moments::extremes;
use super::{Clock, Moments, Seconds, Window, system};
use crate::Error;

/// Nanoseconds of a microsecond.
const MICROSECOND: i64 = 1000;

impl Clock {
    /// Rejects moments that the promise cannot cover: missing on a time clock, present on a count clock, or further
    /// back than the stated lateness. Insertions happen in order, so each moment is also compared with those before it.
    pub fn check(&self, moments: Moments<'_>, in_order: bool) -> Result<(), Error> {
        if self.accepts(moments) { Ok(()) } else { self.check_as_of(moments, in_order, None) }
    }

    /// Returns whether the time of a single key is not late, which most are.
    fn accepts(&self, moments: Moments<'_>) -> bool {
        let (Window::Time { lateness, .. }, Moments::At(moment)) = (self.window, moments) else { return false };
        self.latest.is_none_or(|latest| moment >= latest.saturating_sub_unsigned(lateness))
    }

    /// Returns the later of the wall clock's time and the filter's. A wall clock that was set back does not make times
    /// wrong that were right before, and one that was set right makes later times right.
    fn present(&self) -> i64 {
        system::wall().max(self.time_at(system::now()))
    }

    /// Checks the moments of keys to insert, and returns the latest moment that a key may have now. They must pass
    /// [`check`](Self::check), and none may lie further ahead of the [present](Self::present) than
    /// [`max_ahead`](Self::max_ahead). That holds for the first key of a filter and for a key a little ahead of one
    /// before it. So no key can end the window of keys whose times are at most that much after the present.
    pub fn check_new(&self, moments: Moments<'_>) -> Result<i64, Error> {
        let now = self.present();
        self.check_as_of(moments, true, Some(now)).map(|()| self.until(now))
    }

    /// Returns the latest moment that a key may have at `now`, the [present](Self::present). A moment that was accepted
    /// before is accepted again.
    ///
    /// Unix seconds as floats are read to the microsecond, so the time of this instant may come out as one later.
    fn until(&self, now: i64) -> i64 {
        let now = now.saturating_add(MICROSECOND);
        let until = self.max_ahead.map_or(i64::MAX, |ahead| now.saturating_add_unsigned(ahead));
        self.latest.map_or(until, |latest| latest.max(until))
    }

    /// Rejects moments where the window is none of time.
    fn check_untimed(&self, moments: Moments<'_>) -> Result<(), Error> {
        match moments {
            Moments::Untimed => Ok(()),
            _ if self.endless() => Err(Error::value("at is for windows of time; this filter has no window")),
            _ => Err(Error::value("at is for windows of time; this filter's window counts insertions")),
        }
    }

    /// Checks moments like [`check`](Self::check), and rejects those too far ahead of `now`.
    fn check_as_of(&self, moments: Moments<'_>, in_order: bool, now: Option<i64>) -> Result<(), Error> {
        let Window::Time { lateness, .. } = self.window else { return self.check_untimed(moments) };
        let until = now.map_or(i64::MAX, |now| self.until(now));
        let place = |position: usize| match moments {
            Moments::At(_) => "at".to_owned(),
            _ => format!("at[{position}]"),
        };
        // Each key takes one comparison, because the bound is stored and not the latest moment.
        let behind = |moment: i64| moment.saturating_sub_unsigned(lateness);
        let mut earliest = self.latest.map_or(i64::MIN, behind);
        let not_before = |earliest: i64, position: usize, rest: &[i64]| {
            if rest[0] >= earliest {
                return Ok(());
            }
            let mut latest = i128::from(earliest) + i128::from(lateness);
            let late = latest - i128::from(rest[0]);
            let furthest = rest.iter().fold(late, |furthest, &moment| {
                latest = if in_order { latest.max(moment.into()) } else { latest };
                furthest.max(latest - i128::from(moment))
            });
            Err(Error::value(format!(
                "{} lies {} before the latest time seen, but lateness is {}: \
                 sort by time, or construct the filter with a larger lateness, of {} for these times",
                place(position),
                Seconds(late.unsigned_abs()),
                Seconds(lateness.into()),
                Seconds(furthest.unsigned_abs())
            )))
        };
        let not_after = |position: usize, moment: i64| {
            if moment <= until {
                return Ok(());
            }
            let ahead = self.max_ahead.unwrap_or(0);
            let by = i128::from(moment) - i128::from(now.unwrap_or(0));
            Err(Error::value(format!(
                "{} lies {} ahead of the system's clock, but max_ahead is {}: correct the time, or construct the \
                 filter with a larger max_ahead, or without one (None) if its times are not those of the clock",
                place(position),
                Seconds(by.unsigned_abs()),
                Seconds(ahead.into())
            )))
        };
        match moments {
            Moments::Untimed => Err(Error::value("at is missing: a window of time needs the moment of each key")),
            Moments::Now(_) => Ok(()),
            Moments::At(moment) => not_before(earliest, 0, &[moment]).and(not_after(0, moment)),
            Moments::InOrder(all) => {
                let Some(&last) = all.last() else { return Ok(()) };
                not_before(earliest, 0, all)?;
                let fitting = if last > until { all.partition_point(|&moment| moment <= until) } else { 0 };
                not_after(fitting, all[fitting])
            }
            Moments::TimeRange(times) => {
                let Some(last) = times.len().checked_sub(1) else { return Ok(()) };
                not_before(earliest, 0, &[times.moment(0)])?;
                if times.moment(last) <= until {
                    return Ok(());
                }
                let ahead = (0..=last).find(|&i| times.moment(i) > until).unwrap_or(last);
                not_after(ahead, times.moment(ahead))
            }
            Moments::Each(all) => {
                let (least, greatest) = extremes(all);
                // Usually even the least moment is not too far behind the greatest, in whatever order they come.
                let latest_of_all = if in_order { behind(greatest) } else { i64::MIN };
                if least >= earliest.max(latest_of_all) && greatest <= until {
                    return Ok(());
                }
                for (i, &moment) in all.iter().enumerate() {
                    not_after(i, moment)?;
                    not_before(earliest, i, &all[i..])?;
                    if in_order {
                        earliest = earliest.max(behind(moment));
                    }
                }
                Ok(())
            }
        }
    }
}
