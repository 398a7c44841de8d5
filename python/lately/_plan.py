"""`plan`: the filters that meet a request, side by side, and the one to take."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from lately import _core
from lately._core import FilterSpec
from lately._families import EVERY, FAMILIES, Family, whole, without_none
from lately._sample_ages import Ages
from lately._table import Table, assigned
from lately.filters import Filter


@dataclass(frozen=True)
class Choice:
    """A filter that meets a request, in figures: a row of `Plan`.

    Attributes
    ----------
    name : str
        Name of the family, followed by its options, such as the bits of a block.
    parameters : dict of str to int
        Parameters of the paper.
    bits_per_key : float
        Bits of the cells per key of a full window.
    nbytes : int
        Bytes of the cells.
    fpr : float
        Chance that a key that was never inserted is reported, at the worst phase, exactly in expectation. For an aged
        cuckoo filter it is a bound.
    slack : int or float
        How long after leaving the window a key may still be reported, in insertions or seconds; may be infinite.
    npws : float
        Highest number of keys that are reported in the slack, divided by the window (paper 1, definition 2).
    insert, hit, miss : float
        Number of cache lines that an insertion writes, and that a query reads for a key that is reported, and for one
        that is not.
    accesses : dict of str to float, or None
        Expected number of slices that a query by algorithm 1 of paper 1 reads, by its result; None without such slices.
    guarantees : str
        Whether a key of the window may be missed, whether the window is exact, and other notes.
    dropped_in_slack : float or None
        Among the records of the sample whose key is new or older than the window, the share whose key is in the slack.
        This share may be taken for repeats, in addition to `fpr`. None without a sample.
    """

    name: str
    parameters: dict[str, int]
    bits_per_key: float
    nbytes: int
    fpr: float
    slack: int | float
    npws: float
    insert: float
    hit: float
    miss: float
    accesses: dict[str, float] | None
    guarantees: str
    dropped_in_slack: float | None
    _family: Family = field(repr=False, compare=False)
    _given: dict[str, Any] = field(repr=False, compare=False)

    def build(self) -> Filter:
        """Make this filter, empty."""
        return self._family.make(**self._given)

    def spec(self) -> FilterSpec:
        """Return the parameters of this filter as an object without cells, for `lately.distributed`."""
        return FilterSpec(self._family.name, **self._given)


class Plan(Table):
    """Table of the filters that meet a request, with the one to take. `plan` returns it.

    It is a sequence of its choices: ``plan[0]`` is the first, and ``plan["swamp"]`` the one of this name.

    Attributes
    ----------
    choices : tuple of Choice
        The filters that meet the request: the smallest first, or with `nbytes` the lowest rate first.
    best : Choice
        The filter to take.
    reason : str
        Why to take it.
    refused : dict of str to str
        For each family that cannot meet the request, the reason.
    """

    _columns = ("filter", "parameters", "bits per key", "bytes", "fpr", "slack", "NPWS", "insert", "hit", "miss")
    best: Choice

    def __init__(self, choices: list[Choice], refused: dict[str, str], best: Choice, reason: str) -> None:
        self.choices = tuple(choices)
        self.refused = refused
        self.best = best
        self.reason = reason
        dropped = () if best.dropped_in_slack is None else ("dropped in slack",)
        self._columns = (*Plan._columns, *dropped, "guarantees")

    def __len__(self) -> int:
        return len(self.choices)

    def __iter__(self) -> Iterator[Choice]:
        return iter(self.choices)

    def __getitem__(self, which: int | str) -> Choice:
        """Return a choice by its place or its name; raise `KeyError` with the reason for a family that is refused."""
        if isinstance(which, str):
            found = next((choice for choice in self.choices if choice.name == which), None)
            if found is None:
                raise KeyError(f"{which}: {self.refused.get(which, 'no such family')}")
            return found
        return self.choices[which]

    def build(self) -> Filter:
        """Make the filter to take, empty.

        Returns
        -------
        Filter
            The filter that `lately.Filter` makes of the same request.

        Examples
        --------
        >>> f = lately.plan(window=1_000_000, fpr=0.01).build()
        >>> f.fpr <= 0.01
        True
        """
        return self.best.build()

    def _shown(self) -> list[list[Any]]:
        rows: list[list[Any]] = []
        for one in self.choices:
            sizes = [one.bits_per_key, one.nbytes, one.fpr, one.slack, one.npws, one.insert, one.hit, one.miss]
            dropped = [] if one.dropped_in_slack is None else [f"{one.dropped_in_slack:.3%}"]
            rows.append([one.name, assigned(one.parameters), *sizes, *dropped, one.guarantees])
        return rows


def _reason(best: Choice, request: dict[str, Any]) -> str:
    """Return why the rule of `src/family/rule.rs` takes this filter."""
    if best.name == "aged-cuckoo" and request["prefer"] != "memory":
        follows = (
            "" if isinstance(best.slack, int) or "nbytes" in request["limits"] else "; its memory follows the keys"
        )
        return f"it is fast and has few bytes with a slack of {_span(best.slack)}{follows}"
    if FAMILIES[best.name].windows == "unknown rate":
        return "its memory follows the unknown rate of keys; it begins with these bytes"
    goal = "the lowest rate of false positives in these bytes" if "nbytes" in request["limits"] else "the fewest bytes"
    if request["prefer"] == "speed" and best.name.startswith("age-partitioned"):
        return "it is the fastest, at the price of its slack"
    if request["prefer"] == "memory":
        return f"it has {goal}, at the price of its slack"
    return f"the default cannot meet this request, and it has {goal} with a slack of {_span(best.slack)}"


def _span(slack: float) -> str:
    return f"{slack:,} keys" if isinstance(slack, int) else f"{slack:g} s"


def plan(
    window: Any,
    fpr: float | None = None,
    *,
    nbytes: int | None = None,
    slack: Any = None,
    capacity: int | None = None,
    lateness: Any = None,
    prefer: Literal["speed", "memory", "exact"] | None = None,
    sample: Any = None,
    at: Any = None,
) -> Plan:
    """Compare the filters that meet a request, and choose the one that `lately.Filter` makes.

    Parameters
    ----------
    window, fpr
        As in `Filter`.
    nbytes : int
        Greatest number of bytes. Every filter then has its lowest rate in them.
    slack : int or span of time, optional
        Longest time for which a key may still be reported after it has left the window. The default is 1/64 of the
        window for each family that has it in at most 16 bytes per key. Other families are listed with their own slack,
        at most half the window. The stable filter has no bound, and ignores this.
    capacity : int, optional
        For a window of time: the keys expected within it at the highest rate. Without it only filters whose memory
        follows the keys meet the request.
    lateness
        As in `Filter`.
    prefer
        As in `Filter`.
    sample : array-like, Series, column or frame, optional
        Successive keys of the stream. The table then has, for each filter, the share of the records with a new key, or
        one older than the window, that its slack may drop.
    at : array-like of times, optional
        When each key of `sample` came. A window of time needs it.

    Returns
    -------
    Plan
        A table, with the filter to take and the reason. `build` makes that filter, which is the one that
        `lately.Filter` makes of the same request. Filters that may miss a key of the window, or that search all of
        their memory, are listed for comparison and never taken. Only `build` allocates memory for cells, so a plan may
        be for a larger machine.

    Raises
    ------
    ValueError, TypeError
        If no filter meets the request; the message gives the reason for each family.

    See Also
    --------
    Filter : Makes the filter that the plan takes.
    tune : For mistakes of different costs: finds the filter whose mistakes cost least on a sample of the stream.

    Examples
    --------
    >>> plan = lately.plan(window=1_000_000, fpr=0.01)
    >>> plan.best.name, plan.best.slack
    ('aged-cuckoo', 15625)
    >>> plan.build()
    <AgedCuckooFilter window=1000000 fpr=5.47e-3 ...>
    >>> lately.plan(1000, 0.01, sample=[1, 2, 3] * 1000).best.dropped_in_slack
    0.0
    """
    if prefer == "exact":
        raise ValueError(
            "prefer must be 'speed' or 'memory', got 'exact', which leaves nothing to plan: call lately.ExactFilter"
        )
    window, limits = whole(window), {"fpr": fpr, "nbytes": nbytes, "capacity": capacity, "lateness": lateness}
    ages = None if sample is None else Ages(sample, at, timed=not hasattr(window, "__index__"))
    taken, able, refused = _core.compare(prefer=prefer, window=window, slack=slack, **limits)
    choices = [
        _choice(name, window, without_none(limits | {"slack": least}), figures, ages) for name, least, figures in able
    ]
    choices.sort(key=lambda choice: choice.fpr if nbytes is not None else choice.nbytes)
    best = next(choice for choice in choices if choice.name == taken)
    request = {"prefer": prefer, "slack": slack, "limits": without_none(limits)}
    return Plan(choices, refused, best, _reason(best, request))


def _choice(name: str, window: Any, request: dict[str, Any], figures: dict[str, Any], ages: Ages | None) -> Choice:
    family = FAMILIES[name]
    no_miss = "no miss, exact" if figures["slack"] == 0 else "no miss"
    kept = no_miss if family.promise else "may miss"
    lines = figures.pop("cache_lines")
    return Choice(
        name=name,
        **figures,
        **lines,
        guarantees=f"{kept}; {family.note}" if family.note else kept,
        dropped_in_slack=None if ages is None else ages.share(window, figures["slack"]),
        _family=family,
        _given={"window": window, **request},
    )


def family_of(filter: object) -> Family:
    """Return the family that a caller names: by its name, by a class, or by a row of `lately.plan`."""
    name = filter.name if isinstance(filter, Choice) else filter
    if isinstance(name, str):
        if name not in EVERY:
            raise ValueError(f"filter must be one of {', '.join(FAMILIES)}; got {name!r}")
        return EVERY[name]
    if isinstance(filter, type) and issubclass(filter, Filter) and filter is not Filter:
        return Family(filter)
    if isinstance(filter, Filter):
        raise TypeError("filter must be a name or a class, got a filter: call its own method duplicated")
    got = filter.__name__ if isinstance(filter, type) else type(filter).__name__
    raise TypeError(
        f'filter must be a name, such as "swamp", a class, such as lately.Swamp, or a row of lately.plan; got {got}'
    )
