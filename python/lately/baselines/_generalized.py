"""Bits set and bits reset: keys fade."""

from __future__ import annotations

import lately._core as _core
from lately.filters.base import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Self

    import numpy as np
    from numpy.typing import NDArray

    from lately._core import _Seed


class GeneralizedBloomFilter(Filter):
    """Generalized Bloom filter: **promises no window.** Every bit forgets gradually, and keys fade.

    An insertion sets k1 bits of the key to one and resets k0 to zero, which wins where both hit. A key is reported when
    all of them are as it left them: each later key may have changed one, by chance, and so the filter loses some keys
    of the window and keeps some beyond. `false_negative_rates` returns how many, by age. Posteriors need the
    number of different keys: see Notes.

    Parameters
    ----------
    window : int
        What the sizes are chosen for, and nothing else. Of the keys inserted exactly this many insertions ago at most a
        tenth is missed, in expectation; of younger ones fewer, of older ones more. `slack` is infinite.
    fpr : float
        Highest chance of reporting a key never inserted, in (0, 1): the filter takes the least memory that keeps both.
        Give this or `nbytes`.
    nbytes : int
        Most bytes to use. The filter then has the lowest rate that remembers the window as well as that. If no filter
        of so few bytes does, it has the least sum of two chances: to report a new key, and to miss the window's oldest.
    seed
        As in `Filter`.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As `Filter`.

    Notes
    -----
    Rates are expectations at the fill that the filter tends to, where false positives are most likely. A cell that some
    key wrote is still as it was, i different other keys later, with chance (1 - 1/bits)**(i * (k0 + k1)), or else holds
    what any cell does. Repeated keys change nothing anew: they make it forget less.

    With ``refresh=False`` a key that comes without end may never be let through again: only insertions forget.

    The bits fade by the number of different keys, which posteriors need: from a prior with a method
    ``distinct``, such as `lately.Uniform` or `lately.Zipf`, or from one number for all keys, by which they are equally
    frequent, so that their number follows. **An array of numbers does not contain it**: all insertions are then taken
    for different keys, and where they repeat posteriors are off by .02 to .12 at 10 to 20 bits per key. `Probabilities`
    is both, chances and a curve.

    R. P. Laufer, P. B. Velloso, O. C. Duarte, A Generalized Bloom Filter to Secure Distributed Network Applications,
    2011; on streams: paper 5, section 5 (J. Dautrich, C. Ravishankar, Inferring Insertion Times and Optimizing Error
    Penalties in Time-Decaying Bloom Filters, 2019).

    Examples
    --------
    >>> f = lately.baselines.GeneralizedBloomFilter(window=10_000, fpr=0.01)
    >>> f.insert(range(100_000))
    >>> found = f.query(range(90_000, 100_000))
    >>> bool(0.9 < found.mean() < 1), bool(found[-1])
    (True, True)
    >>> f.false_negative_rates([0, 4_999, 9_999]).round(3)
    array([0.   , 0.052, 0.1  ])
    """

    __module__ = "lately.baselines"
    __slots__ = ()

    def __new__(cls, window: int, fpr: float | None = None, *, nbytes: int | None = None, seed: _Seed = 0) -> Self:
        return cls._of("generalized", window=window, fpr=fpr, nbytes=nbytes, seed=seed)

    @classmethod
    def from_parameters(cls, window: int, bits: int, *, k1: int, k0: int, seed: _Seed = 0) -> Self:
        """Make a filter of a given size.

        Parameters
        ----------
        window : int
            As in the constructor; here a name only.
        bits : int
            m: cells, of one bit each.
        k1 : int
            Hashes that set a bit, at most 64.
        k0 : int
            Hashes that reset a bit, at most 64.
        seed : int, bytes or "random", default 0
            As in the constructor.

        Examples
        --------
        >>> f = lately.baselines.GeneralizedBloomFilter.from_parameters(1000, bits=100_000, k1=4, k0=3)
        >>> f.nbytes, round(f.fpr, 4)
        (12504, 0.0084)
        """
        return cls._of("generalized", window=window, bits=bits, k1=k1, k0=k0, seed=seed)

    def false_negative_rates(self, ages: Sequence[int] | NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Return the chance that a key is missed, by its age.

        Parameters
        ----------
        ages : sequence of int, of length n
            Insertions of other keys since its own, in [0, 2**64): the oldest key of a window W has W - 1.

        Returns
        -------
        ndarray of float64, shape (n,)
            In expectation, at the fill that the filter tends to. From 0 on it rises to 1 - `fpr`.

        Raises
        ------
        ValueError
            If an age is negative or too large.
        TypeError
            If an age is no int.

        Examples
        --------
        >>> f = lately.baselines.GeneralizedBloomFilter.from_parameters(1000, bits=1000, k1=3, k0=3)
        >>> f.false_negative_rates([0, 10, 100, 1000]).round(3)
        array([0.   , 0.162, 0.784, 0.984])
        """
        return _core.missed(self, ages)
