"""The base of the priors that know how often keys come."""

from collections.abc import Callable
from typing import Any

import numpy as np


class Rated:
    """Base of a prior with a rate of its stream, in insertions per second, for windows of time."""

    probability: Callable[..., Any]

    def __init__(self, rate: float | None, *given: float) -> None:
        if rate is not None and not 0 < rate < np.inf:
            raise ValueError(f"rate must be a positive number of insertions per second, got {rate}")
        self._given = given
        self._rate = None if rate is None else float(rate)
        self._rate_text = "" if rate is None else f", rate={self._rate}"

    def rate(self, keys: Any = None) -> Any:
        """Return the insertions of each key per second: its chance, times the rate of the stream.

        Parameters
        ----------
        keys : array-like
            The keys, as for `probability`.

        Returns
        -------
        ndarray of float64, shape (n,), or float
            Insertions per second, or one number for all keys.

        Raises
        ------
        ValueError, TypeError
            If the prior was constructed without `rate`, or as for `probability`.
        """
        if self._rate is None:
            raise ValueError(
                "this prior has no rate: construct it with rate=, the insertions per second of the whole stream"
            )
        return self.probability(keys) * self._rate

    def __repr__(self) -> str:
        """Return the call that constructs it."""
        return f"{type(self).__name__}({', '.join(map(repr, self._given))}{self._rate_text})"
