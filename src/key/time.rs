//! Ticks of any unit, from years to attoseconds, as exact seconds.

/// A point in time since 1970-01-01T00:00 or a span of time, exact over the whole range of every unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time {
    /// Whole seconds, rounded down.
    pub seconds: i128,
    /// The remaining fraction, in 10⁻¹⁸ seconds: 0 … 10¹⁸−1.
    pub attoseconds: u64,
}

impl Time {
    /// Returns the canonical bytes: seconds, then attoseconds.
    #[inline]
    pub(super) fn to_le_bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..16].copy_from_slice(&self.seconds.to_le_bytes());
        bytes[16..].copy_from_slice(&self.attoseconds.to_le_bytes());
        bytes
    }
}

/// A span of time. Months have no fixed length in seconds, so a span of months never equals an exact one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duration {
    /// Seconds and fractions of a second.
    Exact(Time),
    /// Calendar months.
    Months(i128),
}

/// A unit of time: the length of one tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A number of calendar months.
    Months(u64),
    /// A number of seconds.
    Seconds(u64),
    /// `count` of the `per_second` parts of a second.
    Parts {
        /// A power of ten up to 10¹⁸.
        per_second: u64,
        /// Number of parts in a tick.
        count: u64,
    },
}

impl Unit {
    /// A tick of one second.
    pub const SECOND: Self = Self::Seconds(1);
    /// A tick of one day.
    pub const DAY: Self = Self::Seconds(86_400);
    /// A tick of 10⁻³ s.
    pub const MILLISECOND: Self = Self::part(3);
    /// A tick of 10⁻⁶ s.
    pub const MICROSECOND: Self = Self::part(6);
    /// A tick of 10⁻⁹ s.
    pub const NANOSECOND: Self = Self::part(9);

    const fn part(digits: u32) -> Self {
        Self::Parts { per_second: 10_u64.pow(digits), count: 1 }
    }

    /// Returns `count` of NumPy's unit `code`; `None` for an unknown one, the generic unit included.
    pub fn from_numpy(code: &str, count: u64) -> Option<Self> {
        let one = match code {
            "Y" => Self::Months(12),
            "M" => Self::Months(1),
            "W" => Self::Seconds(604_800),
            "D" => Self::DAY,
            "h" => Self::Seconds(3_600),
            "m" => Self::Seconds(60),
            "s" => Self::SECOND,
            "ms" => Self::MILLISECOND,
            "us" => Self::MICROSECOND,
            "ns" => Self::NANOSECOND,
            "ps" => Self::part(12),
            "fs" => Self::part(15),
            "as" => Self::part(18),
            _ => return None,
        };
        Some(match one {
            Self::Months(months) => Self::Months(months * count),
            Self::Seconds(seconds) => Self::Seconds(seconds * count),
            Self::Parts { per_second, .. } => Self::Parts { per_second, count },
        })
    }

    /// Returns the instant `ticks` after the beginning of 1970. Months follow the proleptic Gregorian calendar.
    #[inline]
    pub fn instant(self, ticks: i64) -> Time {
        match self.duration(ticks) {
            Duration::Exact(time) => time,
            Duration::Months(months) => Time { seconds: days_to_month(months) * 86_400, attoseconds: 0 },
        }
    }

    /// Returns the length of `ticks`.
    #[inline]
    pub fn duration(self, ticks: i64) -> Duration {
        match self {
            Self::Months(months) => Duration::Months(i128::from(ticks) * i128::from(months)),
            Self::Seconds(seconds) => {
                Duration::Exact(Time { seconds: i128::from(ticks) * i128::from(seconds), attoseconds: 0 })
            }
            Self::Parts { per_second, count } => {
                // An i128 division is a call of some 20 ns; nearly every column fits the short form.
                let (seconds, rest) = match ticks.checked_mul(count as i64) {
                    Some(parts) => {
                        let per_second = per_second as i64;
                        (i128::from(parts.div_euclid(per_second)), parts.rem_euclid(per_second) as u64)
                    }
                    None => {
                        let (parts, per_second) = (i128::from(ticks) * i128::from(count), i128::from(per_second));
                        (parts.div_euclid(per_second), parts.rem_euclid(per_second) as u64)
                    }
                };
                Duration::Exact(Time { seconds, attoseconds: rest * (ATTOSECONDS / per_second) })
            }
        }
    }
}

