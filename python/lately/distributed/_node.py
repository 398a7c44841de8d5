"""A node of a Bloom tree: a whole filter, by its cells (paper 4, definition 5)."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

import lately
from lately._core import BloomFilter, Slice, TimingBloomFilter, settle
from lately.distributed._blank import Blank
from lately.distributed._memo import State
from lately.distributed._part import NEVER


class Node:
    """The cells of a filter, which tell by a hash when those of a key were set.

    Parameters
    ----------
    blank : Blank
        The filter: a BloomFilter or a TimingBloomFilter.
    """

    writes = frozenset({"duplicated", "set"})

    def __init__(self, blank: Blank) -> None:
        self._blank = blank
        self._filter = cast("BloomFilter | TimingBloomFilter", blank.make())
        self._cells = Slice(self._filter)

    @property
    def nbytes(self) -> int:
        """Bytes of its cells."""
        return self._cells.nbytes

    def fill(self) -> float:
        """Share of the cells that are set and live."""
        return self._cells.fill

    def test(self, hashes: NDArray[np.uint64], generations: NDArray[np.int64]) -> NDArray[np.int64]:
        """Tell for each key, as of its generation, when the oldest of its cells was set.

        Returns
        -------
        ndarray of int64, shape (n,)
            A generation, or `NEVER` where a cell is not set, or was longer ago than is kept. Keys of the batch do not
            see each other.
        """
        last = self._cells.read(self._row(hashes))
        now = np.maximum(np.maximum.accumulate(generations), self._cells.newest)
        oldest: NDArray[np.int64] = last.min(axis=1)
        return np.where(oldest >= now - self._filter.kept, oldest, NEVER)

    def duplicated(self, hashes: NDArray[np.uint64], generations: NDArray[np.int64]) -> NDArray[np.bool_]:
        """First test, then set what is new: in order, and as one act."""
        cells = self._row(hashes)
        seen = settle(cells, self._cells.read(cells), generations, newest=self._cells.newest, kept=self._filter.kept)
        self._cells.set(cells[~seen], generations[~seen])
        return seen

    def set(
        self, hashes: NDArray[np.uint64], generations: NDArray[np.int64], verdicts: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Set the cells of keys about which the verdict was given elsewhere; the answer is the verdict."""
        self._cells.set(self._row(hashes), generations)
        return verdicts

    def recall(self) -> None:
        """Do nothing: for the answers that a site knows of a batch."""

    def state(self) -> State:
        """Its words, and what they are the words of."""
        return {
            "words": self._cells.words(),
            "newest": np.array(self._cells.newest),
            "of": np.array(str(self._blank)),
        }

    def load(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over the saved words of a node of the same filter."""
        if (of := str(state["of"])) != str(self._blank):
            raise ValueError(f"the checkpoint holds another filter: {of}, not {self._blank}")
        self._cells = Slice.from_words(self._filter, state["words"], newest=int(state["newest"]))

    def _row(self, hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
        return self._filter.cells(lately.Hashes(hashes, seed=self._filter.seed))
