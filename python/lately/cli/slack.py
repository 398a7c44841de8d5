"""About how many repeats were dropped that came after the window, in the slack."""

import math
import secrets
from collections import OrderedDict
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lately
from lately._families import EVERY, name_of

# Most keys of the sample. A hundred repeats in the slack are then known to about a tenth, times the root of how many
# keys one of the sample stands for.
_KEYS = 4096


class InSlack:
    """Estimate of the repeats dropped between the window and the end of its slack.

    The filter cannot tell them from those within the window. Some keys are followed exactly instead: all, until there
    are too many, then those whose hash ends in a zero bit, then in two, and so on; each stands for one, two, four. The
    estimate has no bias, and its memory is constant. Keys of an earlier run, in a state, are not known here.

    Attributes
    ----------
    expected : int
    sampled : bool
        Whether it is an estimate and not a count.
    """

    def __init__(self, filter: lately.Filter, *, refresh: bool | str) -> None:
        unit = 10**9 if isinstance(filter.window, float) else 1
        self._refresh = refresh
        # What comes after the window and drops records: nothing, or with other filters anything, at any time.
        self._counts = EVERY[name_of(filter)].promise and 0 < filter.slack < np.inf
        self._window = round(filter.window * unit)
        self._end = round((filter.window + filter.slack) * unit) if self._counts else self._window
        self._seed = secrets.token_bytes(16)  # so that nobody chooses what is in the sample
        # A window of records says beforehand how many keys one of the sample stands for.
        self._zeros = 0 if unit > 1 else max(0, math.ceil(math.log2(self._end / _KEYS)))
        # Hash: when its window began, the oldest first. (Of a dict it takes long to find the first after deletions.)
        self._last: OrderedDict[int, int] = OrderedDict()
        self._position = 0
        self.expected = 0

    @property
    def sampled(self) -> bool:
        """Whether not all keys were followed."""
        return self._zeros > 0

    def count(self, keys: Any, times: NDArray[np.int64] | None, new: NDArray[np.bool_]) -> None:
        """Take account of records that the filter has judged, in order."""
        if not self._counts or not len(new):
            return
        if times is None:  # of the keys asked for before each, or of those passed on
            counted = np.cumsum(new) if self._refresh == "delivered" else np.arange(1, len(new) + 1)
            moments = self._position + counted
            self._position = int(moments[-1])
        else:
            moments = times
        hashes = lately.hash_keys(keys, seed=self._seed)
        chosen = np.flatnonzero((hashes & np.uint64((1 << self._zeros) - 1)) == 0)
        last = self._last
        for key, moment, passed in zip(
            hashes[chosen].tolist(), moments[chosen].tolist(), new[chosen].tolist(), strict=True
        ):
            before = last.get(key)
            if not passed and before is not None and self._window < moment - before <= self._end:
                self.expected += 1 << self._zeros
            if passed or self._refresh is True:
                last[key] = moment
                last.move_to_end(key)
        self._forget(int(moments.max()))

    def _forget(self, now: int) -> None:
        """Drop keys that nothing can be said of any more, and half of the others while they are too many."""
        last = self._last
        while last and now - next(iter(last.values())) > self._end:
            last.popitem(last=False)
        while len(last) > _KEYS:
            self._zeros += 1
            for key in [key for key in last if key >> (self._zeros - 1) & 1]:
                del last[key]
