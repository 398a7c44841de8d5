"""Where the contents of a node are: how to ask them, and how several sites answer as one."""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lately.distributed._producer.exchange import Exchange
from lately.distributed._producer.request import Request, send
from lately.distributed._sites.interface import Failed, Message
from lately.distributed._sites.memo import Ticket


@dataclass(frozen=True)
class Keys:
    """Keys of a batch: what is sent of them.

    Attributes
    ----------
    hashes : ndarray of uint64, shape (n,)
    generations : ndarray of int64, shape (n,)
        Which each belongs to.
    ticket : Ticket
        Which keys of which batch these are.
    """

    hashes: NDArray[np.uint64]
    generations: NDArray[np.int64]
    ticket: Ticket

    def __len__(self) -> int:
        return len(self.hashes)

    def __getitem__(self, rows: NDArray[np.int64]) -> "Keys":
        assert self.ticket.index is not None
        ticket = replace(self.ticket, index=self.ticket.index[rows])
        return Keys(self.hashes[rows], self.generations[rows], ticket)


class Place(Protocol):
    """The contents of a node, wherever they are. `Node` documents the methods; a site that fails gives `Failed`."""

    def test(self, keys: Keys, fence: int = 0) -> Request:
        """Ask for the oldest cell of each key."""
        ...

    def set(self, keys: Keys, verdicts: NDArray[np.bool_], fence: int = 0) -> Request:
        """Set keys about which a verdict was given."""
        ...

    def recall(self, keys: Keys) -> Request:
        """Ask for the answers that are remembered of a batch (`Memo.known`)."""
        ...

    def duplicated(self, exchange: Exchange, keys: Keys, fence: int = 0) -> NDArray[np.bool_] | Failed:
        """Test, then set, as one act."""
        ...


@dataclass(frozen=True)
class OneSite:
    """A node on a site of its own."""

    site: int

    def test(self, keys: Keys, fence: int = 0) -> Request:
        """One message."""
        return self._ask("test", keys.hashes, keys.generations, fence=fence)

    def set(self, keys: Keys, verdicts: NDArray[np.bool_], fence: int = 0) -> Request:
        """One message."""
        return self._ask("set", keys.hashes, keys.generations, verdicts, ticket=keys.ticket, fence=fence)

    def recall(self, keys: Keys) -> Request:
        """One message."""
        message = Message(self.site, "recall", (keys.hashes,), ticket=keys.ticket)
        return Request([message], lambda answers: answers[0] if isinstance(answers[0], Failed) else answers[0][1])

    def duplicated(self, exchange: Exchange, keys: Keys, fence: int = 0) -> NDArray[np.bool_] | Failed:
        """One message: the site's own lock makes it one act."""
        request = self._ask("duplicated", keys.hashes, keys.generations, ticket=keys.ticket, fence=fence)
        answer: NDArray[np.bool_] | Failed = send(exchange, [request])[0]
        return answer

    def _ask(self, method: str, *columns: NDArray[Any], ticket: Ticket | None = None, fence: int = 0) -> Request:
        return Request([Message(self.site, method, columns, ticket=ticket, fence=fence)], lambda answers: answers[0])
