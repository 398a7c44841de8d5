"""A producer's turn to write, which an actor hands out."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lately.distributed._ray import imported
from lately.distributed._sites.interface import Record, Turn
from lately.distributed._sites.site import SupersededError

PAUSE = 0.1
"""Seconds before a message is sent again to an actor that is being restarted. A local restart takes about two."""

RENEW = 1.0
"""Seconds after which a producer that lives says so."""

LONGEST = 3
"""Deadlines that a turn lasts at most: to read, to write, and one spare."""


@contextmanager
def taken(turns: Any, deadline: float, record: Record | None) -> Iterator[Turn]:
    """Take a turn from the actor of turns; see `Sites.turn`."""
    (fence, left, newest), over, done = _take(turns, deadline, record), threading.Event(), False
    last = time.monotonic() + LONGEST * deadline

    def renew() -> None:
        while not over.wait(RENEW) and time.monotonic() < last:
            turns.renew.remote(fence)

    def keep(record: Record, newest: int | None) -> None:
        if not imported().get(turns.hold.remote(fence, newest, *record), timeout=deadline):
            raise SupersededError(f"turn {fence} is over: another has begun")

    threading.Thread(target=renew, name="turn", daemon=True).start()
    try:
        turn = Turn(fence, left, newest, keep)
        yield turn
        newest, done = turn.newest, True
    finally:
        over.set()
        # If this message is lost, the turn ends by itself.
        turns.give.remote(fence, newest, done)


def _take(turns: Any, deadline: float, record: Record | None) -> tuple[int, Record | None, int | None]:
    ray = imported()
    patience = (LONGEST + 1) * deadline
    end = time.monotonic() + patience
    dead = False
    while True:
        try:
            took: tuple[int, Record | None, int | None] = ray.get(turns.take.remote(*(record or ())), timeout=patience)
        except ray.exceptions.RayError as error:
            if isinstance(error, ray.exceptions.ActorDiedError):
                gone("the actor of turns", error, said_before=dead)
                dead = True
            if time.monotonic() >= end:
                raise TimeoutError(f"no turn within {patience:g} s: {error}") from None
            time.sleep(PAUSE)
        else:
            if took[0]:
                return took
            end = time.monotonic() + patience


def gone(who: str, error: Exception, *, said_before: bool) -> None:
    """Raise an error if an actor is dead for good. One that has just died might be said to be, so it is asked twice."""
    if said_before:
        reason = str(error).strip().rpartition("\n")[2]
        raise RuntimeError(f"{who} is gone, and with it the filter: it was closed, or its driver has ended ({reason})")
