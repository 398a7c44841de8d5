"""Which site a key goes to, and which of its cells: the routing of horizontal, vertical and diced filters.

All of it comes from the key's 64-bit hash, so that every producer sends a key the same way.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lately._core import Outline, Slice

MOST_SITES = 1 << 16
"""Sites are numbered in 16 bits, which NumPy sorts by radix."""

# The places of a key within a filter are high bits of its hash times odd constants. Two rounds of shift and
# multiplication, with other constants, share no bits with those: a slice then fills like a filter with independent
# keys.
_FIRST, _SECOND = np.uint64(0xD6E8FEB86659FD93), np.uint64(0xA3B195354A39B70D)
_RANGE = np.uint64(0x9FB21C651E98DF25)
_HALF = np.uint64(32)


def scatter(hashes: NDArray[np.uint64], parts: int) -> NDArray[np.uint16]:
    """Choose one of `parts` for each hash, independent of its places in any filter.

    Examples
    --------
    >>> scatter(np.arange(6, dtype=np.uint64), 1)
    array([0, 0, 0, 0, 0, 0], dtype=uint16)
    """
    mixed = (hashes ^ (hashes >> _HALF)) * _FIRST
    mixed ^= mixed >> _HALF
    mixed *= _SECOND
    mixed >>= _HALF
    mixed *= np.uint64(parts)
    return (mixed >> _HALF).astype(np.uint16)


def shares(sites: NDArray[np.uint16]) -> list[tuple[int, NDArray[np.int64]]]:
    """Group rows by their site: each site with rows, and the places of its rows, ascending.

    Examples
    --------
    >>> shares(np.array([2, 0, 2], dtype=np.uint16))
    [(0, array([1])), (2, array([0, 2]))]
    """
    order = np.argsort(sites, kind="stable").astype(np.int64, copy=False)
    counts = np.bincount(sites)
    ends = np.cumsum(counts)
    return [(int(site), order[ends[site] - counts[site] : ends[site]]) for site in np.flatnonzero(counts)]


@dataclass(frozen=True)
class Places:
    """Where the cells of keys lie, each of shape (n, k).

    Attributes
    ----------
    sites : ndarray of uint16
    cells : ndarray of uint64
        Numbers in the filter that the sites hold parts of.
    names : ndarray of uint64
        Numbers among the cells of all sites.
    """

    sites: NDArray[np.uint16]
    cells: NDArray[np.uint64]
    names: NDArray[np.uint64]


class Ranges:
    """Cells of a filter in ranges, one a site, and possibly of several filters (paper 4, definition 2, section 3.3).

    Parameters
    ----------
    like : Outline
        The filter that is cut.
    parts : int
        Ranges of its cells.
    replicas : int
        How many such filters there are. Each key goes to one.
    each : bool
        Whether a key goes to one in each range, chosen independently (v-h), or to the same in all (h-v).
    """

    def __init__(self, like: Outline, parts: int, replicas: int, *, each: bool) -> None:
        self._like, self._parts, self._replicas, self._each = like, parts, replicas, each
        bounds = Slice.bounds(like, parts)
        self._inner, self._cells = bounds[1:-1], bounds[-1]

    def places(self, hashes: NDArray[np.uint64]) -> Places:
        """Look up the cells of keys; range p of filter r is on site ``r * parts + p``."""
        cells = self._like.cells(hashes)
        part = np.searchsorted(self._inner, cells.ravel(), side="right").reshape(cells.shape)
        if self._replicas == 1:
            return Places(part.astype(np.uint16), cells, cells)
        of_range = hashes[:, None] + part.astype(np.uint64) * _RANGE if self._each else hashes[:, None]
        replica = scatter(of_range, self._replicas)
        sites = replica * np.uint16(self._parts) + part.astype(np.uint16)
        return Places(sites, cells, replica * self._cells + cells)
