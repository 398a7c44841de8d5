//! The table of variants and the choice among them, as Python calls the [core's](lately::filter::choose).

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::build::{Given, figures};
use super::calls::detached;
use crate::errors::raise;
use lately::clock::Window;
use lately::filter::{self, Choice, Prefer, VARIANTS, Variant, Windows};
use lately::shape::growing::Grow;

/// Lists the variants of all families: those that the planner compares, in its order, and then the others.
///
/// Returns
/// -------
/// list of dict
///     With `name`, `kind` (the class, by its path within the package), `family`, `layout` (what the class is called
///     with beside the request), `windows`, `promise`, `baseline`, `note` and `listed`.
#[pyfunction]
pub fn variants(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    VARIANTS.iter().map(|variant| described(py, variant)).collect()
}

fn described<'py>(py: Python<'py>, variant: &Variant) -> PyResult<Bound<'py, PyDict>> {
    let (row, given, layout) = (variant.row(), PyDict::new(py), PyDict::new(py));
    if let Some(name) = variant.layout {
        layout.set_item("layout", name.name())?;
    }
    if let Some(bits) = variant.block_bits {
        layout.set_item("block_bits", bits)?;
    }
    match variant.grow {
        Some(_) if row.has("grow") => layout.set_item("grow", true)?,
        Some(Grow::Cardinality) => layout.set_item("grow", "cardinality")?,
        Some(Grow::Density) => layout.set_item("grow", "density")?,
        None => {}
    }
    let windows = match row.windows {
        Windows::Time => "unknown rate",
        Windows::Insertions => "insertions",
        Windows::Endless => "none",
        Windows::Either if variant.grow.is_some() => "time",
        Windows::Either => "any",
    };
    let name = variant.name();
    given.set_item("family", if variant.fine { &name } else { row.name })?;
    given.set_item("name", &name)?;
    given.set_item("kind", row.class)?;
    given.set_item("layout", layout)?;
    given.set_item("windows", windows)?;
    given.set_item("promise", row.promises)?;
    given.set_item("baseline", row.is_baseline())?;
    given.set_item("note", variant.note)?;
    given.set_item("listed", variant.listed)?;
    Ok(given)
}

/// A variant, the slack requested of it (None for its own default), and its figures.
type Planned<'py> = (String, Option<Bound<'py, PyAny>>, Bound<'py, PyDict>);

/// Chooses the variant that meets a request best. No cells are allocated.
///
/// Parameters
/// ----------
/// prefer : {"speed", "memory"} or None
/// **given
///     `window`, `fpr`, `nbytes`, `slack`, `capacity`, `lateness` and `distinct`, as for `lately.Filter`.
///
/// Returns
/// -------
/// tuple
///     Name of the variant, slack requested of it or None, and figures as `plan` returns them.
#[pyfunction]
#[pyo3(signature = (prefer, /, **given))]
pub fn choose<'py>(
    py: Python<'py>,
    prefer: Option<&str>,
    given: Option<&Bound<'py, PyDict>>,
) -> PyResult<Planned<'py>> {
    let (prefer, (window, request)) = (preference(prefer)?, Given::of(py, given).free_request()?);
    let choice = detached(py, || filter::choose(window, &request, prefer))?.map_err(raise)?;
    planned(py, window, &choice)
}

/// Plans every listed variant for a request, which `choose` describes. No cells are allocated.
///
/// Returns
/// -------
/// tuple
///     Name of the variant to take; a list of what `choose` returns for each variant that can meet the request; and a
///     dict of the names of the others, with the reasons why they cannot.
#[pyfunction]
#[pyo3(signature = (prefer, /, **given))]
pub fn compare<'py>(
    py: Python<'py>,
    prefer: Option<&str>,
    given: Option<&Bound<'py, PyDict>>,
) -> PyResult<(String, Vec<Planned<'py>>, Bound<'py, PyDict>)> {
    let (prefer, (window, request)) = (preference(prefer)?, Given::of(py, given).free_request()?);
    let comparison = detached(py, || filter::compare(window, &request, prefer))?.map_err(raise)?;
    let (mut able, rejected) = (Vec::new(), PyDict::new(py));
    for (variant, choice) in comparison.rows {
        match choice {
            Ok(choice) => able.push(planned(py, window, &choice)?),
            Err(error) => rejected.set_item(variant.name(), error.to_string())?,
        }
    }
    Ok((comparison.best.variant.name(), able, rejected))
}

fn preference(prefer: Option<&str>) -> PyResult<Option<Prefer>> {
    match prefer {
        None => Ok(None),
        Some("speed") => Ok(Some(Prefer::Speed)),
        Some("memory") => Ok(Some(Prefer::Memory)),
        Some(other) => Err(PyValueError::new_err(format!("prefer must be 'speed' or 'memory', got '{other}'"))),
    }
}

fn planned<'py>(py: Python<'py>, window: Window, choice: &Choice) -> PyResult<Planned<'py>> {
    let slack = choice.slack.map(|slack| match window {
        Window::Count { .. } => slack.into_pyobject(py).map(Bound::into_any).map_err(PyErr::from),
        Window::Time { .. } => format!("{slack} ns").into_pyobject(py).map(Bound::into_any).map_err(PyErr::from),
    });
    Ok((choice.variant.name(), slack.transpose()?, figures(py, &*choice.shape, window)?))
}
