"""The filter of an earlier run."""

from pathlib import Path

import lately


def opened(path: Path, planned: lately.Filter, instead: str) -> lately.Filter:
    """Open the filter that an earlier run has left, or begin with the one that is planned.

    Raises
    ------
    ValueError
        If the earlier run was begun with another request. The message ends in what to do `instead`.
    """
    if not path.exists():
        return planned
    kept = lately.open(path)
    for name in ("family", "window", "capacity", "fpr"):
        was, now = getattr(kept, name), getattr(planned, name)
        if was != now:
            raise ValueError(f"{path} was begun with other settings: its {name} is {was!r}, not {now!r}; {instead}")
    return kept
