"""A vertical or diced filter: a site holds some of the cells, and a key has cells on many (paper 4, definition 2)."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately._core import FilterSpec, Ranges, Scattered, resolve
from lately.distributed._contents.cell_store import NEVER
from lately.distributed._producer.exchange import Exchange, until_done
from lately.distributed._producer.producer import Batch, Verdicts
from lately.distributed._producer.request import send
from lately.distributed._sites.errors import ForgottenError, TooManyProducersError
from lately.distributed._sites.interface import Failed, Lease, Message, Record
from lately.distributed._sites.results import UNKNOWN, RequestId
from lately.distributed._slices.parts import Found, Parts
from lately.distributed._slices.reading import Reader
from lately.distributed._slices.routes import behind


@dataclass(frozen=True)
class _Writing:
    """A batch as it is written: what is held of it until that is done, so that another producer can complete it.

    Attributes
    ----------
    now : int
        The newest generation of its keys.
    behind : ndarray of uint8 or uint32, shape (n,), or None
        How many generations before that each key's is; None if none is.
    until : int or None
        The newest generation of others that it is not too late for; None if it takes that for its own.
    refresh : bool
    verdicts : ndarray of bool, shape (n,), or None
        None if the sites read the cells and set them at once.
    """

    producer: str
    number: int
    lasting: bool
    offsets: NDArray[np.int64] | None
    hashes: NDArray[np.uint64]
    now: int
    behind: NDArray[Any] | None
    until: int | None
    refresh: bool
    verdicts: NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, batch: Batch, generations: NDArray[np.int64], until: int | None, **more: Any) -> "_Writing":
        """Note what is to be written."""
        (now, late), lasting = behind(generations), batch.lasting
        return cls(batch.producer, batch.number, lasting, batch.offsets, batch.hashes, now, late, until, **more)

    @property
    def record(self) -> Record:
        """Give what makes it again."""
        return tuple(getattr(self, each.name) for each in fields(self))

    @property
    def generations(self) -> NDArray[np.int64]:
        """Give the generation of each key."""
        behind = np.zeros(len(self.hashes), dtype=np.int64) if self.behind is None else self.behind
        return self.now - behind.astype(np.int64)

    @property
    def share(self) -> RequestId:
        """Make the request of what the batch has for a site, all of it."""
        return RequestId(self.producer, self.number, None, self.lasting)

    @property
    def keys(self) -> RequestId:
        """Make the request of its keys."""
        offsets = np.arange(len(self.hashes)) if self.offsets is None else self.offsets
        return RequestId(self.producer, self.number, offsets, self.lasting)


class Cells:
    """Test, then set (paper 4, section 2), a batch at a time.

    `query`, `insert` and `duplicated` give the verdicts, and for which keys an answer is missing; both of shape (n,).

    With `refresh` all cells are set, whatever the verdicts: a site reads each and sets it before the next, and the
    verdicts follow from what was read. It remembers that answer as a whole. Otherwise the cells of all keys are read,
    the batch is decided in order as if key by key (`resolve`), and then the cells of new keys are set; verdicts are
    remembered key by key. So it is with `offsets` too, by which a batch may come again with other keys.

    A producer does so in its lease, so that of two with the same new key one sees the other's.

    Parameters
    ----------
    exchange : Exchange
    like : FilterSpec
        The filter that is cut, for its parameters.
    ranges : Ranges
    parts : int
        Into how many its cells are cut.
    least : int
        x: how many cells of a seen key must have an answer (paper 4, section 3.2; erratum OIE-2).
    pipelined : bool
        Whether to read site by site (`Reader`).
    """

    def __init__(
        self, exchange: Exchange, like: FilterSpec, ranges: Ranges, parts: int, *, least: int, pipelined: bool
    ) -> None:
        self._exchange, self._like, self._ranges = exchange, like, ranges
        equal = like.parameters.get("equal_timers", 1)
        self._rule: dict[str, Any] = {"kept": like.retained, "least": least, "equal": equal}
        self._lateness = round((like.lateness or 0) * 1e9)
        self._parts = Parts(like, parts)
        self._reader = Reader(exchange, like, ranges, self._parts, pipelined=pipelined)
        self._missed = self._reader.missed

    def query(self, batch: Batch) -> Verdicts:
        """Return which keys were inserted within the window. Nothing is set, so no lease is needed."""
        generations = self._generations(batch)
        found = self._reader.read(batch, generations)
        self._refuse_late(batch, found)
        oldest = np.maximum(generations, max(self._latest(batch), int(found.newest.max()))) - self._like.retained
        unsure: Any = found.unsure(oldest)
        seen = (unsure | (found.last >= oldest[:, None])).all(axis=1) & ((~unsure).sum(axis=1) >= self._rule["least"])
        if self._rule["equal"] > 1:
            seen &= _alike(np.where(unsure, NEVER, found.last)) >= self._rule["equal"]
        return seen, found.unanswered(oldest)

    def insert(self, batch: Batch) -> Verdicts:
        """Insert keys; the verdicts have no meaning."""
        return self.duplicated(batch, refresh=True)

    def duplicated(self, batch: Batch, *, refresh: bool) -> Verdicts:
        """Return for each key whether it was there, then insert it."""
        generations = self._generations(batch)
        act = self._at_once(batch, generations) if refresh and batch.offsets is None else None
        return until_done(act or partial(self._one_by_one, batch, generations, refresh), again=batch.again)

    def _at_once(self, batch: Batch, generations: NDArray[np.int64]) -> Callable[[bool], Verdicts]:
        until = None
        if batch.moments is not None:
            until = int(self._latest_for(batch.moments).min())
        writing, scattered = _Writing.of(batch, generations, until, refresh=True), self._ranges.scatter(batch.hashes)

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

    def _one_by_one(self, batch: Batch, generations: NDArray[np.int64], refresh: bool, again: bool) -> Verdicts:
        """Read, decide, and write."""
        with self._exchange.lease() as lease:
            self._complete(lease)
            found = self._reader.read(replace(batch, again=again), generations, lease.fence)
            self._refuse_late(batch, found)
            newest = max(self._latest(batch), int(found.newest.max()))
            if batch.moments is None:
                generations = np.maximum(generations, newest)
            seen = resolve(
                found.names,
                found.last,
                generations,
                newest=newest,
                refresh=refresh,
                alive=found.alive,
                missed=found.missed if found.missed.max() > NEVER else None,
                known=found.known,
                **self._rule,
            )
            writing = _Writing.of(batch, generations, None, refresh=refresh, verdicts=seen)
            lease.newest = max(newest, writing.now)
            lease.hold(writing.record)
            failed = self._set(writing, found.sites, found.cells, lease.fence)
            return seen, failed | found.unanswered(np.maximum(generations, newest) - self._like.retained)

    def _complete(self, lease: Lease) -> None:
        """Write the batch of a lease that ended in the middle: with its own requests, so that no site does it twice."""
        if lease.newest is None:
            # Those who take leases are new, and the sites may not be.
            answers = self._exchange.call([Message(site, "latest", ()) for site in range(len(self._missed))])
            lease.newest = max([NEVER, *(answer for answer in answers if not isinstance(answer, Failed))])
        if lease.left is not None:
            left = _Writing(*lease.left)
            scattered = self._ranges.scatter(left.hashes)
            if left.verdicts is not None:
                self._set(left, scattered.sites, scattered.cells, lease.fence)
                return
            # An error that stays concerns its own producer, and must not stop the others.
            with suppress(ValueError, ForgottenError, TooManyProducersError):
                if self._in_time(left, scattered, lease):
                    self._touch(left, scattered, lease, NEVER)

    def _in_time(self, writing: _Writing, scattered: Scattered, lease: Lease) -> bool:
        """Whether no key is too late for what others have brought, or it was not when the batch was sent before."""
        assert lease.newest is not None
        if writing.until is None or writing.until >= lease.newest:
            return True
        messages = [Message(site, "latest", (), {}, writing.share, lease.fence) for site, _ in scattered.shares()]
        answers = self._exchange.call(messages)
        return any(answer[1] for answer in answers if not isinstance(answer, Failed))

    def _touch(self, writing: _Writing, scattered: Scattered, lease: Lease, latest: int) -> Verdicts:
        """Let the sites read the cells and set them, and decide by what they were."""
        assert lease.newest is not None
        before, missed = max(lease.newest, latest), self._missed.copy()
        now = writing.now if writing.until is not None else max(writing.now, before)
        lease.newest = max(before, now)
        shares, behind = scattered.shares(), None if writing.behind is None else scattered.spread(writing.behind)
        messages = [
            Message(
                site,
                "touch",
                (cells,) if behind is None else (cells, behind[i]),
                {"before": before, "now": now},
                writing.share,
                lease.fence,
            )
            for i, (site, cells) in enumerate(shares)
        ]
        answers: list[Any] = []
        # As of when the batch came first, if it has come before.
        for (site, _), answer in zip(shares, self._exchange.call(messages), strict=True):
            if isinstance(answer, Failed):
                answers.append(None)
                self._missed[site] = max(self._missed[site], lease.newest)
                continue
            ages, (base, lacks, first_before, first_now) = answer[0], map(int, answer[1])
            answers.append((ages, base, max(lacks, int(missed[site]))))
            before, now = min(before, first_before), min(now, first_now)
        generations = replace(writing, now=now).generations
        seen: Verdicts = scattered.decide(answers, generations, newest=before, **self._rule)
        return seen

    def _set(
        self, writing: _Writing, sites: NDArray[np.uint16], cells: NDArray[np.uint64], fence: int
    ) -> NDArray[np.bool_]:
        """Send the verdicts to all sites of a batch, which set the cells; give the keys whose site did not answer.

        Keys that were seen are sent too, though nothing is set. If only some sites get this and the batch is sent
        again, each of its keys either is known to one of its sites, or finds all of its cells as they were.
        """
        columns, options = (writing.verdicts, writing.behind), {"refresh": writing.refresh, "newest": writing.now}
        request = self._parts.set(sites, cells, columns, writing.keys, fence, **options)
        failed: NDArray[np.bool_]
        lost, failed = send(self._exchange, [request])[0]
        self._missed[lost] = np.maximum(self._missed[lost], writing.now)
        return failed

    def _generations(self, batch: Batch) -> NDArray[np.int64]:
        return self._like.generations(batch.moments, len(batch))

    def _latest(self, batch: Batch) -> int:
        """Give the newest generation that this producer has brought before."""
        return NEVER if batch.latest is None else int(self._like.generations(np.array([batch.latest]), 1)[0])

    def _latest_for(self, moments: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give for each moment the newest generation of others that it is not too late for."""
        latest = np.minimum(moments, np.iinfo(np.int64).max - self._lateness) + self._lateness
        return self._like.generations(latest, len(moments))

    def _refuse_late(self, batch: Batch, found: Found) -> None:
        """Refuse a key that is too late for a site, where its cells may have expired."""
        if batch.moments is not None:
            late = self._latest_for(batch.moments) < found.newest.max(axis=1)
            late &= found.known == UNKNOWN
            if late.any():
                raise self._too_late(late)

    def _too_late(self, late: NDArray[np.bool_]) -> ValueError:
        return ValueError(
            f"at[{int(late.argmax())}] lies more than {self._lateness / 1e9:.12g} s, the lateness, before what "
            "other producers have brought: construct the filter with a larger lateness"
        )


def _alike(generations: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count, in each row, the most set cells of one generation."""
    same = np.zeros(len(generations), dtype=np.int64)
    for column in generations.T:
        alike = (generations == column[:, None]).sum(axis=1)
        same = np.maximum(same, np.where(column == NEVER, 0, alike))
    return same
