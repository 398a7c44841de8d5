"""What runs at a site on Ray: an actor that makes its site, and answers by calls of Ray and by a port."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lately.distributed._ray import imported
from lately.distributed._sites.interface import Maker, Plain
from lately.distributed._sites.listener import Address, Listener
from lately.distributed._sites.memo import Ticket
from lately.distributed._sites.metrics import Reporter

if TYPE_CHECKING:
    from lately.distributed._sites.site import Site


class Actor:
    """Holds a site.

    Parameters
    ----------
    maker : callable
        Makes the site.
    key : bytes, optional
        What its port asks for; without one it has none.
    """

    def __init__(self, maker: Maker, key: bytes | None = None) -> None:
        self._maker, self._key = maker, key
        self._site: Site | None = None
        self._listener: Listener | None = None
        # Ray gives up on an actor that fails here. This one reports the error at each call, and tries again: its
        # checkpoint may be out of reach for a while.
        with suppress(Exception):
            self._made()

    def _made(self) -> "Site":
        if self._site is None:
            self._site = self._maker()
            if again := _began_again():
                self._site.began_again()
            Reporter(self._site, again=again)
            if self._key is not None:
                with suppress(OSError):
                    self._listener = Listener(imported().util.get_node_ip_address(), self._key, self._answers)
        return self._site

    @property
    def _address(self) -> Address | None:
        return None if self._listener is None else self._listener.address

    def call(self, *messages: Plain) -> tuple[dict[str, Any], Address | None]:
        """Answer messages (`Message.plain`): what crosses the wire, and its port."""
        return self._answers(messages), self._address

    def _answers(self, messages: Sequence[Plain]) -> dict[str, Any]:
        site = self._made()
        answers = [
            site.call(method, tuple(columns), options, ticket=None if ticket is None else Ticket(*ticket), fence=fence)
            for method, columns, options, ticket, fence in messages
        ]
        return {"incarnation": site.incarnation, "overfull": site.overfull, "answers": answers}

    def status(self) -> dict[str, Any]:
        status = self._made().status()
        return status | {"node": imported().get_runtime_context().get_node_id(), "port": self._address}

    def close(self) -> None:
        self._made().close()


def _began_again() -> bool:
    """Whether Ray has started this actor before."""
    context = imported().get_runtime_context()
    # Outside of an actor, as where this is tested, nobody can tell.
    return context.worker.mode == imported().WORKER_MODE and bool(context.was_current_actor_reconstructed)
