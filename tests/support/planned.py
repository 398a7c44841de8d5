"""A filter in any layout, by its name, whether the constructor of its class chooses it or not."""

from typing import Any

import lately
from lately._families import EVERY


def planned(name: str, window: Any, fpr: float | None = None, **request: Any) -> lately.Filter:
    """Make a filter of this name in the table of the planner."""
    return EVERY[name].make(window, fpr=fpr, **request)
