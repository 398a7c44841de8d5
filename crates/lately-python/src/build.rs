//! Builds and plans filters: reads the keyword arguments of their classes, by the
//! [table of families](lately::family::FAMILIES).

use std::collections::BTreeSet;
use std::sync::Arc;

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::arguments::SeedArgument;
use super::calls::detached;
use super::figures::{accesses, cache_lines, parameters, slack};
use super::filter::state::FilterState;
use super::time::window::{self, read_max_ahead};
use super::whole::WholeNumber;
use crate::errors::raise;
use lately::clock::Window;
use lately::family::row::Layout;
use lately::family::timing::growing::Grow;
use lately::family::{AnyFilter, Budget, Family, Parameters, Request, Shape, Variant, Windows};

/// The option `grow`: a flag if the family has a parameter of this name, otherwise the name of a rule.
const GROW: &str = "grow";

/// Capacity for which a filter that grows is planned if a window of time has none: a few dozen KiB.
const DEFAULT_CAPACITY: i128 = 10_000;

/// Build a filter of a family: by a request, which contains `fpr`, or by the parameters of the paper.
///
/// Parameters
/// ----------
/// family : str
///     Name of the family, without a layout.
/// **given
///     Arguments of the class.
///
/// Returns
/// -------
/// FilterState
///     The argument of `Filter.__new__`.
#[pyfunction]
#[pyo3(signature = (family, /, **given))]
pub fn build(py: Python<'_>, family: &str, given: Option<&Bound<'_, PyDict>>) -> PyResult<FilterState> {
    let given = Keywords::of(py, given);
    let SeedArgument(seed) = given.needed("seed")?;
    let ((shape, window), ahead) = (given.shape(family)?, given.max_ahead()?);
    // Detached from the interpreter, because memory may take long to allocate.
    let built = detached(py, || AnyFilter::of(shape, window, seed))?.map_err(raise)?;
    let built = match ahead {
        Some(ahead) => built.with_max_ahead(ahead),
        None => built,
    };
    Ok(FilterState::new(built, None))
}

/// Plan the filter that `build` builds from the same arguments. No cells are allocated.
///
/// Parameters
/// ----------
/// family : str
/// **given
///     As in `build`.
///
/// Returns
/// -------
/// dict
///     The figures of the filter, by the names of its attributes.
#[pyfunction]
#[pyo3(signature = (family, /, **given))]
pub fn plan<'py>(py: Python<'py>, family: &str, given: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyDict>> {
    let (shape, window) = Keywords::of(py, given).shape(family)?;
    figures(py, &*shape, window)
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

/// The keyword arguments of a class.
pub(super) struct Keywords<'py>(Bound<'py, PyDict>);

impl<'py> Keywords<'py> {
    pub(super) fn of(py: Python<'py>, given: Option<&Bound<'py, PyDict>>) -> Self {
        Self(given.cloned().unwrap_or_else(|| PyDict::new(py)))
    }

    /// Plans the shape for a request, or reads it from parameters, and reads the window. The search for a shape runs
    /// detached from the interpreter.
    pub(super) fn shape(&self, family: &str) -> PyResult<(Arc<dyn Shape>, Window)> {
        let (family, fine) = row(family)?;
        let (py, window) = (self.0.py(), self.window(family)?);
        let shape = if self.0.contains("fpr")? {
            let request = self.request(window, family)?;
            let request = Request { layout: self.layout(family, &request)?, fine, ..request };
            detached(py, || (family.plan)(window, &request))?.map_err(raise)?
        } else {
            let parameters = self.parameters(family)?;
            detached(py, || (family.read)(&Parameters(&parameters)))?.map_err(raise)?
        };
        Ok((shape, window))
    }

