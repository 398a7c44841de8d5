"""A Bloom filter that forgets one slice at a time."""

from __future__ import annotations

from itertools import product

from lately.filters.base import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class AgePartitionedBloomFilter(Filter):
    """Age-partitioned Bloom filter: misses no key of the window, and forgets old keys slice by slice.

    It takes the parameters of `Filter`, without `distinct` and `prefer`.

    Parameters
    ----------
    slack : int or span of time, optional
        Longest time for which a key may still be reported after it has left the window, in the unit of `window`. The
        default is half the window, and at least 64 insertions.
    capacity : int, optional
        Needed for a window of time: the most keys within it, with `lateness` in window and lateness. Lines keep `fpr`
        however these come, also all at once, because a generation ends when it has taken its share of them. More keys
        raise the rate of false positives, and the window stays whole; an `OverfullWarning` is issued then. Blocks and
        slices are planned for keys that come evenly, and warn in a burst within `capacity` too: a tenth of it at once
        can make most new keys false positives.

    Notes
    -----
    Paper 1: A. Shtul, C. Baquero, P. S. Almeida, *Age-Partitioned Bloom Filters*, 2020. Sizes come from exact
    fills: `fpr` holds just before a shift, and the window just after it. The printed formulas promise more than holds.

    A request makes lines: all bits of a key lie side by side in one cache line, or in up to four lines of one page of
    4 KiB, which is the fastest. In a window of time lines take about twice the memory of a window of as many
    insertions, for bursts. Where lines cannot meet it (below an fpr of about 1e-5, or in less than a page), the
    bits that a key has in one slice lie in one block of 512 bits. `from_parameters` also makes the slices of the paper,
    in which each bit of a key lies anywhere in its slice, and blocks of 64 bits.

    Examples
    --------
    >>> f = lately.AgePartitionedBloomFilter(window=1_000_000, fpr=0.001)
    >>> f.duplicated(["a", "b", "a"])
    array([False, False,  True])
    >>> f = lately.AgePartitionedBloomFilter("10min", 0.001, capacity=50_000)
    >>> f.duplicated(["a", "a", "a"], at=[0, 599, 2000])
    array([False,  True, False])
    """

    __module__ = "lately"
    __slots__ = ()
    _family = "AgePartitionedBloomFilter"

    @staticmethod
    def _shapes(nbytes: int) -> Iterator[dict[str, Any]]:
        for k, ring in product((6, 10, 14), (8, 16, 32, 64, 107)):
            yield {"k": k, "l": ring, "slice_bits": 8 * nbytes // (k + ring) // 64 * 64}
