"""A vertical or diced filter: a site holds some of the cells, and a key has cells on many (paper 4, definition 2)."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lately._core import Outline, settle
from lately.distributed._contents.cut import NEVER
from lately.distributed._producer.batch import Batch, Verdicts
from lately.distributed._producer.exchange import Exchange, until_done
from lately.distributed._producer.numbering import Name
from lately.distributed._sites.interface import Failed, Message, Record, Turn
from lately.distributed._sites.memo import UNKNOWN
from lately.distributed._slices.routes import Places, Ranges, shares


@dataclass(frozen=True)
class _Found:
    """What the sites answered for the cells of n keys.

    Attributes
    ----------
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

    last: NDArray[np.int64]
    alive: NDArray[np.bool_]
    known: NDArray[np.int8]
    newest: NDArray[np.int64]
    missed: NDArray[np.int64]

    @classmethod
    def nothing(cls, keys: int, k: int, missed: NDArray[np.int64]) -> "_Found":
        """Make it before any site is asked."""
        return cls(
            last=np.full((keys, k), NEVER),
            alive=np.ones((keys, k), dtype=np.bool_),
            known=np.full(keys, UNKNOWN, dtype=np.int8),
            newest=np.full((keys, k), NEVER),
            missed=missed,
        )


class Cells:
    """Test, then set (paper 4, section 2), a batch at a time.

    `query`, `insert` and `duplicated` give the verdicts, and for which keys a site did not answer; both of shape (n,).

    The cells of all keys are read at once, the batch is judged in order as if key by key (`settle`), and then the cells
    of new keys are set. A producer does so in its turn, so that of two with the same new key one sees the other's.

    Parameters
    ----------
    exchange : Exchange
    like : Outline
        The filter that is cut, for its parameters.
    ranges : Ranges
    least : int
        x: how many cells of a seen key must have an answer (paper 4, section 3.2; erratum OIE-2).
    pipelined : bool
        Whether to ask first the site of the first cell of each key, then the next site for the keys that may still have
        been seen, and so on.
    """

    def __init__(
        self,
        exchange: Exchange,
        like: Outline,
        ranges: Ranges,
        *,
        least: int,
        pipelined: bool,
    ) -> None:
        self._exchange, self._like, self._ranges = exchange, like, ranges
        self._least, self._pipelined = least, pipelined
        self._equal = like.parameters.get("equal_timers", 1)
        self._lateness = round((like.lateness or 0) * 1e9)
        # For each site, the newest generation written while it did not answer. While that is in the window, cells that
        # the site shows unset may have been set.
        self._missed = np.full(len(exchange.sites), NEVER)

    def query(self, batch: Batch) -> Verdicts:
        """Tell which keys were inserted within the window. Nothing is set, so no turn is needed."""
        places, generations = self._ranges.places(batch.hashes), self._generations(batch)
        found = self._read(batch, places, generations)
        as_of = np.maximum(generations, self._newest(batch, found))
        live = found.last >= (as_of - self._like.kept)[:, None]
        found.alive[self._doubted(found, as_of)] = False
        answered = found.alive.sum(axis=1)
        seen: NDArray[np.bool_] = (live | ~found.alive).all(axis=1) & (answered >= self._least)
        if self._equal > 1:
            seen &= _alike(np.where(found.alive, found.last, NEVER)) >= self._equal
        return seen, answered < found.alive.shape[1]

    def insert(self, batch: Batch) -> Verdicts:
        """Insert keys; the verdicts have no meaning."""
        places, generations = self._ranges.places(batch.hashes), self._generations(batch)
        new = np.zeros(len(batch), dtype=np.bool_)
        return new, self._write(batch, places, generations, new, refresh=True)

    def duplicated(self, batch: Batch, *, refresh: bool) -> Verdicts:
        """Tell for each key whether it was there, then insert it."""
        places, generations = self._ranges.places(batch.hashes), self._generations(batch)

        def act(again: bool) -> Verdicts:
            with self._exchange.turn() as turn:
                if turn.left is not None:
                    self._complete(turn.left, turn.fence)
                sent = replace(batch, name=replace(batch.name, again=again))
                return self._settle(sent, places, generations, refresh=refresh, turn=turn)

        return until_done(act, again=batch.name.again)

    def _settle(
        self, batch: Batch, places: Places, generations: NDArray[np.int64], *, refresh: bool, turn: Turn
    ) -> Verdicts:
        found = self._read(batch, places, generations, turn.fence)
        newest = self._newest(batch, found)
        if batch.moments is None:
            generations = np.maximum(generations, newest)
        unsure = ~found.alive | self._doubted(found, np.maximum(generations, newest))
        seen = settle(
            places.names,
            found.last,
            generations,
            newest=newest,
            kept=self._like.kept,
            refresh=refresh,
            least=self._least,
            equal=self._equal,
            alive=found.alive,
            missed=found.missed if found.missed.max() > NEVER else None,
            known=found.known,
        )
        name = batch.name
        turn.hold((name.producer, name.number, name.lasting, batch.places, batch.hashes, generations, seen, refresh))
        failed = self._write(batch, places, generations, seen, refresh=refresh, fence=turn.fence)
        return seen, failed | unsure.any(axis=1)

    def _complete(self, record: Record, fence: int) -> None:
        """Write the batch of a turn that ended in the middle: with its own tickets, so that no site does it twice."""
        producer, number, lasting, where, hashes, generations, verdicts, refresh = record
        batch = Batch(hashes, None, None, Name(producer, number, again=True, lasting=lasting), where)
        self._write(batch, self._ranges.places(hashes), generations, verdicts, refresh=refresh, fence=fence)

    def _read(self, batch: Batch, places: Places, generations: NDArray[np.int64], fence: int = 0) -> _Found:
        """Ask the sites for the cells: all at once, or one site of each key after the other."""
        keys, k = places.cells.shape
        found = _Found.nothing(keys, k, self._missed[places.sites])
        if not self._pipelined or batch.name.again:
            self._ask(batch, places, np.arange(keys * k), found, fence)
            return found
        # A key is new if a cell is unset, unless an earlier key of the batch may set it; a query sets nothing.
        own = _first_of_key(places.names) if batch.name.number else np.ones((keys, k), dtype=np.bool_)
        oldest = generations - self._like.kept
        rounds, open = _rounds(places.sites), np.ones(keys, dtype=np.bool_)
        for number in range(k):
            now = (rounds == number) & open[:, None]
            if not now.any():
                break
            self._ask(batch, places, np.flatnonzero(now), found, fence)
            unset = now & own & found.alive & (np.maximum(found.last, found.missed) < oldest[:, None])
            open &= ~unset.any(axis=1)
        return found

    def _ask(self, batch: Batch, places: Places, rows: NDArray[np.int64], found: _Found, fence: int) -> None:
        """Ask for some of the cells, by their places in the batch, and record the answers."""
        cells, k = places.cells.ravel(), places.cells.shape[1]
        groups = [(site, rows[index]) for site, index in shares(places.sites.ravel()[rows])]
        messages = [
            Message(site, "read", (cells[index],), ticket=batch.ticket(index, k), fence=fence) for site, index in groups
        ]
        for (_, index), answer in zip(groups, self._exchange.call(messages), strict=True):
            if isinstance(answer, Failed):
                found.alive.reshape(-1)[index] = False
                continue
            last, known = answer if batch.name.number else (answer, np.full(len(index), UNKNOWN))
            found.last.reshape(-1)[index] = last[:-2]
            answered = known != UNKNOWN
            found.known[index[answered] // k] = known[answered]
            found.newest.reshape(-1)[index[~answered]] = last[-2]
            missed = found.missed.reshape(-1)
            missed[index] = np.maximum(missed[index], last[-1])

    def _doubted(self, found: _Found, as_of: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which cells a site shows unset that may have missed them; shape (n, k)."""
        oldest = (as_of - self._like.kept)[:, None]
        doubted: NDArray[np.bool_] = (found.last < oldest) & (found.missed >= oldest)
        return doubted

    def _write(
        self,
        batch: Batch,
        places: Places,
        generations: NDArray[np.int64],
        verdicts: NDArray[np.bool_],
        *,
        refresh: bool,
        fence: int = 0,
    ) -> NDArray[np.bool_]:
        """Send the verdicts to all sites of a batch, which set the cells; give the keys whose site did not answer.

        Keys that were seen are sent too, though nothing is set. If only some sites get this and the batch is sent
        again, each of its keys either is known to one of its sites, or finds all of its cells as they were.
        """
        cells, k = places.cells.ravel(), places.cells.shape[1]
        newest = int(generations.max())
        groups = shares(places.sites.ravel())
        messages = [
            Message(
                site,
                "set",
                (cells[index], generations[index // k], verdicts[index // k]),
                {"refresh": refresh, "newest": newest},
                batch.ticket(index, k),
                fence,
            )
            for site, index in groups
        ]
        failed = np.zeros(len(batch), dtype=np.bool_)
        for (site, index), answer in zip(groups, self._exchange.call(messages), strict=True):
            if isinstance(answer, Failed):
                failed[index // k] = True
                self._missed[site] = max(self._missed[site], newest)
        return failed

    def _generations(self, batch: Batch) -> NDArray[np.int64]:
        return self._like.generations(batch.moments, len(batch))

    def _newest(self, batch: Batch, found: _Found) -> int:
        """Give the newest generation before this batch, which other producers may have sent to the sites.

        Raises
        ------
        ValueError
            If a key is too late for a site: its cells may have expired there.
        """
        newest = NEVER
        if batch.latest is not None:
            newest = int(self._like.generations(np.array([batch.latest]), 1)[0])
        if batch.moments is not None:
            latest = np.minimum(batch.moments, np.iinfo(np.int64).max - self._lateness) + self._lateness
            late = self._like.generations(latest, len(batch)) < found.newest.max(axis=1)
            late &= found.known == UNKNOWN
            if late.any():
                raise ValueError(
                    f"at[{int(late.argmax())}] lies more than {self._lateness / 1e9:.12g} s, the lateness, before what "
                    "other producers have brought: construct the filter with a larger lateness"
                )
        return max(newest, int(found.newest.max()))


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


def _alike(generations: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count, in each row, the most set cells of one generation."""
    same = np.zeros(len(generations), dtype=np.int64)
    for column in generations.T:
        alike = (generations == column[:, None]).sum(axis=1)
        same = np.maximum(same, np.where(column == NEVER, 0, alike))
    return same
