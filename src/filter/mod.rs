//! A filter: a [`Shape`], which knows what it promises, and the [`Engine`] that runs batches through its cells.
//!
//! The [table of families](FAMILIES) lists the kinds.

mod engines;
mod families;

use std::any::Any;
use std::sync::Arc;

use crate::Error;
use crate::clock::{Clock, Window};
use crate::engine::Engine;
use crate::key::Seed;
use crate::memory::Words;
use crate::shape::{CacheLines, Parameters, Shape};
pub use families::{FAMILIES, Family, Request, Windows};

/// Has a key been inserted within the last `window` insertions, or span of time? Its engine answers batches.
#[derive(Clone)]
pub struct Filter {
    shape: Arc<dyn Shape>,
    seed: Seed,
    engine: Box<dyn Engine>,
}

impl Filter {
    /// An empty filter.
    pub fn new(shape: impl Shape, window: Window, seed: impl Into<Seed>) -> Result<Self, Error> {
        Self::of(Arc::new(shape), window, seed)
    }

    /// The same filter with another bound on [times ahead](Clock::ahead).
    pub fn with_ahead(mut self, ahead: Option<u64>) -> Self {
        self.engine.set_ahead(ahead);
        self
    }

    /// An empty filter of any shape.
    pub fn of(shape: Arc<dyn Shape>, window: Window, seed: impl Into<Seed>) -> Result<Self, Error> {
        let seed = seed.into();
        shape.check(window)?;
        let bytes = if shape.grows() { 0 } else { shape.bytes(window) };
        let words = Words::zeroed(usize::try_from(bytes / 8).map_err(|_| Error::Memory { bytes })?)?;
        let engine = Family::of(&*shape).engine(&*shape, Clock::new(window, shape.kept()), seed, words)?;
        Ok(Self { shape, seed, engine })
    }

    /// The filter whose [`parameters`](Self::parameters) these are and whose cells these were; `resume` makes of a new
    /// clock the one it had. Nothing of it is trusted.
    pub fn from_saved(
        family: &Family,
        parameters: &[u64],
        window: Window,
        resume: impl FnOnce(Clock) -> Clock,
        seed: impl Into<Seed>,
        words: Words,
    ) -> Result<Self, Error> {
        // What a constructor refuses is damage in a saved form.
        let as_damage = |error: Error| Error::format(error.to_string());
        let seed = seed.into();
        let named = family.parameters.iter().copied().zip(parameters.iter().copied());
        let named: Vec<(&str, u64)> = named.filter(|&(_, value)| value != 0).collect();
        let shape = (family.read)(&Parameters(&named)).map_err(as_damage)?;
        shape.check(window).map_err(as_damage)?;
        let len = words.as_slice().len() as u64;
        if len == 0 || !shape.grows() && len != shape.bytes(window) / 8 {
            return Err(Error::format("the cells differ in number from what the parameters say"));
        }
        let clock = resume(Clock::new(window, shape.kept()));
        let engine = family.engine(&*shape, clock, seed, words)?;
        engine.check()?;
        Ok(Self { shape, seed, engine })
    }

    /// The same filter without a key, as it was made.
    pub fn cleared(&self) -> Result<Self, Error> {
        let empty = Self::of(self.shape.clone(), self.window(), self.seed)?;
        Ok(empty.with_ahead(self.engine.clock().ahead()))
    }

    /// A copy. Of a filter that processes [share](crate::shared) one in memory of its own, while nobody writes to it.
    pub fn snapshot(&mut self) -> Result<Self, Error> {
        if self.engine.words().live().is_none() {
            return Ok(self.clone());
        }
        self.engine.catch_up()?;
        let (clock, words) = (self.engine.clock(), self.engine.words().own()?);
        let engine = self.family().engine(&*self.shape, clock, self.seed, words)?;
        Ok(Self { shape: self.shape.clone(), seed: self.seed, engine })
    }

    /// What it promises and costs.
    pub fn shape(&self) -> &dyn Shape {
        &*self.shape
    }

