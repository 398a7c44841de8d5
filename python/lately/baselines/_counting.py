"""Counters and a queue: exactly the last insertions."""

from __future__ import annotations

import lately._core as _core
from lately.filters.base import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    import numpy as np
    from numpy.typing import NDArray

    from lately._core import _Seed


class CountingBloomFilter(Filter):
    """Counting Bloom filter with a deletion queue: exactly the last `window` insertions, no slack.

    What the newer filters are measured against; `Swamp` forgets to the insertion too, and its rate is not raised by
    repeats. It costs a queue of 64 bits per key of the window beside its 4-bit counters (42 bits at 1 %), where
    `AgePartitionedBloomFilter` takes 19 to 24 for both.

    Parameters
    ----------
    window : int
        A number of insertions, at most 2**32. For a span of time take `AgePartitionedBloomFilter`.
    fpr : float
        Highest chance of reporting a key never inserted, with a window of distinct keys and none before that came 15
        times, in (0, 1). Give this or `nbytes`.
    nbytes : int
        Most bytes to use, the queue's 8 per key included. The filter then has nearly the lowest rate that fits.
    seed
        As in `Filter`.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As `Filter`.

    Notes
    -----
    No key of the window is missed, on any stream: a counter at 15 does not store how many keys need it, and is never
    lowered again. **So false positives grow for good** with every key that comes 15 times within a window:
    these stay, as if in a Bloom filter that never forgets. Of a filter planned at 1 %, a tenth of the window's keys
    makes a floor of 2e-6, half of it 9e-4, as many as the window 1 %; `false_positive_rate` returns the floor so far.
    Distinct keys alone make no such floor: fewer than 1e-13 of the counters stick per window.

    Papers 1 and 2 name this baseline; with counters that are lowered from 15 (as usual) it loses keys of skewed
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

    def __new__(cls, window: int, fpr: float | None = None, *, nbytes: int | None = None, seed: _Seed = 0) -> Self:
        return cls._of("counting", window=window, fpr=fpr, nbytes=nbytes, seed=seed)

    @classmethod
    def from_parameters(cls, window: int, k: int, slice_cells: int, *, seed: _Seed = 0) -> Self:
        """Make a filter of a given size.

        Parameters
        ----------
        window : int
            As in the constructor.
        k : int
            Slices, and counters of a key, at most 128.
        slice_cells : int
            Counters of each slice.
        seed : int, bytes or "random", default 0
            As in the constructor.

        Examples
        --------
        >>> f = lately.baselines.CountingBloomFilter.from_parameters(1000, k=3, slice_cells=2000)
        >>> f.nbytes, round(f.fpr, 3)
        (11000, 0.061)
        """
        return cls._of("counting", window=window, k=k, slice_cells=slice_cells, seed=seed)

    def count(self, keys: Any) -> NDArray[np.uint64]:
        """Return how often keys were inserted within the window, up to 15.

        Parameters
        ----------
        keys : array-like, Series, column or frame
            A batch of n keys; a row of a frame or of a 2-D array is one key. See `lately.hash_keys`.

        Returns
        -------
        ndarray of uint64, shape (n,)
            The least counter of each key. Never less than the true number, but that 15 stands for more as well, for
            good once it has been reached. More, with probability at most `fpr`, by the insertions of other keys.

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
