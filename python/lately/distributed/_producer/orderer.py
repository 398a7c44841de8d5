"""The orderer: it writes batches to several sites at once, one batch after the other, each complete before the next.

On Ray it is an actor, whose queue is the order; in one process a lock is. If it dies in the middle of a batch, some
sites have the batch and others do not. So one site stores a record of the batch with its own part, before any other
site is written to. The next orderer reads the records, and completes the batch of the latest one first.

An orderer that lives on after Ray has replaced it must not write. So each one announces a number, its fence, to a site
before it sends anything else there, and a site rejects messages of earlier ones. A site that does not answer the
announcement gets no messages until it does: it may have the record that counts.
"""

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

from lately.distributed._producer.exchange import FailedSitesError, Report, new_report
from lately.distributed._sites.errors import ForgottenError, SupersededError, TooManyProducersError
from lately.distributed._sites.interface import Failed, Message, Record, Sites

# Sites that an orderer has announced itself to are those of one run. A tie of two that start at once is improbable.
_STEP = 2**16


class Writer(Protocol):
    """What writes the batches of one kind of filter."""

    def write(self, *request: Any) -> Any:
        """Write a batch, and return its answer."""

    def complete(self, record: Record) -> None:
        """Complete the batch of a record, as far as sites lack it."""


class OrderedExchange:
    """Sends the messages of an orderer, and reports what became of them; `fence` is the number of the orderer."""

    def __init__(self, sites: Sites) -> None:
        self.sites, self.fence, self.strict = sites, 0, True
        # Sites that have not answered the announcement.
        self._unannounced = set(range(len(sites)))
        # The record of a batch that is not complete, and the number of the latest write.
        self._left: Record | None = None
        self._writes = 0
        self.report: Report = new_report(sites)

    @property
    def failed(self) -> dict[int, Failed]:
        """The sites that did not answer their last message of this request."""
        return self.report.failed

    def begin(self, strict: bool, complete: Callable[[Record], None]) -> None:
        """Announce this orderer where it is unknown, and complete a batch that was cut off."""
        self.strict, self.report = strict, new_report(self.sites)
        fence, records = self.fence or 1, [] if self._left is None else [self._left]
        while self._unannounced:
            messages = [Message(site, "order", (), fence=fence) for site in sorted(self._unannounced)]
            answers = self._send(messages)
            found = {m.site: a for m, a in zip(messages, answers, strict=True) if not isinstance(a, Failed)}
            records += [tuple(record) for _, record in found.values() if record is not None]
            latest = max((before for before, _ in found.values()), default=0)
            # A site has the own number already if its answer was lost.
            if latest < fence or latest == self.fence:
                self._unannounced -= found.keys()
                break
            if self.fence:
                raise SupersededError(f"orderer {self.fence} was replaced by {latest}")
            fence = latest + 1 + secrets.randbelow(_STEP)
        self.fence = fence
        self._left = max(records, key=lambda record: record[:2], default=None)
        if self._unannounced and strict:
            raise FailedSitesError([self.report.failed[site] for site in sorted(self._unannounced)])
        if self._left is not None:
            # A lasting error concerns only the producer of that batch, and must not stop others.
            with suppress(ValueError, ForgottenError, TooManyProducersError):
                complete(self._left[2:])
            self._left = None

    def call(self, messages: Sequence[Message]) -> list[Any]:
        """Send messages; raise `FailedSitesError` for a site that fails if the request is strict."""
        answers = self._send([replace(message, fence=self.fence) for message in messages])
        out = tuple(answer for answer in answers if isinstance(answer, Failed))
        if out and self.strict:
            raise FailedSitesError(out)
        return answers

    def write(self, messages: Sequence[Message], record: Record) -> list[Any]:
        """Send messages that write a batch, the first of them with its record, and the others once it is answered."""
        self._writes += 1
        self._left = self.fence, self._writes, *record
        answers: list[Any] = [None] * len(messages)
        # Each site in turn has the record, which is larger than its part of a batch.
        turns = [(self._writes + i) % len(messages) for i in range(len(messages))]
        while turns:
            i = turns.pop(0)
            answers[i] = self.call([replace(messages[i], record=self._left if turns else None)])[0]
            if not isinstance(answers[i], Failed):
                break
        for i, answer in zip(turns, self.call([messages[i] for i in turns]), strict=True):
            answers[i] = answer
        self._left = None
        return answers

    def _send(self, messages: Sequence[Message]) -> list[Any]:
        """Send messages, but none to a site where this orderer is not announced."""
        ready = [m for m in messages if m.method == "order" or m.site not in self._unannounced]
        answers = iter(self.sites.call(ready))
        sent = set(map(id, ready))
        all_answers = [next(answers) if id(m) in sent else self.report.failed[m.site] for m in messages]
        self.report.add(messages, all_answers, self.sites)
        return all_answers


class SitesOrderer:
    """The orderer of a filter, whose batches `make` can write."""

    def __init__(self, sites: Sites, make: Callable[[OrderedExchange], Writer]) -> None:
        self._exchange = OrderedExchange(sites)
        self._writer = make(self._exchange)

    def do(self, strict: bool, *request: Any) -> tuple[Any, Report, Exception | None]:
        """Write a batch; return its answer, a report of the messages, and the error if there is one.

        If it is `strict`, a site that does not answer is an error. An orderer that was replaced raises its error.
        """
        exchange = self._exchange
        try:
            exchange.begin(strict, self._writer.complete)
            return self._writer.write(*request), exchange.report, None
        except SupersededError:
            raise
        except Exception as error:
            return None, exchange.report, error
