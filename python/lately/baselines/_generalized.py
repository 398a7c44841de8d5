"""A filter whose insertions set some bits and reset others."""

from __future__ import annotations

import lately._core as _core
from lately.filters.base import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray


class GeneralizedBloomFilter(Filter):
    """Generalized Bloom filter: **promises no window.** Keys fade, because later keys overwrite their bits. A baseline.

    An insertion sets k1 bits of the key to one and resets k0 to zero; a bit that is in both becomes zero. A key is
    reported while all of them are as its insertion left them. Each later key may change one of them by chance, so the
    filter misses some keys of the window and reports some beyond it. `false_negative_rates` returns how many, by age.
    Posteriors need the number of different keys: see Notes.

    Parameters
    ----------
    window : int
        The age that the sizes are chosen for. Of the keys inserted exactly this many insertions ago, at most a tenth is
        missed in expectation; of younger keys fewer, of older keys more. `slack` is infinite.
    fpr : float
        Highest chance of reporting a key that was never inserted, in (0, 1). The filter takes the least memory that
        holds both this and the tenth above. Give this or `nbytes`.
    nbytes : int
        Greatest number of bytes. The filter then has the lowest rate at which at most a tenth of the oldest keys is
        missed. If these bytes are too few for that, it minimises the sum of two chances: of reporting a new key, and of
        missing the oldest key of the window.
    seed
        As in `Filter`.

    Notes
    -----
    Rates are expectations at the fill that the filter tends to, where false positives are most likely. After i other
    different keys, a cell is unchanged with a chance of (1 - 1/bits)**(i * (k0 + k1)), and otherwise has the value of
    any cell. Repeats change no bits, so a stream with repeats is forgotten more slowly.

    With ``refresh=False`` a key that comes endlessly may never pass again, because only insertions make the filter
    forget.

    Posteriors depend on the number of different keys. It comes from a prior with a method ``distinct``, such as
    `lately.Uniform` or `lately.Zipf`, or from a single number for all keys, which makes them equally frequent. **An
    array of numbers does not contain it**: all insertions are then treated as different keys, and where they repeat,
    posteriors are off by 0.02 (k0 = k1 = 1) to 0.14 (10 each) at 10 to 20 bits per key. `Probabilities` has both an
    array and a curve.

    Sources: R. P. Laufer, P. B. Velloso, O. C. Duarte, *A Generalized Bloom Filter to Secure Distributed Network
    Applications*, 2011. On streams: paper 5, section 5 (J. Dautrich, C. Ravishankar, *Inferring Insertion Times and
    Optimizing Error Penalties in Time-Decaying Bloom Filters*, 2019).

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
    _family = "baselines.GeneralizedBloomFilter"

    def false_negative_rates(self, ages: Sequence[int] | NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Return the chance that a key is missed, by its age.

        Parameters
        ----------
        ages : sequence of int, of length n
            Insertions of other keys since the key's own, in [0, 2**64). The oldest key of a window W has age W - 1.

        Returns
        -------
        ndarray of float64, shape (n,)
            In expectation, at the fill that the filter tends to. It rises from 0 to 1 - `fpr`.

        Raises
        ------
        ValueError
            If an age is negative or too large.
        TypeError
            If an age is not an int.

        Examples
        --------
        >>> f = lately.baselines.GeneralizedBloomFilter.from_parameters(1000, bits=1000, k1=3, k0=3)
        >>> f.false_negative_rates([0, 10, 100, 1000]).round(3)
        array([0.   , 0.162, 0.784, 0.984])
        """
        return _core.missed(self, ages)
