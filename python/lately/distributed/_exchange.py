"""What a producer sends and gets back: counted, and never silent about a site that fails."""

import threading
import warnings
from collections.abc import Sequence
from typing import Any

from lately.distributed._sites import Failed, Message, Sites, Traffic


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
        self._down: set[int] = set()
        self._lock = threading.Lock()

    def call(self, messages: Sequence[Message]) -> list[Any]:
        """Send messages (`Sites.call`); warn of each site that fails, once until it answers again."""
        answers = self.sites.call(messages)
        with self._lock:
            self.traffic.count(messages, answers)
            failed = {answer.site: answer.reason for answer in answers if isinstance(answer, Failed)}
            new = sorted(failed.keys() - self._down)
            self._down -= {message.site for message in messages} - failed.keys()
            self._down |= failed.keys()
        for site in new:
            # The caller of the filter's method, which called its kind, which called this.
            warnings.warn(
                f"site {site} does not answer ({failed[site]}): its keys are decided without it",
                FailedSitesWarning,
                stacklevel=5,
            )
        return answers
