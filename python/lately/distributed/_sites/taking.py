"""A producer's turn to write, which an actor hands out."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lately.distributed._ray import imported
from lately.distributed._sites.frames import framed
from lately.distributed._sites.interface import Record, Turn
from lately.distributed._sites.links import UnreachableError, links
from lately.distributed._sites.listener import Address
from lately.distributed._sites.site import SupersededError
from lately.distributed._sites.wire import TURNS, key_of

PAUSE = 0.1
"""Seconds before a message is sent again to an actor that is being restarted. A local restart takes about two."""

RENEW = 1.0
"""Seconds after which a producer that lives says so."""

LONGEST = 3
"""Deadlines that a turn lasts at most: to read, to write, and one spare."""


class Taker:
    """Asks the actor that hands out turns, by its port where that is possible, and else by Ray.

    Parameters
    ----------
    turns : actor
        The actor (`TurnActor`).
    secret : bytes
        What its port asks for (`key_of`).
    deadline : float
    """

    def __init__(self, turns: Any, secret: bytes, deadline: float) -> None:
        self.turns, self._key, self._deadline = turns, key_of(secret, TURNS), deadline
        self._port: Address | None = None
        # One that cannot be reached from here.
        self._refused: Address | None = None

    @contextmanager
    def taken(self, record: Record | None) -> Iterator[Turn]:
        """Take a turn; see `Sites.turn`."""
        (fence, left, newest), over, done = self._take(record), threading.Event(), False
        last = time.monotonic() + LONGEST * self._deadline

        def renew() -> None:
            while not over.wait(RENEW) and time.monotonic() < last:
                self.turns.ask.remote("renew", fence)

        def keep(record: Record, newest: int | None) -> None:
            if not self._ask(self._deadline, "hold", fence, newest, *record):
                raise SupersededError(f"turn {fence} is over: another has begun")

        threading.Thread(target=renew, name="turn", daemon=True).start()
        try:
            turn = Turn(fence, left, newest, keep)
            yield turn
            newest, done = turn.newest, True
        finally:
            over.set()
            # If this message is lost, the turn ends by itself.
            given = "give", fence, newest, done
            if not self._by_port(self._deadline, *given):
                self.turns.ask.remote(*given)

    def _take(self, record: Record | None) -> tuple[int, Record | None, int | None]:
        ray = imported()
        patience = (LONGEST + 1) * self._deadline
        end = time.monotonic() + patience
        dead = False
        while True:
            try:
                fence, left, newest = self._ask(patience, "take", *(record or ()))
            except ray.exceptions.RayError as error:
                if isinstance(error, ray.exceptions.ActorDiedError):
                    gone("the actor of turns", error, said_before=dead)
                    dead = True
                if time.monotonic() >= end:
                    raise TimeoutError(f"no turn within {patience:g} s: {error}") from None
                time.sleep(PAUSE)
            else:
                if fence:
                    return fence, left, newest
                end = time.monotonic() + patience

    def _ask(self, patience: float, *asked: Any) -> Any:
        for answer in self._by_port(patience, *asked):
            return answer
        answer, self._port = imported().get(self.turns.ask.remote(*asked), timeout=patience)
        return answer

    def _by_port(self, patience: float, *asked: Any) -> list[Any]:
        """Ask by the port, and give the answer, if there is one. A turn that was taken unheard ends by itself."""
        port = self._port
        if port is None or port == self._refused:
            return []
        answer = links().ask({TURNS: (port, self._key, framed(asked))}, time.monotonic() + patience)[TURNS]
        if isinstance(answer, UnreachableError):
            self._refused = port
        if not isinstance(answer, list):
            self._port = None
            return []
        return answer


def gone(who: str, error: Exception, *, said_before: bool) -> None:
    """Raise an error if an actor is dead for good. One that has just died might be said to be, so it is asked twice."""
    if said_before:
        reason = str(error).strip().rpartition("\n")[2]
        raise RuntimeError(f"{who} is gone, and with it the filter: it was closed, or its driver has ended ({reason})")
