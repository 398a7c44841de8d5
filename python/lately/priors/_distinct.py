"""The expected number of different keys among j successive insertions: D(j) of paper 5, section 2.5."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lately.priors import _checks

# Points of the table per octave. Between them the error of eq. 18 is less than 1e-4 of D: an eighth of the squared step
# in ln j, times the curvature of ln D over ln j, which is at most a quarter.
_STEPS = 16
# The table ends at 2**63 insertions, more than any stream has.
_OCTAVES = 63
# A key with this many expected insertions has come, except with chance 1e-27. Later insertions add nothing to D.
_ALL = 64
# Probabilities that differ by less than this share are merged into their mean: an error of second order, below 1e-6.
_CLOSE = 1e-3
# Number of sections of a sample stream for each length. More of them overlap and make the mean no better.
_SECTIONS = 64


class DistinctCurve:
    """D(j) as a curve through points. Between them it is eq. 18 of paper 5: straight lines of ln D over ln j.

    D(0) is 0 and D(1) is 1. Beyond the last point the curve continues the line through the last two, with a slope
    between 0 and 1.
    """

    def __init__(self, insertions: NDArray[Any], distinct: NDArray[np.float64]) -> None:
        # Rounding may leave a point below the one before it.
        self._ln_j, self._ln_d = np.log(insertions), np.log(np.maximum.accumulate(distinct))

    def __call__(self, insertions: ArrayLike) -> NDArray[np.float64]:
        """Return D(j) for numbers of insertions; `ValueError` if one is negative or NaN."""
        j = _checks.insertions(insertions)
        with np.errstate(divide="ignore"):
            ln = np.log(j)
        ln_d = np.interp(ln, self._ln_j, self._ln_d)
        if len(self._ln_j) > 1:
            run, rise = self._ln_j[-1] - self._ln_j[-2], self._ln_d[-1] - self._ln_d[-2]
            ln_d += min(rise / run, 1.0) * np.maximum(ln - self._ln_j[-1], 0)
        return np.minimum(np.exp(ln_d), j)


def of_probabilities(p: NDArray[np.float64], many: NDArray[np.float64]) -> DistinctCurve:
    """Compute the curve of independent keys, `many` of each chance p: a table of eq. 15 of paper 5.

    What the chances lack in their sum belongs to keys that never repeat.
    """
    total = float(p @ many)
    p, many = _merged(p[p > 0], many[p > 0])
    rest = max(0.0, 1 - total)
    octaves = _OCTAVES if rest > _checks.ROUNDING else min(_OCTAVES, np.ceil(np.log2(_ALL) - np.log2(p.min())))
    j = 2.0 ** (np.arange(octaves * _STEPS + 1) / _STEPS)
    # 1 - (1 - p)^j without cancellation; a p of 1 gives -inf, and 1 from the first insertion on.
    with np.errstate(divide="ignore"):
        survival = np.log1p(-p)
    repeating = np.array([-(many @ np.expm1(np.maximum(length * survival, -_ALL))) for length in j])
    return DistinctCurve(j, np.minimum(repeating + rest * j, j))


def of_stream(hashes: NDArray[np.uint64]) -> DistinctCurve:
    """Measure the curve from successive insertions, 1 or more.

    It has two points per octave. Each is the mean of up to 64 sections of the stream; the last point is the whole
    sample.
    """
    n = len(hashes)
    lengths = np.unique(np.append((2.0 ** (np.arange(2 * np.log2(n)) / 2)).round(), n)).astype(np.int64)
    # The place of the previous insertion of the same key. If it lies before a section, the key is new in that.
    order = np.argsort(hashes, kind="stable")
    again = hashes[order[1:]] == hashes[order[:-1]]
    before = np.full(n, -1)
    before[order[1:][again]] = order[:-1][again]
    means = []
    for length in lengths.tolist():
        starts = np.unique(np.linspace(0, n - length, _SECTIONS).astype(np.int64))
        means.append(np.mean([np.count_nonzero(before[start : start + length] < start) for start in starts]))
    return DistinctCurve(lengths, np.array(means))


def _merged(p: NDArray[np.float64], many: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Merge almost equal probabilities into their mean; return the means, and the number of keys of each."""
    if not p.size:
        return p, many
    _, group = np.unique((np.log(p) / _CLOSE).astype(np.int64), return_inverse=True)
    together = np.bincount(group, many).astype(np.float64)
    return np.minimum(np.bincount(group, p * many) / together, 1.0), together
