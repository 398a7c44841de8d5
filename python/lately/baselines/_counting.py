"""Counters and a queue: a window that is exact to one insertion."""

from __future__ import annotations

import lately._core as _core
from lately.filters.base import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray


class CountingBloomFilter(Filter):
    """Counting Bloom filter with a deletion queue: its window is exact to one insertion. A baseline.

    The newer filters are compared with it. It takes a queue of 64 bits per key of the window in addition to its 4-bit
    counters (42 bits at 1 %), where `AgePartitionedBloomFilter` takes 19 to 24 for everything. `Swamp` is exact to one
    insertion too, and repeats do not raise its rate.

    Parameters
    ----------
    window : int
        A number of insertions, at most 2**32. For a span of time take `AgePartitionedBloomFilter`.
    fpr : float
        Highest chance of reporting a key that was never inserted, in (0, 1), for a window of different keys and before
        any key came 15 times. Give this or `nbytes`.
    nbytes : int
        Greatest number of bytes, with the queue's 8 per key. The filter then has nearly the lowest rate that fits.
    seed
        As in `Filter`.

    Notes
    -----
    No key of the window is missed, on any stream. A counter at 15 does not store how many keys need it, so it is never
    decremented again. **Therefore each key that comes 15 times within a window raises the rate of false positives for
    good**: it stays as in a Bloom filter that never forgets. In a filter planned at 1 % the floor is 2e-6 if a tenth of
    the window's keys stay, 9e-4 if half do, and 1 % if all do; `false_positive_rate` returns the current floor.
    Different keys make no floor: fewer than 1e-13 of the counters reach 15 per window.

    Papers 1 and 2 name this baseline. With the usual counters, which are decremented from 15, it loses keys of skewed
    streams.

    Examples
    --------
    >>> f = lately.baselines.CountingBloomFilter(window=3, fpr=0.001)
    >>> f.duplicated(["a", "b", "a", "c", "d", "b"])
    array([False, False,  True, False, False, False])
    >>> f.slack
    0
    """

    __module__ = "lately.baselines"
    __slots__ = ()
    _family = "baselines.CountingBloomFilter"

    def count(self, keys: Any) -> NDArray[np.uint64]:
        """Return how often each key was inserted within the window, up to 15.

        Parameters
        ----------
        keys
            As in `Filter.query`.

        Returns
        -------
        ndarray of uint64, shape (n,)
            The least counter of each key. It is never less than the true number, except that 15 means 15 or more, and
            stays when it has been reached. With probability at most `fpr` it includes the insertions of other keys.

        Raises
        ------
        TypeError
            If a key is of a type that has no canonical form; the message names it.

        Examples
        --------
        >>> f = lately.baselines.CountingBloomFilter(window=1000, fpr=0.001)
        >>> f.insert(["a", "b", "a"])
        >>> f.count(["a", "b", "c"])
        array([2, 1, 0], dtype=uint64)
        """
        return _core.count(self, keys)
