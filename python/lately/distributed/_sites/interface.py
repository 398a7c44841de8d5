"""What a distributed filter needs from its sites, wherever they are: messages, failures, the lease."""

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

# A batch that is about to be written, of Python's and NumPy's types.
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
        """Bytes of its arrays."""
        index = 0 if self.request is None or self.request.index is None else self.request.index.nbytes
        return index + sum(column.nbytes for column in self.columns)


@dataclass(frozen=True)
class Failed:
    """In place of an answer: the site did not answer within its deadline. What it did is unknown.

    `since` is when it first did not answer, in seconds since 1970: the same through one outage.
    """

    site: int
    reason: str
    since: float = field(default=0.0, compare=False)


@dataclass
class Traffic:
    """What has been sent, and what came back.

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
    """A producer's right to write, while no other has it.

    `fence` is its number: a site that has had a message of a later lease refuses those of this one. `left` is the
    record of a lease that ended before its batch was complete; the holder of the next one completes it first, and the
    record with which it was taken is not kept. `newest` is the newest generation written under the leases before, or
    None if that is not known; the holder sets it to what it has written. `doubtful` means that a batch may have been
    cut off whose record is lost.
    """

    fence: int
    left: Record | None
    newest: int | None
    doubtful: bool
    keep: Callable[[Record, int | None], None]

    def hold(self, record: Record) -> None:
        """Keep a record before it is written, until its batch is complete."""
        self.keep(record, self.newest)


class Sites(Protocol):
    """Sites, by number: in this process (`LocalSites`) or as actors (`RaySites`).

    `connected` means that they were started elsewhere: a filter that is closed then leaves them running. `incarnations`
    has that of the latest answer of each site (`Site.incarnation`); a new one means that the site was made again, and
    lacks what it had last answered. `overfull` has warnings of sites that hold more than planned (`Site.overfull`).
    """

    connected: bool
    incarnations: dict[int, int]
    overfull: dict[int, str]

    def __len__(self) -> int: ...

    def call(self, messages: Sequence[Message]) -> list[Any]:
        """Send messages, all at once, and return the answer to each, or `Failed`.

        A site gets the messages of one call in order. An error that a site raises is raised here, once all have
        answered; so is a RuntimeError if the sites are closed, or one is gone that cannot come back.
        """

    def lease(self, record: Record | None = None) -> AbstractContextManager[Lease]:
        """Wait until no other producer has the lease, and take it: ``with sites.lease() as lease``.

        With a `record`, that is held from the beginning, unless another is left. A lease that takes too long may be
        given to another producer; the sites then raise a `SupersededError`: read again, and write, under a new lease.
        """

    def status(self) -> list[dict[str, Any] | Failed]:
        """Return the state of each site (`Site.status`)."""

    def kill(self, site: int) -> None:
        """Kill a site abruptly, as a crash does. Whether it restarts is up to the sites."""

    def close(self) -> None:
        """Let the sites write their last checkpoints, and end them for all who use them."""
