"""The filters that meet a request, side by side, and the one to take."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from lately._core import Outline
from lately._families import EVERY, FAMILIES, Family, unsuited, whole
from lately._table import Table, assigned
from lately.filters import Filter

DEARER = 1.5
"""A filter up to this many times as large as the smallest may be taken because it is faster."""

_One = TypeVar("_One")


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
    guarantees : str
        Whether a key of the window may be missed, whether the window is exact, and what else to know.
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
    guarantees: str
    _family: Family = field(repr=False, compare=False)
    _given: dict[str, Any] = field(repr=False, compare=False)

    def build(self) -> Filter:
        """Make the filter, empty."""
        return self._family.make(**self._given)

    def outline(self) -> Outline:
        """Give what it is, without its cells."""
        return Outline(self._family.family, **self._family.given(**self._given))


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

    _columns: ClassVar[list[str]] = [
        "filter",
        "parameters",
        "bits per key",
        "bytes",
        "fpr",
        "slack",
        "NPWS",
        "insert",
        "hit",
        "miss",
        "guarantees",
    ]

    def __init__(self, choices: list[Choice], refused: dict[str, str], *, fixed_bytes: bool) -> None:
        self.refused = refused
        self.choices = tuple(sorted(choices, key=lambda choice: choice.fpr if fixed_bytes else choice.nbytes))
        # A baseline is taken only if nothing else is left.
        real = [choice for choice in self.choices if not FAMILIES[choice.name].baseline] or self.choices
        first = real[0]
        if FAMILIES[first.name].windows == "unknown rate":
            self.best = first
            self.reason = (
                "its memory follows the rate of keys, which nobody stated; the bytes given are those it begins with"
            )
            return
        if fixed_bytes:
            self.best = first
            self.reason = "it has the least rate of false positives in these bytes; lately.tune weighs what they cost"
            return
        self.best = fewest_lines(real, lambda choice: (choice.nbytes, _lines(choice)))
        if self.best is first:
            self.reason = "it is the smallest, and none that is up to half as large again moves fewer cache lines"
        else:
            self.reason = (
                f"it moves {_lines(self.best):.1f} cache lines for a new key where the smallest, {first.name}, "
                f"moves {_lines(first):.1f}, at {self.best.nbytes / first.nbytes:.2f} times its memory"
            )

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
        return [
            [
                choice.name,
                assigned(choice.parameters),
                choice.bits_per_key,
                choice.nbytes,
                choice.fpr,
                choice.slack,
                choice.npws,
                choice.insert,
                choice.hit,
                choice.miss,
                choice.guarantees,
            ]
            for choice in self.choices
        ]


def fewest_lines(some: Sequence[_One], cost: Callable[[_One], tuple[int, float]]) -> _One:
    """Take the one that moves the fewest lines among those that are at most `DEARER` times as large as the smallest.

    `cost` gives bytes, and lines moved for a new key; of equals the first is taken.
    """
    costs = [cost(one) for one in some]
    least = min(nbytes for nbytes, _ in costs)
    _, place = min((lines, i) for i, (nbytes, lines) in enumerate(costs) if nbytes <= DEARER * least)
    return some[place]


def _lines(choice: Choice) -> float:
    """Cache lines moved for a new key: looked up, then inserted."""
    return choice.miss + choice.insert


def plan(
    window: Any,
    fpr: float | None = None,
    *,
    nbytes: int | None = None,
    slack: Any = None,
    capacity: int | None = None,
    lateness: Any = None,
) -> Plan:
    """Put the filters that meet a request side by side, and say which to take.

    Parameters
    ----------
    window : int or span of time
        What "lately" means: the last `window` insertions, or a span of time such as ``"10min"``.
    fpr : float, optional
        Greatest allowed chance of reporting a key never inserted. Give this or `nbytes`.
    nbytes : int
        Most bytes to use: every filter then has the least rate that fits.
    slack : int or span of time, optional
        Longest that a key may still be reported after leaving the window. The default is half the window. The stable
        filter, which never surely forgets a key, ignores it.
    capacity : int, optional
        Keys expected within a window of time. Without it only the time-limited filter will do, whose memory follows the
        rate.
    lateness : span of time, optional
        For a window of time, how far times may step back.

    Returns
    -------
    Plan
        A table, with the filter to take and the reason; `build` makes it. With `nbytes` it is the one of the least
        rate. With `fpr` it is the one that moves the fewest cache lines among those at most half as large again as the
        smallest. Filters that may miss a key of the window, or search all of their memory, are listed for comparison,
        and not taken. No cells are allocated before `build`, so a plan may be for another, larger machine.

    Raises
    ------
    ValueError, TypeError
        If no filter meets the request; the message says why each does not.

    See Also
    --------
    Filter : One line for the fastest filter, or the smallest.
    tune : If the two kinds of mistakes cost differently and you have a sample of the stream: the filter whose mistakes
        cost least on it, in a given number of bytes.
    lately.distributed.plan : For a filter on several sites.

    Examples
    --------
    >>> plan = lately.plan(window=1_000_000, fpr=0.01)
    >>> plan.best.name
    'age-partitioned-line'
    >>> plan.build()
    <AgePartitionedBloomFilter window=1000000 fpr=9.94e-3 ...>
    """
    window = whole(window)
    timed, unknown = kind_of(window, capacity, fpr, nbytes)
    request = asked_of(fpr=fpr, nbytes=nbytes, capacity=capacity, lateness=lateness)
    choices: list[Choice] = []
    refused: dict[str, str] = {}
    errors: list[str] = []
    for name, family in FAMILIES.items():
        if why := unsuited(family, timed=timed, unknown=unknown):
            refused[name] = why
            continue
        try:
            choices.append(choice(name, window, slack, **request))
        except ValueError as error:
            refused[name] = str(error)
            errors.append(str(error))
    if not choices:
        raise ValueError("; ".join(dict.fromkeys(errors)))
    return Plan(choices, refused, fixed_bytes=nbytes is not None)


def kind_of(window: Any, capacity: object, fpr: object, nbytes: object) -> tuple[bool, bool]:
    """Tell whether a window is one of time, and whether nobody knows how many keys it holds."""
    timed = not hasattr(window, "__index__")
    unknown = timed and capacity is None
    if unknown and (fpr is None or nbytes is not None):
        raise ValueError(
            "a window of time without capacity needs fpr, and no nbytes: its memory follows the rate of keys"
        )
    return timed, unknown


def asked_of(**given: Any) -> dict[str, Any]:
    """What was given of a request."""
    return {name: value for name, value in given.items() if value is not None}


def choice(name: str, window: Any, slack: Any = None, **request: Any) -> Choice:
    """Plan a filter of a family, and record its figures. No cells are allocated."""
    family = FAMILIES[name]
    asked, figures = figures_of(family, window, slack, request)
    no_miss = "no miss, exact" if figures["slack"] == 0 else "no miss"
    kept = no_miss if family.promise else "may miss"
    return Choice(
        name=name,
        **figures.pop("cache_lines"),
        **figures,
        guarantees=f"{kept}; {family.note}" if family.note else kept,
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


def figures_of(
    family: Family, window: Any, slack: Any, request: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plan a filter of a family: what to ask it for, and its figures."""
    bounded = slack is not None and family.takes("slack")
    asked = request | {"slack": slack} if bounded else request
    figures = family.plan(window, **asked)
    if slack is not None and not bounded and figures["slack"] > slack:
        raise ValueError("its slack cannot be bounded")
    return asked, figures
