"""Sites in this process, for tests and for trying out failures."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from lately.distributed._sites.errors import SupersededError
from lately.distributed._sites.interface import Failed, Lease, Message, Record
from lately.distributed._sites.site import Maker


class LocalSites:
    """Sites that are objects of this process.

    Parameters
    ----------
    makers : sequence of callable
        Each makes one site.

    Notes
    -----
    Nothing fails here by itself. A site that is killed stays dead until `restart`.
    """

    connected = False

    def __init__(self, makers: Sequence[Maker]) -> None:
        self._makers = list(makers)
        self._sites = [maker() for maker in self._makers]
        self.incarnations = {i: site.incarnation for i, site in enumerate(self._sites)}
        self.overfull: dict[int, str] = {}
        self._down: dict[int, Failed] = {}
        self._lock = threading.Lock()
        self._fence = 0
        self._left: Record | None = None
        self._newest: int | None = None

    def __len__(self) -> int:
        return len(self._makers)

    def call(self, messages: Sequence[Message]) -> list[Any]:
        """Send messages; see `Sites.call`."""
        answers: list[Any] = []
        errors: list[Exception] = []
        for message in messages:
            if message.site in self._down:
                answers.append(self._down[message.site])
                continue
            site = self._sites[message.site]
            try:
                given: dict[str, Any] = {"request": message.request, "fence": message.fence}
                answers.append(site.call(message.method, message.columns, message.options, **given))
            except Exception as error:
                errors.append(error)
            self.incarnations[message.site] = site.incarnation
            if (warning := site.overfull) is not None:
                self.overfull[message.site] = warning
        if errors:
            raise errors[0]
        return answers

    @contextmanager
    def lease(self, record: Record | None = None) -> Iterator[Lease]:
        """Take a lease, of any length."""
        with self._lock:
            self._fence += 1
            fence, left = self._fence, self._left

            def keep(record: Record, newest: int | None) -> None:
                if fence != self._fence:
                    raise SupersededError(f"lease {fence} is over: {self._fence} has started")
                self._left, self._newest = record, newest

            self._left = record if left is None else left
            lease = Lease(fence, left, self._newest, False, keep)
            yield lease
            # Not after an error: the next lease then gets the record.
            if fence == self._fence:
                self._left, self._newest = None, lease.newest

    def status(self) -> list[dict[str, Any] | Failed]:
        """Return the state of each site."""
        return [self._down.get(i) or site.status() for i, site in enumerate(self._sites)]

    def kill(self, site: int) -> None:
        """Kill a site: what it has not saved is gone."""
        self._sites[site].close(save=False)
        self._down[site] = Failed(site, "killed", time.time())

    def restart(self, site: int) -> None:
        """Start a site again, from its checkpoint if it has one."""
        self._sites[site].close(save=False)
        self._sites[site] = self._makers[site]()
        self._sites[site].record_restart()
        self._down.pop(site, None)

    def __reduce__(self) -> NoReturn:
        raise TypeError("sites of this process cannot be pickled: other processes would not share their cells")

    def close(self) -> None:
        """Let the sites write their last checkpoints."""
        for i, site in enumerate(self._sites):
            if i not in self._down:
                site.close()
