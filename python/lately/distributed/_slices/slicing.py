"""The ways to slice a filter: how many sites, what each holds, and how keys are sent there."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from lately._core import Filter, FilterSpec, Ranges, Slice
from lately._plan import Choice
from lately.distributed._contents.blank import Blank
from lately.distributed._contents.cells import Part
from lately.distributed._contents.whole import Whole
from lately.distributed._producer.exchange import Exchange
from lately.distributed._sites.site import Contents
from lately.distributed._slices.cells import Cells
from lately.distributed._slices.horizontal import MOST_SITES, Horizontal

# Written as unions, which stubtest accepts for an alias of several literals.
Kind = Literal["horizontal"] | Literal["vertical"] | Literal["diced"]
Dice = Literal["h-v"] | Literal["v-h"]
OnFailure = Literal["raise", "duplicate", "distinct"] | int


@dataclass(frozen=True)
class Slicing:
    """A filter, and how it is sliced.

    There are `replicas` filters like `blank`, each cut into `parts` parts. `least` is x: how many cells of
    a seen key must have an answer; if it is `strict`, a site that does not answer is an error, and that is for cells
    that a site has lost.
    """

    kind: Kind
    parts: int
    replicas: int
    dice: Dice | None
    blank: Blank
    least: int
    strict: bool
    pipelined: bool

    @classmethod
    def of(
        cls,
        kind: Kind,
        slices: int | Sequence[int],
        filter: Filter | Choice | Blank,
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
        blank = filter if isinstance(filter, Blank) else Blank.of(filter)
        counts = _counts(slices, kind)
        strict = isinstance(on_failure, str) and on_failure == "raise"
        if kind == "horizontal":
            if pipelined:
                raise ValueError("pipelined is for filters with the cells of a key on many sites; this is horizontal")
            return cls(kind, 1, counts[0], None, blank, _least(on_failure, 1), strict, False)
        if blank.family not in ("BloomFilter", "TimingBloomFilter"):
            raise ValueError(f"a {kind} filter is cut from a BloomFilter or a TimingBloomFilter, not a {blank.family}")
        parts, replicas = {None: (counts[0], 1), "h-v": counts[::-1], "v-h": counts}[dice]
        # Raises if it cannot be cut, or not into this many.
        like = blank.outline()
        Slice.bounds(like, parts)
        least = _least(on_failure, like.parameters["k"])
        return cls(kind, parts, replicas, dice, blank, least, strict, pipelined)

    @property
    def sites(self) -> int:
        """How many sites there are."""
        return self.parts * self.replicas

    @property
    def slices(self) -> int | tuple[int, int]:
        """S, or for a diced filter S and S'."""
        if self.dice is None:
            return self.sites
        return (self.replicas, self.parts) if self.dice == "h-v" else (self.parts, self.replicas)

    @property
    def manifest(self) -> dict[str, Any]:
        """What every producer must know to be another one of this filter, of JSON's types."""
        slices = self.slices if isinstance(self.slices, int) else list(self.slices)
        return {"kind": self.kind, "slices": slices, "dice": self.dice, **self.blank.manifest}

    @classmethod
    def of_manifest(cls, manifest: Mapping[str, Any], *, on_failure: OnFailure, pipelined: bool) -> "Slicing":
        """Make it again; a ValueError if the manifest is no sliced filter's."""
        given = dict(manifest)
        kind, slices, dice = (given.pop(name, None) for name in ("kind", "slices", "dice"))
        if kind is None:
            raise ValueError(f"the sites hold no sliced filter, but {manifest}")
        return cls.of(
            kind,
            slices if isinstance(slices, int) else tuple(slices),
            Blank(given),
            dice=dice,
            on_failure=on_failure,
            pipelined=pipelined,
        )

    def contents(self) -> list[Callable[[], Contents]]:
        """Give the makers of the contents of each site."""
        if self.kind == "horizontal":
            return [partial(Whole, self.blank)] * self.sites
        return [partial(Part, self.blank, site % self.parts, self.parts) for site in range(self.sites)]

    def over(self, exchange: Exchange, like: FilterSpec) -> Horizontal | Cells:
        """Give the routing for a producer; `like` is one of the filters."""
        if self.kind == "horizontal":
            return Horizontal(exchange, self.least)
        ranges = Ranges(like, self.parts, self.replicas, each=self.dice == "v-h")
        return Cells(exchange, like, ranges, least=self.least, pipelined=self.pipelined)


def _counts(slices: int | Sequence[int], kind: Kind) -> tuple[int, ...]:
    wanted = 2 if kind == "diced" else 1
    given = (slices,) if hasattr(slices, "__index__") else slices
    if not isinstance(given, tuple | list) or len(given) != wanted or not all(hasattr(n, "__index__") for n in given):
        form = "two numbers, (S, S')" if wanted == 2 else "one number"
        raise TypeError(f"slices of a {kind} filter must be {form}, got {slices!r}")
    counts = tuple(int(n) for n in given)
    if min(counts) < 1 or math.prod(counts) > MOST_SITES:
        raise ValueError(f"slices must be at least 1, and at most {MOST_SITES} in all, got {slices!r}")
    return counts


def _least(on_failure: OnFailure, k: int) -> int:
    # With "raise" only writes that a site has lost are left to decide on: as in a horizontal filter, they are new.
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
