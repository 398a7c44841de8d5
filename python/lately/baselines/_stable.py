"""A filter whose insertions decrement cells at random."""

from __future__ import annotations

from lately._docstrings import complete
from lately.filters.base import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, Self

    from lately._core import _Seed


@complete
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

    Raises
    ------
    ValueError, TypeError, MemoryError
        As in `Filter`.

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

    def __new__(cls, window: int, fpr: float | None = None, *, nbytes: int | None = None, seed: _Seed = 0) -> Self:
        return cls._of("stable", **locals())

    @classmethod
    def from_parameters(
        cls, window: int, k: int, slice_cells: int, *, bits: Literal[1, 2, 4, 8], decrements: int, seed: _Seed = 0
    ) -> Self:
        """Make a filter of a given size and decay.

        Parameters
        ----------
        window : int
            A name only: it changes no size.
        k : int
            Slices, and cells of a key, at most 128.
        slice_cells : int
            m: cells of each slice.
        bits : {1, 2, 4, 8}
            Bits of a cell. An insertion sets the key's cells to Max = 2**bits - 1.
        decrements : int
            P: cells of each slice that every insertion decrements, at most all of them.
        seed
            As in `StableBloomFilter`.

        Raises
        ------
        ValueError, TypeError, MemoryError
            As in `Filter`.

        Examples
        --------
        >>> from lately.baselines import StableBloomFilter
        >>> f = StableBloomFilter.from_parameters(20_000, k=2, slice_cells=35_000, bits=4, decrements=30)
        >>> f.nbytes, round(f.fpr, 3)
        (35000, 0.151)
        """
        return cls._of("stable", **locals())
