"""The actors of a filter on Ray, which hold its sites or grant its lease."""

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lately.distributed._ray import imported
from lately.distributed._sites.errors import ReplacedError, encode_error
from lately.distributed._sites.incarnation import Incarnation
from lately.distributed._sites.lease import LeaseServer
from lately.distributed._sites.port import Address, Listener, key_of
from lately.distributed._sites.results import RequestId
from lately.distributed._sites.site import Maker, Site

# Number of the actor that grants the lease.
LEASE_ACTOR = -1
# Seconds between two attempts at a process that may have been replaced. A call of Ray waits in that process until it
# reaches the cluster again, or ends; then Ray calls its successor.
PAUSE = 0.1


@dataclass(frozen=True)
class Spec:
    """What an actor gets of its filter.

    `filter` is the prefix of the actors' names in the cluster's store, `secret` the bytes that the keys of ports are
    derived from (`key_of`), and `shares` the numbers of the sites of each actor.
    """

    filter: str
    secret: bytes
    ports: bool
    shares: tuple[tuple[int, ...], ...]


class _Actor:
    """A process that answers requests on a port, and calls of Ray."""

    def __init__(self, spec: Spec, number: int) -> None:
        self._spec, self._number = spec, number
        self._incarnation = Incarnation(f"lately/{spec.filter}/{number}")
        self._port: Address | None = None

    def _listen(self, answer: Any) -> None:
        if self._spec.ports:
            with suppress(OSError):
                node = imported().util.get_node_ip_address()
                self._port = Listener(node, key_of(self._spec.secret, self._number), answer).address
        self._incarnation.publish(self._port)


class SiteActor(_Actor):
    """An actor that holds some of the sites of a filter."""

    def __init__(self, spec: Spec, number: int, makers: Mapping[int, Maker]) -> None:
        super().__init__(spec, number)
        self._makers, self._sites = makers, dict[int, Site]()
        self._lock = threading.Lock()
        for site in self._makers:
            # A site that cannot be made reports the error at each call, and is tried again, because its checkpoint may
            # be out of reach for a while.
            with suppress(Exception):
                self._site(site)
        self._listen(lambda request: self._call(*request))

    def call(self, method: str, *requests: tuple[int, Sequence[Any]]) -> tuple[list[Any], Address | None]:
        """Pass messages to some sites; return the answer of each site, or its error, and the port."""
        while True:
            with suppress(ReplacedError):
                return self._call(method, *requests), self._port
            time.sleep(PAUSE)

    def status(self, *sites: int) -> tuple[list[dict[str, Any]], Address | None]:
        """Report the states of sites (`Site.status`), and the port."""
        more = {"node": imported().get_runtime_context().get_node_id(), "port": self._port}
        return [self._site(site).status() | more for site in sites], self._port

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

    def _call(self, method: str, *requests: tuple[int, Sequence[Any]]) -> list[dict[str, Any]]:
        if method != "call":
            raise ValueError(f"a port of sites has no {method!r}")
        self._incarnation.check()
        answers = [self._answer(*request) for request in requests]
        # Checked again, because this process may have been suspended meanwhile.
        self._incarnation.check()
        return answers

    def _answer(self, number: int, messages: Sequence[Any]) -> dict[str, Any]:
        try:
            site = self._site(number)
            answers = []
            for method, columns, options, fields, fence in messages:
                request = RequestId(*fields) if fields else None
                answers.append(site.call(method, tuple(columns), options, request=request, fence=fence))
        except Exception as error:
            return encode_error(error)
        return {"incarnation": site.incarnation, "overfull": site.overfull, "answers": answers}

    def _site(self, number: int) -> Site:
        with self._lock:
            if number not in self._sites:
                self._sites[number] = self._makers[number]()
                if self._incarnation.number > 1:
                    self._sites[number].record_restart()
            return self._sites[number]


class LeaseActor(_Actor):
    """The actor that grants the lease."""

    def __init__(self, spec: Spec, number: int) -> None:
        super().__init__(spec, number)
        self._lease, self._open = LeaseServer(self._incarnation.number), False

    async def status(self) -> Spec:
        """Return what connects a producer to the filter."""
        return self._spec

    async def call(self, method: str, *arguments: Any) -> tuple[list[Any], Address | None]:
        """Call a method of `LeaseServer`; return its answer, as the only entry of a list, and the port."""
        if not self._open:
            self._open, loop = True, asyncio.get_running_loop()
            self._listen(lambda request: asyncio.run_coroutine_threadsafe(self._of(*request), loop).result())
        while True:
            with suppress(ReplacedError):
                return await self._of(method, *arguments), self._port
            await asyncio.sleep(PAUSE)

    async def _of(self, method: str, *arguments: Any) -> list[Any]:
        if method not in ("take", "renew", "hold", "give"):
            raise ValueError(f"the lease has no {method!r}")
        self._incarnation.check()
        answer = await getattr(self._lease, method)(*arguments)
        # Checked again, because a successor may have granted the lease while this process waited.
        self._incarnation.check()
        return [answer]
