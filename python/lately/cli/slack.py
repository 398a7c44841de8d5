"""An estimate of the repeats that were dropped after the window, in the slack."""

from __future__ import annotations

import math
from collections import OrderedDict
from random import Random, SystemRandom

from lately._families import EVERY, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import lately
    from lately._core import Hashed
    from lately.cli.records import Marks

# Most keys of the sample. A hundred repeats in the slack are then known to about a tenth, times the root of how many
# keys one of the sample stands for.
_KEYS = 4096


class InSlack:
    """Estimate of the repeats dropped between the window and the end of its slack.

    The filter does not distinguish them from those within the window. Some keys are followed exactly: all, until there
    are too many, then those whose hash begins with a zero bit, then with two, and so on; each stands for one, two,
    four. The estimate has no bias, and its memory is constant. Keys of an earlier run, in a state, are not known here.

    Attributes
    ----------
    expected : int
    sampled : bool
        Whether it is an estimate and not a count.
    """

    def __init__(self, filter: lately.Filter, *, refresh: bool | str) -> None:
        unit = 10**9 if isinstance(filter.window, float) else 1
        self._refresh = refresh
        self._counts = EVERY[name_of(filter)].promise and 0 < filter.slack < math.inf
        self._window = round(filter.window * unit)
        self._end = round((filter.window + filter.slack) * unit) if self._counts else self._window
        # An attacker must not choose the keys of the sample. A public seed makes the report reproducible instead.
        random = SystemRandom() if filter.seed is None else Random(filter.seed)
        multiplier, addend = (random.getrandbits(64) for _ in range(2))
        self._secret = multiplier | 1, addend
        # How many keys one of the sample stands for is computed beforehand where the window counts records.
        self._zeros = 0 if unit > 1 else max(0, math.ceil(math.log2(self._end / _KEYS)))
        # From the number of a key to the begin of its window, the oldest first. (In a dict the search for the first is
        # slow after deletions.)
        self._last: OrderedDict[int, int] = OrderedDict()
        self._position = 0
        self.expected = 0

    @property
    def sampled(self) -> bool:
        """Whether not all keys were followed."""
        return self._zeros > 0

    def count(self, keys: Hashed, times: Any, new: Marks) -> None:
        """Count records that the filter has decided, in order."""
        if not self._counts or not len(new):
            return
        delivered, counted = self._refresh == "delivered", 0  # what the window counts: those passed on, or all
        before, last = 0, self._last
        for i, key in keys.sample(*self._secret, self._zeros):
            passed = new[i]
            if times is not None:
                moment = int(times[i])
            else:
                counted, before = (counted + new.count(1, before, i + 1), i + 1) if delivered else (i + 1, 0)
                moment = self._position + counted
            began = last.get(key)
            if not passed and began is not None and self._window < moment - began <= self._end:
                self.expected += 1 << self._zeros
            if passed or self._refresh is True:
                last[key] = moment
                last.move_to_end(key)
        if times is None:
            self._position += new.count(1) if delivered else len(new)
        self._forget(self._position if times is None else int(times.max()))

    def _forget(self, now: int) -> None:
        """Drop keys older than the slack, and half of the others while they are too many."""
        last = self._last
        while last and now - next(iter(last.values())) > self._end:
            last.popitem(last=False)
        while len(last) > _KEYS:
            self._zeros += 1
            for key in [key for key in last if key >> (64 - self._zeros)]:
                del last[key]
