"""Bloom filters that forget a generation at a time, slice by slice or segment by segment."""

from __future__ import annotations

from lately.filters.base import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, Self

    from lately._core import _Seed, _Span


_LINES: dict[str, Any] = {"layout": "line", "block_bits": None}
_BLOCKS: dict[str, Any] = {"layout": "sliced", "block_bits": 512}


def _refuse_small(block_bits: int | None) -> None:
    if block_bits == 64:
        raise ValueError("block_bits must be 512, got 64: blocks of 64 bits are made by from_parameters")


class AgePartitionedBloomFilter(Filter):
    """Age-partitioned Bloom filter: no key of the window is missed, and old ones fade slice by slice.

    Parameters
    ----------
    slack : int or span of time, optional
        Longest time for which a key may still be reported after it has left the window, in the unit of `window`. The
        default is half the window (and never less than 64 insertions).
    layout : {"line", "sliced"}, optional
        "line" puts the bits of a key in all slices side by side into one cache line, or into up to four of one page of
        4 KiB: the fastest. The filter then has whole pages. "sliced" is the paper's layout, in which each bit of a key
        lies in a slice of its own; it takes the fewest bytes for small windows. The default is lines, or where they
        cannot meet the request (below some 1e-5, or in less than a page) blocks of 512 bits.
    block_bits : {512}, optional
        In slices: set the bits that a key has in one slice within one block of 512 bits, a cache line, which is several
        times faster than anywhere. For blocks of 64 bits, which take more memory and no fewer cache lines, there is
        `from_parameters`.
    window, fpr, nbytes, capacity, lateness, max_ahead, seed
        As in `Filter`.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As `Filter`.

    Notes
    -----
    Paper 1: A. Shtul, C. Baquero, P. S. Almeida, Age-Partitioned Bloom Filters, 2020. Sized with exact fills, so that
    `fpr` holds just before a shift and the window just after one; the printed formulas promise more than they keep.

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

    def __new__(
        cls,
        window: int | _Span,
        fpr: float | None = None,
        *,
        nbytes: int | None = None,
        slack: int | _Span | None = None,
        block_bits: Literal[512] | None = None,
        layout: Literal["line", "sliced"] | None = None,
        capacity: int | None = None,
        lateness: _Span | None = None,
        max_ahead: _Span | None = "1 d",
        seed: _Seed = 0,
    ) -> Self:
        _refuse_small(block_bits)
        given = {"window": window, "capacity": capacity, "lateness": lateness, "max_ahead": max_ahead, "seed": seed}
        request = {"fpr": fpr, "nbytes": nbytes, "slack": slack}
        if layout is None and block_bits is None:
            return cls._in_first((_LINES, _BLOCKS), "age-partitioned", **given, **request)
        return cls._of(
            "age-partitioned", **given, **request, layout="sliced" if layout is None else layout, block_bits=block_bits
        )

    @classmethod
    def from_parameters(
        cls,
        window: int | _Span,
        k: int,
        l: int,  # noqa: E741
        *,
        slice_bits: int | None = None,
        blocks: int | None = None,
        block_bits: Literal[64, 512] = 512,
        parts: Literal[1, 2, 4, 8] = 8,
        pages: int | None = None,
        lines: Literal[1, 2, 3, 4] = 1,
        capacity: int | None = None,
        lateness: _Span | None = None,
        max_ahead: _Span | None = "1 d",
        seed: _Seed = 0,
    ) -> Self:
        """Make a filter with the parameters of the paper.

        Parameters
        ----------
        window : int or span of time
            As in the constructor; generations are as long as it needs: ceil((window - 1) / l) insertions.
        k, l : int
            Consecutive slices that must match, and full generations kept; k + l at most 128.
        slice_bits : int, optional
            m: bits of each slice of a plain filter.
        blocks : int, optional
            Blocks of each slice of a blocked filter, instead of `slice_bits`.
        block_bits : {64, 512}, default 512
            B: bits of a block.
        parts : {1, 2, 4, 8}, default 8
            b: bits a key sets in a block, each in its own part.
        pages : int, optional
            Pages of 4 KiB of a filter in lines, instead of `slice_bits`; k + l is then 8, 16 or 32, and k at most 4.
        lines : {1, 2, 3, 4}, default 1
            Lines of a page that a key has bits in.
        capacity, lateness, max_ahead, seed
            As in the constructor.

        Examples
        --------
        >>> f = lately.AgePartitionedBloomFilter.from_parameters(1000, k=10, l=7, slice_bits=2064)
        >>> f.nbytes, round(f.npws, 3)
        (4488, 0.261)
        """
        given = {"window": window, "capacity": capacity, "lateness": lateness, "max_ahead": max_ahead, "seed": seed}
        sizes = {"slice_bits": slice_bits, "blocks": blocks, "block_bits": block_bits, "parts": parts, "pages": pages}
        return cls._of("age-partitioned", k=k, l=l, **sizes, lines=lines, **given)


class GuardedEpochBloomFilter(Filter):
    """Guarded-epoch Bloom filter, in the fewest bits: no key of the window is missed, and old ones go by epochs.

    r + 1 Bloom filters in a ring, of which the newest is filled and the oldest cleared after every epoch of
    ceil((window - 1) / r) insertions. A query reads all of them. Posteriors of the default layout are right from 10
    bits per key on: where keys repeat, they are off by .03 at 5 bits and by .02 at 6.

    Parameters
    ----------
    nbytes : int
        Most bytes to use. The filter then has the lowest rate that fits, to within a 64th of it.
    slack : int or span of time, optional
        Longest time for which a key may still be reported after it has left the window, in the unit of `window`. A
        shorter one takes more segments than memory alone would. The default is half the window (and never less than 64
        insertions).
    block_bits : {512}, optional
        Goes with ``layout="sliced"``, and only with it.
    layout : {"transposed", "line", "sliced"}, default "transposed"
        "transposed" puts the bits of all segments at one position side by side. It is the plain filter of paper 2 with
        an r of 7, 15, 31 or 63, in about the same bits; a query reads k places, not k in every segment.
        "line" puts the bits of a key in all segments side by side into one cache line, or into up to four of one page
        of 4 KiB: many times faster, for a few bits more. The filter then has whole pages.
        "sliced" sets the bits that a key has in one segment within one block of 512 bits, a cache line. It takes about
        1.3 bits per key more than the plain filter at 1 %, 4.6 at 0.1 %. Plain segments and blocks of 64 bits are made
        by `from_parameters`: others take less memory or fewer cache lines.
    window, fpr, capacity, lateness, max_ahead, seed
        As in `Filter`.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As `Filter`.

    Notes
    -----
    Paper 2: F. Alpay, L. Sarıoğlu, Guarded Epoch Bloom Filters for Sliding-Window Membership, 2026. Between
    r * epoch + 1 and (r + 1) * epoch insertions are retained; `fpr` holds at the end of an epoch. The segments of
    "transposed" share a key's positions, and a position that many keys share is set in all of them. Posteriors take
    segments for independent, which is their error at few bits per key.

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
        max_ahead: _Span | None = "1 d",
        seed: _Seed = 0,
    ) -> Self:
        _refuse_small(block_bits)
        if layout == "sliced" and block_bits is None:
            raise ValueError("layout='sliced' needs block_bits=512: plain segments are made by from_parameters")
        given = {"window": window, "capacity": capacity, "lateness": lateness, "max_ahead": max_ahead, "seed": seed}
        request = {"fpr": fpr, "nbytes": nbytes, "slack": slack, "block_bits": block_bits, "layout": layout}
        return cls._of("guarded-epoch", **given, **request)

    @classmethod
    def from_parameters(
        cls,
        window: int | _Span,
        r: int,
        *,
        k: int | None = None,
        segment_bits: int | None = None,
        blocks: int | None = None,
        block_bits: Literal[64, 512] = 512,
        parts: Literal[1, 2, 4, 8] = 8,
        pages: int | None = None,
        lines: Literal[1, 2, 3, 4] = 1,
        positions: int | None = None,
        capacity: int | None = None,
        lateness: _Span | None = None,
        max_ahead: _Span | None = "1 d",
        seed: _Seed = 0,
    ) -> Self:
        """Make a filter with the parameters of the paper.

        Parameters
        ----------
        window : int or span of time
            As in the constructor; epochs are as long as it needs: ceil((window - 1) / r) insertions.
        r : int
            Full epochs kept; the filter has r + 1 segments, at most 128.
        k : int, optional
            Bits a key sets in a segment of a plain filter, each in its own part: 1 to 64. Goes with `segment_bits`.
        segment_bits : int, optional
            s: bits of each segment of a plain filter.
        blocks : int, optional
            Blocks of each segment of a blocked filter, instead of `k` and `segment_bits`.
        block_bits : {64, 512}, default 512
            Bits of a block.
        parts : {1, 2, 4, 8}, default 8
            Bits a key sets in a block, each in its own part.
        pages : int, optional
            Pages of 4 KiB of a filter in lines, instead of `k` and `segment_bits`; r is then 7, 15 or 31.
        lines : {1, 2, 3, 4}, default 1
            Lines of a page that a key has bits in.
        positions : int, optional
            Positions of a transposed filter, of r + 1 bits each, instead of `segment_bits`; r is then 7, 15, 31 or 63.
        capacity, lateness, max_ahead, seed
            As in the constructor.

        Examples
        --------
        >>> f = lately.GuardedEpochBloomFilter.from_parameters(20_000, r=8, k=8, segment_bits=31_111)
        >>> f.slack, round(f.fpr, 4)
        (2500, 0.0228)
        """
        given = {"window": window, "capacity": capacity, "lateness": lateness, "max_ahead": max_ahead, "seed": seed}
        sizes = {"k": k, "segment_bits": segment_bits, "blocks": blocks, "block_bits": block_bits, "parts": parts}
        return cls._of("guarded-epoch", r=r, **sizes, pages=pages, lines=lines, positions=positions, **given)
