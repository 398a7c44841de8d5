"""Turns of producers, one after the other: handed out by an actor if cells of one key lie on several sites."""

import asyncio
import time
from typing import Any


class Turns:
    """Who has the turn.

    Parameters
    ----------
    lease : float
        Seconds after which a turn that is not renewed ends by itself: its producer may have died.
    sites : int
    secret : bytes
        The number of sites, and what their ports ask for (`key_of`): for those who find them by name.

    Notes
    -----
    Fences ascend. Those handed out after a restart are later than all before, since they are nanoseconds of the clock.
    A producer whose turn ended without its knowledge is refused by the sites. A record is lost with this actor.
    """

    def __init__(self, lease: float, sites: int, secret: bytes) -> None:
        self._lease = lease
        self._sites = sites, secret
        self._changed = asyncio.Condition()
        self._fence = 0
        self._until = 0.0
        self._left: Any = None
        self._newest: int | None = None

    async def sites(self) -> tuple[int, bytes]:
        """Give the number of sites, and their secret."""
        return self._sites

    async def take(self, *record: Any) -> tuple[int, Any, int | None]:
        """Wait for a turn and begin it: its fence, the record of one that ended in the middle, the newest generation.

        A `record` is held, unless another is left. The fence is 0 after waiting a lease in vain, so that no call hangs.
        """
        end = time.monotonic() + self._lease
        async with self._changed:
            while (now := time.monotonic()) < self._until:
                if now >= end:
                    return 0, None, None
                try:
                    await asyncio.wait_for(self._changed.wait(), min(self._until, end) - now)
                except TimeoutError:
                    continue
            self._fence = max(self._fence + 1, time.time_ns())
            self._until = time.monotonic() + self._lease
            left = self._left
            self._left = left or record or None
            return self._fence, left, self._newest

    async def renew(self, fence: int) -> None:
        """Let a turn last for another lease, if it has not ended."""
        async with self._changed:
            if fence == self._fence and time.monotonic() < self._until:
                self._until = time.monotonic() + self._lease

    async def hold(self, fence: int, newest: int | None, *record: Any) -> bool:
        """Keep a record until the turn ends well, or the next one does; whether the turn had not ended."""
        async with self._changed:
            if fence == self._fence:
                self._left, self._newest = record, newest
            return fence == self._fence

    async def give(self, fence: int, newest: int | None = None, done: bool = True) -> None:
        """End a turn, if it has not ended; what is held is left to the next if it is not `done`."""
        async with self._changed:
            if fence == self._fence:
                if done:
                    self._left, self._newest = None, newest
                self._until = 0.0
                self._changed.notify_all()
