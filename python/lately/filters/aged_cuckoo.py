"""The filter of fingerprints with ages, which is the default."""

from __future__ import annotations

from itertools import product

from lately import _core
from lately.filters.base import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from lately._core import _Span


class AgedCuckooFilter(Filter):
    """Aged cuckoo filter: misses no key of the window, has little slack in few bytes, and stores an age for each key.

    Each key is a fingerprint in one of two cache lines, with a tag: the epoch of its last occurrence. A repeat rewrites
    the tag and takes no new space. In a window of time the memory follows the number of keys, whatever their rate.

    Parameters
    ----------
    window
        As in `Filter`.
    fpr : float
        Highest chance of reporting a key that was never inserted, in (0, 1): an upper bound at the fullest moment. Give
        this or `nbytes`.
    nbytes : int
        Greatest number of bytes to use. The filter then has the lowest rate that fits, and rejects keys beyond its
        room: it reports them and every key of their lines for a window.
    slack : int or span of time, optional
        Longest time for which a key may still be reported after it has left the window, in the unit of `window`. The
        default is half of the window. The least is 1/200 of it, and costs hardly more bytes.
    distinct : int, optional
        For a window of insertions with repeats: the most different keys that it contains. Memory follows this number.
    capacity : int, optional
        For a window of time: the different keys expected within it. With `fpr` they plan the first table, and more keys
        get more memory. With `nbytes` it is needed, and more keys cost accuracy.
    lateness, max_ahead, seed
        As in `Filter`.

    Notes
    -----
    `docs/aged-cuckoo.md` describes structure, proof and rate. The structure is a cuckoo filter (B. Fan et al., *Cuckoo
    Filter: Practically Better Than Bloom*, CoNEXT 2014) whose buckets are cache lines and whose entries age.

    Examples
    --------
    >>> f = lately.AgedCuckooFilter(window=1_000_000, fpr=0.001, slack=15_625)
    >>> f.duplicated(["a", "b", "a"])
    array([False, False,  True])
    >>> round(f.nbytes / 1e6, 1)
    3.3
    >>> f = lately.AgedCuckooFilter("10min", 0.001)
    >>> f.duplicated(["a", "a", "a"], at=[0, 599, 2000])
    array([False,  True, False])
    """

    __module__ = "lately"
    __slots__ = ()
    _family = "AgedCuckooFilter"

    @staticmethod
    def _shapes(nbytes: int) -> Iterator[dict[str, Any]]:
        for bits, epochs in product((10, 13, 16, 20, 25, 28, 32, 37), (16, 64)):
            # A window of fewer different keys has room for longer fingerprints.
            lines = nbytes // 64
            pages = max(-(-lines // 2048), 1)
            yield {"fingerprint_bits": bits, "epochs": epochs, "pages": pages, "lines": lines // pages // 2 * 2}

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
            entries of the epochs within the window; the oldest epoch counts by its share. Keys that a full filter
            rejected do not count. Where several tables answer together, a key that came in two of them counts twice.
            Reads all cells.

        Raises
        ------
        TypeError, ValueError
            If `window` is not in the filter's unit, or longer than its window.

        Examples
        --------
        >>> f = lately.AgedCuckooFilter(window=1000, fpr=0.001)
        >>> f.insert(["a", "b", "a"])
        >>> round(f.distinct(), 2)
        2.0
        """
        return _core.distinct(self, window)
