"""The lease: if the cells of a key lie on several sites, one producer writes at a time.

An actor grants it. The holder's batch is recorded with the actor before any site is written to, so that the next holder
completes a batch whose producer died. The holder has the record too. If the actor dies, the holder continues, and
registers again with the restarted actor, which grants no lease before `GRACE` seconds are over.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from lately.distributed._sites.errors import SupersededError
from lately.distributed._sites.interface import Lease, Record

# Seconds after which a lease that is not renewed ends: its holder may have died.
LEASE = 3.0
# Seconds for which a restarted actor waits for the holder of the lease.
GRACE = LEASE
# Seconds between two renewals.
RENEW = 0.5
# Seconds that a renewal waits for an answer. A holder must find the restarted actor within `GRACE`.
TRY = 1.0
# Greatest length of a lease, in deadlines: one to read, one to write, and one spare.
LONGEST = 3


class LeaseServer:
    """Grants the lease to one producer at a time.

    If the `incarnation` of its process is above 1, a lease may be under way; fences of a later process are higher. A
    lease that is not renewed ends after `seconds`. The sites compare fences, and reject later messages under it.
    """

    def __init__(self, incarnation: int = 1, seconds: float = LEASE) -> None:
        self._seconds = seconds
        self._changed = asyncio.Condition()
        self._granted = incarnation << 32
        # The fence of the latest lease, and the moment at which that lease ends.
        self._fence, self._until = 0, 0.0
        self._doubtful = incarnation > 1
        self._grace = time.monotonic() + GRACE if self._doubtful else 0.0
        self._record: Record | None = None
        self._newest: int | None = None

    async def take(self, *record: Any) -> tuple[int, Record | None, int | None, bool]:
        """Wait for the lease and grant it: return the first fields of `Lease`.

        The fence is 0 if the wait has lasted as long as a lease may, so that no call hangs. `record` is stored, unless
        an earlier record is left.
        """
        end = time.monotonic() + self._seconds
        async with self._changed:
            while (now := time.monotonic()) < (free := max(self._until, self._grace)):
                if now >= end:
                    return 0, None, None, False
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), min(free, end) - now)
            doubtful, self._doubtful = self._doubtful, False
            self._granted += 1
            self._fence, self._until = self._granted, time.monotonic() + self._seconds
            left = self._record
            self._record = left or record or None
            return self._fence, left, self._newest, doubtful

    async def renew(self, fence: int) -> bool:
        """Prolong a lease; return whether it is the current one."""
        async with self._changed:
            now = time.monotonic()
            if current := fence == self._fence and now < self._until:
                self._until = now + self._seconds
            return current

    async def hold(self, fence: int, newest: int | None, *record: Any) -> bool:
        """Store the record of a lease until its batch is complete; return whether it is the current lease."""
        async with self._changed:
            if current := self._registered(fence):
                self._record, self._newest = record or None, newest
            return current

    async def give(self, fence: int, newest: int | None, done: bool) -> bool:
        """End a lease, whose record goes to the next unless the batch is `done`; return whether it was current."""
        async with self._changed:
            if current := self._registered(fence):
                if done:
                    self._record, self._newest = None, newest
                self._until = 0.0
                self._changed.notify_all()
            return current

    def _registered(self, fence: int) -> bool:
        """Return whether a lease is the current one. A restarted actor accepts the latest that was under way."""
        now = time.monotonic()
        if now < self._grace and fence > self._fence:
            self._fence, self._until, self._doubtful = fence, now + self._seconds, False
        return fence == self._fence


@contextmanager
def leased(call: Callable[..., Any], deadline: float, record: Record | None) -> Iterator[Lease]:
    """Take a lease; see `Sites.lease`.

    ``call(seconds, method, *arguments)`` calls a method of the server. It raises `ConnectionError` if the server does
    not answer, and `RuntimeError` if it is gone for good.
    """

    def call_with_retries(seconds: float, method: str, *arguments: Any) -> Any:
        try:
            return call(seconds, method, *arguments)
        except ConnectionError as error:
            raise TimeoutError(f"no lease within {seconds:g} s: {error}") from None

    taken: Any = (0,)
    while not taken[0]:
        taken = call_with_retries((LONGEST + 1) * deadline, "take", *(record or ()))
    fence, left, newest, doubtful = taken
    held, done, over, lock = left or record, False, threading.Event(), threading.Lock()
    last = time.monotonic() + LONGEST * deadline

    def hold(record: Record, newest: int | None) -> None:
        nonlocal held
        held = record
        with lock:
            current = call_with_retries(deadline, "hold", fence, newest, *record)
        if not current:
            raise SupersededError(f"lease {fence} is over: another has started")

    lease = Lease(fence, left, newest, doubtful, hold)

    def renew() -> None:
        current = True
        while current and not over.wait(RENEW) and time.monotonic() < last:
            with suppress(ConnectionError), lock:
                # A restarted actor does not know of this lease.
                if not over.is_set() and not call(TRY, "renew", fence):
                    current = call(TRY, "hold", fence, newest, *(held or ()))

    threading.Thread(target=renew, name="lease", daemon=True).start()
    try:
        yield lease
        newest, done = lease.newest, True
    finally:
        over.set()
        # If these messages are lost, the lease ends by itself.
        with suppress(ConnectionError, RuntimeError), lock:
            if not done:
                call(deadline, "hold", fence, newest, *(held or ()))
            call(deadline, "give", fence, newest, done)
