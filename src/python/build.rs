//! Makes filters: a class of `lately.filters` passes on what it was called with, and this reads it for the
//! [table of families](crate::filter::FAMILIES).

use std::sync::Arc;

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::built::Built;
use super::calls::detached;
use super::figures::{cache_lines, parameters, slack};
use super::seeds::GivenSeed;
use super::spans::read_span;
use super::times;
use super::whole::Whole;
use crate::clock::Window;
use crate::filter::{FAMILIES, Family, Filter, Request, Windows};
use crate::shape::growing::Grow;
use crate::shape::{Budget, Parameters, Shape};

/// Keys per window of time where nobody has a guess, and the filter grows with them: a few dozen KiB.
const FIRST_GUESS: i128 = 10_000;

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
    let given = Given::of(py, given);
    let GivenSeed(seed) = given.needed("seed")?;
    let ((shape, window), ahead) = (given.shape(family)?, given.ahead()?);
    // Detached from the interpreter, since memory takes its time.
    let built = detached(py, || Filter::of(shape, window, seed))??;
    Ok(Built::new(match ahead {
        Some(ahead) => built.with_ahead(ahead),
        None => built,
    }))
}

/// The figures of the filter that `build` makes of the same, by the names of its attributes. No cells are allocated.
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
#[pyfunction]
#[pyo3(signature = (family, /, **given))]
pub fn plan<'py>(py: Python<'py>, family: &str, given: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyDict>> {
    let (shape, window) = Given::of(py, given).shape(family)?;
    shape.check(window)?;
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
    Ok(figures)
}

/// The arguments of a call, by name.
pub(super) struct Given<'py>(Bound<'py, PyDict>);

impl<'py> Given<'py> {
    pub(super) fn of(py: Python<'py>, given: Option<&Bound<'py, PyDict>>) -> Self {
        Self(given.cloned().unwrap_or_else(|| PyDict::new(py)))
    }

    /// The shape and the window asked for. The search for a shape takes its time, detached from the interpreter.
    pub(super) fn shape(&self, family: &str) -> PyResult<(Arc<dyn Shape>, Window)> {
        let (py, window) = (self.0.py(), self.window(family)?);
        let fine = format!("{family}-fine");
        let family = if self.has("epochs")? { &fine } else { family };
        let growing = format!("{family}-growing");
        let grows = Family::named(&growing).is_some() && self.needed("grow")?;
        let family = if grows { &growing } else { family };
        let counting = format!("{family}-counting");
        let counts = Family::named(&counting).is_some() && (self.has("counts")? || self.has("count_bits")?);
        let family = if counts { &counting } else { family };
        let shape = if self.0.contains("fpr")? {
            let request = self.request(window, family)?;
            let row = row(family, self.layout(&request)?.as_deref())?;
            detached(py, || (row.plan)(window, &request))??
        } else {
            let row = self.row_of_sizes(family)?;
            let parameters = self.parameters(row)?;
            detached(py, || (row.read)(&Parameters(&parameters)))??
        };
        Ok((shape, window))
    }

