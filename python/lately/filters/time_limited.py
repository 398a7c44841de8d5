"""The filter whose memory follows the rate of keys, slice by slice."""

from __future__ import annotations

import lately._core as _core
from lately.filters.base import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    import numpy as np
    from numpy.typing import NDArray

    from lately._core import _Seed, _Span


class TimeLimitedBloomFilter(Filter):
    """Time-limited Bloom filter: a window of time for an unknown rate; memory follows the keys.

    Parameters
    ----------
    window : span of time
        What "lately" means: a span such as ``"10min"``, a `datetime.timedelta` or a `numpy.timedelta64`.
    fpr : float
        Highest chance of reporting a key never inserted at a steady rate, at the worst phase, in (0, 1).
    capacity : int, optional
        First guess of the keys within one window, which the first slices are sized for; the default is 10,000. A wrong
        one costs memory or accuracy for the first window or two.
    slack : span of time, optional
        Longest time for which a key may still be reported after it has left the window. The default is half the window.
    lateness, max_ahead, seed
        As in `Filter`.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As `Filter`. A filter that cannot grow raises MemoryError for the keys it rejects; those before are inserted.

    Notes
    -----
    No key of the window is missed, whatever the rate does. While the rate rises there are more slices than planned, and
    more chances for a run of matches: `fpr` is then exceeded, in proportion to their number, until sizes have followed,
    for about one window. `false_positive_rate` returns the rate now, and `fill` has one value per live slice.

    `nbytes` is what the slices take now, of memory that may be up to a seventh more. It grows with the rate and comes
    back as old slices are dropped, which is done by insertions; when the memory has to change, there are for a moment
    two copies.

    Paper 3: A. Rodrigues, A. Shtul, C. Baquero, P. S. Almeida, Time-limited Bloom Filter, 2023.

    Examples
    --------
    >>> f = lately.TimeLimitedBloomFilter("10min", 0.001)
    >>> f.duplicated(["a", "a", "a"], at=[0, 599, 2000])
    array([False,  True, False])
    >>> before = f.nbytes
    >>> f.insert(range(1_000_000), at=2001)
    >>> f.query(range(1_000_000), at=2601).all(), f.nbytes > 50 * before
    (np.True_, True)
    """

    __module__ = "lately"
    __slots__ = ()

    def __new__(
        cls,
        window: _Span,
        fpr: float,
        *,
        capacity: int | None = None,
        slack: _Span | None = None,
        lateness: _Span | None = None,
        max_ahead: _Span | None = "1 d",
        seed: _Seed = 0,
    ) -> Self:
        given = {"window": window, "capacity": capacity, "lateness": lateness, "max_ahead": max_ahead, "seed": seed}
        return cls._of("time-limited", fpr=fpr, slack=slack, **given)

    @classmethod
    def from_parameters(
        cls,
        window: _Span,
        k: int,
        l: int,  # noqa: E741
        *,
        slice_bits: int,
        capacity: int | None = None,
        lateness: _Span | None = None,
        max_ahead: _Span | None = "1 d",
        seed: _Seed = 0,
    ) -> Self:
        """Make a filter with the parameters of the paper.

        Parameters
        ----------
        window : span of time
            As in the constructor; a generation lasts at most the l-th part of window and lateness.
        k, l : int
            Consecutive slices that must match, and full generations kept; k + l at most 128.
        slice_bits : int
            Bits of each of the first k slices: a multiple of 64, at least 512.
        capacity, lateness, max_ahead, seed
            As in the constructor, but `capacity` does not size the first slices here.

        Examples
        --------
        >>> f = lately.TimeLimitedBloomFilter.from_parameters("1h", k=10, l=7, slice_bits=2048)
        >>> len(f.fill), f.nbytes
        (0, 2904)
        >>> f.slice_bits.tolist() == [2048] * 10
        True
        """
        given = {"window": window, "capacity": capacity, "lateness": lateness, "max_ahead": max_ahead, "seed": seed}
        return cls._of("time-limited", k=k, l=l, slice_bits=slice_bits, **given)

    @property
    def slice_bits(self) -> NDArray[np.uint64]:
        """Bits of each slice, the newest first: ndarray of uint64, shape (slices,).

        Stale slices stay until an insertion makes room; `fill` has the live ones only.
        """
        return _core.slice_bits(self)
