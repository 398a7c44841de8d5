"""The filters that meet a request, side by side, and the one to take."""

import html
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

from lately._core import (
    AgePartitionedBloomFilter,
    Filter,
    GuardedEpochBloomFilter,
    Swamp,
    TimeLimitedBloomFilter,
    TimingBloomFilter,
)

_FAMILIES: dict[str, Callable[..., Filter]] = {
    "age-partitioned": AgePartitionedBloomFilter,
    "age-partitioned, blocks of a word": partial(AgePartitionedBloomFilter, block_bits=64),
    "age-partitioned, blocks of a line": partial(AgePartitionedBloomFilter, block_bits=512),
    "guarded epochs": GuardedEpochBloomFilter,
    "guarded epochs, blocks of a word": partial(GuardedEpochBloomFilter, block_bits=64),
    "guarded epochs, blocks of a line": partial(GuardedEpochBloomFilter, block_bits=512),
    "timers": TimingBloomFilter,
}

# Exact windows of insertions, which have no slack to bound.
_EXACT: dict[str, Callable[..., Filter]] = {"SWAMP": Swamp}

# For windows of time of which nobody says how many keys they hold.
_UNKNOWN_RATE: dict[str, Callable[..., Filter]] = {"time-limited": TimeLimitedBloomFilter}

# What a filter may cost in memory, over the smallest, to be taken because it is faster.
_DEARER = 1.5


