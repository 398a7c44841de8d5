"""Frames and columns of every kind: named columns, and rows by a mask. No library of frames is imported here."""

import sys
from collections.abc import Hashable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

LAZY = "keys is a polars LazyFrame, which has no rows yet: collect() it first, or take lately.drop_duplicates"


def is_a(thing: object, module: str, *classes: str) -> bool:
    """Return whether a thing is of one of these classes, which nothing is before their module is imported."""
    found = sys.modules.get(module)
    return found is not None and isinstance(thing, tuple(getattr(found, name) for name in classes))


def is_lazy(frame: object) -> bool:
    """Return whether a frame is a query of polars that has not run."""
    return is_a(frame, "polars", "LazyFrame")


def is_stream(frame: object) -> bool:
    """Return whether a frame is a stream of Arrow record batches, which can be read once."""
    return is_a(frame, "pyarrow", "RecordBatchReader")


def columns_of(frame: Any) -> list[Hashable] | None:
    """Return the names of the columns, or None if it is no frame."""
    if is_a(frame, "pandas", "DataFrame") or is_a(frame, "polars", "DataFrame"):
        return list(frame.columns)
    if is_a(frame, "pyarrow", "Table", "RecordBatch"):
        return list(frame.schema.names)
    if isinstance(frame, np.ndarray) and frame.dtype.names:
        return list(frame.dtype.names)
    return None


def is_column(rows: object) -> bool:
    """Return whether rows are one column of pandas, polars or pyarrow."""
    return (
        is_a(rows, "pandas", "Series", "Index")
        or is_a(rows, "polars", "Series")
        or is_a(rows, "pyarrow", "Array", "ChunkedArray")
    )


def loaded(frame: Any) -> Any:
    """Read Arrow data of an object that is no frame by itself into a table."""
    exports = hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__arrow_c_array__")
    if columns_of(frame) is not None or is_column(frame) or not exports:
        return frame
    for module, table in (("pyarrow", "table"), ("polars", "DataFrame")):
        try:
            return getattr(import_module(module), table)(frame)
        except ImportError:
            continue
    raise ImportError(f"pyarrow or polars is needed to pick columns of a {type(frame).__name__}")


def picked(keys: Any, subset: Any, at: Any) -> tuple[Any, Any]:
    """Return keys and times: columns where `subset` or `at` name them, else as they are.

    Without `subset` the keys are all columns but the one that `at` names.

    Raises
    ------
    KeyError
        If a column does not exist.
    TypeError
        If `keys` has no named columns.
    """
    if is_lazy(keys):
        raise TypeError(LAZY)
    if subset is None and not isinstance(at, str):
        return keys, at
    frame = loaded(keys)
    columns = columns_of(frame)
    if columns is None:
        given = f"at={at!r} names a column" if subset is None else f"subset={subset!r} names columns"
        instead = "; give the times themselves" if subset is None else ""
        raise TypeError(f"{given}, but keys is no frame, it is a {type(keys).__name__}{instead}")
    names = names_of(columns, subset, at)
    return columns_by_name(frame, names), _column(frame, names_of(columns, at)[0]) if isinstance(at, str) else at


def names_of(columns: list[Hashable], subset: Any, at: Any = None) -> list[Hashable]:
    """Return the names of the key's columns: one, several, or all but the times.

    Raises
    ------
    KeyError
        If a column does not exist.
    ValueError
        If two columns have the name, or the key has none.
    """
    if subset is None:
        names = [name for name in columns if not (isinstance(at, str) and name == at)]
    elif isinstance(subset, str) or (isinstance(subset, Hashable) and subset in columns):
        names = [subset]
    else:
        names = list(subset)
    for name in names:
        if name not in columns:
            raise KeyError(f"no column {name!r}; there are {', '.join(map(repr, columns)) or 'none'}")
        if columns.count(name) > 1:
            raise ValueError(f"{columns.count(name)} columns are named {name!r}")
    if not names:
        raise ValueError("subset must name a column at least")
    return names


def columns_by_name(frame: Any, names: list[Hashable]) -> Any:
    """Return the keys: a column, or a frame of several, whose rows are keys."""
    if len(names) == 1:
        return _column(frame, names[0])
    return frame.select(names) if hasattr(frame, "select") else frame[names]


def _column(frame: Any, name: Hashable) -> Any:
    return frame.column(name) if is_a(frame, "pyarrow", "Table", "RecordBatch") else frame[name]


def without(rows: Any, repeats: NDArray[np.bool_]) -> Any:
    """Return the rows of a frame, a column or an array that are no repeats.

    Raises
    ------
    TypeError
        If it is nothing of that kind.
    """
    if is_a(rows, "polars", "DataFrame", "Series"):
        return rows.filter(~repeats)
    if is_a(rows, "pyarrow", "Table", "RecordBatch", "Array", "ChunkedArray"):
        return rows.filter(import_module("pyarrow").array(~repeats))
    if is_a(rows, "pandas", "DataFrame") or is_column(rows) or isinstance(rows, np.ndarray):
        return rows[~repeats]
    raise TypeError(
        f"keys must be a frame or a column of pandas, polars or pyarrow, or an ndarray, got a {type(rows).__name__}; "
        "for other iterables there is lately.unique"
    )
