"""Part of the cells of a filter on a site: a slice of a vertical or a diced filter (paper 4, definition 2)."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately._core import FilterSpec, Slice
from lately.distributed._contents.blank import Blank
from lately.distributed._contents.cell_store import NEVER, CellStore
from lately.distributed._sites.results import State

TOLERANCE = 1.25
"""How much more often than planned a filter may err before it warns, as in one process."""

ALL = int(np.iinfo(np.int64).max)
"""Stands for the newest generation that a site may have lost, until it learns of one."""


class Part(CellStore):
    """Cells that messages name by their numbers.

    Its rows are cells, not keys: cell j of key i of a batch has the place ``i * k + j``, and its answer is the key's.

    Parameters
    ----------
    blank : Blank
        The whole filter.
    part, parts : int
        Which part of its cells this is, and of how many.
    """

    writes = frozenset({"set", "touch"})

    def __init__(self, blank: Blank, part: int, parts: int) -> None:
        super().__init__(blank, part, parts)
        # Four times while as many keys come as are planned for.
        self._step = max(self._like.capacity * self._slice.k // parts // 4, 64)
        self._missed = NEVER
        self._warning: str | None = None
        self._since = 0

    def read(self, cells: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return how many generations before the newest of this site each cell was last set (`Slice.ages`).

        Beside that are this generation, and the newest that this site may have lost: until it is out of the window, an
        unset cell proves nothing.
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
        """Return when each cell was last set, and set it before the next is read (`Slice.touch`).

        `now` is the newest generation of the batch, `before` the newest before it. To the ages come the generation that
        they count back from, the newest that this site may have lost, and both of these: a batch that is sent again is
        decided as of when it came first.
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
        """Take over what may be lost, too."""
        super().load(state)
        self._missed = int(state["missed"])


def crowded(like: FilterSpec, part: Slice) -> str | None:
    """Return a warning if a slice makes the filter err more often than planned, beyond chance."""
    fill, cells, k = part.fill, part.stop - part.start, part.k
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
