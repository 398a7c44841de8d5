"""The families of filters by name, for the planner and the command.

The core's table describes them: `src/family/table.rs`.
"""

from __future__ import annotations

from lately import _core, baselines, filters
from lately.filters import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal


class Family:
    """A class of filters in one layout, with its windows and its promise.

    Attributes
    ----------
    kind : type of Filter
    family : str
        Name of the family in `_core`, without a layout; empty for a class that a user defined.
    layout : dict
        Parameters of the constructor that set the layout.
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

    def _parameters(self) -> dict[str, Any]:
        """Return the parameters of the constructor with their defaults, `...` for one without.

        They are read from its code: `inspect` takes longer to import than all filters.
        """
        made: Any = self.kind
        constructor = made.__new__ if hasattr(made.__new__, "__code__") else made.__init__
        code = constructor.__code__
        positional = code.co_varnames[1 : code.co_argcount]
        defaults = constructor.__defaults__ or ()
        parameters = dict.fromkeys(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount], ...)
        parameters |= zip(positional[::-1], defaults[::-1], strict=False)
        return parameters | (constructor.__kwdefaults__ or {})

    def takes(self, parameter: str) -> bool:
        """Return whether the constructor has a parameter of this name."""
        return parameter in self._parameters()

    def plan(self, window: Any, **request: Any) -> dict[str, Any]:
        """Return the figures of the filter that `make` returns for this request, by the names of its attributes."""
        return _core.plan(self.family, **self.given(window, **request))

    def make(self, window: Any, **request: Any) -> Filter:
        """Make a filter that meets a request: parameters of the constructor, with `lateness` for windows of time."""
        given = self.given(window, **request)
        if self.family:
            return self.kind._of(self.family, **given)
        kind: Any = self.kind
        made: Filter = kind(**given)
        return made

    def given(self, window: Any, **request: Any) -> dict[str, Any]:
        """Return all arguments for the constructor; `ValueError` if it has no parameter of a name in the request."""
        if self.windows == "time" and hasattr(window, "__index__"):
            raise ValueError(
                f"filter must have windows of keys, got a growing {self.kind.__name__}, which has windows of time only"
            )
        parameters = self._parameters()
        lacks = [name for name in ("window", *request) if name not in parameters]
        if "lateness" in lacks:
            raise ValueError(f"{self.kind.__name__} has no windows of time")
        if lacks:
            raise ValueError(f"{self.kind.__name__} has no parameter {', '.join(lacks)}")
        defaults = {name: default for name, default in parameters.items() if default is not ...}
        return defaults | {"window": window} | self.layout | request


def _family(variant: dict[str, Any]) -> Family:
    """Make a family from its row in the core's table."""
    *baseline, kind = variant["kind"].split(".")
    options = {name: variant[name] for name in ("windows", "promise", "baseline", "note")}
    return Family(getattr(baselines if baseline else filters, kind), variant["family"], variant["layout"], **options)


_VARIANTS = _core.variants()

FAMILIES = {variant["name"]: _family(variant) for variant in _VARIANTS if variant["listed"]}
"""The families to choose from, by the name in `src/family/table.rs` followed by the options that are set."""

EVERY = FAMILIES | {variant["name"]: _family(variant) for variant in _VARIANTS if not variant["listed"]}
"""All families: also those that are no longer to choose from, but that are still made and opened."""


def choose(
    window: Any, prefer: str | None, *, slack: Any, max_ahead: Any, seed: Any, **limits: Any
) -> tuple[Family, dict[str, Any]]:
    """Choose the family for a request to `lately.Filter`, by the rule in `src/family/rule.rs`.

    Return it with the parameters of its constructor. No cells are allocated.
    """
    window = whole(window)
    name, least, _ = _core.choose(prefer, window=window, slack=slack, **limits)
    times = {} if hasattr(window, "__index__") else {"max_ahead": max_ahead}
    request = without_none(limits | {"slack": least})
    return FAMILIES[name], FAMILIES[name].given(window, seed=seed, **request, **times)


def without_none(limits: dict[str, Any]) -> dict[str, Any]:
    """Return the limits that the caller set."""
    return {name: value for name, value in limits.items() if value is not None}


def whole(window: Any) -> Any:
    """Return a window as an int if it is a whole float, such as 1e6."""
    return int(window) if isinstance(window, float) and window.is_integer() else window


def of_filter(made: Filter) -> Family:
    """Return the family of a filter, whether it counts repeats or not; `ValueError` if it is of no family."""
    name = made.family.removesuffix("-counting") if isinstance(made, Filter) else ""
    if name not in EVERY:
        raise ValueError(f"filter must be of one of the families {', '.join(FAMILIES)}, got a {type(made).__name__}")
    return EVERY[name]


def generations(made: Filter) -> int:
    """Return the number of full generations in a window; 1 if every key is a generation of its own."""
    parameters = made.parameters
    if "tag_bits" in parameters:
        return parameters.get("epochs") or (1 << parameters["tag_bits"]) - 1
    return next((parameters[name] for name in ("l", "r", "blocks") if name in parameters), 1)
