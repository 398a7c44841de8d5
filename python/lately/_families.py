"""The families of filters by name: what the planner compares and the command takes.

A new family is a line of `FAMILIES`.
"""

from __future__ import annotations

from lately._core import plan
from lately.baselines import CountingBloomFilter, FingerprintBuffer, GeneralizedBloomFilter, StableBloomFilter
from lately.filters import (
    AgedQuotientFilter,
    AgePartitionedBloomFilter,
    Filter,
    GuardedEpochBloomFilter,
    Swamp,
    TimeLimitedBloomFilter,
    TimingBloomFilter,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from inspect import Parameter
    from typing import Any, Literal


class Family:
    """A class of filters, in one layout of its cells.

    Attributes
    ----------
    kind : type of Filter
    family : str
        Its name to `_core`, without a layout; none of a class of a user's own.
    layout : dict
        What it is given beside the request.
    windows : {"any", "insertions", "time", "unknown rate"}
        What it is planned for: windows of either kind; of insertions; of time; or of time with an unknown number of
        keys.
    promise : bool
        No key of the window is missed.
    baseline : bool
        Only for comparison, never the one to take.
    note : str
        What its users should know before they take it.
    """

    def __init__(
        self,
        kind: type[Filter],
        family: str = "",
        layout: dict[str, Any] | None = None,
        *,
        windows: Literal["any", "insertions", "time", "unknown rate"] = "any",
        promise: bool = True,
        baseline: bool = False,
        note: str = "",
    ) -> None:
        self.kind = kind
        self.family = family
        self.layout = layout or {}
        self.windows = windows
        self.promise = promise
        self.baseline = baseline
        self.note = note

    def _parameters(self) -> Mapping[str, Parameter]:
        """Give the parameters of the constructor. `inspect` takes longer to import than all filters, so it waits."""
        from inspect import signature

        return signature(self.kind).parameters

    def takes(self, parameter: str) -> bool:
        """Whether the constructor has such a parameter."""
        return parameter in self._parameters()

    def plan(self, window: Any, **request: Any) -> dict[str, Any]:
        """Give the figures of the filter that `make` makes of the same, by the names of its attributes."""
        return plan(self.family, **self.given(window, **request))

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
        given = self.given(window, **request)
        if self.family:
            return self.kind._of(self.family, **given)
        kind: Any = self.kind
        made: Filter = kind(**given)
        return made

    def given(self, window: Any, **request: Any) -> dict[str, Any]:
        """Give all parameters of the constructor; `ValueError` if it lacks one that is asked for."""
        parameters = self._parameters()
        lacks = [name for name in ("window", *request) if name not in parameters]
        if "lateness" in lacks:
            raise ValueError(f"{self.kind.__name__} has no windows of time")
        if lacks:
            raise ValueError(f"{self.kind.__name__} has no parameter {', '.join(lacks)}")
        defaults = {
            name: parameter.default
            for name, parameter in parameters.items()
            if parameter.default is not parameter.empty
        }
        return defaults | {"window": window} | self.layout | request


_LINES = {"layout": "line"}
_SLICED = {"layout": "sliced"}
_BLOCKS = _SLICED | {"block_bits": 512}

FAMILIES = {
    "age-partitioned": Family(AgePartitionedBloomFilter, "age-partitioned", _SLICED),
    "age-partitioned-512": Family(AgePartitionedBloomFilter, "age-partitioned", _BLOCKS),
    "age-partitioned-line": Family(AgePartitionedBloomFilter, "age-partitioned", _LINES),
    "guarded-epoch-512": Family(GuardedEpochBloomFilter, "guarded-epoch", _BLOCKS),
    "guarded-epoch-line": Family(GuardedEpochBloomFilter, "guarded-epoch", _LINES),
    "guarded-epoch-transposed": Family(GuardedEpochBloomFilter, "guarded-epoch", {"layout": "transposed"}),
    "aged-quotient": Family(AgedQuotientFilter, "aged-quotient", note="fpr rises steeply with keys beyond plan"),
    "aged-quotient-growing": Family(
        AgedQuotientFilter, "aged-quotient", {"grow": True}, windows="time", note="bytes and fpr follow bursts"
    ),
    "timing": Family(TimingBloomFilter, "timing", _SLICED),
    "timing-line": Family(TimingBloomFilter, "timing", _LINES),
    "timing-growing": Family(
        TimingBloomFilter, "timing", _SLICED | {"grow": "density"}, windows="time", note="bytes and fpr follow bursts"
    ),
    "time-limited": Family(
        TimeLimitedBloomFilter, "time-limited", windows="unknown rate", note="bytes follow the rate"
    ),
    "swamp": Family(Swamp, "swamp", windows="insertions"),
    "counting": Family(
        CountingBloomFilter,
        "counting",
        windows="insertions",
        baseline=True,
        note="fpr grows with keys that come 15 times",
    ),
    "fingerprint-buffer": Family(
        FingerprintBuffer, "fingerprint-buffer", windows="insertions", baseline=True, note="searches all of it"
    ),
    "generalized": Family(
        GeneralizedBloomFilter,
        "generalized",
        windows="insertions",
        promise=False,
        baseline=True,
        note="fades from the first key on",
    ),
    "stable": Family(
        StableBloomFilter, "stable", windows="insertions", promise=False, baseline=True, note="forgets at random"
    ),
}
"""The families on offer, by the class's field name, and the bits of a block if it has blocks, or the layout."""

EVERY = FAMILIES | {
    "aged-quotient-fine": Family(AgedQuotientFilter, "aged-quotient-fine"),
    "aged-quotient-fine-growing": Family(AgedQuotientFilter, "aged-quotient-fine", {"grow": True}, windows="time"),
    "age-partitioned-64": Family(AgePartitionedBloomFilter, "age-partitioned", _SLICED | {"block_bits": 64}),
    "guarded-epoch": Family(GuardedEpochBloomFilter, "guarded-epoch", _SLICED),
    "guarded-epoch-64": Family(GuardedEpochBloomFilter, "guarded-epoch", _SLICED | {"block_bits": 64}),
}
"""Also those no longer on offer, which are still made and opened: blocks of 64 bits take more memory than blocks
of 512 and no fewer cache lines; plain guarded epochs take the memory of transposed ones and more cache lines. And
aged quotient filters of fine tags, which their family takes where little slack is asked for."""

DEFAULT = "age-partitioned-line"
"""The fastest with windows of either kind."""

FASTEST = (DEFAULT, "age-partitioned-512")
"""The fastest first; the second where lines cannot meet a request."""


def whole(window: Any) -> Any:
    """Give a window that is a whole float, such as 1e6, as an int."""
    return int(window) if isinstance(window, float) and window.is_integer() else window


def fastest(window: Any, **request: Any) -> Filter:
    """Make the fastest filter for a request, in lines or blocks."""
    return AgePartitionedBloomFilter(window, **request)


def unsuited(family: Family, *, timed: bool, unknown: bool) -> str:
    """Say why a family has no such windows, or nothing if it has."""
    if timed and family.windows == "insertions":
        return "windows of insertions only"
    if family.windows == "time" and not timed:
        return "windows of time only"
    if unknown and family.windows != "unknown rate":
        return "capacity is needed, the number of keys expected within the window"
    if family.windows == "unknown rate" and not unknown:
        return "windows of time without a capacity, which its memory would not keep to"
    return ""


def name_of(made: Filter) -> str:
    """Name of a filter's family, whether it is offered or not.

    Raises
    ------
    ValueError
        If it is of none of them.
    """
    if made.family not in EVERY:
        raise ValueError(f"a {type(made).__name__} is of none of the families {', '.join(FAMILIES)}")
    return made.family


def generations(made: Filter) -> int:
    """Count the full generations that a window is kept in; 1 if keys leave one by one."""
    parameters = made.parameters
    if "tag_bits" in parameters:
        return parameters.get("epochs") or (1 << parameters["tag_bits"]) - 1
    return next((parameters[name] for name in ("l", "r", "blocks") if name in parameters), 1)
