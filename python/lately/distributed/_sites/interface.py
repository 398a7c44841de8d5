"""What a distributed filter needs from its sites, wherever they are: messages, failures, turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lately.distributed._sites.memo import Ticket
from lately.distributed._sites.site import Site

Maker = Callable[[], Site]
"""Makes a site, where it will run: when it starts, and each time it restarts."""


PROTOCOL = 5
"""Version of what travels between sites and producers, and of the manifest."""

Plain = tuple[str, tuple[NDArray[Any], ...], dict[str, Any], tuple[Any, ...] | None, int]


@dataclass(frozen=True)
class Message:
    """A call of one site (`Site.call`)."""

    site: int
    method: str
    columns: tuple[NDArray[Any], ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    ticket: Ticket | None = None
    fence: int = 0

    def plain(self) -> Plain:
        """Give what travels between processes, of Python's and NumPy's types alone.

        That is the method, the columns, the options, the fields of the ticket or None, and the fence, in this order. It
        is version `PROTOCOL` of what sites and producers say to each other; the manifest of a filter has the version.
        """
        ticket = None if self.ticket is None else _fields(self.ticket)
        return self.method, self.columns, dict(self.options), ticket, self.fence

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        index = 0 if self.ticket is None or self.ticket.index is None else self.ticket.index.nbytes
        return index + sum(column.nbytes for column in self.columns)


def _fields(ticket: Ticket) -> tuple[Any, ...]:
    return ticket.producer, ticket.number, ticket.index, ticket.lasting


@dataclass(frozen=True)
class Failed:
    """In place of an answer: the site did not answer within its deadline. What it did is unknown.

    Attributes
    ----------
    site : int
    reason : str
    since : float
        Seconds since 1970 when it first did not answer. It is the same through one outage.
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
        Sent, and of these without an answer.
    sent, received : int
        Bytes of the arrays.
    keys : ndarray of int64, shape (sites,)
        Keys, or cells, that each site was asked for.
    """

    messages: int
    failures: int
    sent: int
    received: int
    keys: NDArray[np.int64]

    @classmethod
    def none(cls, sites: int) -> Traffic:
        """Nothing yet."""
        return cls(0, 0, 0, 0, np.zeros(sites, dtype=np.int64))

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


Record = tuple[Any, ...]
"""A batch that is about to be written, of Python's and NumPy's types."""


@dataclass
class Turn:
    """A producer's turn to write.

    Attributes
    ----------
    fence : int
        Its number. A site that has had a message of a later turn refuses those of this one.
    left : tuple or None
        The record of a turn that ended in the middle: whoever has the next one completes that batch first. Where there
        is one, the record with which this turn was taken is not kept.
    newest : int or None
        The newest generation that was written in the turns before; None if that is not known. Who has the turn sets it
        to what he has written, and at the end it goes to the next.
    keep : callable
        Called by `hold`; raises a `SupersededError` if another turn has begun.
    """

    fence: int
    left: Record | None
    newest: int | None
    keep: Callable[[Record, int | None], None]

    def hold(self, record: Record) -> None:
        """Keep a record before it is written, until this turn ends well, or the next one does."""
        self.keep(record, self.newest)


class Sites(Protocol):
    """Sites, by number: in this process (`LocalSites`) or as actors (`RaySites`).

    Attributes
    ----------
    connected : bool
        Whether they were started elsewhere. A filter that is closed then leaves them running.
    incarnations : dict of int to int
        Of each site, by number, that of its latest answer (`Site.incarnation`). A new one tells that the site was made
        again, and lacks what it had last answered. Whoever makes a site again tells it so (`Site.began_again`).
    overfull : dict of int to str
        What sites that answered have said of holding more than planned (`Site.overfull`).
    """

    connected: bool
    incarnations: dict[int, int]
    overfull: dict[int, str]

    def __len__(self) -> int: ...

    def call(self, messages: Sequence[Message]) -> list[Any]:
        """Send messages, all at once, and wait for their answers.

        Returns
        -------
        list
            The answer to each message, or `Failed`. A site gets the messages of one call in order. An error that a site
            raises is raised here, once all have answered.

        Raises
        ------
        RuntimeError
            At once, if the sites are closed, or one is gone that cannot come back.
        """
        ...

    def turn(self, record: Record | None = None) -> AbstractContextManager[Turn]:
        """Wait until no other producer has a turn, and take it: ``with sites.turn() as turn``.

        With a `record`, that is held from the beginning, unless another is left.

        A turn that takes too long may be given to another producer. A site that has had a message of a later turn
        refuses those with an earlier fence (`SupersededError`): then read again, and write, in a new turn.
        """
        ...

    def status(self) -> list[dict[str, Any] | Failed]:
        """Ask each site how it is (`Site.status`)."""
        ...

    def kill(self, site: int) -> None:
        """Kill a site abruptly, as a crash does. Whether it restarts is up to the sites."""
        ...

    def close(self) -> None:
        """Let the sites write their last checkpoints, and end them for all who use them."""
        ...
