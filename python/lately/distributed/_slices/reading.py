"""The cells of keys are read, all at once or site by site, and nothing is set."""

import numpy as np
from numpy.typing import NDArray

from lately._core import FilterSpec, Ranges
from lately.distributed._contents.cell_store import NEVER
from lately.distributed._producer.exchange import Exchange
from lately.distributed._producer.producer import Batch
from lately.distributed._producer.request import send
from lately.distributed._slices.parts import Found, Parts


class Reader:
    """Reads cells on their sites.

    Parameters
    ----------
    exchange : Exchange
    like : FilterSpec
        The filter that is cut.
    ranges : Ranges
    parts : Parts
    pipelined : bool
        Whether to read first at the site of the first cell of each key, then the next site for the keys that may still
        have been seen, and so on.

    Attributes
    ----------
    missed : ndarray of int64, shape (sites,)
        For each site, the newest generation written while it did not answer. While that is in the window, cells that
        the site shows unset may have been set.
    """

    def __init__(self, exchange: Exchange, like: FilterSpec, ranges: Ranges, parts: Parts, *, pipelined: bool) -> None:
        self._exchange, self._like, self._ranges, self._pipelined = exchange, like, ranges, pipelined
        self._parts = parts
        self.missed = np.full(len(exchange.sites), NEVER)

    def read(self, batch: Batch, generations: NDArray[np.int64], fence: int = 0) -> Found:
        """Read the cells: all at once, or one site of each key after the other."""
        found = Found.nothing(self._ranges.scatter(batch.hashes), self.missed)
        keys, k = found.cells.shape
        if not self._pipelined or batch.again:
            self._fill(batch, np.arange(keys * k), found, fence)
            return found
        # A key is new if a cell is unset, unless an earlier key of the batch may set it; a query sets nothing.
        own = _first_of_key(found.names) if batch.number else np.ones((keys, k), dtype=np.bool_)
        oldest = generations - self._like.retained
        rounds, open = _rounds(found.sites), np.ones(keys, dtype=np.bool_)
        for number in range(k):
            now = (rounds == number) & open[:, None]
            if not now.any():
                break
            self._fill(batch, np.flatnonzero(now), found, fence)
            unset = now & own & found.alive & (np.maximum(found.last, found.missed) < oldest[:, None])
            open &= ~unset.any(axis=1)
        return found

    def _fill(self, batch: Batch, rows: NDArray[np.int64], found: Found, fence: int) -> None:
        send(self._exchange, [self._parts.read(found, rows, batch.request(), fence)])


def _rounds(sites: NDArray[np.uint16]) -> NDArray[np.int64]:
    """Return for each cell of a key, shape (n, k), how many other sites are read before its own."""
    first = (sites[:, :, None] == sites[:, None, :]).argmax(axis=2)
    others = np.cumsum(first == np.arange(sites.shape[1]), axis=1) - 1
    return np.take_along_axis(others, first, axis=1)


def _first_of_key(names: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return for each cell of the keys of a batch, shape (n, k), whether no earlier key has it."""
    k = names.shape[1]
    _, first, cell = np.unique(names, return_index=True, return_inverse=True)
    own: NDArray[np.bool_] = first[cell.reshape(names.shape)] // k == np.arange(len(names))[:, None]
    return own
