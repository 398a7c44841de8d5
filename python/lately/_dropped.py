"""How many records of a sample a slack may drop: those whose key left the window a short while ago."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately._core import hash_keys, read_moments, read_span

_NEW = np.iinfo(np.int64).max
"""Age of a key that has not come before."""


class Ages:
    """The age of the key of each record of a sample, when the record comes.

    Parameters
    ----------
    sample : array-like, Series, column or frame
        Successive keys.
    at : array-like of times, optional
        When each came.
    timed : bool
        Whether ages are spans of time, and not numbers of records.

    Raises
    ------
    TypeError
        If `at` is missing for a window of time, or given for another.
    ValueError
        If there are not as many times as keys.
    """

    def __init__(self, sample: Any, at: Any = None, *, timed: bool) -> None:
        if timed and at is None:
            raise TypeError("sample needs at for a window of time: when each key came")
        if not timed and at is not None:
            raise TypeError("at is for windows of time; this one counts insertions")
        hashes = hash_keys(sample if hasattr(sample, "__len__") else list(sample))
        moments = np.asarray(read_moments(at)) if timed else np.arange(len(hashes))
        if len(moments) != len(hashes):
            raise ValueError(f"at must hold one time for each key of sample, {len(hashes)}, got {len(moments)}")
        order = np.argsort(hashes, kind="stable")
        repeats = hashes[order[1:]] == hashes[order[:-1]]
        self._ages = np.full(len(hashes), _NEW)
        # A key that comes late is as old as its latest occurrence makes it.
        latest = _latest(moments[order], repeats)
        self._ages[order[1:][repeats]] = (moments[order[1:]] - latest[:-1])[repeats]
        self._unit = 10**9 if timed else 1

    def __len__(self) -> int:
        return len(self._ages)

    def older(self, window: Any) -> int:
        """Count the records whose key is new or older than the window."""
        return int((self._ages > self._length(window)).sum())

    def in_slack(self, window: Any, slack: float) -> int:
        """Count the records whose key is older than the window, by at most the slack."""
        length = self._length(window)
        last = _NEW - 1 if math.isinf(slack) else length + round(slack * self._unit)
        return int(((self._ages > length) & (self._ages <= last)).sum())

    def share(self, window: Any, slack: float) -> float:
        """Divide the records in the slack by those that are new or older than the window; 0 of none."""
        return self.in_slack(window, slack) / max(self.older(window), 1)

    def _length(self, window: Any) -> int:
        if hasattr(window, "__index__"):
            return int(window)
        return round(window * self._unit) if isinstance(window, float) else read_span(window, "window")


def _latest(moments: NDArray[np.int64], repeats: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Give the greatest moment so far of each key, of moments sorted by key."""
    starts = np.flatnonzero(np.concatenate([[True], ~repeats])) if len(moments) else np.empty(0, np.int64)
    if not len(starts) or (np.diff(moments) >= 0)[repeats].all():
        return moments
    return np.concatenate([np.maximum.accumulate(part) for part in np.split(moments, starts[1:])])
