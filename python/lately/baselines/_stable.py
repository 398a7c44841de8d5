"""A filter whose insertions decrement cells at random."""

from __future__ import annotations

from lately.filters.base import Filter


class StableBloomFilter(Filter):
    """Stable Bloom filter: **promises no window.** Keys are forgotten at random, some of them soon. A baseline.

    Every insertion decrements cells at random and sets the key's own cells to their maximum. The filter is therefore
    never full, and its rate of false positives holds for an endless stream.

    Parameters
    ----------
    window : int
        The age that the sizes are chosen for, at most 2**32. Of the keys inserted exactly this many insertions ago, at
        most a tenth is forgotten in expectation; of younger keys fewer, of older keys more. Some keys are remembered
        much longer: `slack` is infinite.
    fpr : float
        Highest chance of reporting a key that was never inserted, at the stable point, in (0, 1). Give this or
        `nbytes`.
    nbytes : int
        Greatest number of bytes. The filter then has nearly the lowest rate that fits.
    seed : int, bytes or "random", default 0
        Seed of the key hashes, as in `Filter`, and of the cells to decrement. Equal seeds and keys forget alike.

    Notes
    -----
    F. Deng, D. Rafiei, *Approximately Detecting Duplicates for Streaming Data using Stable Bloom Filters*, 2006.

    Posteriors assume equally frequent keys. Their number is computed from the current share of zero cells.

    Examples
    --------
    >>> f = lately.baselines.StableBloomFilter(window=10_000, fpr=0.01)
    >>> f.insert(range(100_000))
    >>> found = f.query(range(90_000, 100_000))
    >>> bool(0.9 < found.mean() < 1), bool(found[-1])
    (True, True)
    """

    __module__ = "lately.baselines"
    __slots__ = ()
    _family = "baselines.StableBloomFilter"
