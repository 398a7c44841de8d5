"""The cells of keys are read, all at once or site by site, and nothing is set."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lately._core import Outline, Ranges
from lately.distributed._contents.cut import NEVER
from lately.distributed._producer.batch import Batch
from lately.distributed._producer.exchange import Exchange
from lately.distributed._sites.interface import Failed, Message
from lately.distributed._sites.memo import UNKNOWN
from lately.distributed._slices.routes import Numbers, shares, since


@dataclass(frozen=True)
class Found:
    """What the sites answered for the cells of n keys.

    Attributes
    ----------
    sites, cells, names : ndarray, shape (n, k)
        Where the cells are (`Deal`).
    last : ndarray of int64, shape (n, k)
        The generation in which each cell was last set.
    alive : ndarray of bool, shape (n, k)
        Whether its site has answered, or was not asked.
    known : ndarray of int8, shape (n,)
        The verdict that the key was given when this batch was sent before.
    newest : ndarray of int64, shape (n, k)
        The newest generation that its site knows of without this batch; `NEVER` where the site has the batch already.
    missed : ndarray of int64, shape (n, k)
        The newest generation that its site may lack, by what it says itself or this producer knows.
    """

    sites: NDArray[np.uint16]
    cells: NDArray[np.uint64]
    names: NDArray[np.uint64]
    last: NDArray[np.int64]
    alive: NDArray[np.bool_]
    known: NDArray[np.int8]
    newest: NDArray[np.int64]
    missed: NDArray[np.int64]

    def unsure(self, oldest: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which cells have no answer, or one that proves nothing: unset where a site may have missed them."""
        unsure: NDArray[np.bool_] = ~self.alive | (self.last < oldest[:, None]) & (self.missed >= oldest[:, None])
        return unsure

    def unanswered(self, oldest: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which keys have a cell without an answer, or are new or not by one that proves nothing."""
        unsure = self.unsure(oldest)
        open = np.all(unsure | (self.last >= oldest[:, None]), axis=1, keepdims=True)
        unanswered: NDArray[np.bool_] = np.any(unsure & (open | ~self.alive), axis=1)
        return unanswered


class Reader:
    """Asks for cells.

    Parameters
    ----------
    exchange : Exchange
    like : Outline
        The filter that is cut.
    ranges : Ranges
    numbers : Numbers
    pipelined : bool
        Whether to ask first the site of the first cell of each key, then the next site for the keys that may still have
        been seen, and so on.

    Attributes
    ----------
    missed : ndarray of int64, shape (sites,)
        For each site, the newest generation written while it did not answer. While that is in the window, cells that
        the site shows unset may have been set.
    """

    def __init__(self, exchange: Exchange, like: Outline, ranges: Ranges, numbers: Numbers, *, pipelined: bool) -> None:
        self._exchange, self._like, self._ranges, self._pipelined = exchange, like, ranges, pipelined
        self._numbers = numbers
        self.missed = np.full(len(exchange.sites), NEVER)

    def read(self, batch: Batch, generations: NDArray[np.int64], fence: int = 0) -> Found:
        """Ask the sites for the cells: all at once, or one site of each key after the other."""
        deal = self._ranges.deal(batch.hashes)
        sites, cells, names = deal.sites, deal.cells, deal.names
        keys, k = cells.shape
        found = Found(
            sites,
            cells,
            names,
            last=np.full((keys, k), NEVER),
            alive=np.ones((keys, k), dtype=np.bool_),
            known=np.full(keys, UNKNOWN, dtype=np.int8),
            newest=np.full((keys, k), NEVER),
            missed=self.missed[sites],
        )
        if not self._pipelined or batch.name.again:
            self._ask(batch, np.arange(keys * k), found, fence)
            return found
        # A key is new if a cell is unset, unless an earlier key of the batch may set it; a query sets nothing.
        own = _first_of_key(names) if batch.name.number else np.ones((keys, k), dtype=np.bool_)
        oldest = generations - self._like.kept
        rounds, open = _rounds(sites), np.ones(keys, dtype=np.bool_)
        for number in range(k):
            now = (rounds == number) & open[:, None]
            if not now.any():
                break
            self._ask(batch, np.flatnonzero(now), found, fence)
            unset = now & own & found.alive & (np.maximum(found.last, found.missed) < oldest[:, None])
            open &= ~unset.any(axis=1)
        return found

    def _ask(self, batch: Batch, rows: NDArray[np.int64], found: Found, fence: int) -> None:
        """Ask for some of the cells, by their places in the batch, and record the answers."""
        cells, k = found.cells.ravel(), found.cells.shape[1]
        groups = [(site, rows[index]) for site, index in shares(found.sites.ravel()[rows])]
        messages = [
            Message(site, "read", (self._numbers.at(site, cells[index]),), ticket=batch.ticket(index, k), fence=fence)
            for site, index in groups
        ]
        for (_, index), answer in zip(groups, self._exchange.call(messages), strict=True):
            if isinstance(answer, Failed):
                found.alive.reshape(-1)[index] = False
                continue
            ages, (newest, lacks), *told = answer
            found.last.reshape(-1)[index] = since(ages, newest)
            known = told[0] if told else np.full(len(index), UNKNOWN)
            answered = known != UNKNOWN
            found.known[index[answered] // k] = known[answered]
            found.newest.reshape(-1)[index[~answered]] = newest
            missed = found.missed.reshape(-1)
            missed[index] = np.maximum(missed[index], lacks)


def _rounds(sites: NDArray[np.uint16]) -> NDArray[np.int64]:
    """Tell for each cell of a key, shape (n, k), how many other sites are asked before its own."""
    first = (sites[:, :, None] == sites[:, None, :]).argmax(axis=2)
    others = np.cumsum(first == np.arange(sites.shape[1]), axis=1) - 1
    return np.take_along_axis(others, first, axis=1)


def _first_of_key(names: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Tell for each cell of the keys of a batch, shape (n, k), whether no earlier key has it."""
    k = names.shape[1]
    _, first, cell = np.unique(names, return_index=True, return_inverse=True)
    own: NDArray[np.bool_] = first[cell.reshape(names.shape)] // k == np.arange(len(names))[:, None]
    return own
