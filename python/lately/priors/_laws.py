"""Streams of independent keys whose law is known."""

from __future__ import annotations

from functools import cached_property
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lately.priors import _checks
from lately.priors._distinct import DistinctCurve, of_probabilities
from lately.priors._rated import Rated

# Ranks that are summed exactly. An integral stands for the others. It begins half-way between two ranks; at rank x its
# relative error is s (s + 1) / (24 x^2), 5e-9 for the exponent 1.
_EXACT_RANKS = 4096
# Nodes of the integral in ln x, over at most about 30 e-folds. The curve is as smooth as 1 - exp(-exp(x)).
_NODES = 256


class Uniform(Rated):
    """Prior of a stream in which all keys of a universe are equally likely.

    Parameters
    ----------
    universe : int
        Number of keys, 1 or more.
    rate : float, optional
        Insertions per second of the whole stream. Windows of time need it.

    Raises
    ------
    ValueError
        If a parameter is out of range; the message names it.
    TypeError
        If `universe` is not a whole number.

    Notes
    -----
    Every key counts as one of the universe.

    Examples
    --------
    >>> prior = lately.Uniform(65_536)
    >>> prior.probability(["any key"]) * 65_536
    1.0
    >>> prior.distinct([1, 65_536]).round()
    array([1.0000e+00, 4.1427e+04])
    """

    def __init__(self, universe: SupportsIndex, *, rate: float | None = None) -> None:
        self._universe = _checks.universe(universe)
        super().__init__(rate, self._universe)

    def probability(self, keys: Any = None) -> float:
        """Return the chance that the next insertion is this key; it is equal for all keys.

        Parameters
        ----------
        keys : optional
            Ignored.

        Returns
        -------
        float
            1 / universe.
        """
        return 1 / self._universe

    def distinct(self, insertions: ArrayLike) -> NDArray[np.float64]:
        """Return the expected number of different keys among j insertions, D(j): eq. 16 of paper 5, which is exact.

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
        if self._universe == 1:
            return np.minimum(j, 1.0)
        missing = self._universe * np.expm1(j * np.log1p(-1 / self._universe))
        return np.asarray(np.minimum(-missing, j))


class Zipf(Rated):
    """Prior of a stream whose keys are the ranks 1, 2, 3 ..., where rank x comes in proportion to 1 / x**exponent.

    Parameters
    ----------
    universe : int
        Number of ranks, 1 or more.
    exponent : float, default 1
        0 (all ranks are equally likely) or more.
    rate
        As in `Uniform`.

    Raises
    ------
    ValueError
        If a parameter is out of range; the message names it.
    TypeError
        If `universe` is not a whole number.

    Notes
    -----
    D(j) is a table of eq. 15 of paper 5 with 16 points per octave, and eq. 18 between them; its relative error is 1e-4.
    (Eq. 17 of the paper, for exponent 1, is 20 % too large at one insertion and 80 % too small at sixteen times the
    universe.)

    Examples
    --------
    >>> prior = lately.Zipf(65_536)
    >>> prior.probability([1, 2, 65_537]).round(4)
    array([0.0857, 0.0429, 0.    ])
    >>> prior.distinct([1, 1_000_000]).round()
    array([1.0000e+00, 5.9283e+04])
    """

    def __init__(self, universe: SupportsIndex, exponent: float = 1.0, *, rate: float | None = None) -> None:
        self._universe = _checks.universe(universe)
        super().__init__(rate, self._universe, float(exponent))
        if not 0 <= exponent < np.inf:
            raise ValueError(f"exponent must be 0 or more, and finite, got {exponent}")
        self._exponent = float(exponent)

    def probability(self, keys: ArrayLike) -> NDArray[np.float64]:
        """Return the chance that the next insertion is this key.

        Parameters
        ----------
        keys : array-like of int or float, shape (n,)
            Ranks, from 1 to the universe.

        Returns
        -------
        ndarray of float64, shape (n,)
            The chances; 0 for a number that is not a rank.

        Raises
        ------
        TypeError
            If the keys are not numbers.
        """
        ranks = np.asarray(keys)
        if ranks.dtype.kind not in "iuf":
            raise TypeError(
                f"keys of a Zipf prior must be ranks, whole numbers from 1 on, got an array of {ranks.dtype}"
            )
        # Compare before the ranks become floats, which are not exact beyond 2**53.
        is_rank = (ranks >= 1) & (ranks <= self._universe) & (ranks == np.floor(ranks))
        return np.where(is_rank, np.where(is_rank, ranks, 1) ** -self._exponent / self._total, 0.0)

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
            As in `Uniform.distinct`.
        """
        return self._curve(insertions)

    @cached_property
    def _ranks(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Ranks to sum over, and their weights: first single ranks, then the nodes of an integral."""
        first = np.arange(1, min(self._universe, _EXACT_RANKS) + 1, dtype=np.float64)
        if self._universe <= _EXACT_RANKS:
            return first, np.ones_like(first)
        nodes, weights = np.polynomial.legendre.leggauss(_NODES)
        low, high = np.log(_EXACT_RANKS + 0.5), np.log(self._universe + 0.5)
        tail = np.exp(low + (high - low) * (nodes + 1) / 2)
        many = tail * weights * (high - low) / 2
        return np.concatenate([first, tail]), np.concatenate([np.ones_like(first), many])

    @cached_property
    def _total(self) -> float:
        """Sum of 1 / x**exponent over all ranks: for exponent 1 the harmonic number of the universe."""
        ranks, many = self._ranks
        return float(ranks**-self._exponent @ many)

    @cached_property
    def _curve(self) -> DistinctCurve:
        ranks, many = self._ranks
        return of_probabilities(ranks**-self._exponent / self._total, many)
