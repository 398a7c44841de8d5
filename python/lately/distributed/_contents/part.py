"""Part of the cells of a filter on a site: a slice of a vertical or a diced filter (paper 4, definition 2)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately._core import Slice
from lately.distributed._contents.blank import Blank
from lately.distributed._sites.memo import State

NEVER = int(np.iinfo(np.int64).min)
"""The generation of a cell that is not set."""


class Part:
    """Cells that are asked by their numbers.

    Its rows are cells, not keys: cell j of key i of a batch has the place ``i * k + j``, and its answer is the key's.

    Parameters
    ----------
    blank : Blank
        The whole filter.
    part, parts : int
        Which part of its cells this is, and of how many.
    """

    writes = frozenset({"set"})

    def __init__(self, blank: Blank, part: int, parts: int) -> None:
        self._blank = blank
        self._slice = Slice(blank.make(), part=part, parts=parts)

    @property
    def nbytes(self) -> int:
        """Bytes of its cells."""
        return self._slice.nbytes

    def read(self, cells: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Tell the generation in which each cell was last set, or `NEVER`; after them, the newest of this site."""
        return np.append(self._slice.read(cells), self._slice.newest)

    def set(
        self,
        cells: NDArray[np.uint64],
        generations: NDArray[np.int64],
        verdicts: NDArray[np.bool_],
        *,
        refresh: bool,
        newest: int,
    ) -> NDArray[np.bool_]:
        """Set the cells of new keys, or with `refresh` of all, and remember the verdicts.

        `newest` is the latest generation that the producer knows of, which it told every site of the batch.
        """
        new = np.full(len(cells), True) if refresh else ~verdicts
        self._slice.set(cells[new], generations[new])
        self._slice.set(cells[:0], newest)
        return verdicts

    def fill(self) -> float:
        """Share of its cells that are set and live."""
        return self._slice.fill

    def state(self) -> State:
        """Its words, and what they are the words of."""
        return {
            "words": self._slice.words(),
            "newest": np.array(self._slice.newest),
            "of": np.array(self._of()),
        }

    def load(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over the saved words of the same part of the same filter."""
        if (of := str(state["of"])) != self._of():
            raise ValueError(f"the checkpoint holds another slice: {of}, not {self._of()}")
        self._slice = Slice.from_words(
            self._blank.make(),
            state["words"],
            newest=int(state["newest"]),
            part=self._slice.part,
            parts=self._slice.parts,
        )

    def _of(self) -> str:
        return f"{self._slice.part} of {self._slice.parts} of {self._blank}"
