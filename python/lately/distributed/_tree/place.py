"""Where the contents of a node are: on one site, or, of a root, cut over several."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately._core import FilterSpec, Ranges
from lately.distributed._contents.cells import NEVER, behind
from lately.distributed._producer.exchange import Exchange, Request
from lately.distributed._sites.interface import Failed, Message
from lately.distributed._sites.results import RequestId
from lately.distributed._slices.parts import Lookup, Parts


@dataclass(frozen=True)
class Keys:
    """Keys of a batch, with their generations, and the request that names them."""

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
        known = self._ask("recall", keys.hashes, request=keys.request)
        return known.then(lambda answer: answer if isinstance(answer, Failed) else answer[1])

    def duplicated(self, exchange: Exchange, keys: Keys, fence: int = 0) -> NDArray[np.bool_] | Failed:
        """Test, then set; the site's own lock makes it one act."""
        request = self._ask("duplicated", keys.hashes, keys.generations, request=keys.request, fence=fence)
        answer: NDArray[np.bool_] | Failed = exchange.send([request])[0]
        return answer

    def _ask(self, method: str, *columns: NDArray[Any], request: RequestId | None = None, fence: int = 0) -> Request:
        return Request([Message(self.site, method, columns, request=request, fence=fence)], lambda answers: answers[0])


class SlicedRoot:
    """Parts of a root on sites of their own, which answer as one node: the same bits, and so the same verdicts.

    That is paper 4's lemma 1. With `unanswered` a cell on a site that has failed counts as set (section 3.2); `fail` is
    called with the number of keys that were decided without such a site.
    """

    def __init__(
        self, like: FilterSpec, sites: NDArray[np.int64], *, unanswered: bool, fail: Callable[[int], None]
    ) -> None:
        self._parts = Parts(Ranges(like, len(sites)), int(like.parameters["k"]), sites)
        self._silent = Failed(int(sites[0]), "no part of the root answers")
        self._kept, self._unanswered, self._fail = like.retained, unanswered, fail

    def test(self, keys: Keys, fence: int = 0) -> Request:
        """One message to each part that holds cells of the keys."""

        def tested(found: Lookup) -> NDArray[np.int64] | Failed:
            return self._oldest(keys, found, "answered") if found.answered else self._silent

        return self._parts.read(self._parts.lookup(keys.hashes), None, fence).then(tested)

    def set(self, keys: Keys, verdicts: NDArray[np.bool_], fence: int = 0) -> Request:
        """One message to each part that holds cells of the keys."""
        newest, late = behind(keys.generations) if len(keys) else (NEVER, None)
        found, options = self._parts.lookup(keys.hashes), {"refresh": False, "newest": newest}
        sent = self._parts.set(found, (verdicts, late), keys.request, fence, **options)
        return sent.then(lambda failed: self._fail(int(failed.sum())))

    def recall(self, keys: Keys) -> Request:
        """Read with the request: a part remembers answers by cell, which are those of the cell's key."""
        return self._parts.read(self._parts.lookup(keys.hashes), keys.request).then(lambda found: found.known)

    def duplicated(self, exchange: Exchange, keys: Keys, fence: int = 0) -> NDArray[np.bool_] | Failed:
        """Read, decide and set, in a lease: the one of `fence`, or a new one."""
        if not fence:
            with exchange.lease() as own:
                return self.duplicated(exchange, keys, own.fence)
        (found,) = exchange.send([self._parts.read(self._parts.lookup(keys.hashes), keys.request, fence)])
        if not found.answered:
            return self._silent
        seen: NDArray[np.bool_] = self._oldest(keys, found, "new") != NEVER
        exchange.send([self.set(keys[np.flatnonzero(~seen)], seen[~seen], fence)])
        return seen

    def _oldest(self, keys: Keys, found: Lookup, earlier: str) -> NDArray[np.int64]:
        """Return when the oldest cell of each key was set, or `NEVER` where the key is new."""
        # What a part may have lost is missing from a tree as from any node.
        found.missed = [NEVER] * len(found.missed)
        oldest, unsure = found.decide(keys.generations, earlier, newest=int(found.newest.max()), kept=self._kept)
        undecided = unsure & (oldest != NEVER)
        if self._unanswered or earlier == "new":
            self._fail(int(undecided.sum()))
        # The cells of such a key that answer are set already, so that no later key of the batch depends on the verdict.
        return oldest if self._unanswered else np.where(undecided, NEVER, oldest)


# Where the contents of a node are.
Place = OneSite | SlicedRoot
