"""What runs on Ray: hosts, and who hands out turns. Each is an actor that answers by calls of Ray and by a port."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lately.distributed._ray import imported
from lately.distributed._sites.host import Host
from lately.distributed._sites.interface import Maker, Plain
from lately.distributed._sites.ledger import RayLedger
from lately.distributed._sites.listener import Address, Listener
from lately.distributed._sites.metrics import Reporter
from lately.distributed._sites.turns import Turns
from lately.distributed._sites.wire import TURNS, key_of


@dataclass(frozen=True)
class Spec:
    """What makes an actor, and another beside it.

    Attributes
    ----------
    makers : tuple of callable
        Of all sites of the filter.
    secret : bytes
        What ports ask for (`key_of`).
    ports : bool
        Whether there are any.
    ledger : RayLedger
    options : mapping
        Of Ray.
    """

    makers: tuple[Maker, ...]
    secret: bytes
    ports: bool
    ledger: RayLedger
    options: Mapping[str, Any]


class Actor:
    """A host, and its port.

    Parameters
    ----------
    spec : Spec
    number : int
        Of the host.
    """

    def __init__(self, spec: Spec, number: int) -> None:
        self._spec = spec
        self._host = Host(number, spec.makers, spec.ledger, again=_began_again(), opened=_report)
        self._port: Address | None = None
        if spec.ports:
            with suppress(OSError):
                node = imported().util.get_node_ip_address()
                self._port = Listener(node, key_of(spec.secret, number), self._host.call).address

    def call(self, *asked: tuple[int, Sequence[Plain]]) -> tuple[list[dict[str, Any]], Address | None]:
        """Answer messages (`Host.call`): what crosses the wire, and the port."""
        return self._host.call(asked), self._port

    def status(self, *sites: int) -> tuple[list[dict[str, Any]], Address | None]:
        """Report states (`Host.status`), and the port."""
        more = {"node": imported().get_runtime_context().get_node_id(), "port": self._port}
        return [status | more for status in self._host.status(sites)], self._port

    def spec(self) -> Spec:
        """Give what makes another."""
        return self._spec

    def give(self, site: int) -> bytes:
        return self._host.give(site)

    def wait(self, site: int, *seconds: float) -> None:
        self._host.wait(site, *seconds)

    def take(self, site: int, version: int, data: bytes) -> None:
        self._host.take(site, version, data)

    def forget(self, site: int) -> None:
        self._host.forget(site)

    def close(self) -> None:
        self._host.close()


class TurnActor(Turns):
    """Turns, and their port.

    Parameters
    ----------
    lease, sites, secret
        As in `Turns`.
    ports : bool
        Whether there is one.
    """

    def __init__(self, lease: float, sites: int, secret: bytes, *, ports: bool) -> None:
        super().__init__(lease, sites, secret)
        self._open = ports
        self._port: Address | None = None

    async def ask(self, method: str, *asked: Any) -> tuple[Any, Address | None]:
        """Call a method of turns: its answer, and the port."""
        if self._open:
            self._open, loop = False, asyncio.get_running_loop()

            def answer(request: list[Any]) -> list[Any]:
                return [asyncio.run_coroutine_threadsafe(self._of(*request), loop).result()]

            with suppress(OSError):
                node = imported().util.get_node_ip_address()
                self._port = Listener(node, key_of(self._sites[1], TURNS), answer).address
        return await self._of(method, *asked), self._port

    async def _of(self, method: str, *asked: Any) -> Any:
        if method not in ("take", "renew", "hold", "give"):
            raise ValueError(f"turns have no {method!r}")
        return await getattr(self, method)(*asked)


def _report(site: Any, again: bool) -> None:
    Reporter(site, again=again)


def _began_again() -> bool:
    """Whether Ray has started this actor before."""
    context = imported().get_runtime_context()
    # Outside of an actor, as where this is tested, nobody can tell.
    return context.worker.mode == imported().WORKER_MODE and bool(context.was_current_actor_reconstructed)
