"""The parts of a filter on their sites: messages that read cells there, and that set them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately._core import FilterSpec, Scattered, since
from lately.distributed._contents.cell_store import NEVER
from lately.distributed._producer.request import Request
from lately.distributed._sites.interface import Failed, Message
from lately.distributed._sites.results import UNKNOWN, RequestId
from lately.distributed._slices.routes import Numbers, shares


@dataclass(frozen=True)
class Found:
    """What the sites answered for the cells of n keys.

    Attributes
    ----------
    sites, cells, names : ndarray, shape (n, k)
        Where the cells are (`Scattered`).
    last : ndarray of int64, shape (n, k)
        The generation in which each cell was last set.
    alive : ndarray of bool, shape (n, k)
        Whether its site has answered, or got no message.
    known : ndarray of int8, shape (n,)
        The verdict that the key was given when this batch was sent before.
    newest : ndarray of int64, shape (n, k)
        The newest generation that its site knows of without this batch; `NEVER` where the site has the batch already.
    missed : ndarray of int64, shape (n, k)
        The newest generation that its site may lack, by its own account or by what this producer has noted.
    """

    sites: NDArray[np.uint16]
    cells: NDArray[np.uint64]
    names: NDArray[np.uint64]
    last: NDArray[np.int64]
    alive: NDArray[np.bool_]
    known: NDArray[np.int8]
    newest: NDArray[np.int64]
    missed: NDArray[np.int64]

    @classmethod
    def nothing(cls, scattered: Scattered, missed: NDArray[np.int64]) -> "Found":
        """Nothing yet; `missed` is what is known of each site."""
        sites, cells = scattered.sites, scattered.cells
        never, known = np.full(cells.shape, NEVER), np.full(len(cells), UNKNOWN, dtype=np.int8)
        alive = np.ones(cells.shape, dtype=np.bool_)
        return cls(sites, cells, scattered.names, never, alive, known, never.copy(), missed[sites])

    def put(self, index: NDArray[np.int64], answer: Any) -> None:
        """Record what a site answered for its cells, by their places; cell j of key i has the place ``i * k + j``."""
        if isinstance(answer, Failed):
            self.alive.reshape(-1)[index] = False
            return
        ages, (newest, lacks), *remembered = answer
        self.last.reshape(-1)[index] = since(ages, int(newest))
        known = remembered[0] if remembered else np.full(len(index), UNKNOWN)
        answered = known != UNKNOWN
        self.known[index[answered] // self.cells.shape[1]] = known[answered]
        self.newest.reshape(-1)[index[~answered]] = newest
        missed = self.missed.reshape(-1)
        missed[index] = np.maximum(missed[index], lacks)

    def unsure(self, oldest: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which cells have no answer, or one that proves nothing: unset where a site may have missed them."""
        unsure: NDArray[np.bool_] = ~self.alive | (self.last < oldest[:, None]) & (self.missed >= oldest[:, None])
        return unsure

    def unanswered(self, oldest: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which keys have a cell without an answer, or are new or not by one that proves nothing."""
        unsure = self.unsure(oldest)
        open = np.all(unsure | (self.last >= oldest[:, None]), axis=1, keepdims=True)
        unanswered: NDArray[np.bool_] = np.any(unsure & (open | ~self.alive), axis=1)
        return unanswered


class Parts:
    """Makes the messages that read cells, or set them.

    Parameters
    ----------
    like : FilterSpec
        The filter that is cut, for its parameters.
    parts : int
        Into how many its cells are cut.
    site : callable, optional
        Gives the site of a number of `Scattered.sites`; by default that is its own.
    """

    def __init__(self, like: FilterSpec, parts: int, site: Callable[[int], int] = int) -> None:
        self._numbers, self._site = Numbers(like, parts), site

    def read(self, found: Found, rows: NDArray[np.int64], request: RequestId | None = None, fence: int = 0) -> Request:
        """Read cells by their places among those of all keys, and record the answers. The request is the keys'."""
        groups = [(part, rows[index]) for part, index in shares(found.sites.ravel()[rows])]

        def put(answers: list[Any]) -> Found:
            for (_, index), answer in zip(groups, answers, strict=True):
                found.put(index, answer)
            return found

        return Request(self._messages("read", found.cells, groups, (), {}, request, fence), put)

    def set(
        self,
        sites: NDArray[np.uint16],
        cells: NDArray[np.uint64],
        columns: tuple[NDArray[Any] | None, ...],
        request: RequestId,
        fence: int,
        **options: Any,
    ) -> Request:
        """Send verdicts, and what else belongs to keys, to all sites of their cells.

        The request gives the sites that did not answer, and which keys have cells there.
        """
        groups = shares(sites.ravel())

        def failed(answers: list[Any]) -> tuple[list[int], NDArray[np.bool_]]:
            lost, keys = [], np.zeros(len(cells), dtype=np.bool_)
            for (part, index), answer in zip(groups, answers, strict=True):
                if isinstance(answer, Failed):
                    lost.append(part)
                    keys[index // cells.shape[1]] = True
            return lost, keys

        given = tuple(column for column in columns if column is not None)
        return Request(self._messages("set", cells, groups, given, options, request, fence), failed)

    def _messages(
        self,
        method: str,
        cells: NDArray[np.uint64],
        groups: list[tuple[int, NDArray[np.int64]]],
        columns: tuple[NDArray[Any], ...],
        options: dict[str, Any],
        request: RequestId | None,
        fence: int,
    ) -> list[Message]:
        k = cells.shape[1]
        return [
            Message(
                self._site(part),
                method,
                (self._numbers.at(part, cells.ravel()[index]), *(column[index // k] for column in columns)),
                options,
                None if request is None else request.of_cells(index, k),
                fence,
            )
            for part, index in groups
        ]
