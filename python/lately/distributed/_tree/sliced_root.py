"""A root cut vertically over several sites: the same bits, and so the same verdicts (paper 4, lemma 1)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately._core import Deal, Outline, Ranges, settle
from lately.distributed._contents.cut import NEVER
from lately.distributed._producer.exchange import Exchange
from lately.distributed._sites.interface import Failed, Message
from lately.distributed._sites.memo import UNKNOWN, Ticket
from lately.distributed._slices.routes import Numbers, behind, shares, since
from lately.distributed._tree.place import Keys, Request, send


class SlicedRoot:
    """Parts of one filter on sites of their own, asked as if they were one node.

    Parameters
    ----------
    like : Outline
        The one that is cut, for its parameters.
    sites : ndarray of int64, shape (parts,)
        Where its parts are.
    unanswered : bool
        Whether a cell on a site that has failed counts as set (paper 4, section 3.2).
    fail : callable
        Called with the number of keys that were decided without such a site.
    """

    def __init__(
        self,
        like: Outline,
        sites: NDArray[np.int64],
        *,
        unanswered: bool,
        fail: Callable[[int], None],
    ) -> None:
        self._like, self._sites = like, sites
        self._ranges, self._numbers = Ranges(like, len(sites)), Numbers(like, len(sites))
        self._unanswered, self._fail = unanswered, fail
        self._endless = like.window is None

    def test(self, keys: Keys, fence: int = 0) -> Request:
        """One message to each part that holds cells of the keys."""
        places = self._ranges.deal(keys.hashes)

        def oldest(answers: list[Any]) -> NDArray[np.int64] | Failed:
            last, alive, newest, _ = self._gather(places, groups, answers)
            if not alive.any():
                failed: Failed = answers[0]
                return failed
            horizon = self._horizon(keys, newest)
            if self._unanswered:
                self._fail(self._doubtful(keys, last, alive, newest))
                # A cell that does not answer counts as the youngest that does; if none does, as old as it can be.
                youngest = np.maximum(last.max(axis=1), np.maximum(horizon, 0) if self._endless else horizon)
                last = np.where(alive, last, youngest[:, None])
            age: NDArray[np.int64] = last.min(axis=1)
            return np.where(age >= horizon, age, NEVER)

        groups, messages = self._read(places, None, fence)
        return Request(messages, oldest)

    def set(self, keys: Keys, verdicts: NDArray[np.bool_], fence: int = 0) -> Request:
        """One message to each part that holds cells of the keys."""
        places = self._ranges.deal(keys.hashes)
        k = places.cells.shape[1]
        groups = shares(places.sites.ravel())
        newest, late = behind(keys.generations) if len(keys) else (NEVER, None)
        columns = [each for each in (verdicts, late) if each is not None]
        messages = [
            Message(
                int(self._sites[part]),
                "set",
                (self._numbers.at(part, places.cells.ravel()[index]), *(column[index // k] for column in columns)),
                {"refresh": False, "newest": newest},
                _of_cells(keys.ticket, index, k),
                fence,
            )
            for part, index in groups
        ]

        def told(answers: list[Any]) -> NDArray[np.bool_]:
            failed = np.zeros(len(keys), dtype=np.bool_)
            for (_, index), answer in zip(groups, answers, strict=True):
                if isinstance(answer, Failed):
                    failed[index // k] = True
            self._fail(int(failed.sum()))
            return verdicts

        return Request(messages, told)

    def recall(self, keys: Keys) -> Request:
        """Read with the ticket: a part remembers answers by cell, which are those of the cell's key."""
        places = self._ranges.deal(keys.hashes)
        groups, messages = self._read(places, keys.ticket, 0)
        return Request(messages, lambda answers: self._gather(places, groups, answers)[3])

    def duplicated(self, exchange: Exchange, keys: Keys, fence: int = 0) -> NDArray[np.bool_] | Failed:
        """Read, judge and set, in a turn: the one of `fence`, or a new one."""
        if not fence:
            with exchange.turn() as own:
                return self.duplicated(exchange, keys, own.fence)
        places = self._ranges.deal(keys.hashes)
        groups, messages = self._read(places, keys.ticket, fence)
        gather = Request(messages, lambda answers: self._gather(places, groups, answers))
        last, alive, newest, known = send(exchange, [gather])[0]
        if not alive.any():
            return Failed(int(self._sites[0]), "no part of the root answers")
        seen = settle(
            places.names,
            last,
            keys.generations,
            newest=newest,
            kept=self._like.kept,
            least=0 if self._unanswered else places.cells.shape[1],
            alive=alive,
            known=known,
        )
        self._fail(self._doubtful(keys, last, alive, newest))
        new = np.flatnonzero(~seen)
        send(exchange, [self.set(keys[new], seen[new], fence)])
        return seen

    def _horizon(self, keys: Keys, newest: int) -> NDArray[np.int64]:
        """Give for each key the generation from which on a cell counts."""
        return np.maximum(np.maximum.accumulate(keys.generations), newest) - self._like.kept

    def _doubtful(self, keys: Keys, last: NDArray[np.int64], alive: NDArray[np.bool_], newest: int) -> int:
        """Count keys that the cells that have answered leave undecided."""
        live = (last >= self._horizon(keys, newest)[:, None]) | ~alive
        return int((live.all(axis=1) & ~alive.all(axis=1)).sum())

    def _read(
        self, places: Deal, ticket: Ticket | None, fence: int
    ) -> tuple[list[tuple[int, NDArray[np.int64]]], list[Message]]:
        cells, k = places.cells.ravel(), places.cells.shape[1]
        groups = shares(places.sites.ravel())
        messages = [
            Message(
                int(self._sites[part]),
                "read",
                (self._numbers.at(part, cells[index]),),
                ticket=None if ticket is None else _of_cells(ticket, index, k),
                fence=fence,
            )
            for part, index in groups
        ]
        return groups, messages

    def _gather(
        self, places: Deal, groups: list[tuple[int, NDArray[np.int64]]], answers: list[Any]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_], int, NDArray[np.int8]]:
        """Combine the answers of the parts: the cells' generations, which have answered, the newest, the known."""
        keys, k = places.cells.shape
        last, alive = np.full((keys, k), NEVER), np.ones((keys, k), dtype=np.bool_)
        known = np.full(keys, UNKNOWN, dtype=np.int8)
        newest = NEVER
        for (_, index), answer in zip(groups, answers, strict=True):
            if isinstance(answer, Failed):
                alive.flat[index] = False
                continue
            # What the part may have lost is missing from a tree as from any node.
            ages, (own, _), *told = answer
            for each in told:
                known[index[each != UNKNOWN] // k] = each[each != UNKNOWN]
            last.flat[index] = since(ages, own)
            newest = max(newest, int(own))
        return last, alive, newest, known


def _of_cells(ticket: Ticket, index: NDArray[np.int64], k: int) -> Ticket:
    """Make the ticket of cells, by their places among those of a ticket's keys: cell j of key i is ``i * k + j``."""
    assert ticket.index is not None
    return replace(ticket, index=ticket.index[index // k] * k + index % k)
