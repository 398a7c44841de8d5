"""Turns of producers, one after the other: handed out by an actor if cells of one key lie on several sites."""

import asyncio
import time


class Turns:
    """Who has the turn.

    Parameters
    ----------
    lease : float
        Seconds after which a turn that is not renewed ends by itself: its producer may have died.
    sites : int
        The number of sites, for those who find them by name.

    Notes
    -----
    Fences ascend. Those handed out after a restart are later than all before, since they are nanoseconds of the clock.
    A producer whose turn ended without its knowledge is refused by the sites.
    """

    def __init__(self, lease: float, sites: int) -> None:
        self._lease = lease
        self._sites = sites
        self._changed = asyncio.Condition()
        self._fence = 0
        self._until = 0.0

    async def sites(self) -> int:
        """Give the number of sites."""
        return self._sites

    async def take(self) -> int:
        """Wait for a turn and begin it: its fence, or 0 after waiting a lease in vain, so that no call hangs."""
        end = time.monotonic() + self._lease
        async with self._changed:
            while (now := time.monotonic()) < self._until:
                if now >= end:
                    return 0
                try:
                    await asyncio.wait_for(self._changed.wait(), min(self._until, end) - now)
                except TimeoutError:
                    continue
            self._fence = max(self._fence + 1, time.time_ns())
            self._until = time.monotonic() + self._lease
            return self._fence

    async def renew(self, fence: int) -> None:
        """Let a turn last for another lease, if it has not ended."""
        async with self._changed:
            if fence == self._fence and time.monotonic() < self._until:
                self._until = time.monotonic() + self._lease

    async def give(self, fence: int) -> None:
        """End a turn, if it has not ended."""
        async with self._changed:
            if fence == self._fence:
                self._until = 0.0
                self._changed.notify_all()
