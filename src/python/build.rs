//! Makes filters: a class of `lately.filters` passes on what it was called with, and this reads it.

use std::sync::{Mutex, PoisonError};

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::calls::detached;
use super::layout::Layout;
use super::seeds::GivenSeed;
use super::times;
use super::whole::Whole;
use crate::Error;
use crate::clock::Window;
use crate::filter::Filter;
use crate::key::Seed;
use crate::shape::Budget;
use crate::shape::growing::{Grow, Growing, Limit};
use crate::shape::line::{self, Family};
use crate::shape::slices::Slices;
use crate::shape::{
    age_partitioned, bloom, counting, fingerprint_buffer, generalized, guarded_epoch, quotient, stable, swamp,
    time_limited, timing,
};

/// Keys per window of a time-limited filter where nobody has a guess: a few dozen KiB.
const FIRST_GUESS: i128 = 10_000;

/// A filter that no object holds yet: what `Filter.__new__` takes.
#[pyclass(frozen, module = "lately._core")]
pub struct Built(Mutex<Option<Filter>>);

impl Built {
    pub fn new(filter: Filter) -> Self {
        Self(Mutex::new(Some(filter)))
    }

    /// The filter, for the one object that will hold it.
    pub fn take(&self) -> PyResult<Filter> {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(|| PyTypeError::new_err("an object holds this filter already"))
    }
}

/// A filter of a family: to a request, which holds `fpr`, or of the parameters of its paper.
///
/// Parameters
/// ----------
/// family : str
///     Its name, without a layout.
/// **given
///     What the class was called with.
///
/// Returns
/// -------
/// Built
///     For `Filter.__new__`.
#[pyfunction]
#[pyo3(signature = (family, /, **given))]
pub fn build(py: Python<'_>, family: &str, given: Option<&Bound<'_, PyDict>>) -> PyResult<Built> {
    let given = Given(given.cloned().unwrap_or_else(|| PyDict::new(py)));
    let GivenSeed(seed) = given.needed("seed")?;
    let recipe = match family {
        "age-partitioned" => age_partitioned(&given, seed),
        "guarded-epoch" => guarded_epoch(&given, seed),
        "timing" => timing(&given, seed),
        "time-limited" => time_limited(&given, seed),
        "swamp" => swamp(&given, seed),
        "aged-quotient" => aged_quotient(&given, seed),
        "counting" => counting(&given, seed),
        "fingerprint-buffer" => fingerprint_buffer(&given, seed),
        "bloom" => bloom(&given, seed),
        "stable" => stable(&given, seed),
        "generalized" => generalized(&given, seed),
        _ => Err(PyValueError::new_err(format!("there is no family {family:?}"))),
    }?;
    Ok(Built::new(detached(py, recipe)??))
}

/// How a filter is made once all is read: detached from the interpreter, since the search for a shape and memory take
/// their time.
type Recipe = Box<dyn FnOnce() -> Result<Filter, Error> + Send>;

fn recipe(make: impl FnOnce() -> Result<Filter, Error> + Send + 'static) -> PyResult<Recipe> {
    Ok(Box::new(make))
}

/// The arguments of a call, by name.
struct Given<'py>(Bound<'py, PyDict>);

impl<'py> Given<'py> {
    /// Whether it is a request; the parameters of a paper hold no rate.
    fn is_request(&self) -> PyResult<bool> {
        self.0.contains("fpr")
    }

