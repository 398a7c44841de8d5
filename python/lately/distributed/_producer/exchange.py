"""What a producer sends and receives: counted, with a warning for each site that fails."""

import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from lately.distributed._sites.interface import Failed, Message, Sites, Traffic
from lately.distributed._sites.site import SupersededError

TURNS = 10
"""Turns that a producer takes for one batch: a turn is lost if it lasts longer than the sites allow."""

_Done = TypeVar("_Done")


class FailedSitesWarning(RuntimeWarning):
    """A site does not answer; until it does, keys are decided without it."""


class Exchange:
    """A producer's way to its sites.

    Attributes
    ----------
    sites : Sites
    traffic : Traffic
    """

    def __init__(self, sites: Sites) -> None:
        self.sites = sites
        self.traffic = Traffic.none(len(sites))
        # When each failed site failed, which tells one outage from the next.
        self._since: dict[int, float] = {}
        self._lock = threading.Lock()

    def call(self, messages: Sequence[Message]) -> list[Any]:
        """Send messages (`Sites.call`); warn of each site that fails, once until it answers again."""
        answers = self.sites.call(messages)
        with self._lock:
            self.traffic.count(messages, answers)
            out = {answer.site: answer for answer in answers if isinstance(answer, Failed)}
            new = [failed for site, failed in out.items() if self._since.get(site) != failed.since]
            answered = {message.site for message in messages} - out.keys()
            kept = {site: since for site, since in self._since.items() if site not in answered}
            self._since = kept | {site: failed.since for site, failed in out.items()}
        for failed in new:
            warnings.warn(
                f"site {failed.site} does not answer ({failed.reason}): its keys are decided without it",
                FailedSitesWarning,
                stacklevel=_level(),
            )
        return answers


def _level() -> int:
    """How many calls lie between its caller and the user's line, which a warning should show."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("lately.distributed."):
        frame, level = frame.f_back, level + 1
    return level


def until_done(act: Callable[[bool], _Done], *, again: bool) -> _Done:
    """Write a batch, again if another producer got the turn meanwhile.

    `act` is given whether the batch may have been sent before: what was set then is known by its ticket.

    Raises
    ------
    SupersededError
        If that happens too often.
    """
    for _ in range(TURNS - 1):
        try:
            return act(again)
        except SupersededError:
            again = True
    return act(again)
