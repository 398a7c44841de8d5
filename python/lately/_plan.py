"""The filters that meet a request, side by side, and the one to take."""

from dataclasses import dataclass, field
from typing import Any, Literal

from lately import _core
from lately._choose import given
from lately._core import FilterSpec
from lately._dropped import Ages
from lately._families import EVERY, FAMILIES, Family, whole
from lately._table import Table, assigned
from lately.filters import Filter


@dataclass(frozen=True)
class Choice:
    """One filter that meets a request, in figures.

    Attributes
    ----------
    name : str
        Its family, and the bits of a block where it has blocks.
    parameters : dict of str to int
        Those of its paper.
    bits_per_key : float
        Bits of its cells per key of a full window.
    nbytes : int
        Bytes of its cells.
    fpr : float
        Chance that a key never inserted is reported, at the worst phase; exact in expectation.
    slack : int or float
        How long after leaving the window a key may still be reported, in insertions or seconds; infinite if forever.
    npws : float
        Keys reported in the slack, over the window, at the peak (paper 1, definition 2).
    insert, hit, miss : float
        Cache lines that an insertion writes, and that a query reads of a key that is reported and of one that is not.
    accesses : dict of str to float, or None
        Slices that a query by Algorithm 1 of paper 1 is expected to read, by what it finds; None without such slices.
    guarantees : str
        Whether a key of the window may be missed, whether the window is exact, and what else to know.
    dropped_in_slack : float or None
        Of the records of the sample whose key is new or older than the window, the share whose key is in the slack: at
        most that many more than by `fpr` are taken for repeats. None without a sample.
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
        """Make the filter, empty."""
        return self._family.make(**self._given)

    def outline(self) -> FilterSpec:
        """Return a description of the filter, without its cells."""
        return FilterSpec(self._family.family, **self._family.given(**self._given))


class Plan(Table):
    """The filters that meet a request, the best for it first (smallest, or least rate), and the one to take.

    Attributes
    ----------
    choices : tuple of Choice
        The filters that meet the request.
    best : Choice
        The one to take.
    reason : str
        Why.
    refused : dict of str to str
        The others, and why they cannot.
    """

    _columns = ("filter", "parameters", "bits per key", "bytes", "fpr", "slack", "NPWS", "insert", "hit", "miss")

    def __init__(self, choices: list[Choice], refused: dict[str, str], best: Choice, reason: str) -> None:
        self.choices = tuple(choices)
        self.refused = refused
        self.best = best
        self.reason = reason
        dropped = () if best.dropped_in_slack is None else ("dropped in slack",)
        self._columns = (*Plan._columns, *dropped, "guarantees")

    def build(self) -> Filter:
        """Make the filter to take, empty.

        Examples
        --------
        >>> f = lately.plan(window=1_000_000, fpr=0.01).build()
        >>> f.fpr <= 0.01
        True
        """
        return self.best.build()

    def _taken(self) -> str:
        return self.best.name

    def _shown(self) -> list[list[Any]]:
        return [_row(choice) for choice in self.choices]


def _row(choice: Choice) -> list[Any]:
    sizes = [choice.bits_per_key, choice.nbytes, choice.fpr, choice.slack, choice.npws]
    dropped = [] if choice.dropped_in_slack is None else [f"{choice.dropped_in_slack:.3%}"]
    lines = [choice.insert, choice.hit, choice.miss]
    return [choice.name, assigned(choice.parameters), *sizes, *lines, *dropped, choice.guarantees]


def _reason(best: Choice, choices: list[Choice], request: dict[str, Any]) -> str:
    """Explain why the rule of `_choose` takes a filter."""
    if FAMILIES[best.name].windows == "unknown rate":
        return "its memory follows the rate of keys, which is not known; the bytes given are those it begins with"
    goal = "the least rate of false positives in these bytes" if "nbytes" in request["limits"] else "the fewest bytes"
    if request["prefer"] == "speed":
        return "it is the fastest, for which its slack is the price"
    if request["prefer"] == "memory":
        return f"it has {goal}, for which its slack is the price"
    if request["slack"] is not None:
        return "it moves the fewest cache lines of those at most half as large again as the smallest with this slack"
    if best.name.startswith("age-partitioned"):
        return "it is the fastest, and less slack would cost more than 16 bytes a key"
    lines = next((one for one in choices if one.name == "age-partitioned-line"), best)
    return (
        f"of those with least slack, {_span(best.slack)}, it has {goal}, {best.nbytes:,}; prefer='speed' takes "
        f"{lines.name}, {lines.nbytes:,} bytes with a slack of {_span(lines.slack)}"
    )


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
    prefer: Literal["speed", "memory"] | None = None,
    sample: Any = None,
    at: Any = None,
) -> Plan:
    """Put the filters that meet a request side by side, and choose the one that `lately.Filter` makes.

    Parameters
    ----------
    window : int or span of time
        What "lately" means: the last `window` insertions, or a span of time such as ``"10min"``.
    fpr : float, optional
        Greatest allowed chance of reporting a key never inserted. Give this or `nbytes`.
    nbytes : int
        Most bytes to use: every filter then has the least rate that fits.
    slack : int or span of time, optional
        Longest that a key may still be reported after leaving the window. The default is 1/64 of the window for each
        family that keeps it in 16 bytes a key; others are listed with their own slack, at most half the window. The
        stable filter, which never surely forgets a key, ignores it.
    capacity : int, optional
        Keys expected within a window of time. Without it only the time-limited filter will do, whose memory follows the
        rate.
    lateness : span of time, optional
        For a window of time, how far times may step back.
    prefer : {"speed", "memory"}, optional
        As for `lately.Filter`.
    sample : array-like, Series, column or frame, optional
        Successive keys of the stream. The table then states, for each filter, which share of the records that are new
        or older than the window its slack may drop.
    at : array-like of times, optional
        For a window of time with a sample: when each key came.

    Returns
    -------
    Plan
        A table, with the filter to take and the reason; `build` makes it. It is the filter that `lately.Filter` makes
        of the same request. Filters that may miss a key of the window, or search all of their memory, are listed for
        comparison, and not taken. No cells are allocated before `build`, so a plan may be for another, larger machine.

    Raises
    ------
    ValueError, TypeError
        If no filter meets the request; the message says why each does not.

    See Also
    --------
    Filter : The filter that the plan takes, in one line.
    tune : If the two kinds of mistakes cost differently and you have a sample of the stream: the filter whose mistakes
        cost least on it, in a given number of bytes.
    lately.distributed.plan : For a filter on several sites.

    Examples
    --------
    >>> plan = lately.plan(window=1_000_000, fpr=0.01)
    >>> plan.best.name, plan.best.slack
    ('aged-quotient', 8414)
    >>> plan.build()
    <AgedQuotientFilter window=1000000 fpr=9.01e-3 ...>
    >>> lately.plan(1000, 0.01, sample=[1, 2, 3] * 1000).best.dropped_in_slack
    0.0
    """
    window, limits = whole(window), {"fpr": fpr, "nbytes": nbytes, "capacity": capacity, "lateness": lateness}
    ages = None if sample is None else Ages(sample, at, timed=not hasattr(window, "__index__"))
    taken, able, refused = _core.compare(prefer, window=window, slack=slack, **limits)
    choices = [_choice(name, window, given(limits | {"slack": least}), figures, ages) for name, least, figures in able]
    choices.sort(key=lambda choice: choice.fpr if nbytes is not None else choice.nbytes)
    best = next(choice for choice in choices if choice.name == taken)
    request = {"prefer": prefer, "slack": slack, "limits": given(limits)}
    return Plan(choices, refused, best, _reason(best, choices, request))


def choice(name: str, window: Any, slack: Any = None, **limits: Any) -> Choice:
    """Plan a filter of a family, and record its figures. No cells are allocated."""
    family = FAMILIES[name]
    bounded = slack is not None and family.takes("slack")
    request = limits | {"slack": slack} if bounded else limits
    figures = family.plan(window, **request)
    if slack is not None and not bounded and figures["slack"] > slack:
        raise ValueError(f"slack must be at least {figures['slack']} for {name}, which cannot bound it; got {slack}")
    return _choice(name, window, request, figures, None)


def _choice(name: str, window: Any, asked: dict[str, Any], figures: dict[str, Any], ages: Ages | None) -> Choice:
    family = FAMILIES[name]
    no_miss = "no miss, exact" if figures["slack"] == 0 else "no miss"
    kept = no_miss if family.promise else "may miss"
    lines = figures["cache_lines"]
    return Choice(
        name=name,
        **lines,
        **{figure: value for figure, value in figures.items() if figure != "cache_lines"},
        guarantees=f"{kept}; {family.note}" if family.note else kept,
        dropped_in_slack=None if ages is None else ages.share(window, figures["slack"]),
        _family=family,
        _given={"window": window, **asked},
    )


def family_of(filter: object) -> Family:
    """Family that a user names: by its name, by a class, or by a row of `lately.plan`.

    Raises
    ------
    ValueError
        If there is no family of that name.
    TypeError
        If it is something else, or a filter that is made already.
    """
    name = filter.name if isinstance(filter, Choice) else filter
    if isinstance(name, str):
        if name not in EVERY:
            raise ValueError(f"filter must be one of {', '.join(FAMILIES)}; got {name!r}")
        return EVERY[name]
    if isinstance(filter, type) and issubclass(filter, Filter) and filter is not Filter:
        return Family(filter)
    if isinstance(filter, Filter):
        raise TypeError("filter must be a name or a class; one that is made has a duplicated of its own")
    got = filter.__name__ if isinstance(filter, type) else type(filter).__name__
    raise TypeError(
        f'filter must be a name, such as "swamp", a class, such as lately.Swamp, or a row of lately.plan; got {got}'
    )
