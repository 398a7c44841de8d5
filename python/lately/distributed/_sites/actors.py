"""The actors of a filter on Ray: those that hold its sites, and the one that puts batches in order."""

import os
import pickle
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lately.distributed._ray import imported
from lately.distributed._sites.errors import SupersededError, portable
from lately.distributed._sites.interface import Message, Orderer, Sites
from lately.distributed._sites.site import Maker, Site


@dataclass(frozen=True)
class SiteAnswer:
    """The answers of a site to the messages of a call, or its error."""

    incarnation: int = 0
    overfull: str | None = None
    answers: Sequence[Any] = ()
    error: Exception | None = None


class SiteActor:
    """An actor that holds some of the sites of a filter.

    Its pickled arguments are the numbers of the sites of each actor, and the makers of its own.
    """

    _shares: Sequence[Sequence[int]]
    _makers: Mapping[int, Maker]

    def __init__(self, arguments: bytes) -> None:
        (self._shares, self._makers), self._sites = pickle.loads(arguments), dict[int, Site]()
        self._restarted = imported().get_runtime_context().was_current_actor_reconstructed
        self._lock = threading.Lock()
        for site in self._makers:
            # A site that cannot be made reports the error at each call, and is tried again, because its checkpoint may
            # be out of reach for a while.
            with suppress(Exception):
                self._site(site)

    def shares(self) -> Sequence[Sequence[int]]:
        """Return the numbers of the sites of each actor."""
        return self._shares

    def call(self, messages: Sequence[Message]) -> dict[int, SiteAnswer]:
        """Pass messages to their sites; return the answers of each site."""
        sites = dict.fromkeys(message.site for message in messages)
        return {site: self._answer(site, [message for message in messages if message.site == site]) for site in sites}

    def status(self, sites: Sequence[int]) -> dict[int, dict[str, Any]]:
        """Report the states of sites (`Site.status`)."""
        node = imported().get_runtime_context().get_node_id()
        return {site: self._site(site).status() | {"node": node} for site in sites}

    def close(self) -> None:
        """Close all sites, after their last checkpoints."""
        errors = []
        for site in list(self._sites.values()):
            try:
                site.close()
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _answer(self, number: int, messages: Sequence[Message]) -> SiteAnswer:
        try:
            site = self._site(number)
            answers = [site.receive(message) for message in messages]
        except Exception as error:
            return SiteAnswer(error=portable(error))
        return SiteAnswer(site.incarnation, site.overfull, answers)

    def _site(self, number: int) -> Site:
        with self._lock:
            if number not in self._sites:
                self._sites[number] = self._makers[number]()
                if self._restarted:
                    self._sites[number].record_restart()
            return self._sites[number]


class OrdererActor:
    """An actor that holds the orderer of a filter. Its queue is the order of the batches.

    Its pickled arguments are the sites, and what makes the orderer.
    """

    def __init__(self, arguments: bytes) -> None:
        make: Callable[[Sites], Orderer]
        self._sites, make = pickle.loads(arguments)
        self._orderer = make(self._sites)

    def do(self, deadline: float, *request: Any) -> tuple[Any, Any, Exception | None]:
        """Call the orderer for a producer whose sites have `deadline` seconds to answer.

        If another one has replaced the orderer, this process ends, and Ray calls the other.
        """
        self._sites.deadline = deadline
        try:
            answer, report, error = self._orderer.do(*request)
        except SupersededError:
            os._exit(1)
        return answer, report, error and portable(error)

    def process(self) -> int:
        """Return the number of this process."""
        return os.getpid()
