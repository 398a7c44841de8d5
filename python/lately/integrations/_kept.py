"""The filter of an earlier run."""

from pathlib import Path
from typing import Any

import lately


def opened(path: Path, planned: Any, instead: str) -> Any:
    """Open the filter that an earlier run saved, or return the planned one if there is none.

    Raises
    ------
    ValueError
        If the earlier run was begun with another request. The message ends in what to do `instead`.
    """
    if not path.exists():
        return planned
    saved: Any = lately.open(path)
    for name in ("family", "window", "capacity", "fpr"):
        was, now = getattr(saved, name, "exact"), getattr(planned, name, "exact")
        if was != now:
            raise ValueError(f"{path} was begun with other settings: its {name} is {was!r}, not {now!r}; {instead}")
    return saved
