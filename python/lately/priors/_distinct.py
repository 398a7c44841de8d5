"""The expected number of different keys among j successive insertions: D(j) of paper 5, section 2.5."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lately._core import hash_keys
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
    """Expected number of different keys among j successive insertions, D(j), as a curve through points.

    Between the points the curve is eq. 18 of paper 5: straight lines of ln D over ln j. A few points per decade are
    enough.

    Parameters
    ----------
    insertions : array-like of float, shape (n,)
        Numbers of insertions j, increasing, 1 or more.
    distinct : array-like of float, shape (n,)
        D(j) at each of them: positive, not decreasing, at most j.

    Raises
    ------
    ValueError
        If the points are not such a curve; the message gives the first that is wrong.

    Notes
    -----
    D(0) is 0 and D(1) is 1. Beyond the last point the curve continues the line through the last two, with a slope
    between 0 and 1.

    Examples
    --------
    >>> curve = lately.DistinctCurve([100, 10_000], [80, 2_000])
    >>> curve([0, 1, 1_000, 10_000]).round()
    array([0.e+00, 1.e+00, 4.e+02, 2.e+03])
    """

    def __init__(self, insertions: ArrayLike, distinct: ArrayLike) -> None:
        j, d = np.atleast_1d(_checks.insertions(insertions)), np.atleast_1d(np.asarray(distinct, np.float64))
        if j.ndim != 1 or j.shape != d.shape or not j.size:
            raise ValueError(f"insertions and distinct must be points of a curve, got shapes {j.shape} and {d.shape}")
        if not (j[0] >= 1 and np.isfinite(j[-1]) and np.all(np.diff(j) > 0)):
            raise ValueError("insertions must be finite, increasing and 1 or more")
        wrong = ~((d > 0) & (d <= j) & (np.diff(d, prepend=0) >= 0))
        if wrong.any():
            place = int(wrong.argmax())
            raise ValueError(
                f"distinct[{place}] must be positive, not decreasing and at most insertions, got {d[place]}"
            )
        if j[0] > 1:
            j, d = np.concatenate([[1], j]), np.concatenate([[1], np.maximum(d, 1)])
        self._ln_j, self._ln_d = np.log(j), np.log(d)

    @classmethod
    def of_probabilities(cls, probability: ArrayLike, keys: ArrayLike = 1.0) -> Self:
        """Compute the curve of independent keys: a table of eq. 15 of paper 5.

        Parameters
        ----------
        probability : array-like of float, shape (n,)
            Chance p that the next insertion is this key. The sum is at most 1; what it lacks belongs to keys that never
            repeat.
        keys : array-like of float, shape (n,), default 1
            Number of keys that have each p.

        Returns
        -------
        DistinctCurve

        Raises
        ------
        ValueError
            If a probability lies outside [0, 1], or their sum exceeds 1.

        Examples
        --------
        >>> curve = lately.DistinctCurve.of_probabilities([0.5, 0.25, 0.25])
        >>> curve([1, 2, 100]).round(3)
        array([1.   , 1.625, 3.   ])
        """
        p = _checks.probabilities(probability, "probability")
        many = np.broadcast_to(np.asarray(keys, np.float64), p.shape)
        total = float(p @ many)
        if total > 1 + _checks.ROUNDING:
            raise ValueError(f"probability must sum to 1 at most, got {total}")
        p, many = _merged(p[p > 0], many[p > 0])
        rest = max(0.0, 1 - total)
        octaves = _OCTAVES if rest > _checks.ROUNDING else min(_OCTAVES, np.ceil(np.log2(_ALL) - np.log2(p.min())))
        j = 2.0 ** (np.arange(octaves * _STEPS + 1) / _STEPS)
        # 1 - (1 - p)^j without cancellation; a p of 1 gives -inf, and 1 from the first insertion on.
        with np.errstate(divide="ignore"):
            survival = np.log1p(-p)
        repeating = np.array([-(many @ np.expm1(np.maximum(length * survival, -_ALL))) for length in j])
        d = np.minimum(repeating + rest * j, j)
        return cls(j, np.maximum.accumulate(d))

    @classmethod
    def from_stream(cls, keys: Any) -> Self:
        """Measure the curve from a sample of the stream.

        Parameters
        ----------
        keys : array-like, Series, column or frame
            Successive insertions, 1 or more, at best as many as the longest window. See `lately.hash_keys`.

        Returns
        -------
        DistinctCurve
            A curve through two points per octave. Each is the mean of up to 64 sections of the stream; the last point
            is the whole sample.

        Raises
        ------
        TypeError, ValueError
            If there is no key, or a key has no canonical form.

        Examples
        --------
        >>> curve = lately.DistinctCurve.from_stream(["a", "b", "c"] * 100)
        >>> curve([1, 2, 300])
        array([1., 2., 3.])
        """
        hashes = hash_keys(keys)
        n = len(hashes)
        if not n:
            raise ValueError("keys must have one insertion or more, got none")
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
        return cls(lengths, np.maximum.accumulate(means))

    def __call__(self, insertions: ArrayLike) -> NDArray[np.float64]:
        """Return D(j) for numbers of insertions j.

        Parameters
        ----------
        insertions : float or array-like of float
            j, of any shape; 0 or more.

        Returns
        -------
        ndarray of float64, of the same shape
            Expected numbers of different keys.

        Raises
        ------
        ValueError
            If a number is negative or NaN.
        """
        j = _checks.insertions(insertions)
        with np.errstate(divide="ignore"):
            ln = np.log(j)
        ln_d = np.interp(ln, self._ln_j, self._ln_d)
        if len(self._ln_j) > 1:
            run, rise = self._ln_j[-1] - self._ln_j[-2], self._ln_d[-1] - self._ln_d[-2]
            ln_d += min(rise / run, 1.0) * np.maximum(ln - self._ln_j[-1], 0)
        return np.minimum(np.exp(ln_d), j)

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same points."""
        if not isinstance(other, DistinctCurve):
            return NotImplemented
        return np.array_equal(self._ln_j, other._ln_j) and np.array_equal(self._ln_d, other._ln_d)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Return the number of points, and the last one."""
        j, d = np.exp(self._ln_j[-1]), np.exp(self._ln_d[-1])
        return f"DistinctCurve({len(self._ln_j)} points to D({j:.4g}) = {d:.4g})"


def _merged(p: NDArray[np.float64], many: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Merge almost equal probabilities into their mean; return the means, and the number of keys of each."""
    if not p.size:
        return p, many
    _, group = np.unique((np.log(p) / _CLOSE).astype(np.int64), return_inverse=True)
    together = np.bincount(group, many).astype(np.float64)
    return np.minimum(np.bincount(group, p * many) / together, 1.0), together
