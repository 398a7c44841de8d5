//! Builds and plans filters: reads the request of a caller, by the [table of families](lately::family::FAMILIES).

use std::sync::Arc;

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::arguments::{Missing, SeedArgument};
use super::calls::detached;
use super::figures::{accesses, cache_lines, parameters, slack};
use super::filter::state::FilterState;
use super::time::window::{self, read_max_ahead};
use super::whole::WholeNumber;
use crate::errors::raise;
use lately::clock::Window;
use lately::family::request::Grow;
use lately::family::{
    self, AnyFilter, Budget, FAMILIES, Family, Parameters, Prefer, Request, Shape, Variant, Windows, meaning,
};

/// Build a filter.
///
/// Parameters
/// ----------
/// of : str or None
///     Path of the class of a family within the package, or name of a variant. None chooses.
/// **given
///     The request, by the names of the parameters of `lately.Filter` and of the classes; or `parameters`, a dict of
///     the parameters of the family, instead of `fpr`, `nbytes` and what only plans. The defaults are those of
///     `lately.Filter`.
///
/// Returns
/// -------
/// FilterState
///     The argument of `Filter.__new__`.
#[pyfunction]
#[pyo3(signature = (of, /, **given))]
pub fn build(py: Python<'_>, of: Option<&str>, given: Option<&Bound<'_, PyDict>>) -> PyResult<FilterState> {
    let given = Given::of(py, given);
    let ((shape, window), seed) = (given.shape(of)?, given.seed()?);
    let ahead = given.max_ahead(window)?;
    // Detached from the interpreter, because memory may take long to allocate.
    let built = detached(py, || AnyFilter::of(shape, window, seed))?.map_err(raise)?;
    let built = match ahead {
        Some(ahead) => built.with_max_ahead(ahead),
        None => built,
    };
    Ok(FilterState::new(built, None))
}

/// Describe the parameters of a family.
///
/// Parameters
/// ----------
/// of : str
///     Path of the class within the package.
///
/// Returns
/// -------
/// list of tuple
///     The name of each parameter, as `Filter.parameters` has it, and what it means.
#[pyfunction]
pub fn meanings(of: &str) -> PyResult<Vec<(&'static str, &'static str)>> {
    let (family, _) = row(of)?;
    Ok(family.parameters().into_iter().map(|name| (name, meaning(family.name, name))).collect())
}

/// Returns the figures of a shape, by the names of a filter's attributes.
pub(super) fn figures<'py>(py: Python<'py>, shape: &dyn Shape, window: Window) -> PyResult<Bound<'py, PyDict>> {
    shape.check(window).map_err(raise)?;
    let bytes = shape.bytes(window);
    let (fpr, npws) = detached(py, || (shape.fpr(window), shape.npws(window)))?;
    let figures = PyDict::new(py);
    figures.set_item("parameters", parameters(py, shape.parameters())?)?;
    figures.set_item("nbytes", bytes)?;
    figures.set_item("bits_per_key", bytes as f64 * 8.0 / window.capacity() as f64)?;
    figures.set_item("fpr", fpr)?;
    figures.set_item("slack", slack(py, window, shape.slack(window))?)?;
    figures.set_item("npws", npws)?;
    figures.set_item("cache_lines", cache_lines(py, shape.cache_lines(window))?)?;
    figures.set_item("accesses", accesses(py, shape.accesses(window))?)?;
    Ok(figures)
}

/// The request of a caller, by name.
pub(super) struct Given<'py>(Bound<'py, PyDict>);

impl<'py> Given<'py> {
    pub(super) fn of(py: Python<'py>, given: Option<&Bound<'py, PyDict>>) -> Self {
        Self(given.cloned().unwrap_or_else(|| PyDict::new(py)))
    }

