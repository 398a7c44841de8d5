"""The filter whose cells store when they were set."""

from __future__ import annotations

import lately._core as _core
from lately._docstrings import complete
from lately.filters.base import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, Self

    import numpy as np
    from numpy.typing import NDArray

    from lately._core import _Moments, _Seed, _Span


@complete
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
    layout : {"line", "sliced"}, optional
        "line" puts all timers of a key into one cache line, or into two lines of one page of 4 KiB: three to five times
        as fast at a million keys. It takes 30.8 and 50.7 bits per key at 1 % and 0.1 %, where slices take 28.8 and
        43.1. The filter then consists of whole pages, and does not grow. "sliced" is the papers' layout. The default is
        "line", or "sliced" where lines cannot meet the request, such as a slack of 0 or `grow`.
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

    `fill` is the share of live timers in each of the k slices of every part, the newest part first. In lines it is the
    share among all timers.

    Examples
    --------
    >>> f = lately.TimingBloomFilter(window=1000, fpr=0.001, slack=100, layout="sliced")
    >>> f.duplicated(["a", "b", "a"])
    array([False, False,  True])
    >>> f.slack, f.parameters["bpt"]
    (78, 4)
    >>> f = lately.TimingBloomFilter("10min", 0.001, capacity=50_000)
    >>> f.duplicated(["a", "a", "a"], at=[0, 599, 2000])
    array([False,  True, False])
    >>> f = lately.TimingBloomFilter(1_000_000, 0.01)
    >>> f.cache_lines["miss"], round(f.bits_per_key, 1)
    (1.0, 30.8)
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

    def __new__(
        cls,
        window: int | _Span,
        fpr: float | None = None,
        *,
        nbytes: int | None = None,
        slack: int | _Span | None = None,
        layout: Literal["line", "sliced"] | None = None,
        capacity: int | None = None,
        lateness: _Span | None = None,
        max_ahead: _Span | None = "window",
        grow: Literal["cardinality", "density"] | None = None,
        seed: _Seed = 0,
    ) -> Self:
        given = locals()
        if layout is None and grow is None:
            return cls._in_first(({"layout": "line"}, {"layout": "sliced"}), "timing", **given)
        return cls._of("timing", **given | {"layout": "sliced" if layout is None else layout})

    @classmethod
    def from_parameters(
        cls,
        window: int | _Span,
        k: int,
        bpt: int,
        blocks: int,
        slice_timers: int,
        *,
        equal_timers: int = 1,
        part_keys: int | None = None,
        part_timers: int | None = None,
        capacity: int | None = None,
        lateness: _Span | None = None,
        max_ahead: _Span | None = "window",
        seed: _Seed = 0,
    ) -> Self:
        """Make a filter with the parameters of the papers.

        Parameters
        ----------
        window
            As in `Filter`.
        k : int
            Timers that a key sets, one in each of k slices: 1 to 64.
        bpt : int
            Bits per timer, 2 to 32; a 64-bit word holds 64 // bpt timers.
        blocks : int
            Number of full blocks that are retained, at most 2**bpt - 2 and 2**24 (2**14 with equal timers). A block is
            B = ceil((window - 1) / blocks) insertions, or that part of a window of time. ``window - 1`` blocks make
            B = 1, the plain timing Bloom filter. The values of a timer that are left over are padding: the sweep of
            expired timers is spread over that many blocks.
        slice_timers : int
            Timers of each slice, m / k; rounded up to whole words.
        equal_timers : int, default 1
            k' of paper 4: how many of its timers must be equal for a key to be reported. 2 or more lower the rate of
            false positives and **end the promise**: keys of the window are missed when later keys have set too many of
            their timers, with the chances of `false_negative_rates`. `false_positive_rate()` is then an upper bound.
        part_keys, part_timers : int, optional
            Grow as the constructor does with ``grow="cardinality"`` or ``"density"``. A part is full when it has taken
            `part_keys` keys that it did not hold, or when `part_timers` of its timers are set (over all slices, at
            least k). `fpr` is the rate of a full part.
        capacity, lateness, max_ahead, seed
            As in `TimingBloomFilter`.

        Raises
        ------
        ValueError, TypeError, MemoryError
            As in `Filter`.

        Examples
        --------
        >>> f = lately.TimingBloomFilter.from_parameters(101, k=8, bpt=8, blocks=100, slice_timers=160)
        >>> f.nbytes, f.slack, round(f.fpr, 4)
        (1280, 0, 0.0023)
        >>> f = lately.TimingBloomFilter.from_parameters(101, k=8, bpt=8, blocks=100, slice_timers=160, equal_timers=3)
        >>> round(f.fpr, 7), round(float(f.false_negative_rates.mean()), 4)
        (1.36e-05, 0.022)
        >>> given = {"k": 8, "bpt": 3, "blocks": 6, "slice_timers": 1008, "capacity": 500}
        >>> f = lately.TimingBloomFilter.from_parameters("10min", **given, part_keys=500)
        >>> f.insert(range(2000), at=0)
        >>> f.parts, f.nbytes, round(f.fpr, 5), round(f.false_positive_rate(), 5)
        (4, 12336, 0.00055, 0.0022)
        """
        if part_keys is not None and part_timers is not None:
            raise TypeError("give part_keys or part_timers, and not both: a part is full by one of them")
        return cls._of("timing", **locals())

    @classmethod
    def from_line_parameters(
        cls,
        window: int | _Span,
        k: int,
        bpt: int,
        blocks: int,
        pages: int,
        *,
        lines: Literal[1, 2] = 1,
        capacity: int | None = None,
        lateness: _Span | None = None,
        max_ahead: _Span | None = "window",
        seed: _Seed = 0,
    ) -> Self:
        """Make a filter in lines: the timers of a key lie side by side, in lines of one page.

        Parameters
        ----------
        window
            As in `Filter`.
        k : int
            Timers that a key sets, one in each of k words of its lines: at most 8 in a line.
        bpt, blocks
            As in `TimingBloomFilter.from_parameters`.
        pages : int
            Number of pages of 4 KiB.
        lines : {1, 2}, default 1
            Number of lines of a page that contain timers of a key; with 2, each contains half of them.
        capacity, lateness, max_ahead, seed
            As in `TimingBloomFilter`.

        Raises
        ------
        ValueError, TypeError, MemoryError
            As in `Filter`.

        Examples
        --------
        >>> f = lately.TimingBloomFilter.from_line_parameters(1000, k=6, bpt=2, blocks=2, pages=1)
        >>> f.nbytes, f.slack, round(f.fpr, 4)
        (4096, 500, 0.0077)
        """
        return cls._of("timing", **locals())

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

    @property
    def retained(self) -> int:
        """int: number of blocks that a timer distinguishes beside its own, for `lately.distributed`."""
        return _core.retained(self)

    def cells(self, keys: Any) -> NDArray[np.uint64]:
        """Return the places of each key's cells among all cells, for `lately.distributed`.

        Parameters
        ----------
        keys
            As in `Filter.query`.

        Returns
        -------
        ndarray of uint64, shape (n, k)
            Places of the key's timers: ``slice * slice_timers + index`` in each of the k slices. In lines the timers of
            all words are numbered one after the other.

        Raises
        ------
        TypeError
            If a key is of a type that has no canonical form; the message names it.
        ValueError
            If the filter grows.

        Examples
        --------
        >>> f = lately.TimingBloomFilter.from_parameters(101, k=8, bpt=8, blocks=100, slice_timers=160)
        >>> f.cells(["a", "b"]).shape
        (2, 8)
        """
        return _core.cells(self, keys)

    def generations(self, at: _Moments, n: int) -> NDArray[np.int64]:
        """Return the generation, or block, of each moment, for `lately.distributed`.

        Parameters
        ----------
        at : time, n times, or None
            As in `insert`; None is now.
        n : int
            Number of moments.

        Returns
        -------
        ndarray of int64, shape (n,)
            Numbered from the Unix epoch, the same on every machine.

        Raises
        ------
        ValueError
            If the window counts insertions, the filter grows, or `at` lacks a time or does not hold `n` of them.

        Examples
        --------
        >>> sizes = {"k": 7, "bpt": 4, "blocks": 10, "slice_timers": 1600}
        >>> f = lately.TimingBloomFilter.from_parameters("10min", **sizes, capacity=500)
        >>> f.generations([0, 59, 60, -1], 4), f.retained
        (array([ 0,  0,  1, -1]), 10)
        """
        return _core.generations(self, at, n)
