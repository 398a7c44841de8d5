"""The ways to slice a filter: how many sites there are, what each holds, and which keys it gets."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lately._core import Filter, FilterSpec, Ranges, Slice, part_of
from lately._plan import Choice
from lately.distributed._contents.cells import Part
from lately.distributed._contents.empty_filter import EmptyFilter
from lately.distributed._contents.whole_filter import WholeFilter
from lately.distributed._producer.exchange import Exchange
from lately.distributed._producer.orderer import OrderedExchange, SitesOrderer
from lately.distributed._producer.producer import Batch, Verdicts
from lately.distributed._sites.interface import Failed, Message, Orderer, Sites
from lately.distributed._sites.results import UNKNOWN
from lately.distributed._sites.site import Contents
from lately.distributed._slices.cells import Cells, CellWriter

# Written as unions, which stubtest accepts for an alias of several literals.
Kind = Literal["horizontal"] | Literal["vertical"] | Literal["diced"]
Dice = Literal["h-v"] | Literal["v-h"]
OnFailure = Literal["raise", "duplicate", "distinct"] | int


# Sites are numbered in 16 bits, which NumPy sorts by radix.
MAX_SITES = 1 << 16


def shares(sites: NDArray[np.uint16]) -> list[tuple[int, NDArray[np.int64]]]:
    """Group rows by their site: each site with rows, and the places of its rows, ascending."""
    order = np.argsort(sites, kind="stable").astype(np.int64, copy=False)
    counts = np.bincount(sites)
    ends = np.cumsum(counts)
    return [(int(site), order[ends[site] - counts[site] : ends[site]]) for site in np.flatnonzero(counts)]


class Horizontal:
    """A horizontal filter: each key belongs to one site, which holds a whole filter (paper 4, definition 1).

    The keys of each site are sent together, in the order of the batch. The site answers them as a filter does.

    Each method returns the verdicts, and which keys had no answer; both of shape (n,). If `least` is 0, a key whose
    site has failed counts as seen, else it counts as new (paper 4, section 3.2).
    """

    def __init__(self, exchange: Exchange, least: int) -> None:
        self._exchange, self._guess = exchange, least == 0

    def query(self, batch: Batch) -> Verdicts:
        """Return which keys were inserted within the window."""
        return self._call("query", batch)

    def insert(self, batch: Batch) -> Verdicts:
        """Insert keys; the verdicts have no meaning."""
        return self._write("insert", batch)

    def duplicated(self, batch: Batch, *, refresh: bool) -> Verdicts:
        """Return for each key whether it was there, then insert it; each site does both at once."""
        return self._write("duplicated", batch, refresh=refresh)

    def _write(self, method: str, batch: Batch, **options: Any) -> Verdicts:
        """Write a batch. One site rejects a late batch by itself; several are read before one of them is written to."""
        groups = self._groups(batch)
        checked = batch.moments is not None and len(groups) > 1
        if checked:
            self._reject_late(batch, groups)
        return self._call(method, batch, checked=checked, **options)

    def _reject_late(self, batch: Batch, groups: list[tuple[int, NDArray[np.int64]]]) -> None:
        """Reject a key that is too late for its site, unless it is known from when the batch was sent before."""
        assert batch.moments is not None
        late: list[int] = []
        answers = self._exchange.call([Message(site, "earliest", ()) for site, _ in groups])
        for (site, rows), earliest in zip(groups, answers, strict=True):
            if not isinstance(earliest, Failed) and len(rows := rows[batch.moments[rows] < earliest]):
                message = Message(site, "earliest", (batch.hashes[rows],), {}, batch.request(rows))
                known = self._exchange.call([message])[0]
                late += [] if isinstance(known, Failed) else rows[known[1] == UNKNOWN].tolist()
        if late:
            raise ValueError(
                f"at[{min(late)}] lies more than the lateness before what other producers have brought: construct the "
                "filter with a larger lateness"
            )

    def _groups(self, batch: Batch) -> list[tuple[int, NDArray[np.int64]]]:
        return shares(part_of(batch.hashes, len(self._exchange.sites)))

    def _call(self, method: str, batch: Batch, **options: Any) -> Verdicts:
        groups = self._groups(batch)
        columns = (batch.hashes,) if batch.moments is None else (batch.hashes, batch.moments)
        messages = [
            Message(site, method, tuple(column[index] for column in columns), options, batch.request(index))
            for site, index in groups
        ]
        seen, unanswered = np.full((2, len(batch)), [[self._guess], [False]])
        for (_, index), answer in zip(groups, self._exchange.call(messages), strict=True):
            if isinstance(answer, Failed):
                unanswered[index] = True
            else:
                seen[index] = answer
        return seen, unanswered


@dataclass(frozen=True)
class Slicing:
    """A filter, and how it is sliced.

    There are `replicas` filters like `empty`, each cut into `parts` parts. `least` is x: how many cells of a seen key
    must have an answer. If the slicing is `strict`, a site that does not answer is an error, and `least` is for cells
    that a site has lost.
    """

    kind: Kind
    parts: int
    replicas: int
    dice: Dice | None
    empty: EmptyFilter
    least: int
    strict: bool
    pipelined: bool

    @classmethod
    def of(
        cls,
        kind: Kind,
        slices: int | Sequence[int],
        filter: Filter | Choice | EmptyFilter,
        *,
        dice: Dice | None,
        on_failure: OnFailure,
        pipelined: bool,
    ) -> "Slicing":
        """Check the parameters; see `SlicedFilter`."""
        if kind not in ("horizontal", "vertical", "diced"):
            raise ValueError(f"kind must be 'horizontal', 'vertical' or 'diced', got {kind!r}")
        if kind == "diced" and dice not in ("h-v", "v-h"):
            raise ValueError(f"dice must be 'h-v' or 'v-h', got {dice!r}")
        if kind != "diced" and dice is not None:
            raise ValueError(f"dice is for diced filters; this one is {kind}")
        empty = filter if isinstance(filter, EmptyFilter) else EmptyFilter.of(filter)
        counts = _counts(slices, kind)
        strict = isinstance(on_failure, str) and on_failure == "raise"
        if kind == "horizontal":
            if pipelined:
                raise ValueError("pipelined is for filters with the cells of a key on many sites; this is horizontal")
            return cls(kind, 1, counts[0], None, empty, _least(on_failure, 1), strict, False)
        if empty.family not in ("BloomFilter", "TimingBloomFilter"):
            raise ValueError(f"a {kind} filter is cut from a BloomFilter or a TimingBloomFilter, not a {empty.family}")
        parts, replicas = {None: (counts[0], 1), "h-v": counts[::-1], "v-h": counts}[dice]
        # Raises an error if the filter cannot be cut, or not into this many parts.
        like = empty.spec()
        Slice.bounds(like, parts)
        least = _least(on_failure, like.parameters["k"])
        return cls(kind, parts, replicas, dice, empty, least, strict, pipelined)

    @property
    def sites(self) -> int:
        """Number of sites."""
        return self.parts * self.replicas

    @property
    def slices(self) -> int | tuple[int, int]:
        """S, or for a diced filter S and S'."""
        if self.dice is None:
            return self.sites
        return (self.replicas, self.parts) if self.dice == "h-v" else (self.parts, self.replicas)

    @property
    def manifest(self) -> dict[str, Any]:
        """What every producer must know to send to the same filter, in JSON's types."""
        slices = self.slices if isinstance(self.slices, int) else list(self.slices)
        return {"kind": self.kind, "slices": slices, "dice": self.dice, **self.empty.manifest}

    @classmethod
    def of_manifest(cls, manifest: Mapping[str, Any], *, on_failure: OnFailure, pipelined: bool) -> "Slicing":
        """Read a manifest; raise `ValueError` if it is not that of a sliced filter."""
        given = dict(manifest)
        kind, slices, dice = (given.pop(name, None) for name in ("kind", "slices", "dice"))
        if kind is None:
            raise ValueError(f"the sites hold no sliced filter, but {manifest}")
        return cls.of(
            kind,
            slices if isinstance(slices, int) else tuple(slices),
            EmptyFilter(given),
            dice=dice,
            on_failure=on_failure,
            pipelined=pipelined,
        )

    def contents(self) -> list[Callable[[], Contents]]:
        """Return, for each site, the function that makes its contents."""
        if self.kind == "horizontal":
            return [partial(WholeFilter, self.empty)] * self.sites
        return [partial(Part, self.empty, site % self.parts, self.parts) for site in range(self.sites)]

    def over(self, exchange: Exchange, like: FilterSpec) -> Horizontal | Cells:
        """Return the routing for a producer; `like` is one of the filters."""
        if self.kind == "horizontal":
            return Horizontal(exchange, self.least)
        return Cells(exchange, like, self._ranges(like), least=self.least, pipelined=self.pipelined)

    def orderer(self) -> Callable[[Sites], Orderer] | None:
        """Return what makes the orderer; None for a horizontal filter, whose slices are independent filters."""
        return None if self.kind == "horizontal" else partial(SitesOrderer, make=self._writer)

    def _writer(self, exchange: OrderedExchange) -> CellWriter:
        like = self.empty.spec()
        return CellWriter(exchange, like, self._ranges(like))

    def _ranges(self, like: FilterSpec) -> Ranges:
        return Ranges(like, self.parts, self.replicas, each=self.dice == "v-h")


