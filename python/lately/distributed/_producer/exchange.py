"""The messages of a producer, counted, with a warning or an error for each site that fails."""

import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from lately._core import OverfullWarning
from lately.distributed._sites.errors import SupersededError
from lately.distributed._sites.interface import Failed, Lease, Message, Record, Sites, Traffic

# Number of leases that a producer takes for one batch. A lease that lasts longer than the sites allow is lost.
LEASES = 10

_Done = TypeVar("_Done")


class FailedSitesWarning(RuntimeWarning):
    """A site does not answer, so that keys are decided without it, or has lost its latest writes."""


class FailedSitesError(RuntimeError):
    """Raised if sites do not answer and their answers are not guessed.

    Attributes
    ----------
    failed : tuple of Failed
        The sites, and why.
    number : int or None
        Number of the batch, which some of the sites may have. Send the same keys with this ``number`` until the batch
        is answered. If it is given up, its keys may count as seen although no producer got the answer that they are
        new. None if nothing was written.
    """

    def __init__(self, failed: Sequence[Failed], number: int | None = None) -> None:
        super().__init__(failed, number)
        self.failed, self.number = tuple(failed), number

    def __str__(self) -> str:
        sites = ", ".join(f"site {failed.site} ({failed.reason})" for failed in self.failed)
        again = "" if self.number is None else f": send the same keys again with number={self.number}"
        return f"no answer from {sites}{again}"


class Exchange:
    """Sends the messages of a producer; counts `traffic`, and in `restarts` how often a site lost its latest writes.

    If it is `strict`, a site that fails is an error.
    """

    def __init__(self, sites: Sites, *, strict: bool) -> None:
        self.sites, self.strict = sites, strict
        self.traffic = Traffic(0, 0, 0, 0, np.zeros(len(sites), dtype=np.int64))
        # The sites that did not answer their last message, each with the moment at which its outage began.
        self.failed: dict[int, Failed] = {}
        self._incarnations = dict(sites.incarnations)
        self.restarts = 0
        self._overfull: set[int] = set()
        self._closed = False
        self._lock = threading.Lock()

    def call(self, messages: Sequence[Message]) -> list[Any]:
        """Send messages (`Sites.call`). Warn of a site that fails, once until it answers again, or that lost writes.

        If the exchange is strict, a site that fails raises `FailedSitesError` instead.
        """
        self._check()
        answers = self.sites.call(messages)
        with self._lock:
            self.traffic.count(messages, answers)
            out = {answer.site: answer for answer in answers if isinstance(answer, Failed)}
            since = {site: failed.since for site, failed in self.failed.items()}
            new = [failed for site, failed in out.items() if since.get(site) != failed.since]
            answered = {message.site for message in messages} - out.keys()
            self.failed = {site: failed for site, failed in self.failed.items() if site not in answered} | out
            now = self.sites.incarnations
            again = [site for site in sorted(answered) if self._incarnations.get(site, now[site]) != now[site]]
            self._incarnations |= {site: now[site] for site in answered}
            self.restarts += len(again)
        for site in again:
            _warn(f"site {site} has come back without what it wrote since its last checkpoint")
        if out and self.strict:
            raise FailedSitesError(tuple(out.values()))
        for failed in new:
            _warn(f"site {failed.site} does not answer ({failed.reason}): its keys are decided without it")
        return answers

    @contextmanager
    def lease(self, record: Record | None = None) -> Iterator[Lease]:
        """Take the lease (`Sites.lease`). Warn if a batch may have been cut off and its record is lost."""
        self._check()
        with self.sites.lease(record) as lease:
            if lease.doubtful:
                _warn(
                    "the actor of the lease was restarted, and the producer that had the lease has not come back: keys "
                    "of its last batch may be reported new once more"
                )
            yield lease

    def warn_of_overfull(self) -> None:
        """Warn once of each site that holds more keys than planned."""
        for site in sorted(self.sites.overfull.keys() - self._overfull):
            self._overfull.add(site)
            _warn(f"site {site}: {self.sites.overfull[site]}", OverfullWarning)

    def close(self) -> None:
        """Stop sending. The sites keep running."""
        self._closed = True

    def _check(self) -> None:
        if self._closed:
            raise RuntimeError("this filter is closed")


def _warn(message: str, category: type[Warning] = FailedSitesWarning) -> None:
    """Warn, with the place of the user's call."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals["__name__"].startswith(("lately.distributed.", "contextlib")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def until_done(act: Callable[[bool], _Done], *, again: bool) -> _Done:
    """Write a batch, and try again if another producer got the lease; raise `SupersededError` after `LEASES` attempts.

    `act` gets whether the batch may have been sent before. Sites know by the request what was set then.
    """
    for _ in range(LEASES - 1):
        try:
            return act(again)
        except SupersededError:
            again = True
    return act(again)
