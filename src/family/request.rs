//! The request for a filter.

use super::Budget;

/// A request for a filter: the budget, and the options of the family. A family ignores options that it does not have.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// A rate, or a number of bytes.
    pub budget: Budget,
    /// Longest time that a key may be reported after leaving the window, in the unit of the clock.
    pub slack: Option<u64>,
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

impl From<Budget> for Request {
    fn from(budget: Budget) -> Self {
        Self {
            budget,
            slack: None,
            layout: Layout::Sliced,
            grow: None,
            partitioned: false,
            distinct: None,
            missing_differ: false,
            unknown_rate: false,
        }
    }
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

/// The rule by which a part is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grow {
    /// A part is full by keys: it is closed for good when as many have come as are planned to be live at once.
    Cardinality,
    /// A part is full by timers: those that expire make room, so below the planned rate there is hardly ever a second
    /// part.
    Density,
}
