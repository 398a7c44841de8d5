"""The filter whose cells store when they were set."""

from __future__ import annotations

import lately._core as _core
from lately.filters.base import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, Self

    import numpy as np
    from numpy.typing import NDArray

    from lately._core import _Moments, _Seed, _Span


class TimingBloomFilter(Filter):
    """Timing Bloom filter: cells that store when they were set, and keys that expire one block at a time.

    Parameters
    ----------
    slack : int or span of time, optional
        Longest time for which a key may still be reported after it has left the window, in the unit of `window`: about
        a block. 0 makes the window exact (the plain timing Bloom filter, B = 1), for some seven times the memory at a
        million keys. The default is half the window (and never less than 64 insertions).
    layout : {"line", "sliced"}, optional
        "line" puts all timers of a key into one cache line, or into two of one page of 4 KiB: three to five times as
        fast at a million keys, for 30.8 and 50.7 bits per key at 1 % and 0.1 % where slices take 28.8 and 43.1. A
        filter then has whole pages, and does not grow. "sliced" is the papers' layout. The default is lines, or slices
        where lines cannot meet the request, such as a slack of 0, or `grow`.
    grow : {"cardinality", "density"}, optional
        For a window of time with `fpr`: open another part, of the same size, when more keys come than planned; drop it
        when all of its keys have expired. "cardinality" opens one when a part has taken the keys that `capacity` plans
        to be live at once; "density" opens one when as many timers are set as those keys would set. The default is one
        size.
    window, fpr, nbytes, capacity, lateness, max_ahead, seed
        As in `Filter`.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As `Filter`. A filter that cannot grow raises MemoryError for the keys it rejects; those before are inserted.

    Notes
    -----
    With `grow` no key of the window is missed in a burst either, and memory comes back: `nbytes` is what the parts take
    now, and `parts` how many that is, F. Keys go to the newest part and queries ask all, so the chance of a false
    positive is at most 1 - (1 - fpr)**F: `fpr` is that of one part, and `false_positive_rate` returns the total now. At
    the planned rate the total stays at `fpr`. In a burst of 100 times the rate, though, there are some 100 parts for a
    query to ask, until window and slack have passed after it; `TimeLimitedBloomFilter` holds its rate there. By
    cardinality there are one or two parts at the planned rate, by density mostly one (with timers of many bits the
    padding counts, and there may be two). A key seen again while an older part holds it goes to the newest as well.
    Opening and dropping copies the other parts, so for that moment there are two of each.

    Paper 4: *One is Enough: Distributed Filtering for Duplicate Elimination*, sections 4 and 5. Paper 5: J. L.
    Dautrich, C. V. Ravishankar, *Inferring Insertion Times and Optimizing Error Penalties in Time-Decaying Bloom
    Filters*, 2019, section 3, whose block variant this is.

    `fill` is the share of live timers in each of the k slices, of every part, the newest first; in lines of all timers.

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
        max_ahead: _Span | None = "1 d",
        grow: Literal["cardinality", "density"] | None = None,
        seed: _Seed = 0,
    ) -> Self:
        given = {"window": window, "capacity": capacity, "lateness": lateness, "max_ahead": max_ahead, "seed": seed}
        request = {"fpr": fpr, "nbytes": nbytes, "slack": slack, "grow": grow}
        if layout is None and grow is None:
            return cls._in_first(({"layout": "line"}, {"layout": "sliced"}), "timing", **given, **request)
        return cls._of("timing", **given, **request, layout="sliced" if layout is None else layout)

    @classmethod
    def from_parameters(
        cls,
        window: int | _Span,
        k: int,
        bpt: int,
        blocks: int,
        slice_timers: int | None = None,
        *,
        pages: int | None = None,
        lines: int = 1,
        equal_timers: int = 1,
        part_keys: int | None = None,
        part_timers: int | None = None,
        capacity: int | None = None,
        lateness: _Span | None = None,
        max_ahead: _Span | None = "1 d",
        seed: _Seed = 0,
    ) -> Self:
        """A filter with the parameters of the papers.

        Parameters
        ----------
        window : int or span of time
            As in the constructor.
        k : int
            Timers a key sets: one in each of k slices, at most 64, or in each of k words of its lines, at most 8 in a
            line.
        bpt : int
            Bits per timer, 2 to 32; a 64-bit word holds 64 // bpt timers.
        blocks : int
            Full blocks kept, at most 2**bpt - 2 and 2**24 (2**14 with equal timers). A block is B = ceil((window - 1) /
            blocks) insertions, or the like of time; ``window - 1`` blocks make B = 1, the plain timing Bloom filter.
            What 2**bpt - 1 has beyond it is padding, which spreads the sweep of expired timers over that many blocks.
        slice_timers : int, optional
            Timers of each slice, m / k; rounded up to whole words.
        pages : int, optional
            Pages of 4 KiB of a filter in lines, instead of `slice_timers`.
        lines : {1, 2}, default 1
            Lines of a page that a key has timers in, each in half of its k.
        equal_timers : int, default 1
            k': how many of its timers must be equal for a key to be reported (paper 4). From 2 on this lowers the rate
            of false positives, and the promise is off: keys of the window are missed when later ones have set too many
            of their timers, with the chances of `false_negative_rates`. `false_positive_rate()` is then an upper bound.
        part_keys, part_timers : int, optional
            Grow, as the constructor does with ``grow="cardinality"`` or ``"density"``, by parts of the size given here.
            A part is full once it has taken this many keys that it did not hold, or once this many of its timers are
            set over all slices, at least k. `fpr` is that of a full part. None of these, nor equal timers, apply
            in lines.
        capacity, lateness, max_ahead, seed
            As in the constructor.

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
        >>> f = lately.TimingBloomFilter.from_parameters(1000, k=6, bpt=2, blocks=2, pages=1)
        >>> f.nbytes, f.slack, round(f.fpr, 4)
        (4096, 500, 0.0077)
        """
        if part_keys is not None and part_timers is not None:
            raise TypeError("give part_keys or part_timers, and not both")
        if pages is not None and equal_timers != 1:
            raise ValueError(f"equal_timers does not apply to pages, got {equal_timers}")
        given = {"window": window, "capacity": capacity, "lateness": lateness, "max_ahead": max_ahead, "seed": seed}
        timers = {"k": k, "bpt": bpt, "blocks": blocks, "equal_timers": equal_timers}
        sizes = {"slice_timers": slice_timers, "pages": pages, "lines": lines}
        limits = {"part_keys": part_keys, "part_timers": part_timers}
        return cls._of("timing", **given, **timers, **sizes, **limits)

    @property
    def false_negative_rates(self) -> NDArray[np.float64]:
        """Chance that a key is missed, by the number of blocks since its own: ndarray of float64, shape (blocks + 1,).

        Taken just before the next block begins, at planned load; exact in expectation. Zeros unless `equal_timers` is 2
        or more. The mean is about the share of duplicates missed when they are spread evenly over the window, the
        maximum is the worst case.
        """
        return _core.missed_by_block(self)

    @property
    def parts(self) -> int:
        """int: number of parts now, 1 unless the filter grows; `nbytes` is in proportion."""
        return _core.parts(self)

    @property
    def kept(self) -> int:
        """int: blocks that a timer counts beside its own, for `lately.distributed`."""
        return _core.retained(self)

    def cells(self, keys: Any) -> NDArray[np.uint64]:
        """Return the cells of each key, by their places in the words of all cells, for `lately.distributed`.

        Parameters
        ----------
        keys : array-like, Series, column or frame
            A batch of n keys. See `lately.hash_keys`.

        Returns
        -------
        ndarray of uint64, shape (n, k)
            The number of its timer in each of the k slices: ``slice * slice_timers + index``; in lines counted
            likewise, through the words.

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
            How many.

        Returns
        -------
        ndarray of int64, shape (n,)
            Numbered from the Unix epoch, the same on every machine.

        Raises
        ------
        ValueError
            If the window counts insertions, the filter grows, or `at` is missing a time or does not fit `n`.

        Examples
        --------
        >>> sizes = {"k": 7, "bpt": 4, "blocks": 10, "slice_timers": 1600}
        >>> f = lately.TimingBloomFilter.from_parameters("10min", **sizes, capacity=500)
        >>> f.generations([0, 59, 60, -1], 4), f.kept
        (array([ 0,  0,  1, -1]), 10)
        """
        return _core.generations(self, at, n)
