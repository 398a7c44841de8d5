"""The filter of fingerprints with ages, close to the least memory that is possible."""

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
    """Aged quotient filter: misses no key of the window, takes the fewest bytes, and stores an age for each key.

    Each key is a fingerprint in a cache line, with a tag: the epoch of its last occurrence. A repeat rewrites the tag
    and takes no new space, so memory is planned by the number of *different* keys.

    Parameters
    ----------
    window
        As in `Filter`.
    fpr : float
        Highest chance of reporting a key that was never inserted, in (0, 1); it is the same at all phases. Give this or
        `nbytes`.
    nbytes : int
        Greatest number of bytes to use. The filter then has about the lowest rate that fits.
    slack : int or span of time, optional
        Longest time for which a key may still be reported after it has left the window, in the unit of `window`. The
        default is a seventh of the window. Half or a quarter of that takes hardly more memory, and makes insertions
        slower. The least is 1/3840 of the window: 25 bits per key at 1 %, where a seventh takes 15.
    distinct : int, optional
        For a window of insertions with repeats: the most different keys that it contains. Memory follows this number.
        `fpr` holds for a tenth more keys than that; beyond it they cost accuracy, never the window.
    capacity : int, optional
        Needed for a window of time: the different keys expected within it at the highest rate. `fpr` holds for a tenth
        more. Beyond that they cost accuracy, even if they come in part of the window only, and never the window.
    grow : bool, default False
        Whether the memory doubles when more keys come than planned, and shrinks when they have left the window. Needs
        `fpr`, and a window of time or `distinct`. With twice the keys the rate is then twice `fpr`, with ten times the
        keys ten times. Without `grow`, a fifth more keys than planned make nearly every key a false positive.
    counts : int, optional
        Bits of a count for each key and epoch, 1 to 8, which `count` reads. A count of an epoch stops at ``2**counts``.
        By default there are none, and they cost nothing.
    lateness, max_ahead, seed
        As in `Filter`.

    Notes
    -----
    `docs/aged-quotient.md` describes structure, proof and rate. If a line has no room for a key, it reports every key
    until the window of that key is over. A filter that grows checks its load after every 32nd of the keys that it has
    room for. When it grows, it moves all entries at once: about 20 ns each.

    Filters are planned so that `fpr` bounds the mean rate over filters, and at most one filter in a million exceeds
    twice `fpr` at some moment of a window.

    Examples
    --------
    >>> f = lately.AgedQuotientFilter(window=1_000_000, fpr=0.01)
    >>> f.duplicated(["a", "b", "a"])
    array([False, False,  True])
    >>> round(f.bits_per_key, 1)
    14.9
    >>> f = lately.AgedQuotientFilter("10min", 0.001, capacity=50_000)
    >>> f.duplicated(["a", "a", "a"], at=[0, 599, 2000])
    array([False,  True, False])
    """

    __module__ = "lately"
    __slots__ = ()
    _family = "AgedQuotientFilter"

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
        max_ahead: _Span | None = "window",
        seed: _Seed = 0,
    ) -> Self:
        given = {"capacity": capacity, "lateness": lateness, "max_ahead": max_ahead, "seed": seed, "distinct": distinct}
        limits = {"fpr": fpr, "nbytes": nbytes, "slack": slack, "grow": grow, "counts": counts}
        return cls._built(cls._family, window=window, **limits, **given)

    def count(self, keys: Any, *, at: _Moments = None, window: int | _Span | None = None) -> NDArray[np.uint64]:
        """Return how often each key was inserted within the window. The filter must have been made with `counts`.

        Parameters
        ----------
        keys
            As in `Filter.query`.
        at : time or n times, optional
            End of the window, for a window of time, as in `query`.
        window : int or span of time, optional
            A shorter window to count in, in the unit of the filter's own window, which is the default.

        Returns
        -------
        ndarray of uint64, shape (n,)
            Never less than the true number in the window, up to ``2**counts``. Keys that ``refresh=False`` did not
            insert do not count. The result may be too large in three cases: another key has the same place, with a
            probability of at most `fpr`; occurrences left the window less than an epoch ago (a seventh of the window,
            or the slack where that is smaller); or a full line kept older occurrences of the key.

        Raises
        ------
        TypeError
            If a key is of a type that has no canonical form; the message names it.
        ValueError
            If the filter was made without `counts`, or `window` or `at` is out of range.

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
            A shorter window, in the unit of the filter's own window, which is the default.

        Returns
        -------
        float
            -M ln(1 - D / M) for D entries at M places, which corrects for keys that share an entry. D is the number of
            entries of the epochs within the window; the oldest epoch counts by its share. The standard deviation is
            about sqrt(n * fpr / 2) for n keys that come evenly within an epoch. Keys in the overflow lines count; keys
            that the filter had no room for do not. Reads all cells.

        Raises
        ------
        TypeError, ValueError
            If `window` is not in the filter's unit, or longer than its window.

        Examples
        --------
        >>> f = lately.AgedQuotientFilter(window=1000, fpr=0.001)
        >>> f.insert(["a", "b", "a"])
        >>> round(f.distinct(), 2)
        2.0
        """
        return _core.distinct(self, window)
