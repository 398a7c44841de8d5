//! A filter of any family: a [`Shape`], which has the formulas, and the [`Engine`] that runs batches through the cells.
//!
//! The [table of families](super::FAMILIES) lists the families.

use std::any::Any;
use std::iter::repeat_n;
use std::sync::Arc;

use super::row::{Family, Form};
use super::variants::{layout_in_name, named};
use super::{Parameters, Shape, fill};
use crate::Error;
use crate::clock::{Clock, Window};
use crate::engine::Engine;
use crate::key::{KeyHasher, Seed};
use crate::memory::Words;

/// A filter of any family: it reports whether a key was inserted within the last insertions or the last span of time.
#[derive(Clone)]
pub struct AnyFilter {
    shape: Arc<dyn Shape>,
    seed: Seed,
    /// The window of the engine's clock, which does not change.
    window: Window,
    engine: Box<dyn Engine>,
}

impl AnyFilter {
    /// Creates an empty filter.
    pub fn new(shape: impl Shape, window: Window, seed: impl Into<Seed>) -> Result<Self, Error> {
        Self::of(Arc::new(shape), window, seed)
    }

    /// Returns this filter with another bound on [times ahead](Clock::ahead).
    pub fn with_max_ahead(mut self, max_ahead: Option<u64>) -> Self {
        self.engine.set_max_ahead(max_ahead);
        self
    }

    /// Creates an empty filter of any shape.
    pub fn of(shape: Arc<dyn Shape>, window: Window, seed: impl Into<Seed>) -> Result<Self, Error> {
        let seed = seed.into();
        shape.check(window)?;
        let bytes = if shape.grows() { 0 } else { shape.bytes(window) };
        let words = Words::zeroed_in_pages(usize::try_from(bytes / 8).map_err(|_| Error::Memory { bytes })?)?;
        let engine = Family::of(&*shape).engine(&*shape, shape.clock(window), seed, words)?;
        Ok(Self { shape, seed, window, engine })
    }

    /// Reads a filter from a saved [form](Form): its parameters in the order of the file, and its cells. `resume` turns
    /// a new clock into the saved one. No argument is trusted.
    pub fn from_saved(
        kind: u16,
        parameters: &[u64],
        window: Window,
        resume: impl FnOnce(Clock) -> Clock,
        seed: impl Into<Seed>,
        words: Words,
    ) -> Result<Self, Error> {
        // An error of a constructor means that the saved form is damaged.
        let as_damage = |error: Error| Error::format(error.to_string());
        let seed = seed.into();
        let unknown = || Error::format(format!("filters of kind {kind} are not known to this version"));
        let (family, form) = Family::of_kind(kind).ok_or_else(unknown)?;
        let shape = family.read(&Parameters(&form.named(parameters.iter().copied()))).map_err(as_damage)?;
        shape.check(window).map_err(as_damage)?;
        let len = words.as_slice().len() as u64;
        if len == 0 || !shape.grows() && len != shape.bytes(window) / 8 {
            return Err(Error::format("the number of cells is not that of the parameters"));
        }
        let clock = resume(shape.clock(window));
        let engine = family.engine(&*shape, clock, seed, words)?;
        Ok(Self { shape, seed, window, engine })
    }

    /// Returns an empty filter of the same shape, window, seed and bound on times ahead.
    pub fn cleared(&self) -> Result<Self, Error> {
        let empty = Self::of(self.shape.clone(), self.window(), self.seed)?;
        Ok(empty.with_max_ahead(self.engine.clock().max_ahead()))
    }

    /// Returns a copy in private memory; `None` if another process wrote to the filter meanwhile, which cannot happen
    /// under the lock of the file.
    pub fn snapshot(&self) -> Result<Option<Self>, Error> {
        let Some(live) = self.engine.words().live() else { return Ok(Some(self.clone())) };
        let ((record, table, words), settled) = live.look(|| (live.read(), live.table(), self.engine.words().own()));
        if !settled {
            return Ok(None);
        }
        let mut engine = self.family().engine(&*self.shape, self.engine.clock(), self.seed, words?)?;
        engine.restore(record, &table)?;
        Ok(Some(Self { shape: self.shape.clone(), seed: self.seed, window: self.window, engine }))
    }

    /// Returns the formulas for what the filter promises and costs.
    pub fn shape(&self) -> &dyn Shape {
        &*self.shape
    }

    /// Returns the shape, if it is of this type.
    pub fn shape_as<S: Shape>(&self) -> Option<&S> {
        let shape: &dyn Any = &*self.shape;
        shape.downcast_ref()
    }

    /// Returns the engine, to query.
    #[inline]
    pub fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    /// Returns the engine, to insert.
    #[inline]
    pub fn engine_mut(&mut self) -> &mut dyn Engine {
        &mut *self.engine
    }

    /// Returns the hasher of the keys.
    pub fn hasher(&self) -> KeyHasher {
        let hasher = KeyHasher::of(self.seed);
        if self.shape.missing_differ() { hasher.with_missing_rows() } else { hasher }
    }

