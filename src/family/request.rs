//! The request for a filter: the builder, the binding, the planner and the command fill it in, and
//! [`choose`](super::choose) reads it.

use super::Budget;
use crate::Error;
use crate::clock::Window;

/// The keys that a filter has room for at first if the number of keys in a window of time is unknown: a few dozen KiB.
pub(crate) const FIRST_KEYS: u64 = 10_000;

/// Returns the capacity that a filter begins with if the number of keys in a window of time is unknown. A filter
/// retains the keys of its lateness too: a capacity that ignored them would take gigabytes for a window of a second and
/// a lateness of a day.
#[must_use]
pub fn first_guess(span: u64, lateness: u64) -> u64 {
    let share = u128::from(FIRST_KEYS) * u128::from(span) / (u128::from(span) + u128::from(lateness)).max(1);
    share.max(1) as u64
}

/// A request for a filter: window and budget, and the options of the family. A family ignores options that it does not
/// have.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// What "lately" means.
    pub window: Window,
    /// A rate, or a number of bytes.
    pub budget: Budget,
    /// Longest time that a key may be reported after leaving the window, in the unit of the clock.
    pub slack: Option<u64>,
    /// What the choice of a family favours; `None` for little slack.
    pub prefer: Option<Prefer>,
    /// Where the bits of a key lie.
    pub layout: Layout,
    /// When a filter grows; `None` if never.
    pub grow: Option<Grow>,
    /// Whether a Bloom filter is partitioned into slices.
    pub partitioned: bool,
    /// Distinct keys of a window of insertions, for filters in which repeats take no space; by default all of them.
    pub distinct: Option<u64>,
    /// Whether each missing key is a key of its own, for filters that store keys.
    pub missing_differ: bool,
    /// Whether the number of keys in a window of time is unknown; the capacity of the window is then a first guess.
    pub unknown_rate: bool,
}

impl Request {
    /// Returns the request for a window and a budget, without options.
    pub fn of(window: Window, budget: Budget) -> Self {
        Self {
            window,
            budget,
            slack: None,
            prefer: None,
            layout: Layout::Sliced,
            grow: None,
            partitioned: false,
            distinct: None,
            missing_differ: false,
            unknown_rate: false,
        }
    }

    /// Returns the request of a caller, who gives either a rate or a number of bytes, or none of them for an exact
    /// window. Without a `capacity` the number of keys in a window of time is unknown.
    pub fn given(
        window: Window,
        fpr: Option<f64>,
        nbytes: Option<u64>,
        capacity: Option<u64>,
        prefer: Option<Prefer>,
    ) -> Result<Self, Error> {
        let budget = match (fpr, nbytes) {
            _ if prefer == Some(Prefer::Exact) => {
                let given = [("fpr", fpr.is_some()), ("nbytes", nbytes.is_some()), ("capacity", capacity.is_some())];
                reject_limits(given)?;
                Budget::Bytes(0)
            }
            (Some(fpr), None) => Budget::Rate(fpr),
            (None, Some(nbytes)) => Budget::Bytes(nbytes),
            (Some(_), Some(_)) => return Err(Error::value("fpr or nbytes must be given, and not both")),
            (None, None) => {
                return Err(Error::value(
                    "fpr or nbytes must be given: the chance of reporting a new key, such as 0.001, or the bytes to \
                     take",
                ));
            }
        };
        let unknown_rate = capacity.is_none() && matches!(window, Window::Time { .. });
        Ok(Self { unknown_rate, prefer, ..Self::of(window, budget) })
    }
}

/// Rejects limits, by their names, that an exact window cannot have.
pub(crate) fn reject_limits<'a>(given: impl IntoIterator<Item = (&'a str, bool)>) -> Result<(), Error> {
    match given.into_iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(Error::value(format!(
            "{name} does not apply to an exact window, which has no false positives and no slack, and whose memory \
             follows the keys: leave out {name} or the preference"
        ))),
        None => Ok(()),
    }
}

/// A preference that replaces the default's little slack.
///
/// ```
/// use lately::{Filter, Prefer, Window};
///
/// let build = |prefer| Filter::builder(Window::last(1_000_000)).fpr(0.001).prefer(prefer).build();
/// assert!(build(Prefer::Memory)?.nbytes() < build(Prefer::Speed)?.nbytes());
/// # Ok::<(), lately::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefer {
    /// The fastest calls; the slack may be half the window.
    Speed,
    /// The fewest bytes, or for a number of bytes the lowest rate; the slack may be half the window.
    Memory,
    /// No false positives and no slack, in 12 to 32 bytes for each key of the window. It has no rate, number of bytes,
    /// capacity or slack, and stores 64-bit hashes: of n keys in windows of W, two different keys share one with a
    /// probability of at most n W / 2⁶⁴.
    Exact,
}

/// The layouts that a family may have, by the names of the parameter `layout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// The layout of the family's paper, or its only one.
    Sliced,
    /// As sliced, in blocks of 512 bits: those of a key in a slice lie in one of them.
    Blocked,
    /// The bits of a key lie in one cache line, or in a few.
    Line,
    /// The bits of all generations lie side by side.
    Transposed,
}

impl Layout {
    /// Every layout.
    pub const ALL: [Self; 4] = [Self::Sliced, Self::Blocked, Self::Line, Self::Transposed];

    /// Returns the name of the layout.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sliced => "sliced",
            Self::Blocked => "512",
            Self::Line => "line",
            Self::Transposed => "transposed",
        }
    }
}

/// How a filter that grows part by part finds that its newest part is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grow {
    /// A part is full by keys: it is closed for good when as many have come as are planned to be live at once.
    Cardinality,
    /// A part is full by timers: those that expire make room, so below the planned rate there is hardly ever a second
    /// part.
    Density,
}
