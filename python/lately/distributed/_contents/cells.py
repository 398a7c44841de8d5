"""The cells of a filter on a site: some of them in a vertical or diced filter, all of them in a tree."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately._core import Slice
from lately.distributed._contents.empty_filter import NEVER, EmptyFilter
from lately.distributed._sites.results import State
from lately.distributed._sites.site import Contents

# Stands for the newest generation that a site may have lost, while the site does not know it.
ALL = int(np.iinfo(np.int64).max)


class CellStore(Contents):
    """The cells of part number `part` of a filter that is cut into `parts` parts."""

    def __init__(self, empty: EmptyFilter, part: int, parts: int) -> None:
        self._like, self._cut = empty.spec(), {"part": part, "parts": parts}
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

    def __init__(self, empty: EmptyFilter, part: int, parts: int) -> None:
        super().__init__(empty, part, parts)
        # Cells written between two checks of the load: four while as many keys come as are planned.
        self._check_interval = max(self._like.capacity * self._k // parts // 4, 64)
        # The number of generations by which times within the lateness may differ.
        ends = np.array([0, round((self._like.lateness or 0) * 1e9)])
        self._late = 0 if self._like.window is None else int(np.diff(self._like.generations(ends, 2))[0]) + 1
        self._missed = self._latest = NEVER
        self._warning: str | None = None
        self._unchecked = 0

    def read(self, cells: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return how long ago cells were last set (`Slice.ages`), as of which generation, and which may be lost.

        Until the newest generation that this site may have lost is out of the window, an unset cell proves nothing.
        The last number is `latest`.
        """
        ages, base = self._slice.ages(cells)
        return ages, np.array([base, self._missed, self._latest])

    def set(
        self,
        cells: NDArray[Any],
        verdicts: NDArray[np.bool_],
        *behind: NDArray[Any],
        refresh: bool,
        newest: int,
        latest: int,
    ) -> NDArray[np.bool_]:
        """Set the cells of new keys, or with `refresh` of all, and remember the verdicts.

        `newest` is the latest generation of the batch, the same for all of its sites. `behind` is how many generations
        before that each cell is set; without it, none. `latest` is the latest moment of all batches.
        """
        self._latest = max(self._latest, latest)
        new = slice(None) if refresh else ~verdicts
        self._slice.touch(cells[new], newest, *(late[new] for late in behind))
        self._count_writes(len(cells))
        return verdicts

    def touch(
        self, cells: NDArray[Any], *behind: NDArray[Any], before: int, now: int, latest: int
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return what `read` does, and set each cell before the next is read (`Slice.touch`).

        `now` is the newest generation of the batch, `before` the newest one before it. The answer has both, so that a
        batch that is sent again is decided as it was the first time.
        """
        self._latest = max(self._latest, latest)
        ages, base = self._slice.touch(cells, now, *behind)
        state = np.array([base, self._missed, before, now])
        self._count_writes(len(cells))
        return ages, state

    def latest(self) -> int:
        """Return the latest moment of all batches, in nanoseconds since 1970; `NEVER` before the first."""
        return self._latest

    def overfull(self) -> str | None:
        """Return a warning if many more cells are set than planned."""
        return self._warning

    def _count_writes(self, cells: int) -> None:
        """Check the load after enough cells, and find out from a first write what was lost before (`lost`)."""
        self._unchecked += cells
        if self._warning is None and self._unchecked >= self._check_interval:
            self._unchecked = 0
            self._warning = self._slice.overfull(self._like)
        if self._missed == ALL:
            # What was lost came before this, except for the lateness by which producers may differ.
            self._missed = self._slice.newest + self._late

    def lost(self) -> None:
        """Treat unset cells as unanswered, until every lost write is out of the window."""
        self._missed = ALL

    def state(self) -> State:
        """Return the cells, the newest generation that may be lost, and the latest moment."""
        return super().state() | {"missed": np.array(self._missed), "latest": np.array(self._latest)}

    def load(self, state: State) -> None:
        """Load the cells, the newest generation that may be lost, and the latest moment."""
        super().load(state)
        self._missed, self._latest = int(state["missed"]), int(state["latest"])


class TreeNode(CellStore):
    """A node of a Bloom tree: a whole filter, whose keys are given as hashes (paper 4, definition 5).

    Keys that it loses are missing here. The nodes above have them.
    """

    writes = frozenset({"duplicated", "set"})

    def __init__(self, empty: EmptyFilter) -> None:
        super().__init__(empty, 0, 1)

    def test(self, hashes: NDArray[np.uint64], generations: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for each key, as of its generation, when the oldest of its cells was set, or `NEVER` if it is new."""
        return self._slice.oldest(hashes, generations)

    def duplicated(self, hashes: NDArray[np.uint64], generations: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Test keys in order, and set the new ones, in one step."""
        return self._slice.duplicated(hashes, generations)

    def set(
        self, hashes: NDArray[np.uint64], generations: NDArray[np.int64], verdicts: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Set the cells of keys whose verdict another node gave, and return that verdict."""
        self._slice.insert(hashes, generations)
        return verdicts

    def recall(self, hashes: NDArray[np.uint64]) -> None:
        """Do nothing: a call only fetches the answers that the site remembers of a batch."""