    /// An argument that must be there; an error names it, as one of a signature's would.
    pub(super) fn needed<T: FromPyObjectOwned<'py>>(&self, name: &str) -> PyResult<T> {
        self.object(name)?.extract().map_err(Into::into).map_err(|error: PyErr| {
            let note = format!("while processing '{name}'");
            error.value(self.0.py()).call_method1("add_note", (note,)).map_or_else(|error| error, |_| error)
        })
    }

    /// An argument that may be missing, or None.
    fn optional<T: FromPyObjectOwned<'py>>(&self, name: &str) -> PyResult<Option<T>> {
        if self.has(name)? { self.needed(name).map(Some) } else { Ok(None) }
    }

    fn has(&self, name: &str) -> PyResult<bool> {
        Ok(self.0.get_item(name)?.is_some_and(|value| !value.is_none()))
    }

    fn object(&self, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.0.get_item(name)?.ok_or_else(|| PyTypeError::new_err(format!("{name} is missing")))
    }

    /// A whole number.
    fn number<T: TryFrom<i128>>(&self, name: &str) -> PyResult<T> {
        self.needed::<Whole>(name)?.within(name)
    }

    /// A whole number that may be missing, or None.
    fn optional_number<T: TryFrom<i128>>(&self, name: &str) -> PyResult<Option<T>> {
        self.optional::<Whole>(name)?.map(|value| value.within(name)).transpose()
    }

    /// The window, of a kind that the family has.
    fn window(&self, family: &str) -> PyResult<Window> {
        let windows = row(family, None)?.windows;
        if windows == Windows::Endless {
            return Ok(Window::Count { insertions: self.number("capacity")? });
        }
        let window = self.object("window")?;
        if windows == Windows::Insertions {
            return times::insertions(&window);
        }
        let (capacity, lateness) = (self.optional("capacity")?, self.optional::<Bound<'py, PyAny>>("lateness")?);
        let window = match windows {
            Windows::Time => times::span_window(&window, capacity.or(Some(Whole::new(FIRST_GUESS))), lateness.as_ref()),
            _ => times::window(&window, capacity, lateness.as_ref()),
        };
        Ok(window?.check()?)
    }

    /// The rate, if there is one.
    fn rate(&self) -> PyResult<Option<f64>> {
        let Some(rate) = self.optional::<Bound<'py, PyAny>>("fpr")? else { return Ok(None) };
        let number = (!rate.is_instance_of::<PyString>()).then(|| rate.extract().ok()).flatten();
        let refused =
            || PyTypeError::new_err(format!("fpr must be a number between 0 and 1, got {:?}", rate.to_string()));
        number.map(Some).ok_or_else(refused)
    }

    /// How far times may lie ahead of the system's clock, of a family that has windows of time; nothing is too far if
    /// it is None.
    pub(super) fn ahead(&self) -> PyResult<Option<Option<u64>>> {
        let Some(ahead) = self.0.get_item("ahead")? else { return Ok(None) };
        if ahead.is_none() {
            return Ok(Some(None));
        }
        Ok(Some(Some(read_span(&ahead, "ahead")?)))
    }

    /// What is asked of a filter of a family, of which those that grow have rows of their own, or parts.
    fn request(&self, window: Window, family: &str) -> PyResult<Request> {
        let slack = self.optional::<Bound<'py, PyAny>>("slack")?;
        let slack = slack.map(|slack| times::length("slack", &slack, window)).transpose()?;
        let budget = match (self.rate()?, self.optional::<Whole>("nbytes")?) {
            (Some(fpr), None) => Budget::Rate(fpr),
            (None, Some(nbytes)) => Budget::Bytes(nbytes.within("nbytes")?),
            // A class without `nbytes` needs its rate.
            _ if !self.0.contains("nbytes")? => {
                return Err(PyTypeError::new_err("fpr must be a number between 0 and 1, got None"));
            }
            (None, None) => {
                return Err(PyTypeError::new_err(
                    "give fpr or nbytes: the chance of reporting a new key, such as 0.001, or the bytes to take",
                ));
            }
            (Some(_), Some(_)) => return Err(PyTypeError::new_err("give fpr or nbytes, and not both")),
        };
        let grow = match family {
            "aged-quotient" | "aged-quotient-counting" | "aged-quotient-fine" => None,
            "aged-quotient-growing" | "aged-quotient-growing-counting" | "aged-quotient-fine-growing" => {
                goes_with_rate(budget).map(|()| None)?
            }
            _ => self.optional::<String>("grow")?.map(|grow| growth(&grow, budget)).transpose()?,
        };
        Ok(Request {
            budget,
            slack,
            block_bits: self.optional_number("block_bits")?,
            grow,
            partitioned: self.0.contains("partitioned")? && self.needed("partitioned")?,
            distinct: self.optional_number("distinct")?,
            counts: self.optional_number("counts")?,
        })
    }

    /// The layout that is asked for, unless it is the plain one. Only that one has blocks, or grows.
    fn layout(&self, request: &Request) -> PyResult<Option<String>> {
        if !self.0.contains("layout")? {
            return Ok(None);
        }
        let layout: String = self.needed("layout")?;
        match &*layout {
            "sliced" => return Ok(None),
            "line" | "transposed" => {}
            _ => {
                let message = format!("layout must be 'sliced', 'line' or 'transposed', got {layout:?}");
                return Err(PyValueError::new_err(message));
            }
        }
        for (name, given) in [("block_bits", request.block_bits.is_some()), ("grow", request.grow.is_some())] {
            if given {
                return Err(PyValueError::new_err(format!("{name} does not apply to layout='{layout}'")));
            }
        }
        Ok(Some(layout))
    }

    /// The row of a family whose sizes are given, and nothing that applies to its other rows alone.
    fn row_of_sizes(&self, family: &str) -> PyResult<&'static Family> {
        let named = row(family, None)?;
        let rows: Vec<&Family> = FAMILIES.iter().filter(|row| row.class == named.class).collect();
        let sets: Vec<&[&str]> = rows.iter().flat_map(|row| row.sizes).copied().collect();
        if sets.is_empty() {
            return Ok(named);
        }
        let mut given = Vec::new();
        for name in sets.concat() {
            if !given.contains(&name) && self.has(name)? {
                given.push(name);
            }
        }
        let row = rows.iter().find(|row| row.sizes.contains(&&given[..])).ok_or_else(|| one_of(&sets))?;
        for name in rows.iter().flat_map(|row| row.optional) {
            if !row.parameters.contains(name) && self.has(name)? {
                return Err(PyValueError::new_err(format!("{name} does not apply to {}", given.join(" and "))));
            }
        }
        Ok(row)
    }

    /// The parameters of a row: of its sizes those that are given.
    fn parameters(&self, row: &Family) -> PyResult<Vec<(&'static str, u64)>> {
        let mut parameters = Vec::new();
        for &name in row.parameters {
            let needed = !row.optional.contains(&name) && !row.sizes.concat().contains(&name);
            if needed || self.has(name)? {
                parameters.push((name, self.number(name)?));
            }
        }
        Ok(parameters)
    }
}

