"""A Bloom filter that forgets one epoch at a time."""

from __future__ import annotations

from lately._docstrings import complete
from lately.filters.age_partitioned import reject_small_blocks
from lately.filters.base import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, Self

    from lately._core import _Seed, _Span


@complete
class GuardedEpochBloomFilter(Filter):
    """Guarded-epoch Bloom filter: misses no key of the window, and forgets old keys epoch by epoch.

    It is a ring of r + 1 Bloom filters, the segments. Insertions fill the newest segment. After every epoch of
    ceil((window - 1) / r) insertions the oldest segment is cleared and becomes the newest. A query reads all segments.

    Parameters
    ----------
    window, fpr
        As in `Filter`.
    nbytes : int
        Greatest number of bytes to use. The filter then has the lowest rate that fits, to within a 64th of it.
    slack : int or span of time, optional
        Longest time for which a key may still be reported after it has left the window, in the unit of `window`. The
        default is half the window, and at least 64 insertions. A shorter slack takes more segments.
    layout : {"transposed", "line", "sliced"}, default "transposed"
        "transposed" puts the bits that all segments have at one position side by side. A query then reads k places, not
        k in every segment. It is the plain filter of paper 2 with an r of 7, 15, 31 or 63, in about the same bits.
        "line" puts the bits of a key in all segments side by side into one cache line, or into up to four lines of one
        page of 4 KiB: many times faster, for a few bits more. The filter then consists of whole pages.
        "sliced" puts the bits that a key has in one segment into one block of 512 bits, a cache line. It takes about
        1.3 bits per key more than the plain filter at 1 %, and 4.6 more at 0.1 %. `from_parameters` makes plain
        segments, and `from_block_parameters` also blocks of 64 bits.
    block_bits : {512}, optional
        Needed for ``layout="sliced"``, and only for it.
    capacity
        As in `AgePartitionedBloomFilter`.
    lateness, max_ahead, seed
        As in `Filter`.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As in `Filter`.

    Notes
    -----
    Paper 2: F. Alpay, L. Sarıoğlu, *Guarded Epoch Bloom Filters for Sliding-Window Membership*, 2026. Between
    r * epoch + 1 and (r + 1) * epoch insertions are retained; `fpr` holds at the end of an epoch.

    Posteriors treat the segments as independent. In "transposed" they are not: a key has the same positions in all
    segments, and a position of many keys is set in all of them. From 10 bits per key on the error is negligible. Where
    keys repeat, it is 0.03 at 5 bits per key and 0.02 at 6.

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

    def __new__(
        cls,
        window: int | _Span,
        fpr: float | None = None,
        *,
        nbytes: int | None = None,
        slack: int | _Span | None = None,
        block_bits: Literal[512] | None = None,
        layout: Literal["transposed", "line", "sliced"] = "transposed",
        capacity: int | None = None,
        lateness: _Span | None = None,
        max_ahead: _Span | None = "window",
        seed: _Seed = 0,
    ) -> Self:
        reject_small_blocks(block_bits)
        if layout == "sliced" and block_bits is None:
            raise ValueError("layout='sliced' needs block_bits=512: plain segments are made by from_parameters")
        return cls._of("guarded-epoch", **locals())

    @classmethod
    def from_parameters(
        cls,
        window: int | _Span,
        r: int,
        k: int,
        segment_bits: int,
        *,
        capacity: int | None = None,
        lateness: _Span | None = None,
        max_ahead: _Span | None = "window",
        seed: _Seed = 0,
    ) -> Self:
        """Make a filter with the parameters of the paper: each bit of a key lies anywhere in its part of a segment.

        Parameters
        ----------
        window : int or span of time
            What "lately" means: a number of insertions, or a span of time such as ``"10min"``. An epoch is
            ceil((window - 1) / r) insertions, or the r-th part of a window of time.
        r : int
            Number of full epochs that are retained; the filter has r + 1 segments, at most 128.
        k : int
            Bits that a key sets in a segment, each in its own part: 1 to 64.
        segment_bits : int
            s: bits of each segment.
        capacity, lateness, max_ahead, seed
            As in `GuardedEpochBloomFilter`.

        Raises
        ------
        ValueError, TypeError, MemoryError
            As in `Filter`.

        Examples
        --------
        >>> f = lately.GuardedEpochBloomFilter.from_parameters(20_000, r=8, k=8, segment_bits=31_111)
        >>> f.slack, round(f.fpr, 4)
        (2500, 0.0228)
        """
        return cls._of("guarded-epoch", **locals())

    @classmethod
    def from_block_parameters(
        cls,
        window: int | _Span,
        r: int,
        blocks: int,
        *,
        block_bits: Literal[64, 512] = 512,
        parts: Literal[1, 2, 4, 8] = 8,
        capacity: int | None = None,
        lateness: _Span | None = None,
        max_ahead: _Span | None = "window",
        seed: _Seed = 0,
    ) -> Self:
        """Make a filter in segments of blocks: the bits that a key has in one segment lie in one block.

        Parameters
        ----------
        window, r
            As in `GuardedEpochBloomFilter.from_parameters`.
        blocks : int
            Number of blocks in each segment.
        block_bits, parts
            As in `AgePartitionedBloomFilter.from_block_parameters`.
        capacity, lateness, max_ahead, seed
            As in `GuardedEpochBloomFilter`.

        Raises
        ------
        ValueError, TypeError, MemoryError
            As in `Filter`.

        Examples
        --------
        >>> f = lately.GuardedEpochBloomFilter.from_block_parameters(20_000, r=8, blocks=61)
        >>> f.slack, round(f.fpr, 4)
        (2500, 0.0303)
        """
        return cls._of("guarded-epoch", **locals())

    @classmethod
    def from_line_parameters(
        cls,
        window: int | _Span,
        r: int,
        pages: int,
        *,
        lines: Literal[1, 2, 3, 4] = 1,
        capacity: int | None = None,
        lateness: _Span | None = None,
        max_ahead: _Span | None = "window",
        seed: _Seed = 0,
    ) -> Self:
        """Make a filter in lines: the bits of a key in all segments lie side by side, in lines of one page.

        Parameters
        ----------
        window
            As in `GuardedEpochBloomFilter.from_parameters`.
        r : int
            Number of full epochs that are retained: 7, 15 or 31.
        pages, lines
            As in `AgePartitionedBloomFilter.from_line_parameters`.
        capacity, lateness, max_ahead, seed
            As in `GuardedEpochBloomFilter`.

        Raises
        ------
        ValueError, TypeError, MemoryError
            As in `Filter`.

        Examples
        --------
        >>> f = lately.GuardedEpochBloomFilter.from_line_parameters(20_000, r=7, pages=9, lines=2)
        >>> f.slack, round(f.fpr, 4)
        (2896, 0.0264)
        """
        return cls._of("guarded-epoch", **locals())

    @classmethod
    def from_transposed_parameters(
        cls,
        window: int | _Span,
        r: int,
        k: int,
        positions: int,
        *,
        capacity: int | None = None,
        lateness: _Span | None = None,
        max_ahead: _Span | None = "window",
        seed: _Seed = 0,
    ) -> Self:
        """Make a transposed filter: the bits that all segments have at one position lie side by side.

        Parameters
        ----------
        window
            As in `GuardedEpochBloomFilter.from_parameters`.
        r : int
            Number of full epochs that are retained: 7, 15, 31 or 63.
        k
            As in `GuardedEpochBloomFilter.from_parameters`.
        positions : int
            Number of positions, of r + 1 bits each.
        capacity, lateness, max_ahead, seed
            As in `GuardedEpochBloomFilter`.

        Raises
        ------
        ValueError, TypeError, MemoryError
            As in `Filter`.

        Examples
        --------
        >>> f = lately.GuardedEpochBloomFilter.from_transposed_parameters(20_000, r=7, k=8, positions=35_000)
        >>> f.slack, round(f.fpr, 4)
        (2856, 0.0222)
        """
        return cls._of("guarded-epoch", **locals())
