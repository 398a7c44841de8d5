//! Lists the variants of families and chooses among them, by the [core's rule](lately::family::choose).

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::build::{Keywords, figures};
use super::calls::detached;
use crate::errors::raise;
use lately::clock::Window;
use lately::family::timing::growing::Grow;
use lately::family::{self, Choice, Prefer, VARIANTS, Variant, Windows};

/// List the variants of all families: those that the planner compares, in its order, then the others.
///
/// Returns
/// -------
/// list of dict
///     The keys are `name`, `kind` (path of the class within the package), `family`, `layout` (arguments of the class
///     beside the request), `windows`, `promise`, `baseline`, `note` and `listed`.
#[pyfunction]
pub fn variants(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    VARIANTS.iter().map(|variant| description(py, variant)).collect()
}

fn description<'py>(py: Python<'py>, variant: &Variant) -> PyResult<Bound<'py, PyDict>> {
    let (row, options, entry, layout) = (variant.family, variant.options, PyDict::new(py), PyDict::new(py));
    if let Some(name) = options.layout {
        layout.set_item("layout", name.name())?;
    }
    if let Some(bits) = options.block_bits {
        layout.set_item("block_bits", bits)?;
    }
    match options.grow {
        Some(_) if row.has("grow") => layout.set_item("grow", true)?,
        Some(Grow::Cardinality) => layout.set_item("grow", "cardinality")?,
        Some(Grow::Density) => layout.set_item("grow", "density")?,
        None => {}
    }
    let windows = match row.windows {
        Windows::Time => "unknown rate",
        Windows::Insertions => "insertions",
        Windows::Endless => "none",
        Windows::Either if options.grow.is_some() => "time",
        Windows::Any | Windows::Either => "any",
    };
    let name = variant.name();
    entry.set_item("family", if options.fine { &name } else { row.name })?;
    entry.set_item("name", &name)?;
    entry.set_item("kind", row.class)?;
    entry.set_item("layout", layout)?;
    entry.set_item("windows", windows)?;
    entry.set_item("promise", row.promises)?;
    entry.set_item("baseline", row.is_baseline())?;
    entry.set_item("note", options.note)?;
    entry.set_item("listed", options.listed)?;
    Ok(entry)
}

/// Name of a variant, the slack to request (None for its default), and its figures.
type Planned<'py> = (String, Option<Bound<'py, PyAny>>, Bound<'py, PyDict>);

/// Choose the variant that meets a request best. No cells are allocated.
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
///     Name of the variant, slack to request or None, and figures as `plan` returns them.
#[pyfunction]
#[pyo3(signature = (prefer, /, **given))]
pub fn choose<'py>(
    py: Python<'py>,
    prefer: Option<&str>,
    given: Option<&Bound<'py, PyDict>>,
) -> PyResult<Planned<'py>> {
    let (prefer, (window, request)) = (preference(prefer)?, Keywords::of(py, given).free_request()?);
    let choice = detached(py, || family::choose(window, &request, prefer))?.map_err(raise)?;
    planned(py, window, &choice)
}

/// Plan every listed variant for a request, as `choose` describes it. No cells are allocated.
///
/// Returns
/// -------
/// tuple
///     Name of the best variant; a list of what `choose` returns, for each variant that can meet the request; and a
///     dict from the names of the others to the reasons why they cannot.
#[pyfunction]
#[pyo3(signature = (prefer, /, **given))]
pub fn compare<'py>(
    py: Python<'py>,
    prefer: Option<&str>,
    given: Option<&Bound<'py, PyDict>>,
) -> PyResult<(String, Vec<Planned<'py>>, Bound<'py, PyDict>)> {
    let (prefer, (window, request)) = (preference(prefer)?, Keywords::of(py, given).free_request()?);
    let comparison = detached(py, || family::compare(window, &request, prefer))?.map_err(raise)?;
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
        Some(other) => {
            // Text that is not valid Unicode, which NumPy makes, enters no message as it is.
            let other = String::from_utf8_lossy(other.as_bytes());
            Err(PyValueError::new_err(format!("prefer must be 'speed', 'memory' or 'exact', got '{other}'")))
        }
    }
}

fn planned<'py>(py: Python<'py>, window: Window, choice: &Choice) -> PyResult<Planned<'py>> {
    let slack = choice.slack.map(|slack| match window {
        Window::Count { .. } => slack.into_pyobject(py).map(Bound::into_any).map_err(PyErr::from),
        Window::Time { .. } => format!("{slack} ns").into_pyobject(py).map(Bound::into_any).map_err(PyErr::from),
    });
    Ok((choice.variant.name(), slack.transpose()?, figures(py, &*choice.shape, window)?))
}