    /// Plans the shape for a request, or reads it from parameters, and reads the window. The search for a shape runs
    /// detached from the interpreter.
    pub(super) fn shape(&self, of: Option<&str>) -> PyResult<(Arc<dyn Shape>, Window)> {
        let py = self.0.py();
        let Some(of) = of else {
            let request = self.request(None)?;
            let shape = detached(py, || family::plan_any(&request))?.map_err(raise)?;
            return Ok((shape, request.window));
        };
        let (family, variant) = row(of)?;
        if let Some(parameters) = self.optional::<Bound<'py, PyDict>>("parameters")? {
            let made = (shape_of(py, family, &parameters)?, self.window(Some(family))?);
            self.check(family)?;
            return Ok(made);
        }
        let request = self.request(Some(family))?;
        let plan = || match variant {
            Some(variant) => variant.plan(&request),
            None => family.plan_itself(&request),
        };
        let shape = detached(py, plan)?.map_err(raise)?;
        self.check(family)?;
        Ok((shape, request.window))
    }

    pub(super) fn seed(&self) -> PyResult<lately::key::Seed> {
        let seed = if self.0.contains("seed")? { self.needed("seed")? } else { SeedArgument::public() };
        Ok(seed.0)
    }

    /// Reads `max_ahead`, if it is given: how far event times may lie ahead of the system's clock, or `None` without a
    /// limit.
    pub(super) fn max_ahead(&self, window: Window) -> PyResult<Option<Option<u64>>> {
        let Some(ahead) = self.0.get_item("max_ahead")? else { return Ok(None) };
        read_max_ahead(&ahead, window)
    }

    /// Rejects what does not apply to a family.
    fn check(&self, family: &Family) -> PyResult<()> {
        let (timed, endless) =
            (!matches!(family.windows, Windows::Insertions | Windows::Endless), family.windows == Windows::Endless);
        let stored = family.windows == Windows::Stored;
        for (name, applies) in [
            ("fpr", !stored),
            ("nbytes", !stored && family.windows != Windows::Time),
            ("slack", timed && !stored),
            ("capacity", timed && !stored || endless),
            ("lateness", timed),
            ("distinct", family.has("distinct")),
            ("grow", family.has("part_keys")),
            ("prefer", false),
        ] {
            if !applies && let Some(given) = self.optional::<Bound<'py, PyAny>>(name)? {
                let class = family.class;
                return Err(PyTypeError::new_err(format!("{name} does not apply to {class}, got {}", given.repr()?)));
            }
        }
        Ok(())
    }

    /// Reads a required argument. An error names it, as errors of PyO3 do.
    fn needed<T: FromPyObjectOwned<'py>>(&self, name: &str) -> PyResult<T> {
        let value = self.0.get_item(name)?.ok_or_else(|| PyTypeError::new_err(format!("{name} is missing")))?;
        value.extract().map_err(Into::into).map_err(|error: PyErr| {
            let note = format!("while processing '{name}'");
            error.value(self.0.py()).call_method1("add_note", (note,)).map_or_else(|error| error, |_| error)
        })
    }

    /// Reads an argument that may be missing or None.
    fn optional<T: FromPyObjectOwned<'py>>(&self, name: &str) -> PyResult<Option<T>> {
        if self.has(name)? { self.needed(name).map(Some) } else { Ok(None) }
    }

    /// Returns whether an argument is given and not None.
    fn has(&self, name: &str) -> PyResult<bool> {
        Ok(self.0.get_item(name)?.is_some_and(|value| !value.is_none()))
    }

    /// Reads a whole number that may be missing or None.
    fn number<T: TryFrom<i128>>(&self, name: &str) -> PyResult<Option<T>> {
        self.optional::<WholeNumber>(name)?.map(|value| value.within(name)).transpose()
    }

    /// Reads the window, in a unit that the family supports. A filter that forgets nothing has a capacity instead.
    fn window(&self, family: Option<&Family>) -> PyResult<Window> {
        let windows = family.map_or(Windows::Either, |family| family.windows);
        if windows == Windows::Endless {
            if self.has("window")? {
                return Err(PyTypeError::new_err("window does not apply to BloomFilter, which forgets nothing"));
            }
            let insertions = self.number("capacity")?;
            let insertions =
                insertions.ok_or_else(|| PyTypeError::new_err("capacity must be a whole number, got None"))?;
            return Ok(Window::Count { insertions });
        }
        let window = self.needed::<Bound<'py, PyAny>>("window")?;
        if windows == Windows::Insertions {
            return window::insertions(&window);
        }
        let (capacity, lateness) = (self.optional("capacity")?, self.optional::<Bound<'py, PyAny>>("lateness")?);
        let guesses = match windows {
            Windows::Time | Windows::Stored => true,
            Windows::Any => !self.has("nbytes")?,
            _ => family.is_none(),
        };
        let read = if windows == Windows::Time { window::of_time } else { window::read };
        read(&window, capacity, lateness.as_ref(), guesses)?.check().map_err(raise)
    }

    /// Reads the request for a filter of this family, or of one that is to be chosen.
    pub(super) fn request(&self, family: Option<&Family>) -> PyResult<Request> {
        let prefer = match family {
            None => preference(self.optional::<String>("prefer")?.as_deref())?,
            Some(_) => None,
        };
        let window = self.window(family)?;
        let slack = self.optional::<Bound<'py, PyAny>>("slack")?;
        let (fpr, nbytes) = (self.rate()?, self.number("nbytes")?);
        let capacity = self.has("capacity")?.then(|| window.capacity());
        let given = match family.map(|family| family.windows) {
            // It plans nothing.
            Some(Windows::Stored) if fpr.is_none() && nbytes.is_none() => Request::of(window, Budget::Bytes(0)),
            Some(Windows::Time) if fpr.is_none() && nbytes.is_none() => {
                return Err(PyTypeError::new_err("fpr must be a number between 0 and 1, got None"));
            }
            _ => Request::given(window, fpr, nbytes, capacity, prefer)
                .map_err(|error| PyTypeError::new_err(error.to_string()))?,
        };
        Ok(Request {
            slack: slack.map(|slack| window::length("slack", &slack, window)).transpose()?,
            grow: self.grow(given.budget)?,
            partitioned: self.optional("partitioned")?.unwrap_or(false),
            distinct: self.number("distinct")?,
            missing_differ: self.optional("missing")?.is_some_and(|missing: Missing| missing == Missing::Distinct),
            ..given
        })
    }

    /// Reads the option `grow`: the name of a rule.
    fn grow(&self, budget: Budget) -> PyResult<Option<Grow>> {
        let grow = match self.optional::<String>("grow")?.as_deref() {
            None => None,
            Some("cardinality") => Some(Grow::Cardinality),
            Some("density") => Some(Grow::Density),
            Some(other) => {
                let message = format!("grow must be 'cardinality' or 'density', got {other:?}");
                return Err(PyValueError::new_err(message));
            }
        };
        match (grow, budget) {
            (Some(_), Budget::Bytes(_)) => Err(PyTypeError::new_err(
                "grow goes with fpr, not with nbytes: the memory of a filter that grows has no bound",
            )),
            _ => Ok(grow),
        }
    }

    /// Reads `fpr`, if it is given.
    fn rate(&self) -> PyResult<Option<f64>> {
        let Some(rate) = self.optional::<Bound<'py, PyAny>>("fpr")? else { return Ok(None) };
        let number = (!rate.is_instance_of::<PyString>()).then(|| rate.extract().ok()).flatten();
        let error =
            || PyTypeError::new_err(format!("fpr must be a number between 0 and 1, got {:?}", rate.to_string()));
        number.map(Some).ok_or_else(error)
    }
}