    /// Reads a required argument. An error names it, as errors of PyO3 do.
    pub(super) fn needed<T: FromPyObjectOwned<'py>>(&self, name: &str) -> PyResult<T> {
        self.object(name)?.extract().map_err(Into::into).map_err(|error: PyErr| {
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

    fn object(&self, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.0.get_item(name)?.ok_or_else(|| PyTypeError::new_err(format!("{name} is missing")))
    }

    /// Reads a required whole number.
    fn number<T: TryFrom<i128>>(&self, name: &str) -> PyResult<T> {
        self.needed::<WholeNumber>(name)?.within(name)
    }

    /// Reads a flag: a bool, or the number that `parameters` contain.
    fn flag(&self, name: &str) -> PyResult<bool> {
        self.needed(name).or_else(|error| match self.number::<u8>(name) {
            Ok(number @ 0..=1) => Ok(number == 1),
            _ => Err(error),
        })
    }

    /// Reads a whole number that may be missing or None.
    fn optional_number<T: TryFrom<i128>>(&self, name: &str) -> PyResult<Option<T>> {
        self.optional::<WholeNumber>(name)?.map(|value| value.within(name)).transpose()
    }

    /// Reads the window, in a unit that the family supports.
    fn window(&self, family: &Family) -> PyResult<Window> {
        let windows = family.windows;
        if windows == Windows::Endless {
            return Ok(Window::Count { insertions: self.number("capacity")? });
        }
        let window = self.object("window")?;
        if windows == Windows::Insertions {
            return window::insertions(&window);
        }
        let (capacity, lateness) = (self.optional("capacity")?, self.optional::<Bound<'py, PyAny>>("lateness")?);
        let window = match windows {
            Windows::Time => {
                let capacity = capacity.or(Some(WholeNumber::new(DEFAULT_CAPACITY)));
                window::of_time(&window, capacity, lateness.as_ref())
            }
            Windows::Any if capacity.is_none() && !window::is_count(&window)? && !self.has("nbytes")? => {
                window::of_time(&window, Some(WholeNumber::new(DEFAULT_CAPACITY)), lateness.as_ref())
            }
            _ => window::read(&window, capacity, lateness.as_ref()),
        };
        window?.check().map_err(raise)
    }

    /// Reads `fpr`, if it is given.
    fn rate(&self) -> PyResult<Option<f64>> {
        let Some(rate) = self.optional::<Bound<'py, PyAny>>("fpr")? else { return Ok(None) };
        let number = (!rate.is_instance_of::<PyString>()).then(|| rate.extract().ok()).flatten();
        let error =
            || PyTypeError::new_err(format!("fpr must be a number between 0 and 1, got {:?}", rate.to_string()));
        number.map(Some).ok_or_else(error)
    }

    /// Reads `max_ahead`, if the class has it: how far event times may lie ahead of the system's clock, or `None`
    /// without a limit.
    pub(super) fn max_ahead(&self) -> PyResult<Option<Option<u64>>> {
        let Some(ahead) = self.0.get_item("max_ahead")? else { return Ok(None) };
        read_max_ahead(Some(&ahead))
    }

    /// Reads the request for a filter of this family.
    fn request(&self, window: Window, family: &Family) -> PyResult<Request> {
        let (slack, budget) = (self.slack(window)?, self.budget()?);
        let grow = match family.has(GROW) {
            true if self.flag(GROW)? => check_grow(budget).map(|()| Some(Grow::Cardinality))?,
            true => None,
            false => self.optional::<String>(GROW)?.map(|grow| growth(&grow, budget)).transpose()?,
        };
        Ok(Request {
            slack,
            block_bits: self.optional_number("block_bits")?,
            grow,
            partitioned: self.0.contains("partitioned")? && self.needed("partitioned")?,
            distinct: self.optional_number("distinct")?,
            counts: self.optional_number("counts")?,
            ..Request::from(budget)
        })
    }

    /// Reads the window and the request of a filter whose family is to be chosen.
    pub(super) fn free_request(&self) -> PyResult<(Window, Request)> {
        let given = self.object("window")?;
        let (capacity, lateness) = (self.optional("capacity")?, self.optional::<Bound<'py, PyAny>>("lateness")?);
        let unknown_rate = capacity.is_none() && !window::is_count(&given)?;
        if window::is_count(&given)? {
            for (name, is_given) in [("capacity", capacity.is_some()), ("lateness", lateness.is_some())] {
                if is_given {
                    let message = format!("{name} is for windows of time; this one counts insertions");
                    return Err(PyValueError::new_err(message));
                }
            }
        }
        if unknown_rate && (!self.has("fpr")? || self.has("nbytes")?) {
            return Err(PyValueError::new_err(
                "a window of time without capacity needs fpr, and no nbytes: its memory follows the rate of keys",
            ));
        }
        let capacity = if unknown_rate { Some(WholeNumber::new(DEFAULT_CAPACITY)) } else { capacity };
        let window = window::read(&given, capacity, lateness.as_ref())?.check().map_err(raise)?;
        let (slack, budget) = (self.slack(window)?, self.budget()?);
        Ok((
            window,
            Request { slack, distinct: self.optional_number("distinct")?, unknown_rate, ..Request::from(budget) },
        ))
    }

    fn slack(&self, window: Window) -> PyResult<Option<u64>> {
        let slack = self.optional::<Bound<'py, PyAny>>("slack")?;
        slack.map(|slack| window::length("slack", &slack, window)).transpose()
    }

    /// Reads `fpr` or `nbytes`.
    fn budget(&self) -> PyResult<Budget> {
        match (self.rate()?, self.optional::<WholeNumber>("nbytes")?) {
            (Some(fpr), None) => Ok(Budget::Rate(fpr)),
            (None, Some(nbytes)) => Ok(Budget::Bytes(nbytes.within("nbytes")?)),
            // A class without `nbytes` needs `fpr`.
            _ if !self.0.contains("nbytes")? => {
                Err(PyTypeError::new_err("fpr must be a number between 0 and 1, got None"))
            }
            (None, None) => Err(PyTypeError::new_err(
                "give fpr or nbytes: the chance of reporting a new key, such as 0.001, or the bytes to take",
            )),
            (Some(_), Some(_)) => Err(PyTypeError::new_err("give fpr or nbytes, and not both")),
        }
    }

    /// Reads the layout. Only the sliced layout has blocks and can grow.
    fn layout(&self, family: &Family, request: &Request) -> PyResult<Layout> {
        if !self.0.contains("layout")? {
            return Ok(Layout::Sliced);
        }
        let given: String = self.needed("layout")?;
        let Some(layout) = Layout::ALL.into_iter().find(|layout| layout.name() == given) else {
            let message = format!("layout must be 'sliced', 'line' or 'transposed', got {given:?}");
            return Err(PyValueError::new_err(message));
        };
        if layout == Layout::Sliced {
            return Ok(layout);
        }
        for (name, given) in [("block_bits", request.block_bits.is_some()), (GROW, request.grow.is_some())] {
            if given {
                return Err(PyValueError::new_err(format!("{name} does not apply to layout='{}'", layout.name())));
            }
        }
        let has = family.forms.iter().any(|form| form.layout == layout);
        let error = || PyValueError::new_err(format!("layout='{given}' is not a layout of this family"));
        if has { Ok(layout) } else { Err(error()) }
    }

    /// Reads the parameters that a constructor passes. Optional ones may be None.
    fn parameters(&self, family: &Family) -> PyResult<Vec<(&'static str, u64)>> {
        let mut parameters = Vec::new();
        if family.has(GROW) && self.flag(GROW)? {
            parameters.push((GROW, 1));
        }
        let names: BTreeSet<_> = family.forms.iter().flat_map(|form| form.parameters).copied().collect();
        for name in names {
            let given = if family.optional.contains(&name) { self.has(name)? } else { self.0.contains(name)? };
            if given {
                parameters.push((name, self.number(name)?));
            }
        }
        Ok(parameters)
    }
}

/// Returns the family that a name or a variant has, and whether the variant has fine tags.
fn row(name: &str) -> PyResult<(&'static Family, bool)> {
    let variant = || Variant::named(name).map(|variant| (variant.family, variant.options.fine));
    let row = Family::named(name).map(|family| (family, false)).or_else(variant);
    row.ok_or_else(|| PyValueError::new_err(format!("family must be one that lately.plan lists, got {name:?}")))
}

/// Rejects `grow` with `nbytes`, because memory that grows with the keys has no bound.
fn check_grow(budget: Budget) -> PyResult<()> {
    match budget {
        Budget::Rate(_) => Ok(()),
        Budget::Bytes(_) => Err(PyTypeError::new_err(
            "grow goes with fpr, not with nbytes: the memory of a filter that grows has no bound",
        )),
    }
}

/// Parses the name of the rule by which a part is full.
fn growth(grow: &str, budget: Budget) -> PyResult<Grow> {
    check_grow(budget)?;
    match grow {
        "cardinality" => Ok(Grow::Cardinality),
        "density" => Ok(Grow::Density),
        _ => Err(PyValueError::new_err(format!("grow must be 'cardinality' or 'density', got {grow:?}"))),
    }
}
