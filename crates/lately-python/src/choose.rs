//! Lists the variants of families and chooses among them, by the [core's rule](lately::family::choose).

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::build::{Given, figures};
use super::calls::detached;
use crate::errors::raise;
use lately::clock::Window;
use lately::family::{self, Choice, VARIANTS, Variant, Windows};

/// List the variants of all families: those that the planner compares, in its order, then the others.
///
/// Returns
/// -------
/// list of dict
///     The keys are `name`, `kind` (path of the class within the package), `windows`, `promise`, `baseline`, `note` and
///     `listed`.
#[pyfunction]
pub fn variants(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    VARIANTS.iter().map(|variant| description(py, variant)).collect()
}

fn description<'py>(py: Python<'py>, variant: &Variant) -> PyResult<Bound<'py, PyDict>> {
    let (row, options, entry) = (variant.family, variant.options, PyDict::new(py));
    let windows = match row.windows {
        Windows::Time => "unknown rate",
        Windows::Insertions => "insertions",
        Windows::Endless => "none",
        Windows::Either if options.grow.is_some() => "time",
        Windows::Any | Windows::Either | Windows::Stored => "any",
    };
    entry.set_item("name", variant.name())?;
    entry.set_item("kind", row.class)?;
    entry.set_item("windows", windows)?;
    entry.set_item("promise", row.promises)?;
    entry.set_item("baseline", row.is_baseline())?;
    entry.set_item("note", options.note)?;
    entry.set_item("listed", options.listed)?;
    Ok(entry)
}

/// Name of a variant, the slack to request (None for its default), and its figures.
type Planned<'py> = (String, Option<Bound<'py, PyAny>>, Bound<'py, PyDict>);

/// Plan every listed variant for a request, and choose among them. No cells are allocated.
///
/// Parameters
/// ----------
/// **given
///     `window`, `fpr`, `nbytes`, `slack`, `capacity`, `lateness`, `distinct` and `prefer`, as for `lately.Filter`.
///
/// Returns
/// -------
/// tuple
///     Name of the best variant; for each variant that can meet the request its name, the slack to request of it (None
///     for its own default) and its figures; and a dict from the names of the others to the reasons why they cannot.
#[pyfunction]
#[pyo3(signature = (**given))]
pub fn compare<'py>(
    py: Python<'py>,
    given: Option<&Bound<'py, PyDict>>,
) -> PyResult<(String, Vec<Planned<'py>>, Bound<'py, PyDict>)> {
    let request = Given::of(py, given).request(None)?;
    let comparison = detached(py, || family::compare(&request))?.map_err(raise)?;
    let (mut able, rejected) = (Vec::new(), PyDict::new(py));
    for (variant, choice) in comparison.rows {
        match choice {
            Ok(choice) => able.push(planned(py, request.window, &choice)?),
            Err(error) => rejected.set_item(variant.name(), error.to_string())?,
        }
    }
    Ok((comparison.best.variant.name(), able, rejected))
}

/// Returns a row of the comparison.
fn planned<'py>(py: Python<'py>, window: Window, choice: &Choice) -> PyResult<Planned<'py>> {
    let slack = choice.slack.map(|slack| match window {
        Window::Count { .. } => slack.into_pyobject(py).map(Bound::into_any).map_err(PyErr::from),
        Window::Time { .. } => format!("{slack} ns").into_pyobject(py).map(Bound::into_any).map_err(PyErr::from),
    });
    Ok((choice.variant.name(), slack.transpose()?, figures(py, &*choice.shape, window)?))
}