    /// An argument that must be there; an error names it, as one of a signature's would.
    fn needed<T: FromPyObjectOwned<'py>>(&self, name: &str) -> PyResult<T> {
        self.object(name)?.extract().map_err(Into::into).map_err(|error: PyErr| {
            let note = format!("while processing '{name}'");
            error.value(self.0.py()).call_method1("add_note", (note,)).map_or_else(|error| error, |_| error)
        })
    }

    /// An argument that may be None.
    fn optional<T: FromPyObjectOwned<'py>>(&self, name: &str) -> PyResult<Option<T>> {
        if self.object(name)?.is_none() { Ok(None) } else { self.needed(name).map(Some) }
    }

    fn object(&self, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.0.get_item(name)?.ok_or_else(|| PyTypeError::new_err(format!("{name} is missing")))
    }

    /// A whole number.
    fn number<T: TryFrom<i128>>(&self, name: &str) -> PyResult<T> {
        self.needed::<Whole>(name)?.within(name)
    }

    /// A whole number that may be None.
    fn optional_number<T: TryFrom<i128>>(&self, name: &str) -> PyResult<Option<T>> {
        self.optional::<Whole>(name)?.map(|value| value.within(name)).transpose()
    }

    /// A window of either kind.
    fn window(&self) -> PyResult<Window> {
        let lateness = self.optional::<Bound<'py, PyAny>>("lateness")?;
        Ok(times::window(&self.object("window")?, self.optional("capacity")?, lateness.as_ref())?.check()?)
    }

    /// A window of insertions.
    fn insertions(&self) -> PyResult<Window> {
        times::insertions(&self.object("window")?)
    }

    /// What the filter is held to: the one of the two that was given.
    fn budget(&self) -> PyResult<Budget> {
        match (self.optional("fpr")?, self.optional::<Whole>("nbytes")?) {
            (Some(fpr), None) => Ok(Budget::Rate(fpr)),
            (None, Some(nbytes)) => Ok(Budget::Bytes(nbytes.within("nbytes")?)),
            _ => Err(PyTypeError::new_err("give fpr or nbytes, and not both")),
        }
    }

    fn slack(&self, window: Window) -> PyResult<Option<u64>> {
        let slack = self.optional::<Bound<'py, PyAny>>("slack")?;
        slack.map(|slack| times::length("slack", &slack, window)).transpose()
    }
}

fn age_partitioned(given: &Given<'_>, seed: Seed) -> PyResult<Recipe> {
    use age_partitioned::{Segment, Shape, choose};
    let family = Family::AgePartitioned;
    let window = given.window()?;
    if given.is_request()? {
        let (slack, budget) = (given.slack(window)?, given.budget()?);
        let (layout, block_bits) = (given.needed::<Layout>("layout")?, given.optional_number("block_bits")?);
        layout.check(block_bits)?;
        return match layout {
            Layout::Sliced => recipe(move || Filter::new(choose(window, budget, slack, block_bits)?, window, seed)),
            Layout::Line => recipe(move || Filter::new(line::choose(window, budget, slack, family)?, window, seed)),
            Layout::Transposed => Err(no_transposed()),
        };
    }
    let (k, l, lines) = (given.number("k")?, given.number("l")?, given.number("lines")?);
    let (block_bits, parts) = (given.number("block_bits")?, given.number("parts")?);
    let sizes =
        (given.optional_number("slice_bits")?, given.optional_number("blocks")?, given.optional_number("pages")?);
    let segment = match sizes {
        (None, None, Some(pages)) => {
            return recipe(move || Filter::new(line::Shape::age_partitioned(k, l, pages, lines)?, window, seed));
        }
        (Some(bits), None, None) => Segment::Slice { bits },
        (None, Some(blocks), None) => Segment::Blocks { blocks, block_bits, parts },
        _ => return Err(PyValueError::new_err("give one of slice_bits, blocks and pages")),
    };
    recipe(move || Filter::new(Shape::new(k, l, segment)?, window, seed))
}

fn guarded_epoch(given: &Given<'_>, seed: Seed) -> PyResult<Recipe> {
    use guarded_epoch::{Segment, Shape, Transposed, choose, choose_transposed};
    let family = Family::GuardedEpoch;
    let window = given.window()?;
    if given.is_request()? {
        let (slack, budget) = (given.slack(window)?, given.budget()?);
        let (layout, block_bits) = (given.needed::<Layout>("layout")?, given.optional_number("block_bits")?);
        layout.check(block_bits)?;
        return match layout {
            Layout::Sliced => recipe(move || Filter::new(choose(window, budget, slack, block_bits)?, window, seed)),
            Layout::Line => recipe(move || Filter::new(line::choose(window, budget, slack, family)?, window, seed)),
            Layout::Transposed => recipe(move || Filter::new(choose_transposed(window, budget, slack)?, window, seed)),
        };
    }
    let (r, lines) = (given.number("r")?, given.number("lines")?);
    let (block_bits, parts) = (given.number("block_bits")?, given.number("parts")?);
    let sizes = (
        given.optional_number("k")?,
        given.optional_number("segment_bits")?,
        given.optional_number("blocks")?,
        given.optional_number("pages")?,
        given.optional_number("positions")?,
    );
    let segment = match sizes {
        (None, None, None, Some(pages), None) => {
            return recipe(move || Filter::new(line::Shape::guarded_epoch(r, pages, lines)?, window, seed));
        }
        (Some(k), None, None, None, Some(positions)) => {
            return recipe(move || Filter::new(Transposed::new(r, k, positions)?, window, seed));
        }
        (Some(k), Some(bits), None, None, None) => Segment::Bloom { bits, k },
        (None, None, Some(blocks), None, None) => Segment::Blocks { blocks, block_bits, parts },
        _ => {
            return Err(PyValueError::new_err("give one of k and segment_bits, blocks, pages, and k and positions"));
        }
    };
    recipe(move || Filter::new(Shape::new(r, segment)?, window, seed))
}

