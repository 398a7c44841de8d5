"""The ways to slice a filter over several sites, side by side, and the one to take."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, cast

from lately._core import Filter, expected_messages, slice_capacity
from lately._families import FAMILIES
from lately._plan import Choice, choice
from lately._plan import plan as plan_one
from lately._table import Table, assigned
from lately.distributed._slices.sliced import SlicedFilter
from lately.distributed._slices.slicing import Arranged, Dice, Kind, rates

_KEY, _CELL = 8 + 4 + 8, 4
"""Bytes sent for a key: itself, its place in the batch, its moment. For a cell: itself."""


@dataclass(frozen=True)
class Way:
    """One way to slice a filter, in figures.

    Attributes
    ----------
    name : str
        How it is sliced, and the family.
    kind, slices, dice
        As `SlicedFilter` takes them.
    choice : Choice
        The filter that it takes, in figures.
    nbytes_site, nbytes : int
        Bytes of the cells of a site, at most, and of all.
    fpr : float
        Chance that a key never inserted is reported while all sites answer, at the worst phase and planned load.
    duplicate : float
        The same while `failures` sites fail, and their keys count as seen.
    distinct : float
        Chance that a key of the window is missed if they count as new.
    least : int
        x with the least sum of both rates: the `on_failure` to take.
    least_fpr, least_fnr : float
        Both, with that.
    failures : int
        How many sites fail in these figures. If none may, one that does is an error (`on_failure`).
    messages : float
        Sites that a key is sent to, if it were sent alone; keys of a batch share messages.
    bits : int
        Bits sent for a key that comes with its moment. Horizontal: 64 are its hash, the others its place in the batch
        and its time. Else 32 are the number of each of its cells, for which paper 4 (section 2) counts k log2 m in
        all; where the keys of a batch are of several generations, there are 8 more.
    """

    name: str
    kind: Kind
    slices: int | tuple[int, int]
    dice: Dice | None
    choice: Choice
    nbytes_site: int
    nbytes: int
    fpr: float
    duplicate: float
    distinct: float
    least: int
    least_fpr: float
    least_fnr: float
    failures: int
    messages: float
    bits: int

    @cached_property
    def filter(self) -> Filter:
        """The filter that it takes, empty; made when it is first needed."""
        return self.choice.build()

    def build(self, **options: Any) -> SlicedFilter:
        """Start it, on sites of this process by default (`SlicedFilter`)."""
        given: dict[str, Any] = {"dice": self.dice}
        if self.failures:
            given["on_failure"] = self.least
        return SlicedFilter(self.kind, self.slices, self.choice, **(given | options))


class SlicedPlan(Table):
    """The ways to slice a filter, and the one to take.

    Attributes
    ----------
    choices : tuple of Way
        The fewest bytes of a site first.
    best : Way
        The one to take.
    reason : str
        Why.
    refused : dict of str to str
        What cannot be sliced that way, and why.
    """

    _attributes: ClassVar[dict[str, Any]] = {
        "filter": lambda way: way.name,
        "parameters": lambda way: assigned(way.choice.parameters),
        "slices": lambda way: str(way.slices),
        "bytes per site": lambda way: way.nbytes_site,
        "bytes": lambda way: way.nbytes,
        "fpr": lambda way: way.fpr,
        "fpr, duplicate": lambda way: way.duplicate,
        "fnr, distinct": lambda way: way.distinct,
        "best x": lambda way: way.least,
        "its fpr": lambda way: way.least_fpr,
        "its fnr": lambda way: way.least_fnr,
        "messages": lambda way: way.messages,
        "bits sent": lambda way: way.bits,
    }
    _columns = tuple(_attributes)

    def __init__(self, choices: list[Way], refused: dict[str, str], *, fastest: str, failures: int, kind: Kind) -> None:
        self.refused = refused
        self.choices = tuple(sorted(choices, key=lambda way: way.nbytes_site))
        horizontal = next(way for way in choices if way.name == f"horizontal {fastest}")
        if kind == "horizontal":
            self.best = horizontal
            self.reason = "a key is one message, and of the families it is the one to take on one machine"
            return
        offered = [way for way in choices if way.kind == kind]
        if not offered:
            raise ValueError(f"kind cannot be {kind!r}: {refused[kind]}")
        self.best = min(offered, key=lambda way: (way.least_fpr + way.least_fnr, way.messages))
        ours, theirs = (way.least_fpr + way.least_fnr for way in (self.best, horizontal))
        self.reason = (
            f"of the {kind} ones it errs least: with {failures} failed its rates of both mistakes add up to "
            f"{ours:.2g}, and those of a horizontal one to {theirs:.2g}"
        )

    def build(self, **options: Any) -> SlicedFilter:
        """Start the one to take; see `Way.build`."""
        return self.best.build(**options)

    def _taken(self) -> str:
        return self.best.name

    def _shown(self) -> list[list[Any]]:
        return [[of(way) for of in self._attributes.values()] for way in self.choices]


def plan(
    window: Any,
    fpr: float,
    *,
    capacity: int,
    sites: int,
    failures: int = 0,
    kind: Kind = "horizontal",
    slack: Any = None,
    lateness: Any = None,
) -> SlicedPlan:
    """Put the ways to slice a filter over several sites side by side, and choose the one to take.

    Parameters
    ----------
    window : span of time
        What "lately" means, such as ``"10min"``. Several sites share no count of insertions.
    fpr : float
        Greatest allowed chance of reporting a key never inserted while all sites answer.
    capacity : int
        Keys expected within the window, at all sites together.
    sites : int
        How many sites the filter is to run on.
    failures : int, default 0
        How many of them may fail at a time.
    kind : {"horizontal", "vertical", "diced"}, default "horizontal"
        Which kind to take the best of. A vertical one errs less while sites fail, and for each key it sends several
        times as much, one producer at a time; so it is only taken on request.
    slack : span of time, optional
        Longest that a key may still be reported after leaving the window. The default is half the window.
    lateness : span of time, optional
        How far times may step back.

    Returns
    -------
    SlicedPlan
        A table of the rates of both mistakes, messages and bits sent, with the one to take and the reason: the
        horizontal filter of the family to take on one machine, or of another `kind` the one that errs least. `build`
        makes it.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range, or no filter meets the request; the message gives the reason of each.

    See Also
    --------
    lately.plan : The filters of one machine side by side.

    Examples
    --------
    >>> sliced = lately.distributed.plan("10min", 0.001, capacity=1_000_000, sites=12, failures=1)
    >>> sliced.best.kind, sliced.best.least
    ('horizontal', 0)
    >>> sliced = lately.distributed.plan("10min", 0.001, capacity=1_000_000, sites=12, failures=1, kind="vertical")
    >>> sliced.best.name, sliced.best.least
    ('vertical timing', 0)
    """
    if hasattr(window, "__index__"):
        raise ValueError(
            f"window counts {window} insertions, which several sites share no count of: take a span of time"
        )
    if kind not in ("horizontal", "vertical", "diced"):
        raise ValueError(f"kind must be 'horizontal', 'vertical' or 'diced', got {kind!r}")
    if sites < 1:
        raise ValueError(f"sites must be at least 1, got {sites}")
    if not 0 <= failures < sites:
        raise ValueError(f"failures must lie in 0 .. {sites - 1}, fewer than the sites, got {failures}")
    optional = {"slack": slack, "lateness": lateness}
    request = {name: value for name, value in optional.items() if value is not None}
    of_site = plan_one(window, fpr, capacity=slice_capacity(capacity, sites), **request)
    refused = dict(of_site.refused)
    choices = []
    for of_slice in of_site.choices:
        family = FAMILIES[of_slice.name]
        if family.baseline or not family.promise:
            refused[of_slice.name] = "is there to be compared with, on one machine"
        else:
            choices.append(_way("horizontal", (sites, 1), of_slice, failures))

    def timers(slices: int) -> Choice:
        """The filter for the keys of one slice."""
        keys = capacity if slices == 1 else slice_capacity(capacity, slices)
        return choice("timing", window, fpr=fpr, capacity=keys, **request)

    choices.append(_way("vertical", (sites, 1), timers(1), failures))
    if (inner := _divisor(sites)) > 1:
        outer = sites // inner
        choices += [
            _way("h-v", (outer, inner), timers(outer), failures),
            _way("v-h", (outer, inner), timers(inner), failures),
        ]
    else:
        refused["diced"] = f"{sites} sites are no product"
    return SlicedPlan(choices, refused, fastest=of_site.best.name, failures=failures, kind=kind)


def _way(arranged: Arranged, slices: tuple[int, int], choice: Choice, failures: int) -> Way:
    outer, inner = slices
    alone = arranged == "horizontal"
    k = 1 if alone else choice.parameters["k"]
    mistakes = [rates(arranged, k, slices, failures, choice.fpr, x) for x in range(k + 1)]
    least = min(range(k + 1), key=lambda x: sum(mistakes[x]))
    # To test and to set is one message.
    messages = 1.0 if alone else expected_messages(arranged, k, outer, inner=inner, partitioned=True)
    filters = {"horizontal": outer, "vertical": 1, "h-v": outer, "v-h": inner}[arranged]
    parts = outer * inner // filters
    diced = arranged in ("h-v", "v-h")
    family = choice.name if alone else "timing"
    return Way(
        name=f"{arranged} {family}",
        kind=cast("Kind", "diced" if diced else arranged),
        slices=slices if diced else outer,
        dice=cast("Dice", arranged) if diced else None,
        choice=choice,
        nbytes_site=8 * -(-choice.nbytes // 8 // parts),
        nbytes=choice.nbytes * filters,
        fpr=choice.fpr,
        duplicate=mistakes[0][0],
        distinct=mistakes[k][1],
        least=least,
        least_fpr=mistakes[least][0],
        least_fnr=mistakes[least][1],
        failures=failures,
        messages=messages,
        bits=8 * (_KEY if alone else k * _CELL),
    )


def _divisor(sites: int) -> int:
    """The greatest divisor up to the root."""
    return max(n for n in range(1, math.isqrt(sites) + 1) if sites % n == 0)
