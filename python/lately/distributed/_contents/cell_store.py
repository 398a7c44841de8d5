"""Cells of a filter on a site, all of them or a part: their description, and what is saved."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately._core import Slice
from lately.distributed._contents.blank import Blank
from lately.distributed._sites.results import State

NEVER = int(np.iinfo(np.int64).min)
"""The generation of a cell that is not set."""


class CellStore:
    """Cells by their numbers.

    Parameters
    ----------
    blank : Blank
        The whole filter.
    part, parts : int
        Which part of its cells this is, and of how many.
    """

    def __init__(self, blank: Blank, part: int, parts: int) -> None:
        self._like = like = blank.outline()
        self._slice = Slice(like, part=part, parts=parts)
        # Generations that times may lie apart by the lateness.
        ends = np.array([0, round((like.lateness or 0) * 1e9)])
        self._late = 0 if like.window is None else int(np.diff(like.generations(ends, 2))[0]) + 1

    @property
    def nbytes(self) -> int:
        """Bytes of its cells."""
        return self._slice.nbytes

    def fill(self) -> float:
        """Share of its cells that are set and live."""
        return self._slice.fill

    def overfull(self) -> str | None:
        """Return None: cells are not counted as a warning needs."""
        return None

    def state(self) -> State:
        """Return the words of the cells, and their newest generation."""
        return {"words": self._slice.words(), "newest": np.array(self._slice.newest)}

    def load(self, state: State) -> None:
        """Load the saved words of the same cells of the same filter."""
        self._slice = Slice.from_words(
            self._like,
            state["words"],
            newest=int(state["newest"]),
            part=self._slice.part,
            parts=self._slice.parts,
        )

    def again(self, columns: tuple[NDArray[Any], ...]) -> tuple[NDArray[Any], ...]:
        """Return the columns themselves, which have the generations."""
        return columns

    def lost(self) -> None:
        """Nothing to do: cells do not know what else was set."""