    /// Its shape, if it is of this type.
    pub fn shape_as<S: Shape>(&self) -> Option<&S> {
        let shape: &dyn Any = &*self.shape;
        shape.downcast_ref()
    }

    /// The cells, to read.
    pub fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    /// The cells, to write.
    pub fn engine_mut(&mut self) -> &mut dyn Engine {
        &mut *self.engine
    }

    /// Its engine, if it is of this type: for questions that only one family answers.
    pub fn engine_as<E: Engine>(&self) -> Option<&E> {
        let engine: &dyn Any = &*self.engine;
        engine.downcast_ref()
    }

    /// The seed its keys are hashed with.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// Its family.
    pub fn family(&self) -> &'static Family {
        Family::of(&*self.shape)
    }

    /// Its name to the planner and the command: that of its family, with the bits of its blocks, or that it grows.
    pub fn name(&self) -> String {
        let name = self.family().name;
        let mut apply = self.parameters().into_iter().filter(|&(_, value)| value != 0);
        let told = apply.find_map(|(parameter, value)| match parameter {
            "block_bits" => Some(format!("{name}-{value}")),
            "part_keys" | "part_timers" => Some(format!("{name}-growing")),
            _ => None,
        });
        told.unwrap_or_else(|| name.to_owned())
    }

    /// What "lately" means.
    pub fn window(&self) -> Window {
        self.engine.clock().window()
    }

    /// The parameters of its paper, by the names of its family; zero if one does not apply.
    pub fn parameters(&self) -> Vec<(&'static str, u64)> {
        self.shape.parameters()
    }

    /// [`Shape::fpr`].
    pub fn fpr(&self) -> f64 {
        self.shape.fpr(self.window())
    }

    /// [`Shape::slack`].
    pub fn slack(&self) -> u64 {
        self.shape.slack(self.window())
    }

    /// [`Shape::npws`].
    pub fn npws(&self) -> f64 {
        self.shape.npws(self.window())
    }

    /// [`Shape::cache_lines`].
    pub fn cache_lines(&self) -> CacheLines {
        self.shape.cache_lines(self.window())
    }

    /// [`Shape::false_negative_rates`].
    pub fn false_negative_rates(&self) -> Vec<f64> {
        self.shape.false_negative_rates(self.window())
    }

    /// [`Engine::false_positive_rate`].
    pub fn false_positive_rate(&self) -> f64 {
        self.engine.false_positive_rate()
    }

    /// Merges all keys of the other filter. Both must agree in family, window, seed and parameters; an error names the
    /// first difference.
    pub fn unite(&mut self, other: &Self) -> Result<(), Error> {
        let agree = |name: &str, ours: String, theirs: String| match ours == theirs {
            true => Ok(()),
            false => Err(Error::value(format!(
                "filters can be united only when they agree, but {name} is {ours} here and {theirs} there"
            ))),
        };
        agree("the kind", self.family().kind.to_string(), other.family().kind.to_string())?;
        let name = if self.engine.clock().endless() { "capacity" } else { "window" };
        agree(name, self.window().to_string(), other.window().to_string())?;
        if self.seed != other.seed && self.seed.to_string() == other.seed.to_string() {
            return Err(Error::value("filters can be united only when they agree, but each has a secret of its own"));
        }
        agree("seed", self.seed.to_string(), other.seed.to_string())?;
        for ((name, ours), (_, theirs)) in self.parameters().into_iter().zip(other.parameters()) {
            agree(name, ours.to_string(), theirs.to_string())?;
        }
        self.engine.unite(&*other.engine)
    }
}

/// Filters are equal that agree in all that is saved: in family, parameters, window, seed, clock and cells.
impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        self.family().kind == other.family().kind
            && self.parameters() == other.parameters()
            && self.seed == other.seed
            && self.engine.clock() == other.engine.clock()
            && self.engine.words().as_slice() == other.engine.words().as_slice()
    }
}
