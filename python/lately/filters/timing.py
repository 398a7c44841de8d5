"""The filter whose cells store when they were set."""

from __future__ import annotations

from itertools import product

import lately._core as _core
from lately.filters.base import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Literal, Self

    import numpy as np
    from numpy.typing import NDArray

    from lately._core import _Seed, _Span


class TimingBloomFilter(Filter):
    """Timing Bloom filter: its cells store when they were set, and keys expire one block at a time.

    Parameters
    ----------
    window, fpr, nbytes
        As in `Filter`.
    slack : int or span of time, optional
        Longest time for which a key may still be reported after it has left the window, in the unit of `window`: about
        a block. The default is half the window, and at least 64 insertions. 0 makes the window exact (the plain timing
        Bloom filter, B = 1), for about seven times the memory at a million keys.
    capacity
        As in `AgePartitionedBloomFilter`.
    lateness, max_ahead
        As in `Filter`.
    grow : {"cardinality", "density"}, optional
        For a window of time with `fpr`: whether the filter opens another part of the same size when more keys come than
        planned. It drops a part when all of its keys have expired. "cardinality" opens one when a part has taken the
        number of keys that `capacity` plans to be live at once. "density" opens one when as many timers are set as
        those keys would set. By default the size is fixed.
    seed
        As in `Filter`.

    Raises
    ------
    ValueError, TypeError
        As in `Filter`.
    MemoryError
        If there is not enough memory. A filter that cannot grow rejects the keys from there on; those before are
        inserted.

    Notes
    -----
    With `grow`, a burst costs memory and no key of the window. `nbytes` is the size of all parts, and `parts` is their
    number, F. Insertions go to the newest part and queries read all of them, so the chance of a false positive is at
    most 1 - (1 - fpr)**F. `fpr` is the rate of one part; `false_positive_rate` returns that of all parts.

    At the planned rate of keys there are one or two parts by cardinality, and mostly one by density, so the chance
    stays at `fpr`. In a burst of 100 times the rate there are about 100 parts until window and slack have passed after
    it; `TimeLimitedBloomFilter` holds its rate there. A key that an older part holds goes to the newest part as well.
    While a part is opened or dropped the others are copied, so for that moment there are two of each.

    Paper 4: *One is Enough: Distributed Filtering for Duplicate Elimination*, sections 4 and 5. Paper 5: J. L.
    Dautrich, C. V. Ravishankar, *Inferring Insertion Times and Optimizing Error Penalties in Time-Decaying Bloom
    Filters*, 2019, section 3: its block variant.

    `from_parameters` makes the papers' filter. With `part_keys` or `part_timers` it grows: a part is full when it has
    taken that number of keys that it did not hold, or when that number of its timers is set. `equal_timers` is k' of
    paper 4: how many of its timers must be equal for a key to be reported. 2 or more lower the rate of false positives
    and **end the promise**: keys of the window are missed when later keys have set too many of their timers, with the
    chances of `false_negative_rates`. `false_positive_rate()` is then an upper bound.

    `fill` is the share of live timers in each of the k slices of every part, the newest part first.

    Examples
    --------
    >>> f = lately.TimingBloomFilter(window=1000, fpr=0.001, slack=100)
    >>> f.duplicated(["a", "b", "a"])
    array([False, False,  True])
    >>> f.slack, f.parameters["bpt"]
    (78, 4)
    >>> f = lately.TimingBloomFilter("10min", 0.001, capacity=50_000)
    >>> f.duplicated(["a", "a", "a"], at=[0, 599, 2000])
    array([False,  True, False])
    >>> given = {"k": 8, "bpt": 8, "blocks": 100, "slice_timers": 160, "equal_timers": 3}
    >>> f = lately.TimingBloomFilter.from_parameters(101, **given)
    >>> round(f.fpr, 7), round(float(f.false_negative_rates.mean()), 4)
    (1.36e-05, 0.022)
    >>> f = lately.TimingBloomFilter("10min", 0.001, capacity=5000, grow="density")
    >>> f.insert(range(50_000), at=0)
    >>> f.query(range(50_000), at=600).all(), f.parts
    (np.True_, 7)
    >>> f.add("a", at=3600)
    >>> f.parts
    1
    """

    __module__ = "lately"
    __slots__ = ()
    _family = "TimingBloomFilter"

    @staticmethod
    def _shapes(nbytes: int) -> Iterator[dict[str, Any]]:
        for k, bpt in product((3, 4, 6, 8, 10), (2, 3, 4, 5)):
            yield {"k": k, "bpt": bpt, "blocks": 2**bpt - 2, "slice_timers": 8 * nbytes // k // 64 * (64 // bpt)}

    def __new__(
        cls,
        window: int | _Span,
        fpr: float | None = None,
        *,
        nbytes: int | None = None,
        slack: int | _Span | None = None,
        capacity: int | None = None,
        lateness: _Span | None = None,
        max_ahead: _Span | None = "window",
        grow: Literal["cardinality", "density"] | None = None,
        seed: _Seed = 0,
    ) -> Self:
        given = {"capacity": capacity, "lateness": lateness, "max_ahead": max_ahead, "seed": seed, "grow": grow}
        return cls._built(cls._family, window=window, fpr=fpr, nbytes=nbytes, slack=slack, **given)

    @property
    def false_negative_rates(self) -> NDArray[np.float64]:
        """Chance that a key is missed, by the number of blocks since its own: ndarray of float64, shape (blocks + 1,).

        It is that just before the next block begins, at planned load, in expectation. All are 0 unless `equal_timers`
        is 2 or more. If repeats are spread evenly over the window, the mean is about the share of them that is missed;
        the maximum is the worst case.
        """
        return _core.missed_by_block(self)

    @property
    def parts(self) -> int:
        """int: current number of parts; 1 unless the filter grows. `nbytes` is in proportion to it."""
        return _core.parts(self)
