"""Pictures of probabilities and of the cost of mistakes, drawn by matplotlib.

Each function draws into `axes`, or into a new figure, and returns the Axes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from lately._core import Filter
from lately._styles import INK, line_style
from lately._tune import Tuned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["calibration", "penalty", "posterior"]

# Numbers of bins: of posteriors, and of ages.
_PROBABILITIES, _AGES = 20, 200
# Families that a picture of penalties shows: more lines cannot be distinguished.
_LINES = 6


def calibration(posteriors: ArrayLike, truth: ArrayLike, *, axes: Axes | None = None) -> Axes:
    """Draw how often keys were in the window, over the probability that `Filter.posterior` computed.

    Parameters
    ----------
    posteriors : array-like of float, shape (n,)
        Results of `Filter.posterior`, in [0, 1].
    truth : array-like of bool, shape (n,)
        Whether the key was inserted within the window.
    axes : matplotlib Axes, optional
        Where to draw. The default is a new figure.

    Returns
    -------
    matplotlib Axes
        For each twentieth of [0, 1] that has posteriors, the share of true keys over the mean posterior. Points of
        correct probabilities lie on the diagonal. Bars are two standard deviations of correct probabilities to either
        side. The title has the mean distance from the diagonal, over the undecided keys: those of the points from 0.05
        to 0.95. Most keys of a stream are decided, and would hide how far the others are off.

    Raises
    ------
    ValueError
        If there is no posterior, one lies outside [0, 1], or `truth` has another length.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> axes = lately.plot.calibration([0.1, 0.1, 0.8, 0.8], [False, False, True, True])
    >>> axes.get_title()
    'calibration: off by 0.15 where undecided'
    """
    posteriors, truth = np.asarray(posteriors, np.float64), np.asarray(truth, bool)
    if posteriors.ndim != 1 or posteriors.shape != truth.shape or not posteriors.size:
        raise ValueError(f"posteriors and truth must be one per key, got shapes {posteriors.shape} and {truth.shape}")
    if not ((posteriors >= 0) & (posteriors <= 1)).all():
        raise ValueError(f"posteriors must lie in [0, 1], got {posteriors.min()} to {posteriors.max()}")
    bins = np.minimum((posteriors * _PROBABILITIES).astype(np.int64), _PROBABILITIES - 1)
    _, bins, keys = np.unique(bins, return_inverse=True, return_counts=True)
    claimed, happened = np.bincount(bins, posteriors) / keys, np.bincount(bins, truth) / keys
    # Each key is in the window with its own probability.
    deviation = np.sqrt(np.bincount(bins, posteriors * (1 - posteriors))) / keys
    drawn = _axes(axes)
    drawn.plot([0, 1], [0, 1], color=INK, lw=0.8)
    drawn.errorbar(claimed, happened, 2 * deviation, fmt="o", ms=4, capsize=2)
    undecided = np.where((claimed > 0.05) & (claimed < 0.95), keys, 0)
    off = f"off by {np.average(np.abs(happened - claimed), weights=undecided):.2g} where" if undecided.any() else "none"
    drawn.set(xlabel="posterior", ylabel="share inserted within the window", title=f"calibration: {off} undecided")
    drawn.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
    return drawn


def penalty(tuned: Tuned | Any, *, axes: Axes | None = None) -> Axes:
    """Draw the cost of mistakes over the bits per key that a filter takes.

    Parameters
    ----------
    tuned : Tuned, or table
        Result of `lately.tune`, at best for several `nbytes`; or a table, such as a DataFrame, with the columns
        "filter", "bits per key" and "penalty" of its `to_pandas`.
    axes
        As in `calibration`.

    Returns
    -------
    matplotlib Axes
        A point for each filter that ran, and for each family a line: the least penalty up to each number of bits. Of
        more than six families only the six of the least penalties are drawn. For a `Tuned`, a dashed line is the
        penalty of the prior alone. The legend is beside the points: a figure of yours needs ``layout="constrained"``.

    Raises
    ------
    TypeError
        If `tuned` is something else.
    ImportError
        As in `calibration`.

    Examples
    --------
    >>> tuned = lately.tune([1, 2, 3] * 100, 50, [128, 256], 1, 2, families=["timing", "guarded-epoch-transposed"])
    >>> lately.plot.penalty(tuned).get_ylabel()
    'total penalty'
    """
    if isinstance(tuned, Tuned):
        points = [(trial.name, trial.bits_per_key, trial.penalty) for trial in tuned.curve]
    else:
        try:
            points = list(zip(tuned["filter"], tuned["bits per key"], tuned["penalty"], strict=True))
        except (TypeError, KeyError, IndexError):
            raise TypeError(
                "tuned must be a result of lately.tune, or a table with the columns filter, bits per key and penalty; "
                f"got {type(tuned).__name__}"
            ) from None
    drawn = _axes(axes)
    by_cost = dict.fromkeys(name for name, _, _ in sorted(points, key=lambda point: point[2]))
    shown = list(by_cost)[:_LINES]
    for name in dict.fromkeys(name for name, _, _ in points if name in shown):
        bits, cost = np.array(sorted(point[1:] for point in points if point[0] == name)).T
        style = line_style(name)
        drawn.plot(bits, cost, **style | {"ls": "", "marker": style.get("marker", "o")})
        drawn.step(bits, np.minimum.accumulate(cost), where="post", label=name, **style | {"marker": ""})
    if isinstance(tuned, Tuned):
        drawn.axhline(tuned.prior_penalty, color=INK, ls="--", lw=0.8, label="the prior alone")
    drawn.set(xlabel="bits per key of the window", ylabel="total penalty")
    drawn.set_ylim(bottom=0)
    drawn.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    return drawn


def posterior(filter: Filter, key: Any, prior: Any, *, at: Any = None, axes: Axes | None = None) -> Axes:
    """Draw the probability of each age of a key, before and after the cells of the filter were read.

    Parameters
    ----------
    filter : Filter
        A filter with a window.
    key : hashable
        One key.
    prior : float or object
        As for `Filter.posterior`.
    at : time, optional
        The end of the window, for a window of time. The default is now.
    axes
        As in `calibration`.

    Returns
    -------
    matplotlib Axes
        The density of the posterior over age as an area, and that of the prior as a line. The title has the probability
        that the key was inserted within the window, which ends at the dotted line.

    Raises
    ------
    ValueError, TypeError
        As for `Filter.age_probability`, and if the filter has no window.
    ImportError
        As in `calibration`.

    Examples
    --------
    >>> f = lately.GuardedEpochBloomFilter(window=1000, fpr=0.01)
    >>> f.insert(range(5000))
    >>> lately.plot.posterior(f, 4500, prior=1e-4).get_title()
    'inserted within the window: 92.4 %'
    """
    if filter.window is None:
        raise ValueError(f"filter must have a window, got a {type(filter).__name__}")
    window = float(filter.window)
    timed = not isinstance(filter.window, int)
    within = float(filter.posterior([key], prior, at=at)[0])
    edges = np.linspace(0, 2 * window, _AGES + 1)
    if not timed:
        # Ages are whole numbers, so narrower bins would be empty.
        edges = np.unique(edges.round())
    ages = filter.age_probability([key], prior, edges, at=at)[0]
    chance = getattr(prior, "rate" if timed else "probability", None)
    p = float(np.ravel(prior if chance is None else chance([key]))[0])
    with np.errstate(divide="ignore"):
        before = -np.diff(np.exp(edges * (-p if timed else np.log1p(-p))))
    drawn = _axes(axes)
    unit = "seconds" if timed else "insertions"
    drawn.stairs(ages / np.diff(edges), edges, fill=True, alpha=0.6, label="posterior")
    drawn.stairs(before / np.diff(edges), edges, color=INK, lw=0.8, label="prior", baseline=None)
    drawn.axvline(window, color=INK, ls=":")
    drawn.set(
        xlim=(0, edges[-1]),
        xlabel=f"age: {unit} since last inserted",
        ylabel=f"probability per {unit.removesuffix('s')}",
        title=f"inserted within the window: {within:.1%}".replace("%", " %"),
    )
    drawn.set_ylim(bottom=0)
    drawn.locator_params(axis="x", nbins=4)
    drawn.ticklabel_format(axis="y", scilimits=(0, 0))
    drawn.legend(frameon=False)
    return drawn


def _axes(axes: Axes | None) -> Axes:
    """Return the axes, or those of a new figure."""
    if axes is not None:
        return axes
    try:
        pyplot = import_module("matplotlib.pyplot")
    except ImportError as error:
        raise ImportError("lately.plot draws with matplotlib: pip install matplotlib") from error
    drawn: Axes = pyplot.subplots(layout="constrained")[1]
    return drawn
