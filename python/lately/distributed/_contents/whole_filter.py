"""A whole filter on a site: a slice of a horizontal filter (paper 4, definition 1)."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lately
from lately._core import Filter, overfull
from lately.distributed._contents.empty_filter import NEVER, EmptyFilter, shared_seed
from lately.distributed._sites.results import State
from lately.distributed._sites.site import Contents


class WholeFilter(Contents):
    """A filter whose keys are given as hashes."""

    writes = frozenset({"insert", "duplicated"})

    def __init__(self, filter: Filter | EmptyFilter) -> None:
        self._filter = filter.make() if isinstance(filter, EmptyFilter) else filter
        self._by_clock = False
        self.overfull()

    @property
    def nbytes(self) -> int:
        return self._filter.nbytes

    def query(self, hashes: NDArray[np.uint64], *moments: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which keys were inserted within the window; `moments`, if given, are nanoseconds since 1970."""
        return self._filter.query(self._keys(hashes), at=_at(moments))

    def earliest(self, *_: NDArray[np.uint64]) -> int:
        """Return the earliest moment that is in time, in nanoseconds since 1970; `NEVER` if every one is.

        The keys of a request come along, because the site adds the answers that they got before (`Site.call`).
        """
        latest = self._filter.latest
        if latest is None:
            return NEVER
        return int(latest.astype("M8[ns]").astype(np.int64)) - round((self._filter.lateness or 0) * 1e9)

    def insert(
        self, hashes: NDArray[np.uint64], *moments: NDArray[np.int64], checked: bool = False
    ) -> NDArray[np.bool_]:
        """Insert keys; the answer has no meaning.

        If the times were `checked`, keys that are too late since then are inserted at the earliest time that is not.
        """
        self._filter.insert(self._keys(hashes), at=_at(self._in_time(moments, checked)))
        return np.zeros(len(hashes), dtype=np.bool_)

    def duplicated(
        self, hashes: NDArray[np.uint64], *moments: NDArray[np.int64], refresh: bool, checked: bool = False
    ) -> NDArray[np.bool_]:
        """Return for each key whether it was there, then insert it; see `insert`."""
        return self._filter.duplicated(self._keys(hashes), at=_at(self._in_time(moments, checked)), refresh=refresh)

    def _in_time(self, moments: tuple[NDArray[np.int64], ...], checked: bool) -> tuple[NDArray[np.int64], ...]:
        return tuple(np.maximum(each, self.earliest()) for each in moments) if checked else moments

    def fill(self) -> float:
        return float(self._filter.fill.mean())

    def overfull(self) -> str | None:
        """Return the warning of the filter, if it holds more keys than planned."""
        return overfull(self._filter)

    def state(self) -> State:
        return {"filter": np.frombuffer(self._filter.to_bytes(), dtype=np.uint8)}

    def load(self, state: State) -> None:
        self._filter = lately.from_bytes(state["filter"].tobytes())
        self.overfull()

    def repeatable(self, columns: tuple[NDArray[Any], ...]) -> tuple[NDArray[Any], ...] | None:
        """Add the present time to a batch without times; None for the first, after which the filter uses the clock."""
        if len(columns) > 1 or self._filter.window is None:
            return columns
        if not self._by_clock:
            self._by_clock = True
            return None
        return *columns, np.full(len(columns[0]), time.time_ns())

    def _keys(self, hashes: NDArray[np.uint64]) -> "lately.Hashes":
        return lately.Hashes(hashes, seed=shared_seed(self._filter))


def _at(moments: tuple[NDArray[np.int64], ...]) -> NDArray[np.datetime64] | None:
    return moments[0].view("M8[ns]") if moments else None
