"""The rows of a frame that were not seen lately, as a frame of the same kind."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Literal

from lately._core import Exact, Filter
from lately._duplicated import duplicated
from lately._families import whole
from lately._frames import columns_by_name, is_lazy, is_stream, loaded, names_of, without
from lately._plan import Choice
from lately._unique import filtering


def drop_duplicates(
    frame: Any,
    window: Any,
    *,
    subset: Any = None,
    at: Any = None,
    fpr: float | None = None,
    refresh: "bool | Literal['delivered']" = True,
    missing: "Literal['same', 'distinct']" = "same",
    seed: "int | bytes | Literal['random']" = "random",
    filter: str | type[Filter] | Choice | None = None,
    threads: int = 1,
) -> Any:
    """Drop the rows whose key was seen within the window: exactly, unless `fpr` or `filter` is given.

    The exact answer has no slack. A filter drops every row whose key was seen within the window too, but also a new one
    with probability `fpr`, and maybe one whose key has left the window by no more than the slack.

    Parameters
    ----------
    frame : frame or column of pandas, polars or pyarrow, or ndarray
        A polars LazyFrame stays lazy, and a pyarrow RecordBatchReader is read as its rows are asked for.
    window, at, subset
        As in `duplicated`. Of a LazyFrame and of a reader `at` names a column.
    fpr, refresh, missing, seed, filter, threads
        As in `duplicated`. Of a reader a filter takes constant memory, or memory that follows the rate of the keys for
        a window of time.

    Returns
    -------
    The same kind of frame
        With the rows that are left, in order; of pandas with their index. Other frames that hand over Arrow data, such
        as relations of DuckDB, come back as a pyarrow Table.

    Raises
    ------
    KeyError, TypeError, ValueError, MemoryError
        As `duplicated`; about the rows of a LazyFrame or a reader when they are asked for. Times of a reader may not
        step back.

    See Also
    --------
    duplicated : The mask of these rows.
    unique : The same for any iterable.

    Examples
    --------
    >>> import polars as pl
    >>> clicks = pl.DataFrame({"ip": ["a", "a", "b", "a"], "time": [0, 599, 600, 2000]})
    >>> lately.drop_duplicates(clicks, "10min", subset="ip", at="time").rows()
    [('a', 0), ('b', 600), ('a', 2000)]
    """
    asked: dict[str, Any] = {"fpr": fpr, "refresh": refresh, "missing": missing, "seed": seed}
    asked |= {"filter": filter, "threads": threads}
    if is_lazy(frame):
        return _lazily(frame, window, subset, at, asked)
    if is_stream(frame):
        return _batchwise(frame, window, subset, at, asked)
    rows = loaded(frame)
    return without(rows, duplicated(rows, window, subset=subset, at=at, **asked))


def _lazily(frame: Any, window: Any, subset: Any, at: Any, asked: dict[str, Any]) -> Any:
    """As an expression of the columns that count. It needs all rows at once, and polars moves no filter past it."""
    if at is not None and not isinstance(at, str):
        raise TypeError(f"at must name a column of the LazyFrame, got a {type(at).__name__}")
    columns = frame.collect_schema().names()
    names = names_of(columns, subset, at)
    times = names_of(columns, at) if at is not None else []
    polars = import_module("polars")

    def fresh(rows: Any) -> Any:
        frame = rows.struct.unnest()
        repeats = duplicated(frame, window, subset=names, at=at, **asked)
        return polars.Series(~repeats, dtype=polars.Boolean)

    needed = polars.struct(*dict.fromkeys([*names, *times]))
    return frame.filter(needed.map_batches(fresh, return_dtype=polars.Boolean))


def _batchwise(reader: Any, window: Any, subset: Any, at: Any, asked: dict[str, Any]) -> Any:
    """As another reader, which remembers the window from one batch to the next."""
    if at is not None and not isinstance(at, str):
        raise TypeError(f"at must name a column of the reader, got a {type(at).__name__}")
    names = names_of(reader.schema.names, subset, at)
    times = names_of(reader.schema.names, at)[0] if at is not None else None
    if at is None and not hasattr(whole(window), "__index__"):
        raise TypeError("a window of time needs at: the column that says when each row was")
    fpr, filter, threads = asked.pop("fpr"), asked.pop("filter"), asked.pop("threads")
    exactly = fpr is None and filter is None
    marks = Exact(window, **asked).duplicated if exactly else filtering(window, filter, fpr, {}, **asked)[1]

    def batches() -> Iterator[Any]:
        for batch in reader:
            moments = None if times is None else batch.column(times)
            yield without(batch, marks(columns_by_name(batch, names), at=moments, threads=threads))

    return import_module("pyarrow").RecordBatchReader.from_batches(reader.schema, batches())
