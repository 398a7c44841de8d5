"""Cells of a filter on a site: a part of them, in a vertical or diced filter, or all of them, in a tree."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately._core import FilterSpec, Slice
from lately.distributed._contents.blank import Blank
from lately.distributed._sites.results import State
from lately.distributed._sites.site import Contents

# The generation of a cell that is not set.
NEVER = int(np.iinfo(np.int64).min)
# Stands for the newest generation that a site may have lost, until it learns of one.
ALL = int(np.iinfo(np.int64).max)
# How much more often than planned a filter may err before it warns, as in one process.
TOLERANCE = 1.25


class CellStore(Contents):
    """Part number `part` of the `parts` of the cells of a filter, by their numbers."""

    def __init__(self, blank: Blank, part: int, parts: int) -> None:
        self._like, self._cut = blank.outline(), {"part": part, "parts": parts}
        self._k: int = self._like.parameters["k"]
        self._slice = Slice(self._like, **self._cut)

    @property
    def nbytes(self) -> int:
        return self._slice.nbytes

    def fill(self) -> float:
        return self._slice.fill

    def state(self) -> State:
        return {"words": self._slice.words(), "newest": np.array(self._slice.newest)}

    def load(self, state: State) -> None:
        self._slice = Slice.from_words(self._like, state["words"], newest=int(state["newest"]), **self._cut)


class Part(CellStore):
    """A slice of a vertical or a diced filter (paper 4, definition 2).

    Its rows are cells, not keys: cell j of key i of a batch has the place ``i * k + j``, and its answer is the key's.
    """

    writes = frozenset({"set", "touch"})

    def __init__(self, blank: Blank, part: int, parts: int) -> None:
        super().__init__(blank, part, parts)
        # Four times while as many keys come as are planned for.
        self._step = max(self._like.capacity * self._k // parts // 4, 64)
        # Generations that times may lie apart by the lateness.
        ends = np.array([0, round((self._like.lateness or 0) * 1e9)])
        self._late = 0 if self._like.window is None else int(np.diff(self._like.generations(ends, 2))[0]) + 1
        self._missed = NEVER
        self._warning: str | None = None
        self._since = 0

    def read(self, cells: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return how long ago cells were last set (`Slice.ages`), as of which generation, and which may be lost.

        Until the newest generation that this site may have lost is out of the window, an unset cell proves nothing.
        """
        ages, base = self._slice.ages(cells)
        return ages, np.array([base, self._missed])

    def set(
        self, cells: NDArray[Any], verdicts: NDArray[np.bool_], *behind: NDArray[Any], refresh: bool, newest: int
    ) -> NDArray[np.bool_]:
        """Set the cells of new keys, or with `refresh` of all, and remember the verdicts.

        `newest` is the latest generation of the batch, which is sent to every site of it; `behind` how many generations
        before that each is, if any is.
        """
        new = slice(None) if refresh else ~verdicts
        self._slice.touch(cells[new], newest, *(late[new] for late in behind))
        self._heard(len(cells))
        return verdicts

    def touch(
        self, cells: NDArray[Any], *behind: NDArray[Any], before: int, now: int
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return what `read` does, and set each cell before the next is read (`Slice.touch`).

        `now` is the newest generation of the batch, `before` the newest before it. The answer has both: a batch that is
        sent again is decided as of when it came first.
        """
        ages, base = self._slice.touch(cells, now, *behind)
        state = np.array([base, self._missed, before, now])
        self._heard(len(cells))
        return ages, state

    def latest(self) -> int:
        """Return the newest generation of this site."""
        return self._slice.newest

    def overfull(self) -> str | None:
        """Return a warning once more of its cells are set than are planned."""
        return self._warning

    def _heard(self, cells: int) -> None:
        self._since += cells
        if self._warning is None and self._since >= self._step:
            self._since = 0
            self._warning = crowded(self._like, self._slice)
        if self._missed == ALL:
            # What was lost came before this, but for the lateness that producers may differ by.
            self._missed = self._slice.newest + self._late

    def lost(self) -> None:
        """Doubt unset cells, until what may have been set is out of the window."""
        self._missed = ALL

    def state(self) -> State:
        """Add what may be lost."""
        return super().state() | {"missed": np.array(self._missed)}

    def load(self, state: State) -> None:
        """Load what may be lost, too."""
        super().load(state)
        self._missed = int(state["missed"])


class TreeNode(CellStore):
    """A node of a Bloom tree: a whole filter, whose keys are given as hashes (paper 4, definition 5).

    What it loses is missing, and the nodes above have it.
    """

    writes = frozenset({"duplicated", "set"})

    def __init__(self, blank: Blank) -> None:
        super().__init__(blank, 0, 1)

    def test(self, hashes: NDArray[np.uint64], generations: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for each key, as of its generation, when the oldest of its cells was set, or `NEVER` if it is new."""
        return self._slice.oldest(hashes, generations)

    def duplicated(self, hashes: NDArray[np.uint64], generations: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Test, then set what is new: in order, and as one act."""
        return self._slice.duplicated(hashes, generations)

    def set(
        self, hashes: NDArray[np.uint64], generations: NDArray[np.int64], verdicts: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Set the cells of keys whose verdict was given elsewhere; the answer is the verdict."""
        self._slice.insert(hashes, generations)
        return verdicts

    def recall(self, hashes: NDArray[np.uint64]) -> None:
        """Do nothing: only fetches the answers that a site remembers of a batch."""


def crowded(like: FilterSpec, part: Slice) -> str | None:
    """Return a warning if a slice makes the filter err more often than planned, beyond chance."""
    fill, cells, k = part.fill, part.stop - part.start, like.parameters["k"]
    sure = fill - 5 * math.sqrt(fill * (1 - fill) / cells)
    if like.parameters.get("equal_timers", 1) > 1 or sure <= 0 or sure**k <= TOLERANCE * like.fpr:
        return None
    # Of balls in bins this share is left empty, k of each key among the cells of all parts.
    empty = max(1 - fill, 1 / cells)
    keys = -math.log(empty) * int(Slice.bounds(like, 1)[-1]) / k
    return (
        f"this filter is overfull: it is planned for {like.capacity} keys and has about {keys:.0f}, by the cells here, "
        f"so that false positives come at a rate of {fill**k:.2g}, not {like.fpr:.2g}; it still misses no key. Take a "
        "larger capacity"
    )
