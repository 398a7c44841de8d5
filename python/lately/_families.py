"""The families of filters by name, for the planner and the command.

The core's table describes them: `src/family/table.rs`.
"""

from __future__ import annotations

from typing import NamedTuple

from lately import _core, baselines, filters
from lately.filters import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal


class Family(NamedTuple):
    """A class of filters in one layout, with its windows and its promise.

    Attributes
    ----------
    kind : type of Filter
    name : str
        Name of the family and its options; empty for a class that a user defined.
    windows : {"any", "insertions", "time", "unknown rate"}
        Windows that it is planned for: of either kind; of insertions; of time; or of time with an unknown number of
        keys.
    promise : bool
        Whether no key of the window is missed.
    baseline : bool
        Whether it is only for comparison, and never the one to take.
    note : str
        A warning for its users.
    """

    kind: type[Filter]
    name: str = ""
    windows: Literal["any", "insertions", "time", "unknown rate"] = "any"
    promise: bool = True
    baseline: bool = False
    note: str = ""

    def make(self, window: Any, **request: Any) -> Filter:
        """Make a filter that meets a request, by the parameters of `Filter`."""
        if self.name:
            return self.kind._built(self.name, window=window, **request)
        return self.kind(window, **request)


def _family(variant: dict[str, Any]) -> Family:
    """Make a family from its row in the core's table."""
    *baseline, kind = variant["kind"].split(".")
    options = {name: variant[name] for name in ("name", "windows", "promise", "baseline", "note")}
    return Family(getattr(baselines if baseline else filters, kind), **options)


_VARIANTS = _core.variants()

FAMILIES = {variant["name"]: _family(variant) for variant in _VARIANTS if variant["listed"]}
"""The families to choose from, by the name in `src/family/table.rs` followed by the options that are set."""

EVERY = FAMILIES | {variant["name"]: _family(variant) for variant in _VARIANTS if not variant["listed"]}
"""All families: also those that are no longer to choose from, but that are still made and opened."""


def without_none(limits: dict[str, Any]) -> dict[str, Any]:
    """Return the limits that the caller set."""
    return {name: value for name, value in limits.items() if value is not None}


def whole(window: Any) -> Any:
    """Return a window as an int if it is a whole float, such as 1e6."""
    return int(window) if isinstance(window, float) and window.is_integer() else window


def of_filter(made: Filter) -> Family:
    """Return the family of a filter; `ValueError` if it is of no family."""
    name = made.family if isinstance(made, Filter) else ""
    if isinstance(made, filters.ExactFilter):
        return Family(filters.ExactFilter, name)
    if name not in EVERY:
        raise ValueError(f"filter must be of one of the families {', '.join(FAMILIES)}, got a {type(made).__name__}")
    return EVERY[name]


def generations(made: Filter) -> int:
    """Return the number of full generations in a window; 1 if every key is a generation of its own."""
    names = ("l", "r", "blocks", "epochs")
    return next((made.parameters[name] for name in names if name in made.parameters), 1)
