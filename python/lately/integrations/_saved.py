"""The filter that an earlier run saved."""

from pathlib import Path
from typing import Any

import lately


def opened(path: Path, planned: Any, instead: str) -> Any:
    """Open the filter at a path, or return the planned filter if there is none.

    Raises
    ------
    ValueError
        If the saved filter was made by another request. The message ends with `instead`: what to do.
    """
    if not path.exists():
        return planned
    saved: Any = lately.open(path)
    # A secret seed reads as None.
    for name in ("family", "window", "capacity", "lateness", "missing", "seed", "fpr"):
        was, now = getattr(saved, name, "exact"), getattr(planned, name, "exact")
        if was != now:
            raise ValueError(f"the filter in {path} has other settings: its {name} is {was!r}, not {now!r}; {instead}")
    return saved
