"""The filter of fingerprints with ages, near the least memory that is possible."""

from __future__ import annotations

from lately import _core
from lately.filters.base import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    import numpy as np
    from numpy.typing import NDArray

    from lately._core import _Moments, _Seed, _Span


class AgedQuotientFilter(Filter):
    """Aged quotient filter: no key of the window is missed, in the fewest bits, and each has its age.

    Each key is a fingerprint in a cache line, with the tag of the epoch of its last occurrence. A repeat rewrites the
    tag and takes no new space: memory is planned by *distinct* keys.

    Parameters
    ----------
    fpr : float
        Highest chance of reporting a key never inserted, in (0, 1); it is the same at all times. Give this or `nbytes`.
    nbytes : int
        Most bytes to use. The filter then has about the lowest rate that fits.
    slack : int or span of time, optional
        Longest time for which a key may still be reported after it has left the window, in the unit of `window`. By
        default it is a seventh of the window. A half or a fourth of that takes hardly more memory, and insertions take
        longer. It may be as little as 1/3840: 25 bits per key at 1 %, where a seventh takes 15.
    distinct : int, optional
        For a window of insertions: how many different keys it has at most, if not all are. Memory follows this number,
        and `fpr` holds for a tenth more of them. Beyond that they cost accuracy, never the window.
    capacity : int, optional
        Needed for a window of time: the distinct keys expected within it when they come fastest. `fpr` holds for a
        tenth more of them. Beyond that they cost accuracy, even for part of the window, and never the window.
    grow : bool, default False
        With `fpr`, for a window of time or with `distinct`: whether memory doubles as often as more keys come than
        that, and comes back when they have left the window. With twice the keys the rate is then twice `fpr`, with ten
        times as many ten times; without it nearly every key is reported from a fifth more on.
    counts : int, optional
        Bits of a count for each key and epoch, 1 to 8, for `count`, which returns how often keys came. Counts of an
        epoch end at ``2**counts``. By default there are none, and they cost nothing.
    window, lateness, max_ahead, seed
        As in `Filter`.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As `Filter`.

    Notes
    -----
    Structure, proof and rate are in `docs/aged-quotient.md`. Where more keys come than there is room for, lines that
    had to reject a key report every key, until that key's window is over. A filter that grows checks its load after
    every 32nd of the keys it has room for, and moves all entries at once: some 20 ns for each.

    Examples
    --------
    >>> f = lately.AgedQuotientFilter(window=1_000_000, fpr=0.01)
    >>> f.duplicated(["a", "b", "a"])
    array([False, False,  True])
    >>> round(f.bits_per_key, 1)
    14.8
    >>> f = lately.AgedQuotientFilter("10min", 0.001, capacity=50_000)
    >>> f.duplicated(["a", "a", "a"], at=[0, 599, 2000])
    array([False,  True, False])
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
        distinct: int | None = None,
        capacity: int | None = None,
        grow: bool = False,
        counts: int | None = None,
        lateness: _Span | None = None,
        max_ahead: _Span | None = "1 d",
        seed: _Seed = 0,
    ) -> Self:
        given = {
            "window": window,
            "capacity": capacity,
            "grow": grow,
            "lateness": lateness,
            "max_ahead": max_ahead,
            "seed": seed,
            "distinct": distinct,
            "counts": counts,
        }
        return cls._of("aged-quotient", fpr=fpr, nbytes=nbytes, slack=slack, **given)

    @classmethod
    def from_parameters(
        cls,
        window: int | _Span,
        fingerprint_bits: int,
        tag_bits: int,
        pages: int,
        *,
        lines: int = 63,
        distinct: int | None = None,
        capacity: int | None = None,
        grow: bool = False,
        count_bits: int | None = None,
        epochs: int | None = None,
        lateness: _Span | None = None,
        max_ahead: _Span | None = "1 d",
        seed: _Seed = 0,
    ) -> Self:
        """Make a filter with the parameters of the structure.

        Parameters
        ----------
        window : int or span of time
            As in the constructor; 2**tag_bits - 1 full epochs are kept, or `epochs`.
        fingerprint_bits, tag_bits : int
            Bits of a fingerprint, 5 to 20, and of a tag, 3 to 8; together at most 24. With `epochs` a tag has 4 to 12,
            and both at most 28.
        pages : int
            Pages, which turn one after the other.
        lines : int, default 63
            Lines of entries in a page, beside a spare one: 3 to 127. The constructor takes 127, which can be fuller,
            but for small windows.
        count_bits : int, optional
            Bits of a count, 1 to 8, of a filter that counts; with fingerprint and tag at most 32.
        epochs : int, optional
            Full epochs that are kept, fewer than ``2**tag_bits``, where tags are finer than the turns of pages: a page
            turns once in as many epochs as there are tags left for, at most an eighth of them.
        distinct, capacity, grow, lateness, max_ahead, seed
            As in the constructor.

        Examples
        --------
        >>> f = lately.AgedQuotientFilter.from_parameters(10_000, fingerprint_bits=10, tag_bits=3, pages=7)
        >>> f.nbytes, round(f.fpr, 5)
        (28672, 0.00078)
        """
        given = {
            "window": window,
            "capacity": capacity,
            "grow": grow,
            "lateness": lateness,
            "max_ahead": max_ahead,
            "seed": seed,
            "distinct": distinct,
            "count_bits": count_bits,
            "epochs": epochs,
        }
        sizes = {"fingerprint_bits": fingerprint_bits, "tag_bits": tag_bits, "pages": pages, "lines": lines}
        return cls._of("aged-quotient", **sizes, **given)

    def count(self, keys: Any, *, at: _Moments = None, window: int | _Span | None = None) -> NDArray[np.uint64]:
        """Return how often keys were inserted within the window, of a filter made with `counts`.

        Parameters
        ----------
        keys : array-like, Series, column or frame
            A batch of n keys; a row of a frame or of a 2-D array is one key. See `lately.hash_keys`.
        at : time or n times, optional
            For a window of time: when to count, as in `query`.
        window : int or span of time, optional
            A shorter window to count in, in the unit of the filter's own, which is the default.

        Returns
        -------
        ndarray of uint64, shape (n,)
            Never less than the true number in the window, up to ``2**counts``, the greatest certain count. More,
            with probability at most `fpr`, by another key in the same place; by occurrences that left the window less
            than an epoch ago (a seventh of the filter's window, unless the filter has a smaller slack); and where a
            line is full, by older ones, which are then kept as long as a younger one of the same key. Keys that
            ``refresh=False`` did not insert do not count.

        Raises
        ------
        TypeError
            If a key is of a type that has no canonical form; the message names it.
        ValueError
            If the filter was made without `counts`, or `window` or `at` does not fit.

        Examples
        --------
        >>> f = lately.AgedQuotientFilter("10min", 0.001, capacity=50_000, counts=4)
        >>> f.insert(["card 1", "card 2", "card 1", "card 1"], at=[0, 60, 120, 599])
        >>> f.count(["card 1", "card 2", "card 3"], at=600)
        array([3, 1, 0], dtype=uint64)
        >>> f.count(["card 1"], at=600, window="1min")
        array([1], dtype=uint64)
        """
        return _core.count(self, keys, at, window)

    def distinct(self, window: int | _Span | None = None) -> float:
        """Estimate how many different keys were inserted within the window.

        Parameters
        ----------
        window : int or span of time, optional
            A shorter window, in the unit of the filter's own, which is the default.

        Returns
        -------
        float
            The entries of the epochs within the window, the oldest for its share of them, corrected for keys that share
            an entry: -M ln(1 - D / M) for D entries at M places. Reads all cells. Its standard deviation is about
            sqrt(n * fpr / 2) for n keys, and keys do not come evenly within an epoch. Keys in the spare lines count;
            those that there was no room for do not.

        Raises
        ------
        TypeError, ValueError
            If `window` is no length in the filter's unit, or longer than its window.

        Examples
        --------
        >>> f = lately.AgedQuotientFilter(window=1000, fpr=0.001)
        >>> f.insert(["a", "b", "a"])
        >>> round(f.distinct(), 2)
        2.0
        """
        return _core.distinct(self, window)
