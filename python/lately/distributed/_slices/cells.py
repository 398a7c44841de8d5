"""Vertical and diced filters: a site holds some of the cells, and a key has cells on many (paper 4, definition 2)."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately._core import FilterSpec, Ranges, Scattered
from lately.distributed._contents.cells import NEVER
from lately.distributed._producer.exchange import Exchange, until_done
from lately.distributed._producer.producer import Batch, Verdicts
from lately.distributed._sites.errors import ForgottenError, TooManyProducersError
from lately.distributed._sites.interface import Failed, Lease, Message, Record
from lately.distributed._sites.results import UNKNOWN, RequestId

# Stands for the generation of a cell whose site did not answer.
SILENT = NEVER + 1


@dataclass(frozen=True)
class _Writing:
    """A batch that is being written. Its record lets another producer complete it."""

    producer: str
    number: int
    lasting: bool
    offsets: NDArray[np.int64] | None
    hashes: NDArray[np.uint64]
    # The newest generation of the keys, and how many generations before that each key is; None if all are of that one.
    now: int
    behind: NDArray[Any] | None
    # The newest generation of other producers for which no key is too late; None if the batch is of that generation.
    until: int | None
    refresh: bool
    # The verdicts; None if the sites read the cells and set them at once.
    verdicts: NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, batch: Batch, generations: NDArray[np.int64], until: int | None, **more: Any) -> "_Writing":
        """Return what is to be written of a batch."""
        now = int(generations.max())
        late = now - generations
        # In the narrowest type that fits.
        narrow = late.astype(np.uint8 if late.max() <= np.iinfo(np.uint8).max else np.uint32) if late.any() else None
        return cls(batch.producer, batch.number, batch.lasting, batch.offsets, batch.hashes, now, narrow, until, **more)

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
    newest : ndarray of int64, shape (n,)
        The newest generation that a site of the key has seen, apart from this batch.
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
        """Make a message to site number i of the lists about some of its cells. `columns` and `request` are by key."""
        (site, cells), keys, places = self.shares[i], self.keys[i][rows], self.places[i][rows]
        own = None if request is None else request.of_cells(places, self._k)
        return Message(site, method, (cells[rows], *(column[keys] for column in columns)), options, own, fence)

    def put(self, i: int, rows: Any, answer: Any) -> None:
        """Store the answer of site number i of the lists for some of its cells."""
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

    def first_of_key(self) -> list[NDArray[np.bool_]]:
        """Return for each cell whether no earlier key of the batch has it."""
        own = []
        for (_, cells), keys in zip(self.shares, self.keys, strict=True):
            _, first, cell = np.unique(cells, return_index=True, return_inverse=True)
            own.append(keys[first[cell]] == keys)
        return own


class Cells:
    """Reads and sets the cells of a batch: tests, then sets (paper 4, section 2).

    `query`, `insert` and `duplicated` return the verdicts, and for which keys an answer is missing; both of shape (n,).

    With `refresh` all cells are set, whatever the verdicts: a site reads each cell and sets it before the next, and the
    verdicts follow from what was read. The site remembers that answer as a whole. Without `refresh` the cells of all
    keys are read, the batch is decided in order, and then the cells of new keys are set; the site remembers verdicts
    key by key. The same holds with `offsets`, because such a batch may come again with other keys.

    A producer holds the lease meanwhile. Of two producers with the same new key, one therefore sees the other's.

    `least` is x: how many cells of a seen key must have an answer (paper 4, section 3.2; erratum OIE-2). A `pipelined`
    filter reads first at the site of the first cell of each key, then at the next site of the keys that may still have
    been seen, and so on.
    """

    def __init__(self, exchange: Exchange, like: FilterSpec, ranges: Ranges, *, least: int, pipelined: bool) -> None:
        self._exchange, self._like, self._pipelined = exchange, like, pipelined
        self._k, equal = int(like.parameters["k"]), like.parameters.get("equal_timers", 1)
        self._rule: dict[str, Any] = {"kept": like.retained, "least": least, "equal": equal}
        self._lateness = round((like.lateness or 0) * 1e9)
        self.ranges = ranges
        # For each site the newest generation that was written while it did not answer. While that generation is in the
        # window, cells that the site shows unset may have been set.
        self._missed = np.full(len(exchange.sites), NEVER)

    def query(self, batch: Batch) -> Verdicts:
        """Return which keys were inserted within the window. Nothing is set, so no lease is needed."""
        generations = self._generations(batch)
        found = self._read(batch, generations)
        self._reject_late(batch, found)
        newest = max(self._latest(batch), int(found.newest.max()))
        oldest, unanswered = found.decide(generations, "apart", newest=newest, **self._rule)
        return oldest != NEVER, unanswered

    def insert(self, batch: Batch) -> Verdicts:
        """Insert keys; the verdicts have no meaning."""
        return self.duplicated(batch, refresh=True)

    def duplicated(self, batch: Batch, *, refresh: bool) -> Verdicts:
        """Return for each key whether it was there, then insert it."""
        generations = self._generations(batch)
        act = self._in_one_step(batch, generations) if refresh and batch.offsets is None else None
        return until_done(act or partial(self._key_by_key, batch, generations, refresh), again=batch.again)

    def _in_one_step(self, batch: Batch, generations: NDArray[np.int64]) -> Callable[[bool], Verdicts]:
        until = None
        if batch.moments is not None:
            until = int(self._latest_for(batch.moments).min())
        writing = _Writing.of(batch, generations, until, refresh=True)
        scattered = self.ranges.scatter(batch.hashes)

        def act(_: bool) -> Verdicts:
            with self._exchange.lease(writing.record) as lease:
                self._complete(lease)
                if lease.left is not None:
                    lease.hold(writing.record)
                if self._in_time(writing, scattered, lease):
                    return self._touch(writing, scattered, lease, self._latest(batch))
                newest = lease.newest
            assert batch.moments is not None
            assert newest is not None
            raise self._too_late(self._latest_for(batch.moments) < newest)

        return act

    def _key_by_key(self, batch: Batch, generations: NDArray[np.int64], refresh: bool, again: bool) -> Verdicts:
        """Read, decide, and write."""
        with self._exchange.lease() as lease:
            self._complete(lease)
            found = self._read(replace(batch, again=again), generations, lease.fence)
            self._reject_late(batch, found)
            newest = max(self._latest(batch), int(found.newest.max()))
            if batch.moments is None:
                generations = np.maximum(generations, newest)
            earlier = "all" if refresh else "new"
            oldest, unanswered = found.decide(generations, earlier, newest=newest, **self._rule)
            writing = _Writing.of(batch, generations, None, refresh=refresh, verdicts=oldest != NEVER)
            lease.newest = max(newest, writing.now)
            lease.hold(writing.record)
            return oldest != NEVER, self._set(writing, found, lease.fence) | unanswered

    def _read(self, batch: Batch, generations: NDArray[np.int64], fence: int = 0) -> Lookup:
        """Read the cells: all at once, or one site of each key after the other."""
        found, request = self._lookup(batch.hashes), batch.request()
        if not self._pipelined or batch.again:
            self._read_some(found, request, fence, [slice(None)] * len(found.shares))
            return found
        # A key is new if a cell is unset, unless an earlier key of the batch may set it; a query sets nothing.
        proves = found.first_of_key() if batch.number else [np.True_] * len(found.shares)
        oldest, open = generations - self._like.retained, np.ones(len(batch), dtype=np.bool_)
        rounds = found.rounds()
        for number in range(self._k):
            rows = [np.flatnonzero((own == number) & open[keys]) for own, keys in zip(rounds, found.keys, strict=True)]
            if not any(map(len, rows)):
                break
            self._read_some(found, request, fence, rows)
            for i, (keys, last) in enumerate(zip(found.keys, found.last, strict=True)):
                unset = (np.maximum(last, found.missed[i]) < oldest[keys]) & (last != SILENT) & proves[i]
                open[keys[rows[i]][unset[rows[i]]]] = False
        return found

    def _read_some(self, found: Lookup, request: RequestId | None, fence: int, rows: list[Any]) -> None:
        """Read the cells of these rows at each site of a lookup."""
        some = [i for i, places in enumerate(found.places) if len(places[rows[i]])]
        answers = self._exchange.call([found.message("read", i, rows[i], request, fence) for i in some])
        for i, answer in zip(some, answers, strict=True):
            found.put(i, rows[i], answer)

    def _lookup(self, hashes: NDArray[np.uint64]) -> Lookup:
        return Lookup(self.ranges.scatter(hashes), len(hashes), self._k, self._missed)

    def _complete(self, lease: Lease) -> None:
        """Complete the batch of a lease that ended early, under its own requests, so that no site writes it twice."""
        if lease.newest is None:
            # The lease server may be new while the sites are not.
            answers = self._exchange.call([Message(site, "latest", ()) for site in range(len(self._missed))])
            lease.newest = max([NEVER, *(answer for answer in answers if not isinstance(answer, Failed))])
        if lease.left is not None:
            left = _Writing(*lease.left)
            if left.verdicts is not None:
                self._set(left, self._lookup(left.hashes), lease.fence)
                return
            scattered = self.ranges.scatter(left.hashes)
            # A lasting error concerns only the producer of that batch, and must not stop others.
            with suppress(ValueError, ForgottenError, TooManyProducersError):
                if self._in_time(left, scattered, lease):
                    self._touch(left, scattered, lease, NEVER)

    def _in_time(self, writing: _Writing, scattered: Scattered, lease: Lease) -> bool:
        """Whether no key is too late for the generations of others, or was in time when the batch was sent before."""
        assert lease.newest is not None
        if writing.until is None or writing.until >= lease.newest:
            return True
        messages = [Message(site, "latest", (), {}, writing.share, lease.fence) for site, _ in scattered.shares()]
        answers = self._exchange.call(messages)
        return any(answer[1] for answer in answers if not isinstance(answer, Failed))

    def _touch(self, writing: _Writing, scattered: Scattered, lease: Lease, latest: int) -> Verdicts:
        """Let the sites read the cells and set them, and decide by what they contained."""
        assert lease.newest is not None
        before, missed = max(lease.newest, latest), self._missed.copy()
        now = writing.now if writing.until is not None else max(writing.now, before)
        lease.newest = max(before, now)
        shares, late, options = scattered.shares(), writing.behind, {"before": before, "now": now}
        places = [] if late is None else scattered.places()
        messages = [
            Message(
                site,
                "touch",
                (cells,) if late is None else (cells, late[places[i] // self._k]),
                options,
                writing.share,
                lease.fence,
            )
            for i, (site, cells) in enumerate(shares)
        ]
        answers: list[Any] = []
        # If the batch came before, it is decided as it was then.
        for (site, _), answer in zip(shares, self._exchange.call(messages), strict=True):
            if isinstance(answer, Failed):
                answers.append(None)
                self._missed[site] = max(self._missed[site], lease.newest)
                continue
            ages, (base, lacks, first_before, first_now) = answer[0], map(int, answer[1])
            answers.append((ages, base, max(lacks, int(missed[site]))))
            before, now = min(before, first_before), min(now, first_now)
        generations = replace(writing, now=now).generations
        oldest, unanswered = scattered.decide(answers, generations, "answered", newest=before, **self._rule)
        return oldest != NEVER, unanswered

    def _set(self, writing: _Writing, found: Lookup, fence: int) -> NDArray[np.bool_]:
        """Send the verdicts to the sites, which set the cells; return the keys of sites that did not answer.

        Keys that were seen are sent too, though nothing is set. If only some sites get the verdicts and the batch is
        sent again, each of its keys either is known to one of its sites, or finds all of its cells unchanged.
        """
        columns = [column for column in (writing.verdicts, writing.behind) if column is not None]
        options = {"refresh": writing.refresh, "newest": writing.now}
        messages = [
            found.message("set", i, slice(None), writing.keys, fence, columns, **options)
            for i in range(len(found.shares))
        ]
        failed = np.zeros(len(writing.hashes), dtype=np.bool_)
        for message, keys, answer in zip(messages, found.keys, self._exchange.call(messages), strict=True):
            if isinstance(answer, Failed):
                self._missed[message.site] = max(self._missed[message.site], writing.now)
                failed[keys] = True
        return failed

    def _generations(self, batch: Batch) -> NDArray[np.int64]:
        return self._like.generations(batch.moments, len(batch))

    def _latest(self, batch: Batch) -> int:
        """Return the newest generation of this producer's earlier batches."""
        return NEVER if batch.latest is None else int(self._like.generations(np.array([batch.latest]), 1)[0])

    def _latest_for(self, moments: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for each moment the newest generation of other producers for which it is not too late."""
        latest = np.minimum(moments, np.iinfo(np.int64).max - self._lateness) + self._lateness
        return self._like.generations(latest, len(moments))

    def _reject_late(self, batch: Batch, found: Lookup) -> None:
        """Reject a key that is too late for a site, where its cells may have expired."""
        if batch.moments is not None:
            late = (self._latest_for(batch.moments) < found.newest) & (found.known == UNKNOWN)
            if late.any():
                raise self._too_late(late)

    def _too_late(self, late: NDArray[np.bool_]) -> ValueError:
        return ValueError(
            f"at[{int(late.argmax())}] lies more than {self._lateness / 1e9:.12g} s, the lateness, before what "
            "other producers have brought: construct the filter with a larger lateness"
        )