/// The row of a family in a layout.
fn row(family: &str, layout: Option<&str>) -> PyResult<&'static Family> {
    let name = layout.map_or(family.to_owned(), |layout| format!("{family}-{layout}"));
    Family::named(&name).ok_or_else(|| {
        PyValueError::new_err(match layout {
            Some("transposed") => "layout='transposed' is one of guarded epochs: this filter has none".to_owned(),
            _ => format!("there is no family {name:?}"),
        })
    })
}

/// The error where none of these sets is given, or several are.
fn one_of(sets: &[&[&str]]) -> PyErr {
    let names: Vec<String> = sets.iter().map(|set| set.join(" and ")).collect();
    match &names[..] {
        [one, other] => PyTypeError::new_err(format!("give {one} or {other}, and not both")),
        [most @ .., last] => {
            let comma = if last.contains(" and ") { "," } else { "" };
            PyValueError::new_err(format!("give one of {}{comma} and {last}", most.join(", ")))
        }
        [] => unreachable!("no family has an empty list of sets"),
    }
}

/// Memory that follows the keys has no bound to be held to.
fn goes_with_rate(budget: Budget) -> PyResult<()> {
    match budget {
        Budget::Rate(_) => Ok(()),
        Budget::Bytes(_) => {
            Err(PyTypeError::new_err("grow goes with fpr: nbytes bounds the memory, which is then left to the keys"))
        }
    }
}

/// What tells that a part is full, by its name.
fn growth(grow: &str, budget: Budget) -> PyResult<Grow> {
    goes_with_rate(budget)?;
    match grow {
        "cardinality" => Ok(Grow::Cardinality),
        "density" => Ok(Grow::Density),
        _ => Err(PyValueError::new_err(format!("grow must be 'cardinality' or 'density', got {grow:?}"))),
    }
}
