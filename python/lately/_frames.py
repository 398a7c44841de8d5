"""Frames and columns of pandas, polars, pyarrow and NumPy. Only NumPy is imported here."""

import sys
from collections.abc import Hashable, Iterable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately._core import hash_keys

LAZY = "keys must have rows, got a polars LazyFrame: collect() it first, or call lately.drop_duplicates"


def is_a(thing: object, module: str, *classes: str) -> bool:
    """Return whether an object is of one of these classes; False if their module was never imported."""
    found = sys.modules.get(module)
    return found is not None and isinstance(thing, tuple(getattr(found, name) for name in classes))


def is_lazy(frame: object) -> bool:
    """Return whether a frame is a polars query that has not run."""
    return is_a(frame, "polars", "LazyFrame")


def is_stream(frame: object) -> bool:
    """Return whether a frame is a stream of Arrow record batches. It can be read only once."""
    return is_a(frame, "pyarrow", "RecordBatchReader")


def columns_of(frame: Any) -> list[Hashable] | None:
    """Return the names of the columns, or None if the object is not a frame."""
    if is_a(frame, "pandas", "DataFrame") or is_a(frame, "polars", "DataFrame"):
        return list(frame.columns)
    if is_a(frame, "pyarrow", "Table", "RecordBatch"):
        return list(frame.schema.names)
    if isinstance(frame, np.ndarray) and frame.dtype.names:
        return list(frame.dtype.names)
    return None


def is_frame(rows: object) -> bool:
    """Return whether rows are a frame of any package. Iteration over one yields the names of its columns."""
    return columns_of(rows) is not None or isinstance(getattr(type(rows), "columns", None), property)


def is_column(rows: object) -> bool:
    """Return whether rows are one column of pandas, polars or pyarrow."""
    return (
        is_a(rows, "pandas", "Series", "Index")
        or is_a(rows, "polars", "Series")
        or is_a(rows, "pyarrow", "Array", "ChunkedArray")
    )


def loaded(frame: Any) -> Any:
    """Return a table with the Arrow data of an object; a frame or column is returned unchanged."""
    exports = hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__arrow_c_array__")
    if columns_of(frame) is not None or is_column(frame) or not exports:
        return frame
    for module, table in (("pyarrow", "table"), ("polars", "DataFrame")):
        try:
            return getattr(import_module(module), table)(frame)
        except ImportError:
            continue
    raise ImportError(f"columns of a {type(frame).__name__} need pyarrow or polars: pip install pyarrow")


def picked(keys: Any, subset: Any, at: Any) -> tuple[Any, Any]:
    """Return keys and times: the columns that `subset` and `at` name, or the arguments themselves.

    Without `subset` the keys are all columns except the one that `at` names.
    """
    if is_lazy(keys):
        raise TypeError(LAZY)
    at = _of_index(keys, at)
    if subset is None and not _names_column(at, columns_of(keys)):
        return keys, at
    frame = loaded(keys)
    columns = columns_of(frame)
    if columns is None and is_frame(keys):
        hash_keys(keys)  # raises with what to pass instead
    if columns is None:
        given = f"at={at!r} names a column" if subset is None else f"subset={subset!r} names columns"
        instead = ": pass the times themselves" if subset is None else ""
        raise TypeError(f"{given}, so keys must be a frame, got a {type(keys).__name__}{instead}")
    names = names_of(columns, subset, at)
    times = _column(frame, names_of(columns, at)[0]) if _names_column(at, columns) else at
    return columns_by_name(frame, names), times


def _of_index(rows: Any, at: Any) -> Any:
    """Return the times of a level of a pandas index if `at` is its name and not that of a column, or else `at`."""
    labelled = isinstance(at, str) and is_a(rows, "pandas", "DataFrame", "Series")
    if labelled and at in rows.index.names and at not in (columns_of(rows) or ()):
        return rows.index.get_level_values(at)
    return at


def _names_column(what: Any, columns: list[Hashable] | None) -> bool:
    """Return whether an argument names a column: a text, or a label of one, such as a number in pandas."""
    try:
        return isinstance(what, str) or (what is not None and what in set(columns or ()))
    except TypeError:  # no label, because it has no hash
        return False


def names_of(columns: list[Hashable], subset: Any, at: Any = None) -> list[Hashable]:
    """Return the names of the key's columns: one, several, or all except the times."""
    if subset is None:
        times = {at} if _names_column(at, columns) else set()
        names = [name for name in columns if name not in times]
    elif _names_column(subset, columns) or not isinstance(subset, Iterable):
        names = [subset]
    else:
        names = list(subset)
        names = [name for i, name in enumerate(names) if name not in names[:i]]
    for name in names:
        if name not in columns:
            raise KeyError(
                f"the frame has no column {name!r}; its columns are {', '.join(map(repr, columns)) or 'none'}"
            )
        if columns.count(name) > 1:
            raise ValueError(f"the frame has {columns.count(name)} columns named {name!r}: rename all but one")
    if not names:
        raise ValueError("subset must name one column or more, got none")
    return names


def columns_by_name(frame: Any, names: list[Hashable]) -> Any:
    """Return the keys: one column, or a frame of several columns whose rows are the keys."""
    if len(names) == 1:
        return _column(frame, names[0])
    return frame.select(names) if hasattr(frame, "select") else frame[names]


def _column(frame: Any, name: Hashable) -> Any:
    return frame.column(name) if is_a(frame, "pyarrow", "Table", "RecordBatch") else frame[name]


def without(rows: Any, repeats: NDArray[np.bool_]) -> Any:
    """Return the rows of a frame, a column or an array without the repeats; `TypeError` for anything else."""
    if is_a(rows, "polars", "DataFrame", "Series"):
        return rows.filter(~repeats)
    if is_a(rows, "pyarrow", "Table", "RecordBatch", "Array", "ChunkedArray"):
        return _filtered(rows, ~repeats, import_module("pyarrow"))
    if is_a(rows, "pandas", "DataFrame") or is_column(rows) or isinstance(rows, np.ndarray):
        return rows[~repeats]
    raise TypeError(
        f"keys must be a frame or a column of pandas, polars or pyarrow, or an ndarray, got a {type(rows).__name__}; "
        "for other iterables call lately.unique"
    )


def _filtered(rows: Any, kept: NDArray[np.bool_], pa: Any) -> Any:
    """Return the rows of Arrow that are kept, also of views and runs, for which pyarrow has no filter."""
    try:
        return rows.filter(pa.array(kept))
    except pa.ArrowNotImplementedError:
        if hasattr(rows, "schema"):
            columns = [_filtered(column, kept, pa) for column in rows.columns]
            return type(rows).from_arrays(columns, schema=rows.schema)
        if isinstance(rows, pa.ChunkedArray):
            return pa.chunked_array([_filtered(rows.combine_chunks(), kept, pa)], rows.type)
    for view, plain in ((pa.string_view(), pa.large_string()), (pa.binary_view(), pa.large_binary())):
        if rows.type == view:
            return rows.cast(plain).filter(pa.array(kept)).cast(view)
    edges = np.flatnonzero(np.diff(kept, prepend=False, append=False)).tolist()
    pieces = [rows.slice(start, end - start) for start, end in zip(edges[::2], edges[1::2], strict=True)]
    return pa.concat_arrays(pieces) if pieces else rows.slice(0, 0)
