"""Filters for a request in any layout, whether the constructor of their class still offers it or not."""

from typing import Any

import lately
from lately._families import EVERY


def planned(
    kind: type[lately.Filter],
    window: Any,
    fpr: float | None = None,
    *,
    block_bits: int | None = None,
    layout: str = "sliced",
    **request: Any,
) -> lately.Filter:
    """Make a filter of a class; its layout is that of the cells, by default in segments or slices."""
    options = {name: given for name, given in (("fpr", fpr), ("block_bits", block_bits)) if given is not None}
    rows = [row for row in EVERY.values() if row.kind is kind and row.layout.get("block_bits") == block_bits]
    (row,) = (row for row in rows if row.layout.get("layout", "sliced") == layout)
    return row.make(window, **options, **request)
