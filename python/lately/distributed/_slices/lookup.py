"""A filter whose cells are cut among sites: the messages that read and set them, and what the sites answer."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately._core import Ranges, Scattered
from lately.distributed._contents.cells import NEVER
from lately.distributed._producer.exchange import Request
from lately.distributed._sites.interface import Failed, Message
from lately.distributed._sites.results import UNKNOWN, RequestId

# In place of the generation of a cell whose site did not answer.
SILENT = NEVER + 1
# For each site of a lookup, which of its cells.
Rows = Sequence[Any]


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
    answered : bool
        Whether any site has answered.
    """

    def __init__(self, scattered: Scattered, n: int, k: int, missed: NDArray[np.int64]) -> None:
        self._scattered, self._k = scattered, k
        self.shares, self.places = scattered.shares(), scattered.places()
        self.keys = [places // k for places in self.places]
        self.last = [np.full(len(places), NEVER) for places in self.places]
        self.missed = [int(missed[site]) for site, _ in self.shares]
        self.known = np.full(n, UNKNOWN, dtype=np.int8)
        self.newest = np.full(n, NEVER)
        self.answered = False

    def put(self, i: int, rows: Any, answer: Any) -> None:
        """Record what site number i of the list answered for some of its cells."""
        if isinstance(answer, Failed):
            self.last[i][rows] = SILENT
            return
        self.answered = True
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


class Parts:
    """Makes messages to the sites of the cells, k of each key.

    `missed` has for each site the newest generation written while it did not answer. While that is in the window, cells
    that the site shows unset may have been set.
    """

    def __init__(self, ranges: Ranges, k: int, sites: NDArray[np.int64]) -> None:
        self.ranges, self._k, self._sites = ranges, k, sites
        self.missed = np.full(len(sites), NEVER)

    def lookup(self, hashes: NDArray[np.uint64]) -> Lookup:
        """Return the lookup of keys, of which nothing has been read."""
        return Lookup(self.ranges.scatter(hashes), len(hashes), self._k, self.missed)

    def read(self, found: Lookup, request: RequestId | None, fence: int = 0, rows: Rows | None = None) -> Request:
        """Read all cells, or some, and record the answers. The request is the keys'."""
        rows = [slice(None)] * len(found.shares) if rows is None else rows
        some = [i for i, cells in enumerate(found.places) if len(cells[rows[i]])]

        def put(answers: list[Any]) -> Lookup:
            for i, answer in zip(some, answers, strict=True):
                found.put(i, rows[i], answer)
            return found

        return Request([self._message("read", found, i, rows[i], request, fence) for i in some], put)

    def set(self, found: Lookup, columns: Sequence[Any], request: RequestId, fence: int, **options: Any) -> Request:
        """Send verdicts, and what else belongs to keys, to all sites; the answer is for which keys one has failed.

        Keys that were seen are sent too, though nothing is set. If only some sites get this and the batch is sent
        again, each of its keys either is known to one of its sites, or finds all of its cells as they were.
        """
        given = [column for column in columns if column is not None]

        def failed(answers: list[Any]) -> NDArray[np.bool_]:
            keys = np.zeros(len(found.known), dtype=np.bool_)
            for (site, _), own, answer in zip(found.shares, found.keys, answers, strict=True):
                if isinstance(answer, Failed):
                    self.missed[site] = max(self.missed[site], options["newest"])
                    keys[own] = True
            return keys

        every = range(len(found.shares))
        messages = [self._message("set", found, i, slice(None), request, fence, given, options) for i in every]
        return Request(messages, failed)

    def _message(
        self,
        method: str,
        found: Lookup,
        i: int,
        rows: Any,
        request: RequestId | None,
        fence: int,
        columns: Sequence[NDArray[Any]] = (),
        options: Any = None,
    ) -> Message:
        (site, cells), keys, places = found.shares[i], found.keys[i][rows], found.places[i][rows]
        own = None if request is None else request.of_cells(places, self._k)
        sent = (cells[rows], *(column[keys] for column in columns))
        return Message(int(self._sites[site]), method, sent, options or {}, own, fence)
