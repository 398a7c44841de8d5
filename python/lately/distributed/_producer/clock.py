"""The times of a producer's batches, refused by the same rule as in the filters if they step back too far."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately._core import Filter, read_moments

Moments = NDArray[np.int64]


class Clock:
    """What `at` may be for a filter.

    Parameters
    ----------
    filter : Filter
        With a window of time, or a Bloom filter.
    """

    def __init__(self, filter: Filter) -> None:
        self._timed = filter.window is not None
        self.lateness = round((filter.lateness or 0) * 1e9)
        self._ahead = None if filter.ahead is None else round(filter.ahead * 1e9)

    def moments(self, at: Any, keys: int) -> Moments | None:
        """Read `at`: a moment for each key, in nanoseconds, or None if it is not given.

        Raises
        ------
        TypeError, ValueError
            As the filters do.
        """
        if at is None:
            return None
        if not self._timed:
            raise ValueError("at is for windows of time; this filter has no window")
        moments = read_moments(at)
        if isinstance(moments, int):
            return np.full(keys, moments)
        if len(moments) != keys:
            raise ValueError(f"at has {len(moments)} times for {keys} keys: one each, or a single one")
        return moments

    def check(self, moments: Moments | None, latest: int | None, *, in_order: bool) -> None:
        """Refuse moments more than `lateness` behind the latest, or, in order, behind those before them.

        In order they are those of new keys, and none may lie further than `ahead` before the system's clock.

        Raises
        ------
        ValueError
            It names the first of them.
        """
        if moments is None or not len(moments):
            return
        least = np.iinfo(np.int64).min
        before = np.full(len(moments), least if latest is None else latest)
        if in_order:
            np.maximum.accumulate(moments[:-1], out=before[1:])
            np.maximum(before, least if latest is None else latest, out=before)
            base = max(time.time_ns(), int(moments[0]) if latest is None else latest)
            if self._ahead is not None and (by := int(moments.max()) - base) > self._ahead:
                raise ValueError(
                    f"at[{int(moments.argmax())}] lies {by / 1e9:.12g} s ahead of the system's clock, but ahead is "
                    f"{self._ahead / 1e9:.12g} s: mend the time, or construct the filter with a larger ahead"
                )
        # Against the moment as it is later: nothing wraps around at the far end of time.
        late = before > np.minimum(moments, np.iinfo(np.int64).max - self.lateness) + self.lateness
        if late.any():
            i = int(late.argmax())
            raise ValueError(
                f"at[{i}] lies {(int(before[i]) - int(moments[i])) / 1e9:.12g} s before the latest time seen, "
                f"but lateness is {self.lateness / 1e9:.12g} s: "
                "sort by time, or construct the filter with a larger lateness"
            )
