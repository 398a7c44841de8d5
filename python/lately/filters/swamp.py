"""A filter whose window is exact to one insertion."""

from __future__ import annotations

import lately._core as _core
from lately.filters.base import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray


class Swamp(Filter):
    """SWAMP: a window that is exact to one insertion, and counts of keys.

    It is a buffer of the last fingerprints, and a table of how often each occurs in the buffer. A key is reported for
    exactly `window` insertions. (With probability `fpr` another key has its fingerprint.)

    Parameters
    ----------
    window : int
        What "lately" means: a number of insertions, at most 2**32. A span of time is rejected, because it may contain
        more keys than the buffer has room for.
    fpr, nbytes, seed
        As in `Filter`.

    Notes
    -----
    E. Assaf, R. Ben Basat, G. Einziger, R. Friedman, *Pay for a Sliding Bloom Filter and Get Counting, Distinct
    Elements, and Entropy for Free*, INFOCOM 2018. The chance that one of W different keys has the fingerprint of a new
    key is 1 - (1 - 1 / (slots * 2**remainder_bits))**W: this is `fpr`, at every phase.

    Examples
    --------
    >>> f = lately.Swamp(window=3, fpr=1e-6)
    >>> f.duplicated(["a", "b", "a", "c", "d", "e", "a"])
    array([False, False,  True, False, False, False, False])
    >>> f.slack
    0
    """

    __module__ = "lately"
    __slots__ = ()
    _family = "Swamp"

    def count(self, keys: Any) -> NDArray[np.uint64]:
        """Return how often each key was inserted within the window.

        Parameters
        ----------
        keys
            As in `Filter.query`.

        Returns
        -------
        ndarray of uint64, shape (n,)
            Never less than the true number. With probability at most `fpr` it includes the insertions of another key of
            the window that has the same fingerprint.

        Raises
        ------
        TypeError
            If a key is of a type that has no canonical form; the message names it.

        Examples
        --------
        >>> f = lately.Swamp(window=1000, fpr=0.001)
        >>> f.insert(["a", "b", "a"])
        >>> f.count(["a", "b", "c"])
        array([2, 1, 0], dtype=uint64)
        """
        return _core.count(self, keys)

    def distinct(self) -> float:
        """Estimate how many different keys were inserted within the window.

        Returns
        -------
        float
            ln(1 - D / R) / ln(1 - 1 / R) for D different fingerprints of R possible ones. For n keys its standard
            deviation is about n / sqrt(2 R), less than sqrt(n * fpr / 2). Reads the whole table.

        Examples
        --------
        >>> f = lately.Swamp(window=1000, fpr=0.001)
        >>> f.insert(["a", "b", "a"])
        >>> round(f.distinct(), 3)
        2.0
        """
        return _core.distinct(self)
