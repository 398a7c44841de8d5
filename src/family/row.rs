//! A row of the [table of families](super::FAMILIES), and the requests that it is planned for.

use std::sync::Arc;

use super::timing::growing::Grow;
use super::variants::Options;
use super::{Budget, FAMILIES, Parameters, Shape};
use crate::Error;
use crate::clock::{Clock, Window};
use crate::engine::Engine;
use crate::key::Seed;
use crate::memory::Words;

/// A request for a filter: the budget, and the options of the family. A family ignores options that it does not have.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// A rate, or a number of bytes.
    pub budget: Budget,
    /// Longest time that a key may be reported after leaving the window, in the unit of the clock.
    pub slack: Option<u64>,
    /// Where the bits of a key lie.
    pub layout: Layout,
    /// Bits of a block, of a sliced layout in blocks.
    pub block_bits: Option<u32>,
    /// When a filter grows; `None` if never.
    pub grow: Option<Grow>,
    /// Whether a Bloom filter is partitioned into slices.
    pub partitioned: bool,
    /// Distinct keys of a window of insertions, for filters in which repeats take no space; by default all of them.
    pub distinct: Option<u64>,
    /// Whether the number of keys in a window of time is unknown; the capacity of the window is then a first guess.
    pub unknown_rate: bool,
}

impl From<Budget> for Request {
    fn from(budget: Budget) -> Self {
        Self {
            budget,
            slack: None,
            layout: Layout::Sliced,
            block_bits: None,
            grow: None,
            partitioned: false,
            distinct: None,
            unknown_rate: false,
        }
    }
}

/// The layouts that a family may have, by the names of the parameter `layout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// The layout of the family's paper, or its only one.
    Sliced,
    /// The bits of a key lie in one cache line, or in a few.
    Line,
    /// The bits of all generations lie side by side.
    Transposed,
}

impl Layout {
    /// Every layout.
    pub const ALL: [Self; 3] = [Self::Sliced, Self::Line, Self::Transposed];

    /// Returns the name of the layout.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sliced => "sliced",
            Self::Line => "line",
            Self::Transposed => "transposed",
        }
    }
}

/// The windows of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Windows {
    /// Windows of insertions and windows of time, with or without a capacity.
    Any,
    /// Windows of insertions and windows of time, whose number of keys is known.
    Either,
    /// Windows of insertions.
    Insertions,
    /// Windows of time; the number of keys is a first guess.
    Time,
    /// No window: nothing is forgotten, and the capacity counts all keys.
    Endless,
}

pub(crate) type Planned = Result<Arc<dyn Shape>, Error>;
pub(crate) type Built = Result<Box<dyn Engine>, Error>;

/// A family of filters: how its filters are planned, read and built.
#[derive(Debug)]
pub struct Family {
    /// The name that the planner and the command use.
    pub name: &'static str,
    /// The Python class, by its path within the package.
    pub class: &'static str,
    /// The windows that its filters can have.
    pub windows: Windows,
    /// The options with which the planner compares its filters, and with which the command names them.
    pub variants: &'static [Options],
    /// Whether the filters never miss a key of the window.
    pub promises: bool,
    /// The saved forms, one for each set of parameters that a file can hold.
    pub forms: &'static [Form],
    /// Parameters that may be missing.
    pub optional: &'static [&'static str],
    /// Returns whether a shape is one of the family.
    pub owns: fn(&dyn Shape) -> bool,
    /// Reads a shape from the parameters of one of the forms.
    pub read: fn(&Parameters<'_>) -> Planned,
    /// Plans the shape for a request.
    pub plan: fn(Window, &Request) -> Planned,
    pub(crate) engine: fn(&dyn Shape, Clock, Seed, Words) -> Built,
}

/// A saved form of a family: a number in the [file](crate::format), and the parameters that follow it.
#[derive(Debug)]
pub struct Form {
    /// The number of the form in a file.
    pub kind: u16,
    /// The layout of its filters.
    pub layout: Layout,
    /// The parameters of the paper, in the order of the file.
    pub parameters: &'static [&'static str],
}

