"""A node of a Bloom tree: a whole filter, by its cells (paper 4, definition 5)."""

import numpy as np
from numpy.typing import NDArray

from lately._core import resolve
from lately.distributed._contents.blank import Blank
from lately.distributed._contents.cell_store import NEVER, CellStore


class TreeNode(CellStore):
    """The cells of a filter, found by the hashes of keys.

    Parameters
    ----------
    blank : Blank
        The filter: a BloomFilter or a TimingBloomFilter.
    """

    writes = frozenset({"duplicated", "set"})

    def __init__(self, blank: Blank) -> None:
        super().__init__(blank, 0, 1)

    def test(self, hashes: NDArray[np.uint64], generations: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for each key, as of its generation, when the oldest of its cells was set.

        Returns
        -------
        ndarray of int64, shape (n,)
            A generation, or `NEVER` if a cell is not set, or was set longer ago than is kept. Keys of the batch do not
            see each other.
        """
        last = self._slice.read(self._row(hashes))
        now = np.maximum(np.maximum.accumulate(generations), self._slice.newest)
        oldest: NDArray[np.int64] = last.min(axis=1)
        return np.where(oldest >= now - self._like.retained, oldest, NEVER)

    def duplicated(self, hashes: NDArray[np.uint64], generations: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Test, then set what is new: in order, and as one act."""
        cells = self._row(hashes)
        seen = resolve(cells, self._slice.read(cells), generations, newest=self._slice.newest, kept=self._like.retained)
        self._slice.set(cells[~seen], generations[~seen])
        return seen

    def set(
        self, hashes: NDArray[np.uint64], generations: NDArray[np.int64], verdicts: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Set the cells of keys whose verdict was given elsewhere; the answer is the verdict."""
        self._slice.set(self._row(hashes), generations)
        return verdicts

    def recall(self, hashes: NDArray[np.uint64]) -> None:
        """Do nothing: only fetches the answers that a site remembers of a batch."""

    def _row(self, hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
        return self._like.cells(hashes)
