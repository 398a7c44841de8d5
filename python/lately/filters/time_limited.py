"""The filter whose memory follows the rate of keys, slice by slice."""

from __future__ import annotations

import lately._core as _core
from lately.filters.base import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class TimeLimitedBloomFilter(Filter):
    """Time-limited Bloom filter: a window of time at an unknown rate; its memory follows the keys.

    Parameters
    ----------
    window : span of time
        What "lately" means: a span such as ``"10min"``, a `datetime.timedelta` or a `numpy.timedelta64`.
    fpr : float
        Highest chance of reporting a key that was never inserted, at a steady rate and the worst phase, in (0, 1).
    capacity : int, optional
        Estimate of the keys within one window, for the size of the first slices; the default is 10,000. A wrong
        estimate costs memory or accuracy for the first window or two.
    slack : span of time, optional
        Longest time for which a key may still be reported after it has left the window. The default is half the window.
    lateness, max_ahead, seed
        As in `Filter`.

    Raises
    ------
    MemoryError
        If there is not enough memory. A filter that cannot grow rejects the keys from there on; those before are
        inserted.

    Notes
    -----
    No key of the window is missed, at any rate. While the rate of keys rises, there are more slices than planned, and
    `fpr` is exceeded in proportion, for about one window: then the sizes have followed. `false_positive_rate` returns
    the current rate, and `fill` has one value per live slice.

    `nbytes` is the size of the slices; the memory for them may be up to a seventh larger. Insertions drop old slices,
    and the memory shrinks. While the memory changes, there are two copies for a moment.

    Paper 3: A. Rodrigues, A. Shtul, C. Baquero, P. S. Almeida, *Time-limited Bloom Filter*, 2023.

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
    _family = "TimeLimitedBloomFilter"

    @property
    def slice_bits(self) -> NDArray[np.uint64]:
        """Bits of each slice, the newest first: ndarray of uint64, shape (slices,).

        Expired slices remain until an insertion needs the room. `fill` has the live ones only.
        """
        return _core.slice_bits(self)
