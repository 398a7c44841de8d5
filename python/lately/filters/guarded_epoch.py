"""A Bloom filter that forgets one epoch at a time."""

from __future__ import annotations

from itertools import product

from lately.filters.base import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class GuardedEpochBloomFilter(Filter):
    """Guarded-epoch Bloom filter: misses no key of the window, and forgets old keys epoch by epoch.

    It is a ring of r + 1 Bloom filters, the segments. Insertions fill the newest segment. After every epoch of
    ceil((window - 1) / r) insertions the oldest segment is cleared and becomes the newest. A query reads all segments.

    It takes the parameters of `Filter`, without `distinct` and `prefer`.

    Parameters
    ----------
    slack : int or span of time, optional
        Longest time for which a key may still be reported after it has left the window, in the unit of `window`. The
        default is half the window, and at least 64 insertions. A shorter slack takes more segments.
    capacity : int, optional
        As in `AgePartitionedBloomFilter`: lines keep `fpr` in a burst. A transposed filter is planned for keys that
        come evenly, a part 1 / `r` of them in each epoch, and warns in a burst.

    Notes
    -----
    Paper 2: F. Alpay, L. Sarıoğlu, *Guarded Epoch Bloom Filters for Sliding-Window Membership*, 2026. Between
    r * epoch + 1 and (r + 1) * epoch insertions are retained; `fpr` holds at the end of an epoch.

    A request makes a transposed filter: the bits that all segments have at one position lie side by side. A query then
    reads k places, not k in every segment. It is the plain filter of the paper with an r of 7, 15, 31 or 63, in about
    the same bits. `from_parameters` also makes plain segments (`segment_bits`), segments in blocks of 64 or 512 bits
    (`blocks`), and lines (`pages`), in which the bits of a key in all segments lie side by side: many times faster, for
    a few bits more.

    Posteriors treat the segments as independent. In a transposed filter they are not: a key has the same positions in
    all segments, and a position of many keys is set in all of them. From 10 bits per key on the error is negligible.
    Where keys repeat, it is 0.03 at 5 bits per key and 0.02 at 6.

    Examples
    --------
    >>> f = lately.GuardedEpochBloomFilter(window=1_000_000, fpr=0.01)
    >>> f.duplicated(["a", "b", "a"])
    array([False, False,  True])
    >>> round(f.bits_per_key, 1), f.slack
    (15.9, 142856)
    >>> f = lately.GuardedEpochBloomFilter("10min", 0.001, capacity=50_000)
    >>> f.duplicated(["a", "a", "a"], at=[0, 599, 2000])
    array([False,  True, False])
    """

    __module__ = "lately"
    __slots__ = ()
    _family = "GuardedEpochBloomFilter"

    @staticmethod
    def _shapes(nbytes: int) -> Iterator[dict[str, Any]]:
        for r, k in product((7, 15, 31, 63), (6, 8, 10, 12, 14)):
            yield {"r": r, "k": k, "positions": 8 * nbytes // (r + 1) // 64 * 64}
