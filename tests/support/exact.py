"""The reference for filters: the exact sliding window, as one would write it in Python."""

import math
import sys
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from typing import Any


def repeats(
    keys: Iterable[Any], window: float, times: Sequence[float] | None = None, refresh: Any = True
) -> list[bool]:
    """Return the exact answers, by a place among the keys that count, or a time, for every key seen so far."""
    last: dict[Any, float] = {}
    mask, counted = [], 0
    for i, key in enumerate(keys):
        now = counted if times is None else times[i]
        seen = key in last and now - last[key] <= window
        mask.append(seen)
        if refresh is True or not seen:
            last[key] = max(now, last.get(key, now))
        counted += refresh != "delivered" or not seen
    return mask


def repeats_by_time(
    keys: Sequence[Any], window: float, times: Sequence[float], keep: Any = "first", refresh: Any = True
) -> list[bool]:
    """Return the exact answers for rows in any order: they count in the order of their times, equal ones as they stand.

    `keep` is that of `lately.duplicated`.
    """
    order = sorted(range(len(keys)), key=times.__getitem__)
    mask = [False] * len(keys)
    ways = {"first": [(order, 1)], "last": [(order[::-1], -1)], False: [(order, 1), (order[::-1], -1)]}
    for rows, sign in ways[keep]:
        seen = repeats([keys[row] for row in rows], window, [sign * times[row] for row in rows], refresh)
        for row, repeat in zip(rows, seen, strict=True):
            mask[row] |= repeat
    return mask


def check(
    keys: Iterable[Any],
    answers: Iterable[bool],
    window: float,
    slack: float,
    refresh: Any,
    fpr: float,
    clock: Sequence[float] | None = None,
) -> tuple[int, int]:
    """Check that no answer misses a key of the window, and that beyond the slack no more are marked than `fpr` allows.

    `clock` has the moment of each key; without it a moment is a number of insertions. Within the slack either answer is
    right. Returns how many keys were new or older than that, and how often a key came through again.
    """
    last: dict[Any, float] = {}
    mistaken = set()  # A key reported by mistake may be queried again before the cells change: that is one mistake.
    fresh = marked = again = inserted = 0
    for i, (key, seen) in enumerate(zip(keys, answers, strict=True)):
        now = inserted if clock is None else clock[i]
        age = now - last.get(key, -math.inf)
        assert seen or age > window, f"key {i} was seen {age} ago"
        if age > window + slack and key not in mistaken:
            fresh += 1
            marked += seen
            mistaken.add(key)
        if refresh is True or not seen:
            again += not seen and key in last
            last[key] = now
            mistaken.discard(key)
        inserted += refresh != "delivered" or not seen
    # 6 standard deviations and 6 keys: exceeded once in a million seeds, and the seeds are fixed.
    assert marked <= fresh * fpr + 6 * math.sqrt(fresh * fpr) + 6, f"{marked} of {fresh}"
    return fresh, again


class ExactWindow:
    """Every key of the window with its last stamp, oldest first.

    A stamp is a position in the stream or a time; stamps never step back. A key stamped `window` ago is still there.
    """

    def __init__(self, window: int) -> None:
        self.window = window
        self.last: OrderedDict[Hashable, int] = OrderedDict()

    def duplicated(self, keys: Iterable[Hashable], stamps: Iterable[int]) -> list[bool]:
        """For each key in order: was it there? Then renew its stamp."""
        last, mask = self.last, []
        for key, now in zip(keys, stamps, strict=True):
            while last and next(iter(last.values())) < now - self.window:
                last.popitem(last=False)
            mask.append(key in last)
            last[key] = now
            last.move_to_end(key)
        return mask

    def nbytes(self) -> int:
        """Deep size by `sys.getsizeof`: the dictionary, its stamps and keys, and the fields of keys that are tuples.

        Each object counts once. What the allocator loses is left out, so the true cost is higher.
        """
        objects = {id(stamp): stamp for stamp in self.last.values()}
        for key in self.last:
            objects[id(key)] = key
            if isinstance(key, tuple):
                objects.update((id(field), field) for field in key)
        return sys.getsizeof(self.last) + sum(map(sys.getsizeof, objects.values()))
