"""Filters in any layout, for a request or from parameters, whether the constructor of their class has it or not."""

import inspect
from contextlib import suppress
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


def from_parameters(kind: type[lately.Filter], **given: Any) -> lately.Filter:
    """Make a filter of a class by the one constructor from parameters that takes these."""
    found = []
    for name in dir(kind):
        if name.startswith("from_") and name.endswith("parameters"):
            make = getattr(kind, name)
            with suppress(TypeError):
                inspect.signature(make).bind(**given)
                found.append(make)
    (make,) = found
    return make(**given)
