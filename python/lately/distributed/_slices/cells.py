"""Vertical and diced filters: a site holds some of the cells, and a key has cells on many (paper 4, definition 2)."""

import time
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lately._core import FilterSpec, Ranges, Scattered
from lately.distributed._contents.empty_filter import NEVER
from lately.distributed._producer.exchange import Exchange
from lately.distributed._producer.orderer import OrderedExchange
from lately.distributed._producer.producer import Batch, Verdicts
from lately.distributed._sites.interface import Failed, Message, Record
from lately.distributed._sites.results import UNKNOWN, RequestId

_Moments: TypeAlias = NDArray[np.int64] | None
# Stands for the generation of a cell whose site did not answer.
SILENT = NEVER + 1


@dataclass(frozen=True)
class _Writing:
    """A batch that is being written. From its record another orderer completes it."""

    producer: str
    number: int
    lasting: bool
    offsets: NDArray[np.int64] | None
    hashes: NDArray[np.uint64]
    # The newest generation of the keys, and how many generations before that each key is; None if all are of that one.
    now: int
    behind: NDArray[Any] | None
    # The first and the last moment of the keys; the first is None if the batch has no times, and is never late.
    first: int | None
    last: int
    refresh: bool
    # The verdicts; None if the sites read the cells and set them at once.
    verdicts: NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, batch: Batch, moments: _Moments, generations: NDArray[np.int64], **more: Any) -> "_Writing":
        """Return the writing of a batch, by the moments of its keys, if there is a window, and their generations."""
        now = int(generations.max())
        ago = now - generations
        # In the narrowest type that fits.
        behind = ago.astype(np.uint8 if ago.max() <= np.iinfo(np.uint8).max else np.uint32) if ago.any() else None
        first = None if batch.moments is None else int(batch.moments.min())
        last = NEVER if moments is None else int(moments.max())
        request = batch.producer, batch.number, batch.lasting, batch.offsets
        return cls(*request, batch.hashes, now, behind, first, last, **more)

    @property
    def record(self) -> Record:
        """The record from which the batch is made again."""
        return tuple(getattr(self, each.name) for each in fields(self))

    @property
    def generations(self) -> NDArray[np.int64]:
        """The generation of each key."""
        behind = np.zeros(len(self.hashes), dtype=np.int64) if self.behind is None else self.behind
        return self.now - behind.astype(np.int64)

    @property
    def share(self) -> RequestId:
        """The request for all keys that the batch has for a site."""
        return RequestId(self.producer, self.number, None, self.lasting)

    @property
    def keys(self) -> RequestId:
        """The request for single keys, by their places in the batch."""
        offsets = np.arange(len(self.hashes)) if self.offsets is None else self.offsets
        return RequestId(self.producer, self.number, offsets, self.lasting)


