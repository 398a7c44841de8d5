"""The reference for filters: the exact sliding window, as one would write it in Python."""

import sys
from collections import OrderedDict
from collections.abc import Hashable, Iterable


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
