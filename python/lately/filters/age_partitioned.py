"""A Bloom filter that forgets one slice at a time."""

from __future__ import annotations

from lately._docstrings import complete
from lately.filters.base import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, Self

    from lately._core import _Seed, _Span


_LINES: dict[str, Any] = {"layout": "line", "block_bits": None}
_BLOCKS: dict[str, Any] = {"layout": "sliced", "block_bits": 512}


def reject_small_blocks(block_bits: int | None) -> None:
    """Raise `ValueError` for blocks that only `from_block_parameters` makes."""
    if block_bits == 64:
        raise ValueError("block_bits must be 512, got 64: blocks of 64 bits are made by from_block_parameters")


@complete
class AgePartitionedBloomFilter(Filter):
    """Age-partitioned Bloom filter: misses no key of the window, and forgets old keys slice by slice.

    Parameters
    ----------
    window, fpr, nbytes
        As in `Filter`.
    slack : int or span of time, optional
        Longest time for which a key may still be reported after it has left the window, in the unit of `window`. The
        default is half the window, and at least 64 insertions.
    layout : {"line", "sliced"}, optional
        "line" puts all bits of a key side by side into one cache line, or into up to four lines of one page of 4 KiB:
        the fastest. The filter then consists of whole pages. "sliced" is the paper's layout: each bit of a key lies in
        a slice of its own, which takes the fewest bytes for small windows. The default is "line". Where lines cannot
        meet the request (below an fpr of about 1e-5, or in less than a page), it is slices with blocks of 512 bits.
    block_bits : {512}, optional
        For slices: put the bits that a key has in one slice into one block of 512 bits, a cache line. This is several
        times faster than bits anywhere in the slice. `from_block_parameters` also makes blocks of 64 bits, which take
        more memory and no fewer cache lines.
    capacity : int, optional
        Needed for a window of time: the keys expected within it at the highest rate, which counts over one generation:
        a part 1 / `l` of the window, or 1 / `r` for guarded epochs. More keys raise the rate of false positives, and
        the window stays whole. An `OverfullWarning` is issued then, also for a burst within `capacity`: a tenth of it
        at once can make most new keys false positives.
    lateness, max_ahead, seed
        As in `Filter`.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As in `Filter`.

    Notes
    -----
    Paper 1: A. Shtul, C. Baquero, P. S. Almeida, *Age-Partitioned Bloom Filters*, 2020. Sizes come from exact
    fills: `fpr` holds just before a shift, and the window just after it. The printed formulas promise more than holds.

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
        max_ahead: _Span | None = "window",
        seed: _Seed = 0,
    ) -> Self:
        reject_small_blocks(block_bits)
        given = locals()
        if layout is None and block_bits is None:
            return cls._in_first((_LINES, _BLOCKS), "age-partitioned", **given)
        return cls._of("age-partitioned", **given | {"layout": "sliced" if layout is None else layout})

    @classmethod
    def from_parameters(
        cls,
        window: int | _Span,
        k: int,
        l: int,  # noqa: E741
        slice_bits: int,
        *,
        capacity: int | None = None,
        lateness: _Span | None = None,
        max_ahead: _Span | None = "window",
        seed: _Seed = 0,
    ) -> Self:
        """Make a filter with the parameters of the paper: a bit of a key lies anywhere in its slice.

        Parameters
        ----------
        window : int or span of time
            What "lately" means: a number of insertions, or a span of time such as ``"10min"``. A generation is
            ceil((window - 1) / l) insertions, or the l-th part of a window of time.
        k, l : int
            Number of consecutive slices that must match, and of full generations that are retained; k + l is at most
            128.
        slice_bits : int
            m: bits of each slice.
        capacity, lateness, max_ahead, seed
            As in `AgePartitionedBloomFilter`.

        Raises
        ------
        ValueError, TypeError, MemoryError
            As in `Filter`.

        Examples
        --------
        >>> f = lately.AgePartitionedBloomFilter.from_parameters(1000, k=10, l=7, slice_bits=2064)
        >>> f.nbytes, round(f.npws, 3)
        (4488, 0.261)
        """
        return cls._of("age-partitioned", **locals())

    @classmethod
    def from_block_parameters(
        cls,
        window: int | _Span,
        k: int,
        l: int,  # noqa: E741
        blocks: int,
        *,
        block_bits: Literal[64, 512] = 512,
        parts: Literal[1, 2, 4, 8] = 8,
        capacity: int | None = None,
        lateness: _Span | None = None,
        max_ahead: _Span | None = "window",
        seed: _Seed = 0,
    ) -> Self:
        """Make a filter in slices of blocks: the bits that a key has in one slice lie in one block.

        Parameters
        ----------
        window, k, l
            As in `AgePartitionedBloomFilter.from_parameters`.
        blocks : int
            Number of blocks in each slice.
        block_bits : {64, 512}, default 512
            B: bits of a block.
        parts : {1, 2, 4, 8}, default 8
            b: bits that a key sets in a block, each in its own part of the block.
        capacity, lateness, max_ahead, seed
            As in `AgePartitionedBloomFilter`.

        Raises
        ------
        ValueError, TypeError, MemoryError
            As in `Filter`.

        Examples
        --------
        >>> f = lately.AgePartitionedBloomFilter.from_block_parameters(1000, k=1, l=2, blocks=12)
        >>> f.nbytes, f.slack, round(f.fpr, 4)
        (2304, 500, 0.0109)
        """
        return cls._of("age-partitioned", **locals())

    @classmethod
    def from_line_parameters(
        cls,
        window: int | _Span,
        k: int,
        l: int,  # noqa: E741
        pages: int,
        *,
        lines: Literal[1, 2, 3, 4] = 1,
        capacity: int | None = None,
        lateness: _Span | None = None,
        max_ahead: _Span | None = "window",
        seed: _Seed = 0,
    ) -> Self:
        """Make a filter in lines: the bits of a key lie side by side, in lines of one page.

        Parameters
        ----------
        window
            As in `AgePartitionedBloomFilter.from_parameters`.
        k, l : int
            Number of consecutive slices that must match, at most 4, and of full generations that are retained; k + l is
            8, 16 or 32.
        pages : int
            Number of pages of 4 KiB.
        lines : {1, 2, 3, 4}, default 1
            Number of lines of a page that contain bits of a key.
        capacity, lateness, max_ahead, seed
            As in `AgePartitionedBloomFilter`.

        Raises
        ------
        ValueError, TypeError, MemoryError
            As in `Filter`.

        Examples
        --------
        >>> f = lately.AgePartitionedBloomFilter.from_line_parameters(1000, k=2, l=6, pages=1)
        >>> f.nbytes, f.slack, round(f.fpr, 4)
        (4096, 336, 0.0014)
        """
        return cls._of("age-partitioned", **locals())