fn timing(given: &Given<'_>, seed: Seed) -> PyResult<Recipe> {
    use timing::{Shape, choose, line};
    let window = given.window()?;
    if given.is_request()? {
        let (slack, budget) = (given.slack(window)?, given.budget()?);
        let grow = given.optional::<String>("grow")?.map(|grow| growth(&grow, budget)).transpose()?;
        return match (given.needed::<Layout>("layout")?, grow) {
            (Layout::Sliced, None) => recipe(move || Filter::new(choose(window, budget, slack)?, window, seed)),
            (Layout::Sliced, Some(grow)) => recipe(move || {
                let part = choose(window, budget, slack)?;
                Filter::new(Growing { part, limit: Limit::planned(grow, part, window) }, window, seed)
            }),
            (Layout::Line, None) => recipe(move || Filter::new(line::choose(window, budget, slack)?, window, seed)),
            (Layout::Line, Some(_)) => Err(PyValueError::new_err("grow does not apply to layout='line'")),
            (Layout::Transposed, _) => Err(no_transposed()),
        };
    }
    let (k, bpt, blocks) = (given.number("k")?, given.number("bpt")?, given.number("blocks")?);
    let (lines, equal_timers) = (given.number("lines")?, given.number("equal_timers")?);
    let limit = (given.optional_number("part_keys")?, given.optional_number("part_timers")?);
    let slice_timers = match (given.optional_number("slice_timers")?, given.optional_number("pages")?) {
        (Some(timers), None) => timers,
        (None, Some(pages)) if equal_timers == 1 && limit == (None, None) => {
            return recipe(move || Filter::new(line::Shape::new(k, bpt, blocks, pages, lines)?, window, seed));
        }
        (None, Some(_)) => {
            let message = "equal_timers, part_keys and part_timers do not apply to pages of lines";
            return Err(PyValueError::new_err(message));
        }
        _ => return Err(PyTypeError::new_err("give slice_timers or pages, and not both")),
    };
    let part = Shape::new(k, bpt, blocks, slice_timers, equal_timers)?;
    let limit = match limit {
        (None, None) => return recipe(move || Filter::new(part, window, seed)),
        (Some(keys), None) => Limit::Keys(keys),
        (None, Some(timers)) => Limit::Timers(timers),
        _ => return Err(PyTypeError::new_err("give part_keys or part_timers, and not both")),
    };
    recipe(move || Filter::new(Growing { part, limit }, window, seed))
}

fn time_limited(given: &Given<'_>, seed: Seed) -> PyResult<Recipe> {
    use time_limited::{Shape, choose};
    let capacity = given.optional("capacity")?.unwrap_or(Whole::new(FIRST_GUESS));
    let lateness = given.optional::<Bound<'_, PyAny>>("lateness")?;
    let window = times::span_window(&given.object("window")?, Some(capacity), lateness.as_ref())?.check()?;
    if given.is_request()? {
        let (slack, fpr) = (given.slack(window)?, given.needed("fpr")?);
        return recipe(move || Filter::new(choose(window, fpr, slack)?, window, seed));
    }
    let (k, l, slice_bits) = (given.number("k")?, given.number("l")?, given.number("slice_bits")?);
    recipe(move || Filter::new(Shape::new(k, l, slice_bits)?, window, seed))
}

fn swamp(given: &Given<'_>, seed: Seed) -> PyResult<Recipe> {
    use swamp::{Shape, choose};
    let window = given.insertions()?;
    if given.is_request()? {
        let budget = given.budget()?;
        return recipe(move || Filter::new(choose(window, budget)?, window, seed));
    }
    let (slots, bits) = (given.number("slots")?, given.number("remainder_bits")?);
    recipe(move || Filter::new(Shape::new(slots, bits)?, window, seed))
}