class Lookup:
    """The sites' answers for the cells of n keys. Each list has an entry for each site with cells.

    Attributes
    ----------
    shares : list of (int, ndarray)
        The number of the site, and the numbers of its cells.
    keys : list of ndarray
        The key of each of these cells.
    last : list of ndarray of int64
        The generation in which each cell was last set; `NEVER` while it has not been read, or `SILENT`.
    missed : list of int
        The newest generation that the site may lack, by its own answer or by the records of this producer.
    known : ndarray of int8, shape (n,)
        The verdict that a key was given when this batch was sent before.
    newest, latest : ndarray of int64, shape (n,)
        The newest generation, and the latest moment, that a site of the key has seen, apart from this batch.
    """

    def __init__(self, scattered: Scattered, n: int, k: int, missed: NDArray[np.int64]) -> None:
        self._scattered, self._k = scattered, k
        self.shares, self.places = scattered.shares(), scattered.places()
        self.keys = [places // k for places in self.places]
        self.last = [np.full(len(places), NEVER) for places in self.places]
        self.missed = [int(missed[site]) for site, _ in self.shares]
        self.known = np.full(n, UNKNOWN, dtype=np.int8)
        self.newest, self.latest = np.full((2, n), NEVER)

    def message(
        self, method: str, i: int, rows: Any, request: RequestId | None, columns: Any = (), **options: Any
    ) -> Message:
        """Make a message to site number i of the lists about some of its cells. `columns` and `request` are by key."""
        (site, cells), keys, places = self.shares[i], self.keys[i][rows], self.places[i][rows]
        own = None if request is None else request.of_cells(places, self._k)
        return Message(site, method, (cells[rows], *(column[keys] for column in columns)), options, own)

    def put(self, i: int, rows: Any, answer: Any) -> None:
        """Store the answer of site number i of the lists for some of its cells."""
        if isinstance(answer, Failed):
            self.last[i][rows] = SILENT
            return
        ages, (newest, lacks, latest), *remembered = answer
        self.last[i][rows] = np.where(ages == np.iinfo(ages.dtype).max, NEVER, int(newest) - ages.astype(np.int64))
        self.missed[i] = max(self.missed[i], int(lacks))
        keys = self.keys[i][rows]
        if remembered:
            before = remembered[0] != UNKNOWN
            self.known[keys[before]] = remembered[0][before]
            keys = keys[~before]
        self.newest[keys] = np.maximum(self.newest[keys], newest)
        self.latest[keys] = np.maximum(self.latest[keys], latest)

    def decide(self, generations: NDArray[np.int64], earlier: Any, **rule: Any) -> tuple[Any, Any]:
        """Return when the oldest cell of each key was set, and which keys lack an answer (`Scattered.decide`)."""
        answers = [(last, 0, missed) for last, missed in zip(self.last, self.missed, strict=True)]
        return self._scattered.decide(answers, generations, earlier, known=self.known, **rule)

    def rounds(self) -> list[NDArray[np.int64]]:
        """Return for each cell how many sites of its key are read before its own, if one site is read at a time."""
        sites: Any = np.full((len(self.known), self._k), -1)
        for i, places in enumerate(self.places):
            sites.reshape(-1)[places] = i
        # A cell that coincides with another of its key adds no site.
        sites = np.where(sites < 0, sites[:, :1], sites)
        first = (sites[:, :, None] == sites[:, None, :]).argmax(axis=2)
        others = np.cumsum(first == np.arange(self._k), axis=1) - 1
        rounds = np.take_along_axis(others, first, axis=1).ravel()
        return [rounds[places] for places in self.places]


class _Reader:
    """Reads the cells of a batch, and decides.

    `least` is x: how many cells of a seen key must have an answer (paper 4, section 3.2; erratum OIE-2).
    """

    def __init__(self, exchange: Exchange | OrderedExchange, like: FilterSpec, ranges: Ranges) -> None:
        self._exchange, self._like, self.ranges = exchange, like, ranges
        self._k, self._equal = int(like.parameters["k"]), like.parameters.get("equal_timers", 1)
        self._lateness = round((like.lateness or 0) * 1e9)
        # For each site the newest generation that was written while it did not answer. While that generation is in the
        # window, cells that the site shows unset may have been set.
        self._missed = np.full(len(exchange.sites), NEVER)

    def _rule(self, least: int) -> dict[str, Any]:
        """Return the arguments of `Lookup.decide` that are the filter's."""
        return {"kept": self._like.retained, "least": least, "equal": self._equal}

    def _read_all(self, found: Lookup, request: RequestId | None) -> None:
        self._read_some(found, request, [slice(None)] * len(found.shares))

    def _read_some(self, found: Lookup, request: RequestId | None, rows: list[Any]) -> None:
        """Read the cells of these rows at each site of a lookup."""
        some = [i for i, places in enumerate(found.places) if len(places[rows[i]])]
        answers = self._exchange.call([found.message("read", i, rows[i], request) for i in some])
        for i, answer in zip(some, answers, strict=True):
            found.put(i, rows[i], answer)

    def _lookup(self, hashes: NDArray[np.uint64]) -> Lookup:
        return Lookup(self.ranges.scatter(hashes), len(hashes), self._k, self._missed)

    def _generation(self, moment: int | None) -> int:
        """Return the generation of a moment; `NEVER` for None, and for a filter without a window."""
        if moment is None or moment == NEVER or self._like.window is None:
            return NEVER
        return int(self._like.generations(np.array([moment]), 1)[0])

    def _reject_late(self, batch: Batch, latest: Any, known: Any = UNKNOWN) -> None:
        """Reject a key that is too late for the latest moment that other producers have brought."""
        if batch.moments is not None:
            late = (batch.moments < latest - self._lateness) & (known == UNKNOWN) & (latest != NEVER)
            if late.any():
                raise ValueError(
                    f"at[{int(late.argmax())}] lies more than {self._lateness / 1e9:.12g} s, the lateness, before what "
                    "other producers have brought: construct the filter with a larger lateness"
                )


class Cells(_Reader):
    """Reads the cells of a producer's batches, and lets the orderer write them.

    `query`, `insert` and `duplicated` return the verdicts, and for which keys an answer is missing; both of shape (n,).
    A `pipelined` query reads first at the site of the first cell of each key, then at the next site of the keys that
    may still have been seen, and so on.
    """

    def __init__(self, exchange: Exchange, like: FilterSpec, ranges: Ranges, *, least: int, pipelined: bool) -> None:
        super().__init__(exchange, like, ranges)
        self._order, self._least, self._pipelined = exchange.order, least, pipelined

    def query(self, batch: Batch) -> Verdicts:
        """Return which keys were inserted within the window. Nothing is set, so no orderer is needed."""
        generations = self._like.generations(batch.moments, len(batch))
        found = self._lookup(batch.hashes)
        if self._pipelined:
            self._read_in_rounds(found, generations - self._like.retained)
        else:
            self._read_all(found, None)
        self._reject_late(batch, found.latest.max())
        newest = max(self._generation(batch.latest), int(found.newest.max()))
        oldest, unanswered = found.decide(generations, "nothing", newest=newest, **self._rule(self._least))
        return oldest != NEVER, unanswered

    def _read_in_rounds(self, found: Lookup, oldest: NDArray[np.int64]) -> None:
        """Read one site of each key after the other, until a cell of it is unset, or was set before `oldest`."""
        rounds, maybe_seen = found.rounds(), np.ones(len(oldest), dtype=np.bool_)
        for number in range(self._k):
            of_keys = zip(rounds, found.keys, strict=True)
            rows = [np.flatnonzero((its_round == number) & maybe_seen[keys]) for its_round, keys in of_keys]
            if not any(map(len, rows)):
                break
            self._read_some(found, None, rows)
            for i, (keys, last) in enumerate(zip(found.keys, found.last, strict=True)):
                # A site that missed writes since `oldest` may lack the key's, and one that is silent may have it.
                unset = (np.maximum(last, found.missed[i]) < oldest[keys]) & (last != SILENT)
                maybe_seen[keys[rows[i]][unset[rows[i]]]] = False

    def insert(self, batch: Batch) -> Verdicts:
        """Insert keys; the verdicts have no meaning."""
        return self.duplicated(batch, refresh=True)

    def duplicated(self, batch: Batch, *, refresh: bool) -> Verdicts:
        """Return for each key whether it was there, then insert it."""
        seen, unanswered, missed = self._order(batch, refresh, self._least)
        np.maximum(self._missed, missed, out=self._missed)
        return seen, unanswered


class CellWriter(_Reader):
    """Reads and sets the cells of a batch for the orderer: tests, then sets (paper 4, section 2).

    With `refresh` all cells are set, whatever the verdicts: a site reads each cell and sets it before the next, and the
    verdicts follow from what was read. The site remembers that answer as a whole. Without `refresh` the cells of all
    keys are read, the batch is decided in order, and then the cells of new keys are set; the site remembers verdicts
    key by key. The same holds with `offsets`, because such a batch may come again with other keys.
    """

    _exchange: OrderedExchange

    def __init__(self, exchange: OrderedExchange, like: FilterSpec, ranges: Ranges) -> None:
        super().__init__(exchange, like, ranges)
        # The latest moment of all batches, as far as any site has seen it; None while the sites were not read.
        self._latest: int | None = None

    def write(self, batch: Batch, refresh: bool, least: int) -> tuple[Any, Any, Any]:
        """Return for each key whether it was there, for which an answer is missing, and what sites have missed."""
        self._read_latest()
        moments = batch.moments
        if moments is None and self._like.window is not None:
            moments = np.full(len(batch), max(time.time_ns(), self._newest(batch)))
        generations = self._like.generations(moments, len(batch))
        if refresh and batch.offsets is None:
            writing = _Writing.of(batch, moments, generations, refresh=True)
            scattered = self.ranges.scatter(batch.hashes)
            if not self._in_time(writing, scattered):
                self._reject_late(batch, self._latest)
            return *self._touch(writing, scattered, self._newest(batch), least), self._missed
        found = self._lookup(batch.hashes)
        self._read_all(found, batch.request())
        self._reject_late(batch, np.maximum(found.latest, self._newest(None)), found.known)
        newest = max(self._generation(self._newest(batch)), int(found.newest.max()))
        oldest, unanswered = found.decide(generations, "all" if refresh else "new", newest=newest, **self._rule(least))
        writing = _Writing.of(batch, moments, generations, refresh=refresh, verdicts=oldest != NEVER)
        return oldest != NEVER, self._set(writing, found) | unanswered, self._missed

    def complete(self, record: Record) -> None:
        """Complete the batch of a record under its own requests, so that no site writes it twice."""
        self._read_latest()
        left = _Writing(*record)
        if left.verdicts is not None:
            self._set(left, self._lookup(left.hashes))
            return
        scattered = self.ranges.scatter(left.hashes)
        if self._in_time(left, scattered):
            self._touch(left, scattered, self._newest(None), 0)

    def _read_latest(self) -> None:
        """Read the latest moment of all batches: this orderer may be new while the sites are not."""
        if self._latest is None:
            answers = self._exchange.call([Message(site, "latest", ()) for site in range(len(self._missed))])
            self._latest = max([NEVER, *(int(answer) for answer in answers if not isinstance(answer, Failed))])

    def _newest(self, batch: Batch | None) -> int:
        """Return the latest moment before a batch, by all batches and by what its producer has seen."""
        assert self._latest is not None
        return self._latest if batch is None or batch.latest is None else max(self._latest, batch.latest)

    def _in_time(self, writing: _Writing, scattered: Scattered) -> bool:
        """Whether no key is too late for the moments of others, or was in time when the batch was sent before."""
        if writing.first is None or writing.first >= self._newest(None) - self._lateness:
            return True
        messages = [Message(site, "latest", (), {}, writing.share) for site, _ in scattered.shares()]
        return any(answer[1] for answer in self._exchange.call(messages) if not isinstance(answer, Failed))

    def _touch(self, writing: _Writing, scattered: Scattered, latest: int, least: int) -> Verdicts:
        """Let the sites read the cells and set them, and decide by what they contained."""
        before, now, missed = self._generation(latest), writing.now, self._missed.copy()
        self._latest = max(self._newest(None), writing.last)
        shares, late = scattered.shares(), writing.behind
        options = {"before": before, "now": now, "latest": self._latest}
        places = [] if late is None else scattered.places()
        messages = [
            Message(
                site,
                "touch",
                (cells,) if late is None else (cells, late[places[i] // self._k]),
                options,
                writing.share,
            )
            for i, (site, cells) in enumerate(shares)
        ]
        answers: list[Any] = []
        newest = max(before, now)
        # If the batch came before, it is decided as it was then.
        for (site, _), answer in zip(shares, self._exchange.write(messages, writing.record), strict=True):
            if isinstance(answer, Failed):
                answers.append(None)
                self._missed[site] = max(self._missed[site], newest)
                continue
            ages, (base, lacks, first_before, first_now) = answer[0], map(int, answer[1])
            answers.append((ages, base, max(lacks, int(missed[site]))))
            before, now = min(before, first_before), min(now, first_now)
        generations = replace(writing, now=now).generations
        oldest, unanswered = scattered.decide(answers, generations, "answered", newest=before, **self._rule(least))
        return oldest != NEVER, unanswered

    def _set(self, writing: _Writing, found: Lookup) -> NDArray[np.bool_]:
        """Send the verdicts to the sites, which set the cells; return the keys of sites that did not answer.

        Keys that were seen are sent too, though nothing is set. If only some sites get the verdicts and the batch is
        sent again, each of its keys either is known to one of its sites, or finds all of its cells unchanged.
        """
        self._latest = max(self._newest(None), writing.last)
        columns = [column for column in (writing.verdicts, writing.behind) if column is not None]
        options = {"refresh": writing.refresh, "newest": writing.now, "latest": self._latest}
        messages = [
            found.message("set", i, slice(None), writing.keys, columns, **options) for i in range(len(found.shares))
        ]
        failed = np.zeros(len(writing.hashes), dtype=np.bool_)
        answers = self._exchange.write(messages, writing.record)
        for message, keys, answer in zip(messages, found.keys, answers, strict=True):
            if isinstance(answer, Failed):
                self._missed[message.site] = max(self._missed[message.site], writing.now)
                failed[keys] = True
        return failed
