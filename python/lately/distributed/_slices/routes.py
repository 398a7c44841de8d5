"""Which site a key goes to, and in how few bytes: rows grouped by their sites.

All of it comes from the key's 64-bit hash, so that every producer sends a key the same way.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately._core import FilterSpec, Slice

MOST_SITES = 1 << 16
"""Sites are numbered in 16 bits, which NumPy sorts by radix."""


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


class Numbers:
    """The numbers of cells as sites count them, from their first one on; of 32 bits, if no site has more.

    Parameters
    ----------
    like : FilterSpec
        The filter that is cut.
    parts : int
        Site s has part ``s % parts``.
    """

    def __init__(self, like: FilterSpec, parts: int) -> None:
        bounds = Slice.bounds(like, parts)
        self._first = bounds[:-1]
        self._type = np.uint32 if np.diff(bounds).max() <= 2**32 else np.uint64

    def at(self, site: int, cells: NDArray[np.uint64]) -> NDArray[Any]:
        """Return the numbers that cells of a site have there."""
        own: NDArray[Any] = (cells - self._first[site % len(self._first)]).astype(self._type)
        return own


def behind(generations: NDArray[np.int64]) -> tuple[int, NDArray[Any] | None]:
    """Return the newest generation, and how far behind the others are, in as few bits as do; None if none is."""
    now = int(generations.max())
    late = now - generations
    if not late.any():
        return now, None
    return now, late.astype(np.uint8 if late.max() <= np.iinfo(np.uint8).max else np.uint32)