@dataclass(frozen=True)
class Choice:
    """One filter that meets a request, in figures.

    Attributes
    ----------
    name : str
        Its family and layout.
    parameters : dict of str to int
        Those of its paper.
    bits_per_key : float
        Bits of its cells per key of a full window.
    nbytes : int
        Bytes of its cells.
    fpr : float
        Chance that a key never inserted is reported, at the worst phase; exact in expectation.
    slack : int or float
        How long after leaving the window a key may still be reported, in insertions or seconds.
    npws : float
        Keys reported in the slack, over the window, at the peak (paper 1, definition 2).
    insert, hit, miss : float
        Cache lines that an insertion writes, and that a query reads of a key that is reported and of one that is not.
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
    _make: Callable[[], Filter] = field(repr=False, compare=False)

    def build(self) -> Filter:
        """Make the filter, empty."""
        return self._make()


class Plan:
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

    def __init__(self, choices: list[Choice], refused: dict[str, str], *, fixed_bytes: bool, unknown: bool) -> None:
        self.refused = refused
        if unknown:
            self.choices = tuple(choices)
            self.best = self.choices[0]
            self.reason = (
                "its memory follows the rate, where nobody says how many keys a window holds (these are its first)"
            )
            return
        if fixed_bytes:
            self.choices = tuple(sorted(choices, key=lambda choice: choice.fpr))
            self.best = self.choices[0]
            self.reason = "it has the least rate of false positives in so many bytes"
            return
        self.choices = tuple(sorted(choices, key=lambda choice: choice.nbytes))
        smallest = self.choices[0]
        near = [choice for choice in self.choices if choice.nbytes <= _DEARER * smallest.nbytes]
        self.best = min(near, key=_lines)
        if self.best is smallest:
            self.reason = "it is the smallest, and none that is up to half as large again reads fewer cache lines"
        else:
            self.reason = (
                f"it moves {_lines(self.best):.1f} cache lines for a new key where the smallest, {smallest.name}, "
                f"moves {_lines(smallest):.1f}, at {self.best.nbytes / smallest.nbytes:.2f} times its memory"
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

    def to_pandas(self) -> Any:
        """Give the table as a pandas DataFrame, a row a choice."""
        return import_module("pandas").DataFrame(
            [dict(zip(_COLUMNS, _row(choice), strict=True)) for choice in self.choices]
        )

    def __repr__(self) -> str:
        rows = [_COLUMNS, *([_text(cell) for cell in _row(choice)] for choice in self.choices)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
            for row in rows
        ]
        lines += [f"not: {name}: {why}" for name, why in self.refused.items()]
        return "\n".join([*lines, f"take: {self.best.name}, since {self.reason}"])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{column}</th>" for column in _COLUMNS)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_text(cell))}</td>" for cell in _row(choice)) + "</tr>"
            for choice in self.choices
        )
        taken = html.escape(f"Take {self.best.name}, since {self.reason}.")
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{taken}</p>"


_COLUMNS = ["filter", "parameters", "bits per key", "bytes", "fpr", "slack", "NPWS", "insert", "hit", "miss"]


def _row(choice: Choice) -> list[Any]:
    parameters = " ".join(f"{name}={value}" for name, value in choice.parameters.items())
    figures = [choice.bits_per_key, choice.nbytes, choice.fpr, choice.slack, choice.npws]
    return [choice.name, parameters, *figures, choice.insert, choice.hit, choice.miss]


def _text(cell: object) -> str:
    if isinstance(cell, float):
        return f"{cell:,.0f}" if cell >= 1000 else f"{cell:.3g}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def _lines(choice: Choice) -> float:
    """Cache lines moved for a new key: looked up, then inserted."""
    return choice.miss + choice.insert


def _without_slack(family: Callable[..., Filter], window: Any, fpr: float | None, **given: Any) -> Filter:
    given.pop("slack", None)
    return family(window, fpr, **given)


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
        What "lately" means: the last so many insertions, or a span such as ``"10min"``.
    fpr : float
        Most that the chance of reporting a key never inserted may be. Give this or `nbytes`.
    nbytes : int
        Most bytes to use: every filter then has the least rate that fits.
    slack : int or span of time, optional
        Longest that a key may still be reported after leaving the window. The default is half the window.
    capacity : int, optional
        Keys expected within a window of time. Without it only the time-limited filter will do, whose memory follows the
        rate.
    lateness : span of time, optional
        For a window of time, how far times may step back.

    Returns
    -------
    Plan
        A table, with the one to take and the reason; `build` makes it. With `nbytes` it is the one of the least rate,
        with `fpr` the one which moves the fewest cache lines among those at most half as large again as the smallest.

    Raises
    ------
    ValueError, TypeError
        If no filter meets the request; the message says why each does not.

    Examples
    --------
    >>> plan = lately.plan(window=1_000_000, fpr=0.01)
    >>> plan.best.name
    'age-partitioned, blocks of a line'
    >>> plan.build()
    <AgePartitionedBloomFilter window=1000000 fpr=1.00e-2 ...>
    """
    given = {"nbytes": nbytes, "slack": slack, "capacity": capacity, "lateness": lateness}
    given = {name: value for name, value in given.items() if value is not None}
    choices: list[Choice] = []
    refused: dict[str, str] = {}
    timed = not hasattr(window, "__index__")
    unknown = timed and capacity is None
    if unknown and fpr is None:
        raise ValueError("a window of time without capacity needs fpr: its memory follows the rate of keys")
    families = _UNKNOWN_RATE if unknown else dict(_FAMILIES)
    if not timed:
        families |= {name: partial(_without_slack, family) for name, family in _EXACT.items()}
    for name, family in families.items():

        def make(family: Callable[..., Filter] = family) -> Filter:
            return family(window, fpr, **given)

        try:
            made = make()
        except ValueError as error:
            refused[name] = str(error)
            continue
        choices.append(
            Choice(
                name=name,
                parameters=made.parameters,
                bits_per_key=made.bits_per_key,
                nbytes=made.nbytes,
                fpr=made.fpr,
                slack=made.slack,
                npws=made.npws,
                **made.cache_lines,
                _make=make,
            )
        )
    if not choices:
        reasons = dict.fromkeys(refused.values())
        raise ValueError("; ".join(reasons))
    return Plan(choices, refused, fixed_bytes=nbytes is not None, unknown=unknown)
