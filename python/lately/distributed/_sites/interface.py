"""The interface between a distributed filter and its sites: messages, failures and the orderer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lately.distributed._sites.results import RequestId

# Version of messages between sites and producers, and of the manifest.
PROTOCOL = 7

# The record of a batch that is about to be written to several sites, of Python's and NumPy's types. It begins with the
# orderer's fence and the number of the write, so that the latest of some records is the greatest.
Record = tuple[Any, ...]


@dataclass(frozen=True)
class Message:
    """A call of one site (`Site.call`).

    `fence` is the number of the orderer that sends it, 0 for a producer. A site stores the `record` of a batch with its
    own part of the batch.
    """

    site: int
    method: str
    columns: tuple[NDArray[Any], ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    request: RequestId | None = None
    fence: int = 0
    record: Record | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        index = None if self.request is None else self.request.index
        return sum(part.nbytes for part in (index, *self.columns, *(self.record or ())) if isinstance(part, np.ndarray))


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

    def add(self, other: Traffic) -> None:
        """Add the counts of other traffic."""
        self.messages += other.messages
        self.failures += other.failures
        self.sent += other.sent
        self.received += other.received
        self.keys += other.keys

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


class Orderer(Protocol):
    """Does what concerns several sites at once, one request after the other."""

    def do(self, *request: Any) -> tuple[Any, Any, Exception | None]:
        """Do what is requested; return the answer, a report of the messages, and the error if there is one."""


class Sites(Protocol):
    """The sites of a distributed filter, by number: objects of this process (`LocalSites`) or actors (`RaySites`).

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

    def put_in_order(self, make: Callable[[Sites], Orderer]) -> None:
        """Start the orderer that `make` makes, unless it runs: another actor, or an object of this process."""

    def order(self, *request: Any) -> Any:
        """Return what `Orderer.do` returns for a request, which waits for those before it."""

    def status(self) -> list[dict[str, Any] | Failed]:
        """Return the state of each site (`Site.status`)."""

    def kill(self, site: int) -> None:
        """Kill a site abruptly, as a crash does. The sites decide whether it restarts."""

    def close(self) -> None:
        """Let the sites write their last checkpoints, and end them for all who use them."""
