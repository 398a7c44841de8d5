"""Cells of a filter on a site, all of them or a part: their description, and what is saved."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately._core import Slice
from lately.distributed._contents.blank import Blank
from lately.distributed._sites.memo import State

NEVER = int(np.iinfo(np.int64).min)
"""The generation of a cell that is not set."""


class Cut:
    """Cells by their numbers.

    Parameters
    ----------
    blank : Blank
        The whole filter.
    part, parts : int
        Which part of its cells this is, and of how many.
    of : str
        What a checkpoint says its cells are of.
    """

    def __init__(self, blank: Blank, part: int, parts: int, *, of: str) -> None:
        self._blank, self._of = blank, of
        self._slice = Slice(blank.make(), part=part, parts=parts)

    @property
    def nbytes(self) -> int:
        """Bytes of its cells."""
        return self._slice.nbytes

    def fill(self) -> float:
        """Share of its cells that are set and live."""
        return self._slice.fill

    def state(self) -> State:
        """Give its words, and a description of the cells they hold."""
        return {
            "words": self._slice.words(),
            "newest": np.array(self._slice.newest),
            "of": np.array(self._of),
        }

    def load(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over the saved words of the same cells of the same filter."""
        if (of := str(state["of"])) != self._of:
            raise ValueError(f"the checkpoint holds another filter, or another part of it: {of}, not {self._of}")
        self._slice = Slice.from_words(
            self._blank.make(),
            state["words"],
            newest=int(state["newest"]),
            part=self._slice.part,
            parts=self._slice.parts,
        )