def _counts(slices: int | Sequence[int], kind: Kind) -> tuple[int, ...]:
    wanted = 2 if kind == "diced" else 1
    given = (slices,) if hasattr(slices, "__index__") else slices
    if not isinstance(given, tuple | list) or len(given) != wanted or not all(hasattr(n, "__index__") for n in given):
        form = "two numbers, (S, S')" if wanted == 2 else "one number"
        raise TypeError(f"slices of a {kind} filter must be {form}, got {slices!r}")
    counts = tuple(int(n) for n in given)
    if min(counts) < 1 or math.prod(counts) > MAX_SITES:
        raise ValueError(f"slices must be at least 1, and at most {MAX_SITES} in all, got {slices!r}")
    return counts


def _least(on_failure: OnFailure, k: int) -> int:
    # With "raise" only lost writes of a site are left to decide on: as in a horizontal filter, such keys are new.
    named = {"raise": k, "duplicate": 0, "distinct": k}
    if isinstance(on_failure, str) and on_failure in named:
        return named[on_failure]
    if isinstance(on_failure, str) or not hasattr(on_failure, "__index__") or isinstance(on_failure, bool):
        raise ValueError(
            f"on_failure must be 'raise', 'duplicate', 'distinct' or a number of cells, got {on_failure!r}"
        )
    if not 0 <= on_failure <= k:
        raise ValueError(f"on_failure must lie in 0 .. {k}, the cells of a key on different sites, got {on_failure}")
    return int(on_failure)
