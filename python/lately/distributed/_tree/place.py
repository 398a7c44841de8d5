"""Where the contents of a node are: the messages to them, and how several sites answer as one."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately.distributed._producer.exchange import Exchange
from lately.distributed._producer.request import Request, send
from lately.distributed._sites.interface import Failed, Message
from lately.distributed._sites.results import RequestId


@dataclass(frozen=True)
class Keys:
    """Keys of a batch: what is sent of them.

    Attributes
    ----------
    hashes : ndarray of uint64, shape (n,)
    generations : ndarray of int64, shape (n,)
        Which each belongs to.
    request : RequestId
        Which keys of which batch these are.
    """

    hashes: NDArray[np.uint64]
    generations: NDArray[np.int64]
    request: RequestId

    def __len__(self) -> int:
        return len(self.hashes)

    def __getitem__(self, rows: NDArray[np.int64]) -> "Keys":
        assert self.request.index is not None
        request = replace(self.request, index=self.request.index[rows])
        return Keys(self.hashes[rows], self.generations[rows], request)


@dataclass(frozen=True)
class OneSite:
    """A node on a site of its own. `TreeNode` documents the methods; a site that fails answers `Failed`."""

    site: int

    def test(self, keys: Keys, fence: int = 0) -> Request:
        """Read the oldest cell of each key."""
        return self._ask("test", keys.hashes, keys.generations, fence=fence)

    def set(self, keys: Keys, verdicts: NDArray[np.bool_], fence: int = 0) -> Request:
        """Set keys whose verdict is given."""
        return self._ask("set", keys.hashes, keys.generations, verdicts, request=keys.request, fence=fence)

    def recall(self, keys: Keys) -> Request:
        """Read the answers that are remembered of a batch (`ResultCache.known`)."""
        message = Message(self.site, "recall", (keys.hashes,), request=keys.request)
        return Request([message], lambda answers: answers[0] if isinstance(answers[0], Failed) else answers[0][1])

    def duplicated(self, exchange: Exchange, keys: Keys, fence: int = 0) -> NDArray[np.bool_] | Failed:
        """Test, then set; the site's own lock makes it one act."""
        request = self._ask("duplicated", keys.hashes, keys.generations, request=keys.request, fence=fence)
        answer: NDArray[np.bool_] | Failed = send(exchange, [request])[0]
        return answer

    def _ask(self, method: str, *columns: NDArray[Any], request: RequestId | None = None, fence: int = 0) -> Request:
        return Request([Message(self.site, method, columns, request=request, fence=fence)], lambda answers: answers[0])
