"""`drop_duplicates`: the rows of a frame whose key was not seen lately, as a frame of the same kind."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Literal

from lately._core import Filter
from lately._duplicated import check_keep, duplicated
from lately._families import whole
from lately._frames import columns_by_name, is_lazy, is_stream, loaded, names_of, without
from lately._plan import Choice
from lately._unique import remembering


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
    """Drop the rows whose key was seen within the window. The answer is exact, unless `fpr` or `filter` is given.

    The exact answer has no slack. A filter drops every row whose key was seen within the window as well. In addition it
    drops a row with a new key with probability `fpr`, and may drop one whose key left the window by at most the slack.

    Parameters
    ----------
    frame : frame or column of pandas, polars or pyarrow, or ndarray
        A polars LazyFrame stays lazy. A pyarrow RecordBatchReader is read while the rows of the result are read.
    window, subset
        As in `duplicated`.
    at : column name, or n times, optional
        As in `duplicated`. For a LazyFrame or a reader it must name a column.
    keep : {"first", "last", False}, default "first"
        Which occurrences remain, as in `duplicated`. A reader takes "first" only, because it has no later rows yet.
    fpr, refresh, missing, seed, filter, threads
        As in `duplicated`.

    Returns
    -------
    frame of the same kind
        The rows that remain, in order; for pandas with their index. Other objects that export Arrow data, such as
        relations of DuckDB, are returned as a pyarrow Table.

    Raises
    ------
    KeyError, TypeError, ValueError, MemoryError
        As in `duplicated`.

    See Also
    --------
    duplicated : Returns the mask of the rows to drop.
    unique : Yields the events of any iterable that remain.

    Notes
    -----
    For a LazyFrame or a reader, errors in keys and times are raised when the result is read. A LazyFrame needs the
    keys and times of all its rows at once, in the streaming engine too. A reader does not, so its times may not step
    back. A filter for a reader takes constant memory, or for a window of time memory that follows the keys.

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
            raise ValueError(f"keep={keep!r} needs later rows, which a reader does not have yet: read_all() it first")
        return _batchwise(frame, window, subset, at, options)
    options["keep"] = keep
    if is_lazy(frame):
        return _lazily(frame, window, subset, at, options)
    rows = loaded(frame)
    return without(rows, duplicated(rows, window, subset=subset, at=at, **options))


def _lazily(frame: Any, window: Any, subset: Any, at: Any, options: dict[str, Any]) -> Any:
    """Return the query with an expression that needs all rows at once. polars moves no filter past it."""
    if at is not None and not isinstance(at, str):
        raise TypeError(f"at must name a column of the LazyFrame, got a {type(at).__name__}")
    columns = frame.collect_schema().names()
    names = names_of(columns, subset, at)
    times = names_of(columns, at) if at is not None else []
    duplicated([], window, at=None if at is None else [], **options)  # raises for a wrong request now
    polars = import_module("polars")

    def fresh(columns: Any) -> Any:
        repeats = duplicated(polars.DataFrame(columns), window, subset=names, at=at, **options)
        return polars.Series(~repeats, dtype=polars.Boolean)

    needed = list(dict.fromkeys([*names, *times]))
    return frame.filter(polars.map_batches(needed, fresh, return_dtype=polars.Boolean))


def _batchwise(reader: Any, window: Any, subset: Any, at: Any, options: dict[str, Any]) -> Any:
    """Return a reader over the rows that remain. It remembers the window from one batch to the next."""
    if at is not None and not isinstance(at, str):
        raise TypeError(f"at must name a column of the reader, got a {type(at).__name__}")
    names = names_of(reader.schema.names, subset, at)
    times = names_of(reader.schema.names, at)[0] if at is not None else None
    if at is None and not hasattr(whole(window), "__index__"):
        raise TypeError("a window of time needs at=: the column with the times of the rows")
    threads = options.pop("threads")
    _, marks = remembering(window, times={}, **options)

    def batches() -> Iterator[Any]:
        for batch in reader:
            moments = None if times is None else batch.column(times)
            try:
                repeats = marks(columns_by_name(batch, names), at=moments, threads=threads)
            except ValueError as error:
                if "lateness" not in str(error):
                    raise
                problem = str(error).partition(", but lateness")[0]
                raise ValueError(
                    f"{problem}: rows of a reader must come in the order of their times; sort them before, or pass "
                    "read_all() of it, whose rows may be in any order"
                ) from None
            yield without(batch, repeats)

    return import_module("pyarrow").RecordBatchReader.from_batches(reader.schema, batches())
