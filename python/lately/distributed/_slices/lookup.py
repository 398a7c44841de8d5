"""Keys whose cells are on many sites: the messages that read and set their cells, and what the sites answer."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately._core import Scattered
from lately.distributed._contents.cells import NEVER
from lately.distributed._sites.interface import Failed, Message
from lately.distributed._sites.results import UNKNOWN, RequestId

# In place of the generation of a cell whose site did not answer.
SILENT = NEVER + 1


class Lookup:
    """What the sites answered for the cells of n keys: lists have an entry for each site with cells.

    Attributes
    ----------
    shares : list of (int, ndarray)
        The number of the site, and of its cells.
    keys : list of ndarray
        Which key each of its cells is of.
    last : list of ndarray of int64
        The generation in which each was last set; `NEVER` while it has not been read, or `SILENT`.
    missed : list of int
        The newest generation that the site may lack, by its own account or by what this producer has noted.
    known : ndarray of int8, shape (n,)
        The verdict that a key was given when this batch was sent before.
    newest : ndarray of int64, shape (n,)
        The newest generation that a site of the key knows of without this batch.
    """

    def __init__(self, scattered: Scattered, n: int, k: int, missed: NDArray[np.int64]) -> None:
        self._scattered, self._k = scattered, k
        self.shares, self.places = scattered.shares(), scattered.places()
        self.keys = [places // k for places in self.places]
        self.last = [np.full(len(places), NEVER) for places in self.places]
        self.missed = [int(missed[site]) for site, _ in self.shares]
        self.known = np.full(n, UNKNOWN, dtype=np.int8)
        self.newest = np.full(n, NEVER)

    def message(
        self, method: str, i: int, rows: Any, request: RequestId | None, fence: int, columns: Any = (), **options: Any
    ) -> Message:
        """Make a message to site number i of the list about some of its cells; columns and request are of keys."""
        (site, cells), keys, places = self.shares[i], self.keys[i][rows], self.places[i][rows]
        own = None if request is None else request.of_cells(places, self._k)
        return Message(site, method, (cells[rows], *(column[keys] for column in columns)), options, own, fence)

    def put(self, i: int, rows: Any, answer: Any) -> None:
        """Record what site number i of the list answered for some of its cells."""
        if isinstance(answer, Failed):
            self.last[i][rows] = SILENT
            return
        ages, (newest, lacks), *remembered = answer
        self.last[i][rows] = np.where(ages == np.iinfo(ages.dtype).max, NEVER, int(newest) - ages.astype(np.int64))
        self.missed[i] = max(self.missed[i], int(lacks))
        keys = self.keys[i][rows]
        if remembered:
            before = remembered[0] != UNKNOWN
            self.known[keys[before]] = remembered[0][before]
            keys = keys[~before]
        self.newest[keys] = np.maximum(self.newest[keys], newest)

    def decide(self, generations: NDArray[np.int64], earlier: Any, **rule: Any) -> tuple[Any, Any]:
        """Return when the oldest cell of each key was set, and which keys lack an answer (`Scattered.decide`)."""
        answers = [(last, 0, missed) for last, missed in zip(self.last, self.missed, strict=True)]
        return self._scattered.decide(answers, generations, earlier, known=self.known, **rule)

    def rounds(self) -> list[NDArray[np.int64]]:
        """Return for each cell how many other sites of its key are read before its own, if one is at a time."""
        sites: Any = np.full((len(self.known), self._k), -1)
        for i, places in enumerate(self.places):
            sites.reshape(-1)[places] = i
        # A cell that a key has twice has no other site.
        sites = np.where(sites < 0, sites[:, :1], sites)
        first = (sites[:, :, None] == sites[:, None, :]).argmax(axis=2)
        others = np.cumsum(first == np.arange(self._k), axis=1) - 1
        rounds = np.take_along_axis(others, first, axis=1).ravel()
        return [rounds[places] for places in self.places]

    def first_of_key(self) -> list[NDArray[np.bool_]]:
        """Return for each cell whether no earlier key of the batch has it."""
        own = []
        for (_, cells), keys in zip(self.shares, self.keys, strict=True):
            _, first, cell = np.unique(cells, return_index=True, return_inverse=True)
            own.append(keys[first[cell]] == keys)
        return own
