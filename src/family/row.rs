//! A row of the [table of families](super::FAMILIES), and the options of a family.

use std::any::Any;
use std::sync::Arc;

use super::request::{Grow, Layout, Request};
use super::{Parameters, Shape};
use crate::Error;
use crate::clock::Clock;
use crate::engine::Engine;
use crate::key::Seed;
use crate::memory::Words;

/// The kinds of windows that the filters of a family can have.
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
    /// Windows of insertions and windows of time, whose keys are stored, so that there is no rate to plan for.
    Stored,
    /// No window: nothing is forgotten, and the capacity counts all keys.
    Endless,
}

pub type Planned = Result<Arc<dyn Shape>, Error>;
pub type Built = Result<Box<dyn Engine>, Error>;

/// A family of filters: a row of the family table.
#[derive(Debug)]
pub struct Family {
    /// The name that the planner and the command use.
    pub name: &'static str,
    /// The Python class, by its path within the package.
    pub class: &'static str,
    /// The windows that its filters can have.
    pub windows: Windows,
    /// Whether the filters never miss a key of the window.
    pub promises: bool,
    /// A row for each layout. Parameters are read by the row that has the most of them.
    pub rows: &'static [Row],
}

/// How the filters of a family are planned, read and built in one layout.
#[derive(Debug)]
pub struct Row {
    /// Where the bits of a key lie.
    pub layout: Layout,
    /// The options with which the planner compares the filters, and with which the command names them.
    pub variants: &'static [Options],
    /// The saved forms, one for each set of parameters that a file can hold.
    pub forms: &'static [Form],
    /// Returns whether a shape is one of this row.
    pub owns: fn(&dyn Shape) -> bool,
    /// Reads a shape from the parameters of one of the forms.
    pub read: fn(&Parameters<'_>) -> Planned,
    /// Plans the shape for a request.
    pub plan: fn(&Request) -> Planned,
    /// Builds the engine of a shape around its words. Families whose cells come and go make an empty filter from no
    /// words.
    pub engine: fn(&dyn Shape, Clock, Seed, Words) -> Built,
}

/// A saved form of a family: a number in the [file](crate::format), and the parameters that follow it.
#[derive(Debug)]
pub struct Form {
    /// The number of the form in a file.
    pub kind: u16,
    /// The parameters of the paper, in the order of the file.
    pub parameters: &'static [&'static str],
}

/// A choice of a family's options, and how the planner treats it.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The layout of the cells; `None` for families that have only one.
    pub layout: Option<Layout>,
    /// When a filter grows, of families that can.
    pub grow: Option<Grow>,
    /// Whether the planner lists the variant. Others can be built by name, and are opened.
    pub listed: bool,
    /// A caveat for the table of plans; empty if there is none.
    pub note: &'static str,
    /// Place among the variants for speed: 1 is tried first, and 0 never.
    pub(crate) speed: u8,
    /// Whether the default takes this variant for every request that it can meet.
    pub(crate) first: bool,
}

impl Options {
    /// The options of a family that has only one form.
    pub(crate) const PLAIN: Self = Self { layout: None, grow: None, listed: true, note: "", speed: 0, first: false };

    pub(crate) const fn layout(layout: Layout) -> Self {
        Self { layout: Some(layout), ..Self::PLAIN }
    }

    pub(crate) const fn unlisted(self) -> Self {
        Self { listed: false, ..self }
    }

    pub(crate) const fn grows(self, grow: Grow) -> Self {
        Self { grow: Some(grow), note: "bytes and fpr follow bursts", ..self }
    }

    pub(crate) const fn noted(self, note: &'static str) -> Self {
        Self { note, ..self }
    }

    pub(crate) const fn first(self) -> Self {
        Self { first: true, ..self }
    }

    pub(crate) const fn for_speed(self, place: u8) -> Self {
        Self { speed: place, ..self }
    }
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

    /// Returns how many of these parameters the form has.
    fn named_in(&self, parameters: &[(&str, u64)]) -> usize {
        parameters.iter().filter(|(name, _)| self.parameters.contains(name)).count()
    }

