"""A horizontal filter: each key belongs to one site, which holds a whole filter (paper 4, definition 1)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately._core import part_of
from lately.distributed._producer.exchange import Exchange
from lately.distributed._producer.producer import Batch, Verdicts
from lately.distributed._sites.interface import Failed, Message

# Sites are numbered in 16 bits, which NumPy sorts by radix.
MOST_SITES = 1 << 16


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


class Horizontal:
    """The keys of each site are sent together, in the order of the batch; the site answers them as a filter does.

    Each method returns the verdicts, and which keys had no answer; both of shape (n,). If `least` is 0, a key whose
    site has failed counts as seen, else it counts as new (paper 4, section 3.2).
    """

    def __init__(self, exchange: Exchange, least: int) -> None:
        self._exchange, self._guess = exchange, least == 0

    def query(self, batch: Batch) -> Verdicts:
        """Return which keys were inserted within the window."""
        return self._ask("query", batch)

    def insert(self, batch: Batch) -> Verdicts:
        """Insert keys; the verdicts have no meaning."""
        return self._ask("insert", batch)

    def duplicated(self, batch: Batch, *, refresh: bool) -> Verdicts:
        """Return for each key whether it was there, then insert it; each site does both at once."""
        return self._ask("duplicated", batch, refresh=refresh)

    def _ask(self, method: str, batch: Batch, **options: Any) -> Verdicts:
        groups = shares(part_of(batch.hashes, len(self._exchange.sites)))
        columns = (batch.hashes,) if batch.moments is None else (batch.hashes, batch.moments)
        messages = [
            Message(site, method, tuple(column[index] for column in columns), options, batch.request(index))
            for site, index in groups
        ]
        seen, unanswered = np.full((2, len(batch)), [[self._guess], [False]])
        for (_, index), answer in zip(groups, self._exchange.call(messages), strict=True):
            if isinstance(answer, Failed):
                unanswered[index] = True
            else:
                seen[index] = answer
        return seen, unanswered
