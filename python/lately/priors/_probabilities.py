"""Streams in which the chance of each key is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lately._core import hash_keys
from lately.priors import _checks
from lately.priors._distinct import DistinctCurve, of_probabilities
from lately.priors._rated import Rated


class Probabilities(Rated):
    """Prior of known chances: an array, a table by key, or a function.

    Parameters
    ----------
    p : array-like, mapping, Series or callable
        For each key the chance, in [0, 1], that the next insertion is this key. An array has one chance for each key of
        a batch. A mapping, or a pandas Series by its index, has them by key; keys are compared as filters compare them,
        so 5, 5.0 and np.int8(5) are one key. A callable takes the keys of a batch and returns an array, or a number for
        all.
    distinct : callable, optional
        The distinct-count curve D: it takes numbers of insertions and returns the expected numbers of different keys
        among them. The default for a mapping or a Series follows from its chances. If their
        sum is less than 1, the rest belongs to keys with a chance of `default` each, or to keys that never repeat if
        `default` is 0. An array and a callable have no default.
    default : float, default 0
        The chance of a key that is not in the mapping or Series.
    rate
        As in `Uniform`.

    Raises
    ------
    ValueError
        If a chance is negative, above 1 or NaN, the sum of a table exceeds 1, two keys of it are equal, or `default` or
        `rate` is out of range.
    TypeError
        If a key of a table has no canonical form, `default` is given for an array or a callable, or `distinct` is not
        callable.

    Examples
    --------
    >>> prior = lately.Probabilities({"often": 0.5, "rarely": 0.01}, default=1e-6)
    >>> prior.probability(["often", "never heard of"])
    array([5.e-01, 1.e-06])
    """

    def __init__(
        self,
        p: Any,
        *,
        distinct: Callable[[NDArray[np.float64]], ArrayLike] | None = None,
        default: float = 0.0,
        rate: float | None = None,
    ) -> None:
        if distinct is not None and not callable(distinct):
            raise TypeError(f"distinct must be a callable, got {type(distinct).__name__}")
        if not 0 <= default <= 1:
            raise ValueError(f"default must lie in [0, 1], got {default}")
        super().__init__(rate)
        self._default, self._distinct = float(default), distinct
        # Of a table: sorted hashes with their chances. Otherwise no hashes, and the array or callable itself.
        self._hashes: NDArray[np.uint64] | None = None
        self._p = p
        if isinstance(p, Mapping) or (hasattr(p, "index") and hasattr(p, "to_numpy")):
            self._read_table(p)
        elif default:
            raise TypeError("default is for a mapping or a Series, which may lack a key: leave it out")
        elif not callable(p):
            self._p = _checks.probabilities(p, "p")

    def _read_table(self, table: Any) -> None:
        """Read a table, and sort its chances by the hash of their key."""
        named = isinstance(table, Mapping)
        keys, values = (list(table), list(table.values())) if named else (list(table.index), table.to_numpy())
        p, hashes = _checks.probabilities(values, "p"), hash_keys(keys)
        order = np.argsort(hashes)
        self._hashes, self._p = hashes[order], p[order]
        if np.any(self._hashes[1:] == self._hashes[:-1]):
            same = order[int(np.argmax(self._hashes[1:] == self._hashes[:-1]))]
            raise ValueError(f"p must have one chance per key, got two for {keys[same]!r}")
        if p.sum() > 1 + _checks.ROUNDING:
            raise ValueError(f"p must sum to 1 at most, got {p.sum()}")

    def probability(self, keys: Any) -> float | NDArray[np.float64]:
        """Return the chance that the next insertion is this key.

        Parameters
        ----------
        keys : array-like, Series, column or frame
            A batch of n keys. See `lately.hash_keys`.

        Returns
        -------
        ndarray of float64, shape (n,), or float
            The chances, or one for all keys. A prior that was constructed with an array returns that array.

        Raises
        ------
        ValueError
            If the callable returned a number outside [0, 1].
        TypeError
            If a key has no canonical form.
        """
        if self._hashes is not None:
            hashes = hash_keys(keys)
            if not len(self._hashes):
                return np.full(len(hashes), self._default)
            place = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
            return np.where(self._hashes[place] == hashes, self._p[place], self._default)
        if not callable(self._p):
            return np.asarray(self._p)
        given = np.asarray(self._p(keys), np.float64)
        checked = _checks.probabilities(np.atleast_1d(given), "p(keys)")
        return float(checked[0]) if given.ndim == 0 else checked

    def distinct(self, insertions: ArrayLike) -> NDArray[np.float64]:
        """Return the expected number of different keys among j insertions, D(j).

        Parameters
        ----------
        insertions
            As in `Uniform.distinct`.

        Returns
        -------
        ndarray of float64, of the same shape
            Expected numbers of different keys.

        Raises
        ------
        ValueError
            If a number is negative or NaN, or the prior was constructed with neither a table nor `distinct`.
        """
        if self._distinct is None:
            self._distinct = self._curve()
        return np.asarray(self._distinct(_checks.insertions(insertions)), np.float64)

    def _curve(self) -> DistinctCurve:
        """Compute eq. 15 of paper 5 for the keys of the table and those of the default chance."""
        if self._hashes is None:
            raise ValueError("this prior has chances, but no number of different keys: construct it with distinct=")
        p, many = np.append(self._p, self._default), np.ones(len(self._p) + 1)
        many[-1] = max(0.0, 1 - self._p.sum()) / self._default if self._default else 0.0
        return of_probabilities(p, many)

    def __repr__(self) -> str:
        """Return the number of keys or chances, and the other parameters."""
        if self._hashes is not None:
            given = f"{len(self._p)} keys, default={self._default}"
        else:
            given = repr(self._p) if callable(self._p) else f"{len(self._p)} chances"
        return f"Probabilities({given}{self._rate_text})"
