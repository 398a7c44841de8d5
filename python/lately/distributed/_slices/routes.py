"""Which site a key goes to: rows grouped by their sites.

All of it comes from the key's 64-bit hash, so that every producer sends a key the same way.
"""

import numpy as np
from numpy.typing import NDArray

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