/// Reads a shape from parameters, by the names that `Filter.parameters` has.
fn shape_of(py: Python<'_>, family: &'static Family, given: &Bound<'_, PyDict>) -> PyResult<Arc<dyn Shape>> {
    let described = |name| format!("{name} ({})", meaning(family.name, name));
    let mut values = Vec::new();
    for (name, value) in given {
        let name = name.extract::<String>()?;
        let Some(name) = family.parameters().into_iter().find(|&known| known == name) else {
            let known: Vec<String> = family.parameters().into_iter().map(described).collect();
            let (class, known) = (family.class, known.join(", "));
            return Err(PyTypeError::new_err(format!("{class} has no parameter {name:?}; its parameters are {known}")));
        };
        values.push((name, value.extract::<WholeNumber>()?.within(name)?));
    }
    let shape = detached(py, || family.read(&Parameters(&values)))?.map_err(|error| {
        let text = error.to_string();
        let Some(name) = text.strip_suffix(" is missing") else { return raise(error) };
        PyTypeError::new_err(format!("{} needs {name}: {}", family.class, meaning(family.name, name)))
    })?;
    let set = shape.parameters();
    let is_set = |name, given| set.iter().any(|&(other, value)| other == name && (value != 0 || given == 0));
    match values.iter().find(|&&(name, given)| !is_set(name, given)) {
        Some((name, value)) => {
            let others: Vec<&str> = values.iter().map(|&(name, _)| name).filter(|other| other != name).collect();
            Err(PyTypeError::new_err(format!(
                "{name}={value} does not go with {}: it is {}",
                others.join(", "),
                meaning(family.name, name)
            )))
        }
        None => Ok(shape),
    }
}

/// Returns the family that the path of a class or the name of a variant means, and the variant.
fn row(of: &str) -> PyResult<(&'static Family, Option<&'static Variant>)> {
    let class = FAMILIES.into_iter().find(|family| family.class == of).map(|family| (family, None));
    let row = class.or_else(|| Variant::named(of).map(|variant| (variant.family, Some(variant))));
    row.ok_or_else(|| PyValueError::new_err(format!("family must be one that lately.plan lists, got {of:?}")))
}

/// Parses the argument `prefer`.
fn preference(prefer: Option<&str>) -> PyResult<Option<Prefer>> {
    match prefer {
        None => Ok(None),
        Some("speed") => Ok(Some(Prefer::Speed)),
        Some("memory") => Ok(Some(Prefer::Memory)),
        Some("exact") => Ok(Some(Prefer::Exact)),
        Some(other) => {
            // Text that is not valid Unicode, which NumPy makes, enters no message as it is.
            let other = String::from_utf8_lossy(other.as_bytes());
            Err(PyValueError::new_err(format!("prefer must be 'speed', 'memory' or 'exact', got '{other}'")))
        }
    }
}
