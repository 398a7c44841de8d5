"""The interface between a distributed filter and its sites: messages, failures and the lease."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lately.distributed._sites.results import RequestId

# Version of messages between sites and producers, and of the manifest.
PROTOCOL = 6

# The record of a batch that is about to be written, of Python's and NumPy's types.
Record = tuple[Any, ...]


@dataclass(frozen=True)
class Message:
    """A call of one site (`Site.call`)."""

    site: int
    method: str
    columns: tuple[NDArray[Any], ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    request: RequestId | None = None
    fence: int = 0

    def plain(self) -> tuple[Any, ...]:
        """Return the method, the columns, the options, the fields of the request or None, and the fence.

        These travel between processes, and are part of version `PROTOCOL`.
        """
        request = None if self.request is None else self.request.plain
        return self.method, self.columns, dict(self.options), request, self.fence

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        index = 0 if self.request is None or self.request.index is None else self.request.index.nbytes
        return index + sum(column.nbytes for column in self.columns)


@dataclass(frozen=True)
class Failed:
    """Takes the place of an answer if a site did not answer within its deadline. What the site did is unknown.

    `since` is when the site first did not answer, in seconds since 1970. It is the same throughout one outage.
    """

    site: int
    reason: str
    since: float = field(default=0.0, compare=False)


@dataclass
class Traffic:
    """Counts of messages sent and answers received.

    Attributes
    ----------
    messages, failures : int
        Messages sent, and those without an answer.
    sent, received : int
        Bytes of the arrays.
    keys : ndarray of int64, shape (sites,)
        Keys, or cells, in the messages to each site.
    """

    messages: int
    failures: int
    sent: int
    received: int
    keys: NDArray[np.int64]

    def count(self, messages: Sequence[Message], answers: Sequence[Any]) -> None:
        """Add messages and their answers."""
        for message, answer in zip(messages, answers, strict=True):
            self.messages += 1
            self.sent += message.nbytes
            self.keys[message.site] += len(message.columns[0]) if message.columns else 0
            if isinstance(answer, Failed):
                self.failures += 1
            else:
                parts = answer if isinstance(answer, tuple) else (answer,)
                self.received += sum(part.nbytes for part in parts if isinstance(part, np.ndarray))


@dataclass
class Lease:
    """The right of a producer to write, while no other producer has it.

    `fence` is the number of the lease: a site that has had a message of a later lease rejects messages of this one.
    `left` is the record of a lease that ended before its batch was complete. The holder of the next lease completes
    that batch first, and the record with which it took the lease is not kept. `newest` is the newest generation written
    under earlier leases, or None if it is unknown; the holder sets it to what it has written. `doubtful` means that a
    batch may have been cut off and its record is lost.
    """

    fence: int
    left: Record | None
    newest: int | None
    doubtful: bool
    keep: Callable[[Record, int | None], None]

    def hold(self, record: Record) -> None:
        """Store the record of a batch before it is written, until the batch is complete."""
        self.keep(record, self.newest)


class Sites(Protocol):
    """Sites, by number: in this process (`LocalSites`) or as actors (`RaySites`).

    `connected` means that they were started elsewhere: a filter that is closed then leaves them running. `incarnations`
    has the latest `Site.incarnation` of each site. A new one means that the site was made again, and lacks its latest
    writes. `overfull` has the warnings of sites that hold more keys than planned (`Site.overfull`).
    """

    connected: bool
    incarnations: dict[int, int]
    overfull: dict[int, str]

    def __len__(self) -> int: ...

    def call(self, messages: Sequence[Message]) -> list[Any]:
        """Send messages, all at once, and return the answer to each, or `Failed`.

        A site gets the messages of one call in order. If a site raises an error, it is raised here once all sites have
        answered. A RuntimeError is raised if the sites are closed, or if one is gone that cannot come back.
        """

    def lease(self, record: Record | None = None) -> AbstractContextManager[Lease]:
        """Wait until no other producer has the lease, and take it: ``with sites.lease() as lease``.

        With a `record`, that is stored from the beginning, unless `left` has another. A lease that takes too long may
        be given to another producer; the sites then raise `SupersededError`. Read again, and write under a new lease.
        """

    def status(self) -> list[dict[str, Any] | Failed]:
        """Return the state of each site (`Site.status`)."""

    def kill(self, site: int) -> None:
        """Kill a site abruptly, as a crash does. The sites decide whether it restarts."""

    def close(self) -> None:
        """Let the sites write their last checkpoints, and end them for all who use them."""
