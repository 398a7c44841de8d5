"""The expected number of different keys among j successive insertions: D(j) of paper 5, section 2.5."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lately._core import hash_keys, read_insertions
from lately.priors import _checks

# Points of the table to an octave. Between them eq. 18 is off by less than 1e-4 of D: an eighth of the squared step in
# ln j, times the curvature of ln D over ln j, which is a quarter at most.
_STEPS = 16
# D is tabulated up to 2**63 insertions, which no stream has.
_OCTAVES = 63
# A key of which this many insertions are expected has come: to 1e-27. All later ones add nothing.
_ALL = 64
# Probabilities closer than this are taken together, at their mean: an error of second order, below 1e-6.
_ALIKE = 1e-3
# Stretches of a sample stream, to a length: their mean is as good as it gets.
_STRETCHES = 64


class DistinctCurve:
    """Curve of the expected number of different keys among successive insertions.

    Known at some points, and between them by eq. 18 of paper 5: straight lines of ln D over ln j. A few points per
    decade are enough.

    Parameters
    ----------
    insertions : array-like of float, shape (n,)
        Numbers of insertions j, increasing, 1 or more.
    distinct : array-like of float, shape (n,)
        D(j) of each: positive, not decreasing, at most j.

    Raises
    ------
    ValueError
        If the points are no such curve; the message gives the first that is wrong.

    Notes
    -----
    One insertion is always one key, and none is none. Beyond the last point the line of the last two
    goes on, with a slope between 0 and 1.

    Examples
    --------
    >>> curve = lately.DistinctCurve([100, 10_000], [80, 2_000])
    >>> curve([0, 1, 1_000, 10_000]).round()
    array([0.e+00, 1.e+00, 4.e+02, 2.e+03])
    """

    def __init__(self, insertions: ArrayLike, distinct: ArrayLike) -> None:
        j, d = np.atleast_1d(read_insertions(insertions)), np.atleast_1d(np.asarray(distinct, np.float64))
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
        """Compute the curve of independent keys: eq. 15, tabulated.

        Parameters
        ----------
        probability : array-like of float, shape (n,)
            p of each key; they sum to at most 1.
        keys : array-like of float, shape (n,), default 1
            How many keys have it.

        Returns
        -------
        DistinctCurve
            The rest to 1 is taken for keys that never repeat.

        Raises
        ------
        ValueError
            If a probability lies outside [0, 1], or all together exceed 1.

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
        p, many = _alike(p[p > 0], many[p > 0])
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
            Successive insertions, 1 or more, best at least as many as the longest window. See `lately.hash_keys`.

        Returns
        -------
        DistinctCurve
            At two lengths to an octave, each the mean over up to 64 stretches of the stream. The last point is the
            whole sample, one stretch.

        Raises
        ------
        TypeError, ValueError
            As `lately.hash_keys`, or if there is no key.

        Examples
        --------
        >>> curve = lately.DistinctCurve.from_stream(["a", "b", "c"] * 100)
        >>> curve([1, 2, 300])
        array([1., 2., 3.])
        """
        hashes = hash_keys(keys)
        n = len(hashes)
        if not n:
            raise ValueError("keys must hold one insertion or more")
        lengths = np.unique(np.append((2.0 ** (np.arange(2 * np.log2(n)) / 2)).round(), n)).astype(np.int64)
        # The place of the last insertion of the same key. Where that lies before a stretch, the key is new to it.
        order = np.argsort(hashes, kind="stable")
        again = hashes[order[1:]] == hashes[order[:-1]]
        before = np.full(n, -1)
        before[order[1:][again]] = order[:-1][again]
        means = []
        for length in lengths.tolist():
            starts = np.unique(np.linspace(0, n - length, _STRETCHES).astype(np.int64))
            means.append(np.mean([np.count_nonzero(before[start : start + length] < start) for start in starts]))
        return cls(lengths, np.maximum.accumulate(means))

    def __call__(self, insertions: ArrayLike) -> NDArray[np.float64]:
        """Return D(j).

        Parameters
        ----------
        insertions : float or array-like of float
            Any shape; 0 or more.

        Returns
        -------
        ndarray of float64, of the same shape
        """
        j = read_insertions(insertions)
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
        """Return both ends of the curve."""
        j, d = np.exp(self._ln_j[-1]), np.exp(self._ln_d[-1])
        return f"DistinctCurve({len(self._ln_j)} points to D({j:.4g}) = {d:.4g})"


def _alike(p: NDArray[np.float64], many: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Merge probabilities that are alike into their mean, and count the keys that have it."""
    if not p.size:
        return p, many
    _, group = np.unique((np.log(p) / _ALIKE).astype(np.int64), return_inverse=True)
    together = np.bincount(group, many).astype(np.float64)
    return np.minimum(np.bincount(group, p * many) / together, 1.0), together
