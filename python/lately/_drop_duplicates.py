"""The rows of a frame whose key was not seen lately, as a frame of the same kind."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Literal

from lately._core import Filter
from lately._duplicated import check_keep, duplicated
from lately._families import whole
from lately._frames import columns_by_name, is_lazy, is_stream, loaded, names_of, without
from lately._plan import Choice
from lately._unique import filtering, remembering


def drop_duplicates(
    frame: Any,
    window: Any,
    *,
    subset: Any = None,
    at: Any = None,
    keep: "Literal['first', 'last', False]" = "first",
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
        A polars LazyFrame stays lazy. A pyarrow RecordBatchReader is read as the rows of the result are read.
    window, at, subset
        As in `duplicated`. Of a LazyFrame and of a reader `at` names a column.
    keep : {"first", "last", False}, default "first"
        Which occurrences are left, as in `duplicated`. A reader has no rows to come, so that it takes "first" only.
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
        As `duplicated`; for the rows of a LazyFrame or a reader when the result is read. Times of a reader may not step
        back.

    See Also
    --------
    duplicated : The mask of these rows.
    unique : The events of any iterable that are left.

    Examples
    --------
    >>> import polars as pl
    >>> clicks = pl.DataFrame({"ip": ["a", "a", "b", "a"], "time": [0, 599, 600, 2000]})
    >>> lately.drop_duplicates(clicks, "10min", subset="ip", at="time").rows()
    [('a', 0), ('b', 600), ('a', 2000)]
    """
    options: dict[str, Any] = {"fpr": fpr, "refresh": refresh, "missing": missing, "seed": seed}
    options |= {"filter": filter, "threads": threads}
    check_keep(keep, exactly=fpr is None and filter is None, refresh=refresh)
    if is_stream(frame):
        if keep != "first":
            raise ValueError(f"keep={keep!r} needs all rows, and a reader has only those before: read_all() it first")
        return _batchwise(frame, window, subset, at, options)
    options["keep"] = keep
    if is_lazy(frame):
        return _lazily(frame, window, subset, at, options)
    rows = loaded(frame)
    return without(rows, duplicated(rows, window, subset=subset, at=at, **options))


def _lazily(frame: Any, window: Any, subset: Any, at: Any, options: dict[str, Any]) -> Any:
    """Return the query with an expression, which needs all rows at once, and past which polars moves no filter."""
    if at is not None and not isinstance(at, str):
        raise TypeError(f"at must name a column of the LazyFrame, got a {type(at).__name__}")
    columns = frame.collect_schema().names()
    names = names_of(columns, subset, at)
    times = names_of(columns, at) if at is not None else []
    polars = import_module("polars")

    def fresh(rows: Any) -> Any:
        frame = rows.struct.unnest()
        repeats = duplicated(frame, window, subset=names, at=at, **options)
        return polars.Series(~repeats, dtype=polars.Boolean)

    needed = polars.struct(*dict.fromkeys([*names, *times]))
    return frame.filter(needed.map_batches(fresh, return_dtype=polars.Boolean))


def _batchwise(reader: Any, window: Any, subset: Any, at: Any, options: dict[str, Any]) -> Any:
    """Return a reader that remembers the window from one batch to the next."""
    if at is not None and not isinstance(at, str):
        raise TypeError(f"at must name a column of the reader, got a {type(at).__name__}")
    names = names_of(reader.schema.names, subset, at)
    times = names_of(reader.schema.names, at)[0] if at is not None else None
    if at is None and not hasattr(whole(window), "__index__"):
        raise TypeError("a window of time needs at: the column of the rows' times")
    fpr, filter, threads = options.pop("fpr"), options.pop("filter"), options.pop("threads")
    exactly = fpr is None and filter is None
    marks = remembering(window, {}, **options)[1] if exactly else filtering(window, filter, fpr, {}, **options)[1]

    def batches() -> Iterator[Any]:
        for batch in reader:
            moments = None if times is None else batch.column(times)
            yield without(batch, marks(columns_by_name(batch, names), at=moments, threads=threads))

    return import_module("pyarrow").RecordBatchReader.from_batches(reader.schema, batches())