    /// Returns the seed with which keys are hashed.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// Returns the family.
    pub fn family(&self) -> &'static Family {
        Family::of(&*self.shape)
    }

    /// Returns the form in which the filter is saved.
    pub fn form(&self) -> &'static Form {
        self.family().form(&*self.shape)
    }

    /// Returns the name that the planner and the command use: that of the family, followed by its options.
    pub fn name(&self) -> String {
        let parameters = self.parameters();
        let value = |wanted| parameters.iter().find(|&&(name, value)| name == wanted && value != 0);
        let block_bits = value("block_bits").map(|&(_, bits)| bits.to_string());
        let grows = ["part_keys", "part_timers"].into_iter().any(|name| value(name).is_some());
        let layout = layout_in_name(self.family().row(&*self.shape).layout);
        named(self.family(), [layout, block_bits.as_deref(), grows.then_some("growing")])
    }

    /// Returns what "lately" means.
    #[inline]
    pub fn window(&self) -> Window {
        self.window
    }

    /// Returns the parameters of the paper, by the names of the family; zero if one does not apply.
    pub fn parameters(&self) -> Vec<(&'static str, u64)> {
        self.shape.parameters()
    }

    /// Returns the planned rate of false positives: [`Shape::fpr`]. Where windows of insertions were merged, each of
    /// their tables has it until its keys have left the window.
    pub fn fpr(&self) -> f64 {
        let fpr = self.shape.fpr(self.window());
        match (self.window(), self.engine.tables()) {
            (Window::Count { .. }, tables @ 2..) => fill::any(repeat_n(fpr, tables)),
            _ => fpr,
        }
    }

    /// Returns how long a key may be reported after leaving the window, in insertions or nanoseconds: [`Shape::slack`].
    pub fn slack(&self) -> u64 {
        self.shape.slack(self.window())
    }

    /// Estimates how many different keys were inserted within a window, that of the filter or a shorter one in the same
    /// unit; `None` if the cells store no entries. Adds the entries of its generations, of the oldest the share that
    /// lies in the window, and corrects the sum for keys that share an entry.
    pub fn distinct(&self, window: u64) -> Option<f64> {
        if let Some(distinct) = self.engine.distinct() {
            return Some(distinct);
        }
        let (entries, clock) = (self.engine.entries()?, self.engine.clock());
        let unit = if let Window::Time { .. } = self.window() { 1e9 } else { 1.0 };
        let (length, mut next, mut within) = (window as f64 / unit, 0.0, 0.0);
        for (back, entries) in (0..).zip(&entries) {
            let began = clock.began(back);
            let share = ((length - next) / (began - next)).clamp(0.0, 1.0);
            within += if share.is_nan() { *entries } else { entries * share };
            next = began;
        }
        let (all, taken) = (entries.iter().sum::<f64>(), self.engine.match_rates().iter().sum::<f64>());
        let places = if taken > 0.0 { all / taken } else { f64::INFINITY };
        Some(if within < 1e-9 * places { within } else { -places * (-(within / places).min(0.999)).ln_1p() })
    }

    /// Returns the rate of false positives of the cells as they are: [`Engine::false_positive_rate`].
    pub fn false_positive_rate(&self) -> f64 {
        self.engine.false_positive_rate()
    }

    /// Merges all keys of the other filter. Both must agree in family, window, seed and parameters; an error names the
    /// first difference.
    pub fn merge(&mut self, other: &Self) -> Result<(), Error> {
        let agree = |name: &str, ours: String, theirs: String| match ours == theirs {
            true => Ok(()),
            false => Err(Error::value(format!(
                "cannot merge filters that differ: {name} is {ours} here and {theirs} there; build both alike"
            ))),
        };
        if self.form().kind != other.form().kind {
            agree("family", self.name(), other.name())?;
        }
        let name = if self.engine.clock().endless() { "capacity" } else { "window" };
        agree(name, self.window().to_string(), other.window().to_string())?;
        if self.seed != other.seed && self.seed.to_string() == other.seed.to_string() {
            return Err(Error::value(
                "cannot merge filters that differ: each has a secret of its own; build both with one seed",
            ));
        }
        agree("seed", self.seed.to_string(), other.seed.to_string())?;
        let of = |filter: &Self| filter.shape.merged(self.window).unwrap_or(filter.shape.clone()).parameters();
        for ((name, ours), (_, theirs)) in of(self).into_iter().zip(of(other)) {
            agree(name, ours.to_string(), theirs.to_string())?;
        }
        let shared = self.engine.words().live().is_some();
        if let Some(shape) = self.shape.merged(self.window).filter(|_| !shared && !self.shape.grows()) {
            if other.engine.clock().inserted() > 0 && !self.equals(other)? {
                let empty = Self::of(shape, self.window, self.seed)?;
                let mut merged = empty.with_max_ahead(self.engine.clock().max_ahead());
                merged.engine.merge(&*self.engine)?;
                merged.engine.merge(&*other.engine)?;
                *self = merged;
            }
            return Ok(());
        }
        self.engine.merge(&*other.engine)
    }
}

impl AnyFilter {
    /// Returns whether everything that is saved is equal: family, parameters, window, seed, clock and cells. An error
    /// if there is not enough memory to compare the cells.
    pub fn equals(&self, other: &Self) -> Result<bool, Error> {
        Ok(self.form().kind == other.form().kind
            && self.parameters() == other.parameters()
            && self.seed == other.seed
            // How the filter's time relates to that of the process depends on when a file was read.
            && self.engine.clock().without_time() == other.engine.clock().without_time()
            && self.engine.pieces()? == other.engine.pieces()?)
    }
}
