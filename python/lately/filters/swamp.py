"""A filter whose window is exact to one insertion."""

from __future__ import annotations

import lately._core as _core
from lately.filters.base import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    import numpy as np
    from numpy.typing import NDArray

    from lately._core import _Seed


class Swamp(Filter):
    """SWAMP: an exact window without slack, that also counts keys.

    A buffer of the last fingerprints and a table of how often each occurs there: a key is there for exactly `window`
    insertions, and gone with the next.

    Parameters
    ----------
    window : int
        What "lately" means: a number of insertions, at most 2**32. A span of time is refused: it may hold more keys
        than there is room for.
    fpr, nbytes, seed
        As in `Filter`.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As `Filter`.

    Notes
    -----
    E. Assaf, R. Ben Basat, G. Einziger, R. Friedman, Pay for a Sliding Bloom Filter and Get Counting, Distinct
    Elements, and Entropy for Free, INFOCOM 2018. The chance that one of W different keys has the fingerprint of a fresh
    one is 1 - (1 - 1 / (slots * 2**remainder_bits))**W: `fpr`, at every phase.

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

    def __new__(cls, window: int, fpr: float | None = None, *, nbytes: int | None = None, seed: _Seed = 0) -> Self:
        return cls._of("swamp", window=window, fpr=fpr, nbytes=nbytes, seed=seed)

    @classmethod
    def from_parameters(cls, window: int, slots: int, remainder_bits: int, *, seed: _Seed = 0) -> Self:
        """Make a filter with the parameters of its table.

        Parameters
        ----------
        window : int
            As in the constructor.
        slots : int
            Slots of the table: a multiple of 64, more than `window`. It slows down when hardly any are left.
        remainder_bits : int
            Bits of a fingerprint that a slot keeps; there are slots * 2**remainder_bits fingerprints, at most 2**63.
        seed
            As in the constructor.

        Examples
        --------
        >>> f = lately.Swamp.from_parameters(1000, slots=1280, remainder_bits=8)
        >>> f.nbytes, round(f.fpr, 4)
        (4296, 0.003)
        """
        return cls._of("swamp", window=window, slots=slots, remainder_bits=remainder_bits, seed=seed)

    def count(self, keys: Any) -> NDArray[np.uint64]:
        """Return how often keys were inserted within the window.

        Parameters
        ----------
        keys : array-like, Series, column or frame
            A batch of n keys; a row of a frame or of a 2-D array is one key. See `lately.hash_keys`.

        Returns
        -------
        ndarray of uint64, shape (n,)
            Never less than the true number. More, with probability at most `fpr`, by the insertions of other keys of
            the window that have the same fingerprint.

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
            ln(1 - D / R) / ln(1 - 1 / R) for D different fingerprints of R possible ones. Its standard deviation is
            about n / sqrt(2 R) for n keys, under sqrt(n * fpr / 2). Reads all of the table.

        Examples
        --------
        >>> f = lately.Swamp(window=1000, fpr=0.001)
        >>> f.insert(["a", "b", "a"])
        >>> round(f.distinct(), 3)
        2.0
        """
        return _core.distinct(self)
