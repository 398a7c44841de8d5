"""An estimate of the repeats that a run dropped in the slack."""

from __future__ import annotations

import math
from collections import OrderedDict
from random import Random, SystemRandom

from lately._families import of_filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import lately
    from lately._core import RecordHashes
    from lately.cli.records import Marks

# Most keys of the sample. If the slack drops a hundred repeats, the error of the estimate is about a tenth, times the
# root of the number of keys for which one key of the sample stands.
_KEYS = 4096


class InSlack:
    """Estimate of the repeats that a run dropped between the end of the window and the end of its slack.

    The filter does not distinguish them from repeats within the window. Therefore some keys are followed exactly. At
    first all are; when there are too many, only those whose hash begins with a zero bit, then with two, and so on. Each
    then stands for two keys, four, and so on. The estimate has no bias, and takes constant memory. It does not include
    the keys of an earlier run in a state.

    Attributes
    ----------
    expected : int
        The estimate.
    sampled : bool
        True for an estimate, False for an exact count.
    """

    def __init__(self, filter: lately.Filter, *, refresh: bool | str) -> None:
        unit = 10**9 if isinstance(filter.window, float) else 1
        self._refresh = refresh
        self._counts = of_filter(filter).promise and 0 < filter.slack < math.inf
        self._window = round(filter.window * unit)
        self._end = round((filter.window + filter.slack) * unit) if self._counts else self._window
        # With a secret seed an attacker cannot choose the keys of the sample. With a public seed the report is
        # reproducible.
        random = SystemRandom() if filter.seed is None else Random(filter.seed)
        multiplier, addend = (random.getrandbits(64) for _ in range(2))
        self._secret = multiplier | 1, addend
        # For a window of records, the final share of the keys to follow is known from the start.
        self._zeros = 0 if unit > 1 else max(0, math.ceil(math.log2(self._end / _KEYS)))
        # For each key the beginning of its window, the oldest first. A dict is slow to find its first item after
        # deletions.
        self._last: OrderedDict[int, int] = OrderedDict()
        self._position = 0
        self.expected = 0

    @property
    def sampled(self) -> bool:
        """Whether only some keys are followed."""
        return self._zeros > 0

    def count(self, keys: RecordHashes, times: Any, new: Marks) -> None:
        """Count the records of a batch, in order, after the filter has marked them."""
        if not self._counts or not len(new):
            return
        delivered, counted = self._refresh == "delivered", 0  # a window counts the records that pass, or all
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
        """Remove keys older than the slack. While too many are left, follow half as many."""
        last = self._last
        while last and now - next(iter(last.values())) > self._end:
            last.popitem(last=False)
        while len(last) > _KEYS:
            self._zeros += 1
            for key in [key for key in last if key >> (64 - self._zeros)]:
                del last[key]
