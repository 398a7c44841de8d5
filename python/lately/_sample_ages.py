"""Counts of the records of a sample that a slack may drop: those whose key left the window shortly before."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately._core import hash_keys, read_moments, read_span

_NEW = np.iinfo(np.int64).max
"""Age of a key that did not come before."""


class Ages:
    """Ages of the keys of a sample: for each record, how long ago its key came last, in time or in records."""

    def __init__(self, sample: Any, at: Any = None, *, timed: bool) -> None:
        if timed and at is None:
            raise TypeError("sample needs at= for a window of time: when each key came")
        if not timed and at is not None:
            raise TypeError("at is for windows of time, and this window counts insertions: leave it out")
        hashes = hash_keys(sample if hasattr(sample, "__len__") else list(sample))
        moments = np.asarray(read_moments(at)) if timed else np.arange(len(hashes))
        if len(moments) != len(hashes):
            raise ValueError(f"at must hold one time for each key of sample, {len(hashes)}, got {len(moments)}")
        order = np.argsort(hashes, kind="stable")
        repeats = hashes[order[1:]] == hashes[order[:-1]]
        self._ages = np.full(len(hashes), _NEW)
        # The age of a key that comes late counts from its latest occurrence.
        latest = _latest(moments[order], repeats)
        self._ages[order[1:][repeats]] = (moments[order[1:]] - latest[:-1])[repeats]
        self._unit = 10**9 if timed else 1

    def share(self, window: Any, slack: float) -> float:
        """Return the share of the records in the slack among those that are new or older than the window, or 0."""
        length = self._length(window)
        last = _NEW - 1 if math.isinf(slack) else length + round(slack * self._unit)
        older = self._ages[self._ages > length]
        return int((older <= last).sum()) / max(len(older), 1)

    def _length(self, window: Any) -> int:
        if hasattr(window, "__index__"):
            return int(window)
        return round(window * self._unit) if isinstance(window, float) else read_span(window, "window")


def _latest(moments: NDArray[np.int64], repeats: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return for each moment the latest so far of its key. The moments are sorted by key."""
    starts = np.flatnonzero(np.concatenate([[True], ~repeats])) if len(moments) else np.empty(0, np.int64)
    if not len(starts) or (np.diff(moments) >= 0)[repeats].all():
        return moments
    return np.concatenate([np.maximum.accumulate(part) for part in np.split(moments, starts[1:])])
