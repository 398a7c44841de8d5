"""The messages of a producer, counted, with a warning or an error for each site that fails."""

import sys
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lately._core import OverfullWarning
from lately.distributed._sites.interface import Failed, Message, Sites, Traffic


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


@dataclass
class Report:
    """What became of some messages: their traffic, the sites that did not answer, and the state of those that did."""

    traffic: Traffic
    failed: dict[int, Failed] = field(default_factory=dict)
    incarnations: dict[int, int] = field(default_factory=dict)
    overfull: dict[int, str] = field(default_factory=dict)

    def add(self, messages: Sequence[Message], answers: Sequence[Any], sites: Sites) -> None:
        """Add messages and their answers. What counts of a site is its last answer."""
        self.traffic.count(messages, answers)
        for message, answer in zip(messages, answers, strict=True):
            if isinstance(answer, Failed):
                self.failed[message.site] = answer
                self.incarnations.pop(message.site, None)
            else:
                self.failed.pop(message.site, None)
                self.incarnations[message.site] = sites.incarnations[message.site]
        self.overfull |= sites.overfull


def new_report(sites: Sites) -> Report:
    """Return a report of no messages."""
    return Report(Traffic(0, 0, 0, 0, np.zeros(len(sites), dtype=np.int64)))


class Exchange:
    """Sends the messages of a producer; counts `traffic`, and in `restarts` how often a site lost its latest writes.

    If it is `strict`, a site that fails is an error.
    """

    def __init__(self, sites: Sites, *, strict: bool) -> None:
        self.sites, self.strict = sites, strict
        self.traffic = new_report(sites).traffic
        # The sites that did not answer their last message, each with the moment at which its outage began.
        self.failed: dict[int, Failed] = {}
        self._incarnations = dict(sites.incarnations)
        self.restarts = 0
        self._overfull: dict[int, str] = {}
        self._warned: set[int] = set()
        self._closed = False
        self._lock = threading.Lock()

    def call(self, messages: Sequence[Message]) -> list[Any]:
        """Send messages (`Sites.call`). Warn of a site that fails, once until it answers again, or that lost writes.

        If the exchange is strict, a site that fails raises `FailedSitesError` instead.
        """
        self._check()
        report, answers = new_report(self.sites), self.sites.call(messages)
        report.add(messages, answers, self.sites)
        self._take(report)
        if report.failed and self.strict:
            raise FailedSitesError(tuple(report.failed.values()))
        return answers

    def order(self, *request: Any) -> Any:
        """Let the orderer of the sites do what is requested (`Orderer`), with the warnings and errors of `call`."""
        self._check()
        answer, report, error = self.sites.order(self.strict, *request)
        self._take(report)
        if error is not None:
            raise error
        return answer

    def _take(self, report: Report) -> None:
        """Count what became of some messages, and warn of sites that fail, if that is no error, and of restarts."""
        with self._lock:
            self.traffic.add(report.traffic)
            self._overfull |= report.overfull
            since = {site: failed.since for site, failed in self.failed.items()}
            new = [failed for site, failed in report.failed.items() if since.get(site) != failed.since]
            answered, now = sorted(report.incarnations), report.incarnations
            self.failed = {s: failed for s, failed in self.failed.items() if s not in answered} | report.failed
            again = [site for site in answered if self._incarnations.get(site, now[site]) != now[site]]
            self._incarnations |= now
            self.restarts += len(again)
        for site in again:
            _warn(f"site {site} has come back without what it wrote since its last checkpoint")
        for failed in () if self.strict else new:
            _warn(f"site {failed.site} does not answer ({failed.reason}): its keys are decided without it")

    def warn_of_overfull(self) -> None:
        """Warn once of each site that holds more keys than planned."""
        for site in sorted(self._overfull.keys() - self._warned):
            self._warned.add(site)
            _warn(f"site {site}: {self._overfull[site]}", OverfullWarning)

    def close(self) -> None:
        """Stop sending. The sites keep running."""
        self._closed = True

    def _check(self) -> None:
        if self._closed:
            raise RuntimeError("this filter is closed")


def _warn(message: str, category: type[Warning] = FailedSitesWarning) -> None:
    """Warn, with the place of the user's call."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("lately.distributed."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
