//! Windows, as a caller states them.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::family::request::first_guess;
use crate::{Error, clock};

/// What "lately" means: a number of insertions, or a span of time.
///
/// ```
/// use std::time::Duration;
/// use lately::Window;
///
/// let insertions = Window::last(1_000_000);
/// let time = Window::time(Duration::from_secs(600));
/// assert_eq!(insertions.to_string(), "1000000 insertions");
/// assert_eq!(time.to_string(), "600 s");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window(Length);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    Insertions(u64),
    Time(Duration),
}

impl Window {
    /// Returns the window of the last `insertions` insertions, at least 1.
    ///
    /// ```
    /// # use lately::Window;
    /// assert_eq!(Window::last(5).insertions(), Some(5));
    /// ```
    pub const fn last(insertions: u64) -> Self {
        Self(Length::Insertions(insertions))
    }

    /// Returns the window of a span of time, by the system's clock or by the times of events.
    ///
    /// ```
    /// # use lately::Window;
    /// # use std::time::Duration;
    /// let minute = Duration::from_secs(60);
    /// assert_eq!(Window::time(minute).span(), Some(minute));
    /// ```
    pub const fn time(span: Duration) -> Self {
        Self(Length::Time(span))
    }

    /// Returns the length of a window of insertions.
    ///
    /// ```
    /// # use lately::Window;
    /// # use std::time::Duration;
    /// assert_eq!(Window::time(Duration::from_secs(5)).insertions(), None);
    /// ```
    pub const fn insertions(self) -> Option<u64> {
        match self.0 {
            Length::Insertions(insertions) => Some(insertions),
            Length::Time(_) => None,
        }
    }

    /// Returns the length of a window of time.
    ///
    /// ```
    /// # use lately::Window;
    /// assert_eq!(Window::last(5).span(), None);
    /// ```
    pub const fn span(self) -> Option<Duration> {
        match self.0 {
            Length::Insertions(_) => None,
            Length::Time(span) => Some(span),
        }
    }

    /// Returns the window of the core. `parameter` names it in errors.
    pub(super) fn to_core(
        self,
        parameter: &str,
        lateness: Option<Duration>,
        capacity: Option<u64>,
        max_ahead: Option<Duration>,
    ) -> Result<clock::Window, Error> {
        let insertions = match self.0 {
            Length::Insertions(insertions) => insertions,
            Length::Time(span) => return timed(parameter, span, lateness, capacity),
        };
        let given =
            [("lateness", lateness.is_some()), ("capacity", capacity.is_some()), ("max_ahead", max_ahead.is_some())];
        match given.into_iter().find(|(_, given)| *given) {
            Some((name, _)) => Err(Error::value(format!(
                "{name} is for windows of time, but {parameter} is {self}: leave it out, or pass Window::time(..)"
            ))),
            None => clock::Window::Count { insertions }.check(),
        }
    }

    /// Returns the length in the unit of a filter's window: insertions, or nanoseconds.
    pub(super) fn length_like(self, parameter: &str, window: clock::Window) -> Result<u64, Error> {
        match (self.0, window) {
            (Length::Insertions(insertions), clock::Window::Count { .. }) => Ok(insertions),
            (Length::Time(span), clock::Window::Time { .. }) => nanoseconds(parameter, span),
            (Length::Insertions(_), _) => Err(Error::value(format!(
                "{parameter} must be a span of time, like the window, got {self}: pass Window::time(..)"
            ))),
            (Length::Time(_), _) => Err(Error::value(format!(
                "{parameter} must be a number of insertions, like the window, got {self}: pass Window::last(..)"
            ))),
        }
    }

    /// Returns a length in the unit of a filter's window.
    pub(super) fn of_length(length: u64, like: clock::Window) -> Self {
        match like {
            clock::Window::Count { .. } => Self::last(length),
            clock::Window::Time { .. } => Self::time(Duration::from_nanos(length)),
        }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Length::Insertions(insertions) => write!(f, "{insertions} insertions"),
            Length::Time(span) => write!(f, "{} s", span.as_secs_f64()),
        }
    }
}

/// Rejects windows of time where the target has no clock.
pub(super) fn check_clock(window: clock::Window) -> Result<clock::Window, Error> {
    match window {
        clock::Window::Time { .. } if cfg!(all(target_family = "wasm", target_os = "unknown")) => {
            Err(Error::value("window must be a number of insertions, because this platform has no clock"))
        }
        _ => Ok(window),
    }
}

fn timed(
    parameter: &str,
    span: Duration,
    lateness: Option<Duration>,
    capacity: Option<u64>,
) -> Result<clock::Window, Error> {
    let span = nanoseconds(parameter, span)?;
    let lateness = nanoseconds("lateness", lateness.unwrap_or_default())?;
    let capacity = capacity.unwrap_or_else(|| first_guess(span, lateness));
    check_clock(clock::Window::Time { span, lateness, capacity })?.check()
}

fn nanoseconds(parameter: &str, span: Duration) -> Result<u64, Error> {
    u64::try_from(span.as_nanos())
        .map_err(|_| Error::value(format!("{parameter} must be at most 146 years, got {} s", span.as_secs())))
}

/// Returns the time of an event in nanoseconds since the Unix epoch.
pub(super) fn moment(at: SystemTime) -> Result<i64, Error> {
    let moment = match at.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).ok(),
        Err(before) => i64::try_from(before.duration().as_nanos()).ok().map(|before| -before),
    };
    moment.ok_or_else(|| Error::value("at must lie between the years 1678 and 2262"))
}
