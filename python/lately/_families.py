"""The families of filters by name: what the planner compares and the command takes.

A new family is a line of `FAMILIES`.
"""

from dataclasses import dataclass, field
from inspect import signature
from typing import Any, Literal

from lately._core import Filter, build
from lately.filters import (
    AgedQuotientFilter,
    AgePartitionedBloomFilter,
    CountingBloomFilter,
    FingerprintBuffer,
    GeneralizedBloomFilter,
    GuardedEpochBloomFilter,
    StableBloomFilter,
    Swamp,
    TimeLimitedBloomFilter,
    TimingBloomFilter,
)


@dataclass(frozen=True)
class Family:
    """A class of filters, in one layout of its cells.

    Attributes
    ----------
    kind : type of Filter
    layout : dict
        What its constructor is given beside the request.
    windows : {"any", "insertions", "time", "unknown rate"}
        What it is planned for: windows of either kind; of insertions; of time; or of time with an unknown number of
        keys.
    promise : bool
        No key of the window is missed.
    baseline : bool
        Only for comparison, never the one to take.
    note : str
        What its users should know before they take it.
    closed : str
        Its name for `_core.build`, where the constructor of the class does not offer it.
    """

    kind: type[Filter]
    layout: dict[str, Any] = field(default_factory=dict)
    windows: Literal["any", "insertions", "time", "unknown rate"] = "any"
    promise: bool = True
    baseline: bool = False
    note: str = ""
    closed: str = ""

    def made(self, one: Filter) -> bool:
        """Whether a filter is of this family."""
        parameters = one.parameters
        return (
            type(one) is self.kind
            and parameters.get("block_bits") == self.layout.get("block_bits")
            and _layout(parameters) == self.layout.get("layout", "sliced")
            and ("part_keys" in parameters or "part_timers" in parameters) == ("grow" in self.layout)
        )

    def takes(self, parameter: str) -> bool:
        """Whether the constructor has such a parameter."""
        return parameter in signature(self.kind).parameters

    def make(self, window: Any, **request: Any) -> Filter:
        """Make a filter that meets a request.

        Parameters
        ----------
        window : int or span of time
        **request
            Parameters of the constructor. For a window of time `lateness` is among them.

        Raises
        ------
        ValueError
            If the family lacks one of them, or what the constructor raises.
        """
        lacks = [name for name in ("window", *request) if not self.takes(name)]
        if "lateness" in lacks:
            raise ValueError(f"{self.kind.__name__} has no windows of time")
        if lacks:
            raise ValueError(f"{self.kind.__name__} has no parameter {', '.join(lacks)}")
        kind: Any = self.kind
        given = {"window": window, **self.layout, **request}
        if self.closed:
            defaults = {name: parameter.default for name, parameter in signature(kind).parameters.items()}
            return Filter.__new__(self.kind, build(self.closed, **defaults | given))
        made: Filter = kind(**given)
        return made


_BLOCKS = {"block_bits": 512}
_LINES = {"layout": "line"}
_SLICED = {"layout": "sliced"}

FAMILIES = {
    "age-partitioned": Family(AgePartitionedBloomFilter),
    "age-partitioned-512": Family(AgePartitionedBloomFilter, _BLOCKS),
    "age-partitioned-line": Family(AgePartitionedBloomFilter, _LINES),
    "guarded-epoch-512": Family(GuardedEpochBloomFilter, _BLOCKS | _SLICED),
    "guarded-epoch-line": Family(GuardedEpochBloomFilter, _LINES),
    "guarded-epoch-transposed": Family(GuardedEpochBloomFilter, {"layout": "transposed"}),
    "aged-quotient": Family(AgedQuotientFilter, note="fpr rises steeply with keys beyond plan"),
    "timing": Family(TimingBloomFilter),
    "timing-line": Family(TimingBloomFilter, _LINES),
    "timing-growing": Family(
        TimingBloomFilter, {"grow": "density"}, windows="time", note="bytes and fpr follow bursts"
    ),
    "time-limited": Family(TimeLimitedBloomFilter, windows="unknown rate", note="bytes follow the rate"),
    "swamp": Family(Swamp, windows="insertions"),
    "counting": Family(CountingBloomFilter, windows="insertions", note="fpr grows with keys that come 15 times"),
    "fingerprint-buffer": Family(FingerprintBuffer, windows="insertions", baseline=True, note="searches all of it"),
    "generalized": Family(
        GeneralizedBloomFilter, windows="insertions", promise=False, baseline=True, note="fades from the first key on"
    ),
    "stable": Family(StableBloomFilter, windows="insertions", promise=False, baseline=True, note="forgets at random"),
}
"""The families on offer, by the class's field name, and the bits of a block if it has blocks, or the layout."""

EVERY = FAMILIES | {
    "age-partitioned-64": Family(AgePartitionedBloomFilter, {"block_bits": 64}, closed="age-partitioned"),
    "guarded-epoch": Family(GuardedEpochBloomFilter, _SLICED, closed="guarded-epoch"),
    "guarded-epoch-64": Family(GuardedEpochBloomFilter, {"block_bits": 64} | _SLICED, closed="guarded-epoch"),
}
"""Also those no longer on offer, which are still made and opened: blocks of 64 bits take more memory than blocks
of 512 and no fewer cache lines; plain guarded epochs take the memory of transposed ones and more cache lines."""

DEFAULT = "age-partitioned-line"
"""The fastest with windows of either kind."""


def fastest(window: Any, **request: Any) -> Filter:
    """Make the fastest filter for a request: in lines, or in blocks for rates too low for lines.

    Parameters and errors are those of `Family.make`.
    """
    try:
        return FAMILIES[DEFAULT].make(window, **request)
    except ValueError as error:
        try:
            return FAMILIES["age-partitioned-512"].make(window, **request)
        except ValueError:
            raise error from None


def name_of(made: Filter) -> str:
    """Name of a filter's family, whether it is offered or not.

    Raises
    ------
    ValueError
        If it is of none of them.
    """
    for name, family in EVERY.items():
        if family.made(made):
            return name
    raise ValueError(f"a {type(made).__name__} is of none of the families {', '.join(FAMILIES)}")


def generations(made: Filter) -> int:
    """Count the full generations that a window is kept in; 1 if keys leave one by one."""
    parameters = made.parameters
    if "tag_bits" in parameters:
        return 2 ** parameters["tag_bits"] - 1
    return next((parameters[name] for name in ("l", "r", "blocks") if name in parameters), 1)


def _layout(parameters: dict[str, int]) -> str:
    if "tag_bits" in parameters:
        return None
    return "line" if "lines" in parameters else "transposed" if "positions" in parameters else "sliced"