fn aged_quotient(given: &Given<'_>, seed: Seed) -> PyResult<Recipe> {
    use quotient::{Shape, choose};
    let window = given.window()?;
    let distinct = given.optional_number("distinct")?;
    if given.is_request()? {
        let (slack, budget) = (given.slack(window)?, given.budget()?);
        return recipe(move || Filter::new(choose(window, budget, slack, distinct)?, window, seed));
    }
    let (fingerprint_bits, tag_bits) = (given.number("fingerprint_bits")?, given.number("tag_bits")?);
    let (pages, lines) = (given.number("pages")?, given.number("lines")?);
    recipe(move || Filter::new(Shape::new(fingerprint_bits, tag_bits, pages, lines, distinct)?, window, seed))
}

fn counting(given: &Given<'_>, seed: Seed) -> PyResult<Recipe> {
    let window = given.insertions()?;
    if given.is_request()? {
        let budget = given.budget()?;
        return recipe(move || Filter::new(counting::choose(window, budget)?, window, seed));
    }
    let (k, cells) = (given.number("k")?, given.number("slice_cells")?);
    recipe(move || Filter::new(counting::Shape { slices: Slices::new(k, cells)? }, window, seed))
}

fn fingerprint_buffer(given: &Given<'_>, seed: Seed) -> PyResult<Recipe> {
    use fingerprint_buffer::{Shape, choose};
    let window = given.insertions()?;
    if given.is_request()? {
        let budget = given.budget()?;
        return recipe(move || Filter::new(choose(window, budget)?, window, seed));
    }
    let bits = given.number("fingerprint_bits")?;
    recipe(move || Filter::new(Shape::new(bits)?, window, seed))
}

fn bloom(given: &Given<'_>, seed: Seed) -> PyResult<Recipe> {
    use bloom::{Shape, choose};
    let capacity = given.number("capacity")?;
    let window = Window::Count { insertions: capacity };
    if given.is_request()? {
        let (budget, partitioned) = (given.budget()?, given.needed("partitioned")?);
        return recipe(move || Filter::new(choose(capacity, budget, partitioned)?, window, seed));
    }
    let k = given.number("k")?;
    match (given.optional_number("bits")?, given.optional_number("slice_bits")?) {
        (Some(bits), None) => recipe(move || Filter::new(Shape::classical(k, bits)?, window, seed)),
        (None, Some(bits)) => recipe(move || Filter::new(Shape::partitioned(k, bits)?, window, seed)),
        _ => Err(PyTypeError::new_err("give bits or slice_bits, and not both")),
    }
}

fn stable(given: &Given<'_>, seed: Seed) -> PyResult<Recipe> {
    use stable::{Shape, choose};
    let window = given.insertions()?;
    if given.is_request()? {
        let budget = given.budget()?;
        return recipe(move || Filter::new(choose(window, budget)?, window, seed));
    }
    let (k, cells) = (given.number("k")?, given.number("slice_cells")?);
    let (bits, decrements) = (given.number("bits")?, given.number("decrements")?);
    recipe(move || Filter::new(Shape::new(Slices::new(k, cells)?, bits, decrements)?, window, seed))
}

fn generalized(given: &Given<'_>, seed: Seed) -> PyResult<Recipe> {
    use generalized::{Shape, choose};
    let window = given.insertions()?;
    if given.is_request()? {
        let budget = given.budget()?;
        return recipe(move || Filter::new(choose(window, budget)?, window, seed));
    }
    let (bits, k1, k0) = (given.number("bits")?, given.number("k1")?, given.number("k0")?);
    recipe(move || Filter::new(Shape::new(bits, k1, k0)?, window, seed))
}

fn no_transposed() -> PyErr {
    PyValueError::new_err("layout='transposed' is one of guarded epochs: this filter has none")
}

/// What tells that a part is full, by its name; memory that follows the keys has no bound to be held to.
fn growth(grow: &str, budget: Budget) -> PyResult<Grow> {
    if let Budget::Bytes(_) = budget {
        return Err(PyTypeError::new_err(
            "grow goes with fpr: nbytes bounds the memory, which is then left to the keys",
        ));
    }
    match grow {
        "cardinality" => Ok(Grow::Cardinality),
        "density" => Ok(Grow::Density),
        _ => Err(PyValueError::new_err(format!("grow must be 'cardinality' or 'density', got {grow:?}"))),
    }
}
