"""A root cut vertically over several sites: the same bits, and so the same verdicts (paper 4, lemma 1)."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lately._core import FilterSpec, Ranges, resolve
from lately.distributed._contents.cell_store import NEVER
from lately.distributed._producer.exchange import Exchange
from lately.distributed._producer.request import Request, send
from lately.distributed._sites.interface import Failed
from lately.distributed._sites.results import RequestId
from lately.distributed._slices.parts import Found, Parts
from lately.distributed._slices.routes import behind
from lately.distributed._tree.place import Keys, OneSite


class SlicedRoot:
    """Parts of one filter on sites of their own, which answer as one node.

    Parameters
    ----------
    like : FilterSpec
        The one that is cut, for its parameters.
    sites : ndarray of int64, shape (parts,)
        Where its parts are.
    unanswered : bool
        Whether a cell on a site that has failed counts as set (paper 4, section 3.2).
    fail : callable
        Called with the number of keys that were decided without such a site.
    """

    def __init__(
        self,
        like: FilterSpec,
        sites: NDArray[np.int64],
        *,
        unanswered: bool,
        fail: Callable[[int], None],
    ) -> None:
        self._like, self._ranges = like, Ranges(like, len(sites))
        self._parts = Parts(like, len(sites), lambda part: int(sites[part]))
        self._silent = Failed(int(sites[0]), "no part of the root answers")
        self._missed = np.full(len(sites), NEVER)
        self._unanswered, self._fail = unanswered, fail
        self._endless = like.window is None

    def test(self, keys: Keys, fence: int = 0) -> Request:
        """One message to each part that holds cells of the keys."""

        def oldest(found: Found) -> NDArray[np.int64] | Failed:
            last, newest = found.last, int(found.newest.max())
            if not found.alive.any():
                return self._silent
            horizon = self._horizon(keys, newest)
            if self._unanswered:
                self._fail(self._doubtful(keys, found))
                # A cell that does not answer counts as the youngest that does; if none does, as old as it can be.
                youngest = np.maximum(last.max(axis=1), np.maximum(horizon, 0) if self._endless else horizon)
                last = np.where(found.alive, last, youngest[:, None])
            age: NDArray[np.int64] = last.min(axis=1)
            return np.where(age >= horizon, age, NEVER)

        return self._read(keys, None, fence).then(oldest)

    def set(self, keys: Keys, verdicts: NDArray[np.bool_], fence: int = 0) -> Request:
        """One message to each part that holds cells of the keys."""
        scattered = self._ranges.scatter(keys.hashes)
        newest, late = behind(keys.generations) if len(keys) else (NEVER, None)
        columns, options = (verdicts, late), {"refresh": False, "newest": newest}

        def set_there(failed: tuple[list[int], NDArray[np.bool_]]) -> NDArray[np.bool_]:
            self._fail(int(failed[1].sum()))
            return verdicts

        sent = self._parts.set(scattered.sites, scattered.cells, columns, keys.request, fence, **options)
        return sent.then(set_there)

    def recall(self, keys: Keys) -> Request:
        """Read with the request: a part remembers answers by cell, which are those of the cell's key."""
        return self._read(keys, keys.request).then(lambda found: found.known)

    def duplicated(self, exchange: Exchange, keys: Keys, fence: int = 0) -> NDArray[np.bool_] | Failed:
        """Read, decide and set, in a lease: the one of `fence`, or a new one."""
        if not fence:
            with exchange.lease() as own:
                return self.duplicated(exchange, keys, own.fence)
        found: Found = send(exchange, [self._read(keys, keys.request, fence)])[0]
        if not found.alive.any():
            return self._silent
        # What a part may have lost is missing from a tree as from any node.
        seen = resolve(
            found.names,
            found.last,
            keys.generations,
            newest=int(found.newest.max()),
            kept=self._like.retained,
            least=0 if self._unanswered else found.cells.shape[1],
            alive=found.alive,
            known=found.known,
        )
        self._fail(self._doubtful(keys, found))
        new = np.flatnonzero(~seen)
        send(exchange, [self.set(keys[new], seen[new], fence)])
        return seen

    def _read(self, keys: Keys, request: RequestId | None, fence: int = 0) -> Request:
        found = Found.nothing(self._ranges.scatter(keys.hashes), self._missed)
        return self._parts.read(found, np.arange(found.cells.size), request, fence)

    def _horizon(self, keys: Keys, newest: int) -> NDArray[np.int64]:
        """Give for each key the generation from which on a cell counts."""
        return np.maximum(np.maximum.accumulate(keys.generations), newest) - self._like.retained

    def _doubtful(self, keys: Keys, found: Found) -> int:
        """Count keys that the cells that have answered leave undecided."""
        live = (found.last >= self._horizon(keys, int(found.newest.max()))[:, None]) | ~found.alive
        return int((live.all(axis=1) & ~found.alive.all(axis=1)).sum())


Place = OneSite | SlicedRoot
"""Where the contents of a node are."""
