"""The choice of a family for a request to `lately.Filter`. `src/filter/choose.rs` has the rule."""

from __future__ import annotations

from lately import _core
from lately._families import FAMILIES, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lately._families import Family


def choose(
    window: Any, prefer: str | None, *, slack: Any, max_ahead: Any, seed: Any, **limits: Any
) -> tuple[Family, dict[str, Any]]:
    """Choose the family; return it with the parameters of its constructor. No cells are allocated.

    Parameters and errors are those of `lately.Filter`.
    """
    window = whole(window)
    name, least, _ = _core.choose(prefer, window=window, slack=slack, **limits)
    request = given(limits | {"slack": least})
    times = {} if hasattr(window, "__index__") else {"max_ahead": max_ahead}
    return FAMILIES[name], FAMILIES[name].given(window, seed=seed, **request, **times)


def given(limits: dict[str, Any]) -> dict[str, Any]:
    """Return the limits that the caller set."""
    return {name: value for name, value in limits.items() if value is not None}