    /// Returns whether the form can hold these parameters.
    fn holds(&self, parameters: &[(&'static str, u64)]) -> bool {
        let mut apply = parameters.iter().filter(|&&(_, value)| value != 0);
        apply.all(|&(name, _)| self.parameters.contains(&name))
    }
}

impl Family {
    /// Returns the row of a shape of this family.
    pub fn row(&self, shape: &dyn Shape) -> &'static Row {
        self.rows.iter().find(|row| (row.owns)(shape)).expect("a shape of the family belongs to a row")
    }

    /// Returns the saved forms of all rows.
    pub fn forms(&self) -> impl Iterator<Item = &'static Form> + use<> {
        self.rows.iter().flat_map(|row| row.forms)
    }

    /// Returns the options of all rows.
    pub fn variants(&self) -> impl Iterator<Item = &'static Options> + use<> {
        self.rows.iter().flat_map(|row| row.variants)
    }

    /// Returns the form in which a shape of this family is saved: the first one that can represent its parameters.
    pub fn form(&self, shape: &dyn Shape) -> &'static Form {
        let parameters = shape.parameters();
        self.row(shape).forms.iter().find(|form| form.holds(&parameters)).expect("every shape has a form")
    }

    /// Reads a shape from the parameters of one of the forms.
    pub fn read(&self, parameters: &Parameters<'_>) -> Planned {
        let named = |row: &&Row| row.forms.iter().map(|form| form.named_in(parameters.0)).max();
        // Of rows that have equally many, `max_by_key` returns the last.
        (self.rows.iter().rev().max_by_key(named).expect("a family has a row").read)(parameters)
    }

    /// Plans the shape for a request, in the layout of the request.
    pub fn plan(&self, request: &Request) -> Planned {
        (self.rows.iter().find(|row| row.layout == request.layout).unwrap_or(&self.rows[0]).plan)(request)
    }

    /// Returns whether a caller may set this parameter of the family.
    pub fn has(&self, parameter: &str) -> bool {
        self.forms().any(|form| form.parameters.contains(&parameter))
    }

    /// Returns the parameters that a caller may set, in the order of the forms.
    pub fn parameters(&self) -> Vec<&'static str> {
        let mut all = Vec::new();
        for form in self.forms() {
            for &name in form.parameters {
                if !all.contains(&name) {
                    all.push(name);
                }
            }
        }
        all
    }

    /// Plans the shape for a request by the family's own name: in the first of its layouts that meets the request.
    /// These are the layouts for speed, or else the last, which takes the fewest bytes.
    pub fn plan_itself(&self, request: &Request) -> Planned {
        let own = || self.variants().filter(|options| options.listed && options.grow.is_none());
        let mut layouts: Vec<&Options> = own().filter(|options| options.speed > 0).collect();
        layouts.sort_by_key(|options| options.speed);
        if layouts.is_empty() {
            layouts.extend(own().last());
        }
        let plan =
            |options: &Options| self.plan(&Request { layout: options.layout.unwrap_or(Layout::Sliced), ..*request });
        let mut planned = layouts.into_iter().map(plan);
        let first = planned.next().unwrap_or_else(|| self.plan(request));
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

    /// Returns the engine of a shape of this family.
    pub(crate) fn engine(&self, shape: &dyn Shape, clock: Clock, seed: Seed, words: Words) -> Built {
        (self.row(shape).engine)(shape, clock, seed, words)
    }
}

/// Returns the saved form of this number.
pub const fn form(kind: u16, parameters: &'static [&'static str]) -> Form {
    Form { kind, parameters }
}

/// Returns a shape as the rows return it.
pub fn shared(shape: Result<impl Shape, Error>) -> Planned {
    Ok(Arc::new(shape?))
}

/// Returns the concrete shape of a row.
pub fn of<S: Shape>(shape: &dyn Shape) -> &S {
    (shape as &dyn Any).downcast_ref().expect("a row makes engines of its own shapes")
}

/// Returns whether a shape is of this type.
pub fn is<S: Shape>(shape: &dyn Shape) -> bool {
    (shape as &dyn Any).is::<S>()
}
