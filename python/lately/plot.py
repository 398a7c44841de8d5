"""Pictures of probabilities and of what mistakes cost, by matplotlib: the extra `plot`.

Each call draws into `axes`, or into a new figure, and returns the Axes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from lately._core import Filter
from lately._look import INK, look
from lately._tune import Tuned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["calibration", "penalty", "posterior"]

# Bins of posteriors, and of ages.
_PROBABILITIES, _AGES = 20, 200


def calibration(posteriors: ArrayLike, truth: ArrayLike, *, axes: Axes | None = None) -> Axes:
    """Draw how often keys were there, over how probable that was said to be.

    Parameters
    ----------
    posteriors : array-like of float, shape (n,)
        What `Filter.posterior` gave, in [0, 1].
    truth : array-like of bool, shape (n,)
        Whether the key was inserted within the window.
    axes : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes
        In each twentieth of [0, 1] that holds a posterior, the share of true keys over the mean posterior. Points lie
        on the diagonal where probabilities are right; bars span two standard deviations to either side, were they so.
        The title has the mean distance of all keys from the diagonal, each counted in its bin.

    Raises
    ------
    ValueError
        If there is no posterior, one lies outside [0, 1], or `truth` does not fit.
    ImportError
        If matplotlib is missing.

    Examples
    --------
    >>> axes = lately.plot.calibration([0.1, 0.1, 0.8, 0.8], [False, False, True, True])
    >>> axes.get_title()
    'calibration: off by 0.15'
    """
    posteriors, truth = np.asarray(posteriors, np.float64), np.asarray(truth, bool)
    if posteriors.ndim != 1 or posteriors.shape != truth.shape or not posteriors.size:
        raise ValueError(f"posteriors and truth must be one per key, got shapes {posteriors.shape} and {truth.shape}")
    if not ((posteriors >= 0) & (posteriors <= 1)).all():
        raise ValueError("posteriors must lie in [0, 1]")
    bins = np.minimum((posteriors * _PROBABILITIES).astype(np.int64), _PROBABILITIES - 1)
    _, bins, keys = np.unique(bins, return_inverse=True, return_counts=True)
    said, happened = np.bincount(bins, posteriors) / keys, np.bincount(bins, truth) / keys
    # Each key is there with its own probability.
    deviation = np.sqrt(np.bincount(bins, posteriors * (1 - posteriors))) / keys
    drawn = _axes(axes)
    drawn.plot([0, 1], [0, 1], color=INK, lw=0.8)
    drawn.errorbar(said, happened, 2 * deviation, fmt="o", ms=4, capsize=2)
    off = float(np.average(np.abs(happened - said), weights=keys))
    drawn.set(xlabel="posterior", ylabel="share inserted within the window", title=f"calibration: off by {off:.2g}")
    drawn.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
    return drawn


def penalty(tuned: Tuned | Any, *, axes: Axes | None = None) -> Axes:
    """Draw what mistakes cost, by the bits per key that a filter takes.

    Parameters
    ----------
    tuned : Tuned, or table
        What `lately.tune` gave, best for several `nbytes`; or a table, such as a DataFrame, with the columns "filter",
        "bits per key" and "penalty" of its `to_pandas`.
    axes : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes
        A point for each filter that ran, and for each family the least penalty in at most as many bits. For a `Tuned`
        also, dashed, what the prior alone costs.

    Raises
    ------
    TypeError
        If `tuned` is neither.
    ImportError
        If matplotlib is missing.

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
                "tuned must be what lately.tune gave, or a table with the columns filter, bits per key and penalty"
            ) from None
    drawn = _axes(axes)
    for name in dict.fromkeys(name for name, _, _ in points):
        bits, cost = np.array(sorted(point[1:] for point in points if point[0] == name)).T
        style = look(name)
        drawn.plot(bits, cost, **style | {"ls": "", "marker": style.get("marker", "o")})
        drawn.step(bits, np.minimum.accumulate(cost), where="post", label=name, **style | {"marker": ""})
    if isinstance(tuned, Tuned):
        drawn.axhline(tuned.prior_penalty, color=INK, ls="--", lw=0.8, label="the prior alone")
    drawn.set(xlabel="bits per key of the window", ylabel="total penalty")
    drawn.set_ylim(bottom=0)
    drawn.legend(frameon=False, fontsize="small")
    return drawn


def posterior(filter: Filter, key: Any, prior: Any, *, at: Any = None, axes: Axes | None = None) -> Axes:
    """Draw how probable each age of one key is, before and after the filter was asked.

    Parameters
    ----------
    filter : Filter
    key : hashable
        One key.
    prior : float or object
        As for `Filter.posterior`.
    at : time, optional
        When to ask for, for a window of time. The default is now.
    axes : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes
        The density of the posterior over age, filled, and that of the prior as a line. The title has the probability
        that the key was inserted within the window, which ends at the dotted line.

    Raises
    ------
    ValueError, TypeError
        As `Filter.age_probability`, and if the filter has no window.
    ImportError
        If matplotlib is missing.

    Examples
    --------
    >>> f = lately.GuardedEpochBloomFilter(window=1000, fpr=0.01)
    >>> f.insert(range(5000))
    >>> lately.plot.posterior(f, 4500, prior=1e-4).get_title()
    'inserted within the window: 92.4 %'
    """
    if filter.window is None:
        raise ValueError("this filter has no window to draw")
    window = float(filter.window)
    timed = not isinstance(filter.window, int)
    within = float(filter.posterior([key], prior, at=at)[0])
    edges = np.linspace(0, 2 * window, _AGES + 1)
    if not timed:
        # Ages are whole: narrower bins would hold none.
        edges = np.unique(edges.round())
    ages = filter.age_probability([key], prior, edges, at=at)[0]
    ask = getattr(prior, "rate" if timed else "probability", None)
    p = float(np.ravel(prior if ask is None else ask([key]))[0])
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
    """The axes given, or those of a new figure."""
    if axes is not None:
        return axes
    try:
        pyplot = import_module("matplotlib.pyplot")
    except ImportError as error:
        raise ImportError("lately.plot draws with matplotlib: pip install matplotlib") from error
    drawn: Axes = pyplot.subplots(layout="constrained")[1]
    return drawn