impl Form {
    /// Returns the parameters that a file contains in this form, by name. Zeros do not apply and are left out.
    pub fn named(&self, values: impl IntoIterator<Item = u64>) -> Vec<(&'static str, u64)> {
        self.parameters.iter().copied().zip(values).filter(|&(_, value)| value != 0).collect()
    }

    /// Returns the values that a file contains for a shape, in their order.
    pub fn values(&self, shape: &dyn Shape) -> Vec<u64> {
        let parameters = shape.parameters();
        let value = |&name| parameters.iter().find(|&&(other, _)| other == name).map_or(0, |&(_, value)| value);
        self.parameters.iter().map(value).collect()
    }

    /// Returns whether the form can hold these parameters.
    fn holds(&self, parameters: &[(&'static str, u64)]) -> bool {
        let mut apply = parameters.iter().filter(|&&(_, value)| value != 0);
        apply.all(|&(name, _)| self.parameters.contains(&name))
    }
}

impl Family {
    /// Returns the family of a shape.
    pub fn of(shape: &dyn Shape) -> &'static Self {
        FAMILIES.iter().find(|family| (family.owns)(shape)).expect("every shape belongs to a row")
    }

    /// Returns the family of this name, if there is one.
    pub fn named(name: &str) -> Option<&'static Self> {
        FAMILIES.iter().find(|family| family.name == name)
    }

    /// Returns the family and the saved form of a number, if there are any.
    pub fn of_kind(kind: u16) -> Option<(&'static Self, &'static Form)> {
        let mut forms = FAMILIES.iter().flat_map(|family| family.forms.iter().map(move |form| (family, form)));
        forms.find(|(_, form)| form.kind == kind)
    }

    /// Returns the form in which a shape of this family is saved: the first one that can represent its parameters.
    pub fn form(&self, shape: &dyn Shape) -> &'static Form {
        let parameters = shape.parameters();
        self.forms.iter().find(|form| form.holds(&parameters)).expect("every shape has a form")
    }

    /// Returns whether a caller may set this parameter of the family.
    pub fn has(&self, parameter: &str) -> bool {
        self.forms.iter().any(|form| form.parameters.contains(&parameter))
    }

    /// Returns the parameters that a caller may set, in the order of the forms.
    pub fn parameters(&self) -> Vec<&'static str> {
        let mut all = Vec::new();
        for form in self.forms {
            for &name in form.parameters {
                if !all.contains(&name) {
                    all.push(name);
                }
            }
        }
        all
    }

    /// Plans the shape for a request by the family's own name: in the first of its layouts that meets the request. These
    /// are the layouts for speed, or else the one for little slack, or else the first.
    pub fn plan_itself(&self, window: Window, request: &Request) -> Planned {
        let own = || self.variants.iter().filter(|options| options.listed && options.grow.is_none());
        let mut layouts: Vec<&Options> = own().filter(|options| options.speed > 0).collect();
        layouts.sort_by_key(|options| options.speed);
        if layouts.is_empty() {
            let little = own().find(|options| options.little_slack);
            layouts.extend(little.or_else(|| own().next()));
        }
        let plan = |options: &Options| {
            let layout = options.layout.unwrap_or(Layout::Sliced);
            (self.plan)(window, &Request { layout, block_bits: options.block_bits, ..*request })
        };
        let mut planned = layouts.into_iter().map(plan);
        let first = planned.next().unwrap_or_else(|| (self.plan)(window, request));
        first.or_else(|error| planned.find_map(Result::ok).ok_or(error))
    }

    /// Returns whether the family is only compared with.
    pub fn is_baseline(&self) -> bool {
        self.class.starts_with("baselines.")
    }

    /// Returns whether the planner may take the family: it keeps every key of the window, and is no baseline.
    pub fn is_for_use(&self) -> bool {
        self.promises && !self.is_baseline()
    }

    /// Builds the engine of a shape around its words. Families whose cells come and go make an empty filter from no
    /// words.
    pub(crate) fn engine(&self, shape: &dyn Shape, clock: Clock, seed: Seed, words: Words) -> Built {
        (self.engine)(shape, clock, seed, words)
    }
}