const ATTOSECONDS: u64 = 1_000_000_000_000_000_000;

/// Returns the days from 1970-01-01 to the first day of the month that lies `months` after January 1970.
///
/// Years are counted from March, so that the leap day is the last of its year: the months before month m of such a
/// year have (153·m + 2) / 5 days.
fn days_to_month(months: i128) -> i128 {
    // 1970-03 is month 2. March of year 0 is the start; 719 468 days lie between it and 1970-01-01.
    let from_march = months - 2 + 1970 * 12;
    let (year, month) = (from_march.div_euclid(12), from_march.rem_euclid(12));
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (153 * month + 2) / 5 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(code: &str) -> Unit {
        Unit::from_numpy(code, 1).unwrap()
    }

    fn time(seconds: i128, attoseconds: u64) -> Time {
        Time { seconds, attoseconds }
    }

    #[test]
    fn one_instant_in_every_unit() {
        // 2001-01-01T00:00, 31 years and 11 323 days after the epoch.
        let day = 11_323;
        for (code, ticks) in [("Y", 31), ("M", 372), ("D", day), ("h", day * 24), ("m", day * 1_440)] {
            assert_eq!(unit(code).instant(ticks), time(i128::from(day) * 86_400, 0), "{code}");
        }
        for (code, per_second) in [("s", 1), ("ms", 1_000), ("us", 1_000_000), ("ns", 1_000_000_000)] {
            assert_eq!(unit(code).instant(day * 86_400 * per_second), unit("D").instant(day), "{code}");
        }
        for (code, per_second) in [("ps", 1_000_000_000_000), ("fs", 1_000_000_000_000_000), ("as", ATTOSECONDS as i64)]
        {
            assert_eq!(unit(code).instant(-2 * per_second), time(-2, 0), "{code}");
        }
        assert_eq!(unit("W").instant(1), unit("D").instant(7));
        assert_eq!(Unit::from_numpy("generic", 1), None);
    }

    #[test]
    fn before_the_epoch_seconds_are_rounded_down() {
        assert_eq!(unit("ns").instant(-1), time(-1, ATTOSECONDS - 1_000_000_000));
        assert_eq!(unit("as").instant(-1), time(-1, ATTOSECONDS - 1));
        assert_eq!(unit("ms").instant(-1_000), time(-1, 0));
    }

    #[test]
    fn multiples_and_extremes_do_not_overflow() {
        assert_eq!(Unit::from_numpy("s", 25).unwrap().instant(-4), time(-100, 0));
        assert_eq!(Unit::from_numpy("ms", 25).unwrap().instant(50), time(1, ATTOSECONDS / 4));
        let most = i32::MAX as u64;
        let wide = Unit::from_numpy("ns", most).unwrap().instant(i64::MIN);
        assert_eq!(
            wide.seconds * 1_000_000_000 + i128::from(wide.attoseconds / 1_000_000_000),
            i128::from(i64::MIN) * i128::from(most)
        );
        for code in ["Y", "M", "W", "D"] {
            let unit = Unit::from_numpy(code, most).unwrap();
            assert!(unit.instant(i64::MIN).seconds < unit.instant(i64::MAX).seconds, "{code}");
        }
    }

    #[test]
    fn the_calendar_counts_every_month() {
        let mut days = 0;
        for year in 1970..2500 {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            for (month, length) in
                [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].into_iter().enumerate()
            {
                assert_eq!(days_to_month((year - 1970) * 12 + month as i128), days, "{year}-{month}");
                days += length;
            }
        }
        // 0001-01-01 is 719 162 days before the epoch.
        assert_eq!(days_to_month(-1969 * 12), -719_162);
    }
}
