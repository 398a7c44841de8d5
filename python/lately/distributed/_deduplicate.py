"""A Ray dataset without the rows whose key was seen lately."""

from collections.abc import Sequence
from dataclasses import dataclass
from secrets import token_bytes
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

import lately
from lately._core import read_moments
from lately.distributed._ray import imported

if TYPE_CHECKING:
    import ray.data

# pyarrow.Table: pyarrow has no types, and is imported only where needed.
_Table: TypeAlias = Any

# The column of hashes by which rows are shuffled, so that the rows of a key meet. The result does not have it.
_HASH = "lately:hash"


def deduplicate(
    dataset: "ray.data.Dataset",
    key: str | Sequence[str],
    window: Any = None,
    *,
    at: str | None = None,
    refresh: bool = True,
    num_partitions: int | None = None,
    seed: int | bytes | Literal["random"] = "random",
) -> "ray.data.Dataset":
    """Remove the rows from a Ray dataset whose key was seen lately.

    A dataset's blocks are processed in any order and at once, so "seen before" has to come from the times of the rows.
    All rows of a key are shuffled to one place and sorted by time. Then `duplicated` marks the repeats, exactly.

    Parameters
    ----------
    dataset : ray.data.Dataset
    key : str or sequence of str
        Column, or columns, that make a row's key. See `hash_keys`: a missing value is a key like others.
    window : span of time, optional
        What "lately" means, such as ``"10min"``, a `datetime.timedelta` or a `numpy.timedelta64`; it needs `at`. The
        default is the whole dataset: one row of each key is left.
    at : str, optional
        Column of times: Unix seconds, or datetimes. The earliest row of a key remains. Of equally early rows any may
        remain, and without `at` any of all; the keys and times that remain are always the same.
    refresh : bool, default True
        False: only rows that remain do, so that a key passes again when its last pass is longer ago than the window.
    num_partitions : int, optional
        Number of pieces of the shuffle; each worker holds one in memory. The default is Ray's own
        (``DataContext.default_hash_shuffle_parallelism``); for few rows take fewer.
    seed : int, bytes or "random", default "random"
        Seed of the key hashes, as in `Filter`. By default each call draws a secret one, so that an attacker cannot
        choose keys that collide. Two keys are taken for one with probability 2**-64.

    Returns
    -------
    ray.data.Dataset
        Lazy: nothing runs until its rows are needed. The order of the rows is not defined.

    Raises
    ------
    TypeError
        If `dataset` is not one, `window` is a number of rows or comes without `at`, or a column's name is not text. At
        run time: if a key or a time is of a type that has no canonical form.
    ValueError
        If a parameter is out of range, or there is no such column, as far as Ray knows the columns beforehand. At run
        time: if the column is missing, or a time is.

    See Also
    --------
    duplicated : Marks the repeats of a column that fits into memory.
    SlicedFilter : A filter for streams.

    Notes
    -----
    If a part of the dataset is lost with its machine, Ray runs the tasks of that part again. So nothing may depend on
    what has run before; actors that remember keys would take the second run for repeats.

    Examples
    --------
    >>> import ray
    >>> clicks = ray.data.from_items([{"ip": ip, "t": t} for ip, t in [("b", 700), ("a", 0), ("a", 2000), ("b", 500)]])
    >>> left = lately.distributed.deduplicate(clicks, "ip", "10min", at="t", num_partitions=1)
    >>> sorted((row["ip"], row["t"]) for row in left.take_all())
    [('a', 0), ('a', 2000), ('b', 500)]
    """
    data = imported("ray.data")
    if not isinstance(dataset, data.Dataset):
        raise TypeError(f"dataset must be a ray.data.Dataset, got {type(dataset).__name__}")
    keys = [key] if isinstance(key, str) else list(key)
    if not keys:
        raise ValueError("key names no column")
    columns = keys if at is None else [*keys, at]
    for column in columns:
        if not isinstance(column, str):
            raise TypeError(f"a column is named by text, got {column!r}")
    if window is not None and hasattr(window, "__index__") and not isinstance(window, np.timedelta64):
        raise TypeError(
            f"window must be a span of time, got {window!r}: the blocks of a dataset share no count of rows"
        )
    if window is not None and at is None:
        raise TypeError("a window of time needs at: the column of times at which the rows were seen")
    if num_partitions is None:
        num_partitions = dataset.context.default_hash_shuffle_parallelism
    if num_partitions < 1:
        raise ValueError(f"num_partitions must be at least 1, got {num_partitions}")
    schema = dataset.schema(fetch_if_missing=False)
    if schema is not None:
        _check(columns, schema.names)
    # Drawn here, so that a task that runs again has the hashes of the first time.
    secret = token_bytes(16) if seed == "random" else seed
    # Rejects a bad seed or window before anything runs.
    lately.duplicated([], 1 if window is None else window, at=None if window is None else [], seed=secret)
    rows = _Rows(tuple(keys), at, window, refresh, secret)
    hashed = dataset.map_batches(rows.hashed, batch_size=None, batch_format="pyarrow")
    # Ray's groupby shuffles in this way too, but then sorts, which fails if no row is left.
    met = hashed.repartition(num_partitions, keys=[_HASH])
    left: ray.data.Dataset = met.map_batches(rows.first_seen, batch_size=None, batch_format="pyarrow")
    return left


@dataclass(frozen=True)
class _Rows:
    """Processes rows, at the workers of Ray."""

    keys: tuple[str, ...]
    at: str | None
    window: Any
    refresh: bool
    seed: int | bytes

    def hashed(self, block: _Table) -> _Table:
        """Add the hashes of the keys. Without a window, also drop the repeats within a block before they travel."""
        import pyarrow as pa

        if not block.num_columns:
            # Ray knows no columns of an empty dataset.
            return block
        _check(self.keys if self.at is None else (*self.keys, self.at), block.column_names)
        hashes = lately.hash_keys(block.select(self.keys), seed=self.seed)
        block = block.append_column(_HASH, pa.array(hashes.view(np.int64)))
        return self._left(block) if self.window is None else block

    def first_seen(self, rows: _Table) -> _Table:
        """Remove the repeats from all rows of some keys. A partition without rows has no columns either."""
        return self._left(rows).drop_columns([_HASH]) if rows.num_columns else rows

    def _left(self, rows: _Table) -> _Table:
        import pyarrow as pa

        hashes = rows[_HASH].to_numpy().view(np.uint64)
        # Equally early rows stay in order, and so do all rows without times.
        moments = np.zeros(len(hashes), dtype=np.int64) if self.at is None else self._moments(rows, self.at)
        order = np.argsort(moments, kind="stable")
        keys, times = lately.Hashes(hashes[order]), moments[order].view("M8[ns]")
        mask = np.empty(len(order), dtype=np.bool_)
        if self.window is None:
            mask[order] = lately.duplicated(keys, max(len(keys), 1))
        else:
            mask[order] = lately.duplicated(keys, self.window, at=times, refresh=self.refresh)
        # Filtering by a mask goes chunk by chunk; `take` joins the chunks of text, which fails from 2 GiB on.
        return rows.filter(pa.array(~mask))

    def _moments(self, rows: _Table, at: str) -> NDArray[np.int64]:
        try:
            return np.asarray(read_moments(rows[at]))
        except (TypeError, ValueError) as error:
            raise type(error)(f"column {at!r}: {error}") from None


def _check(columns: Sequence[str], there: Sequence[str]) -> None:
    for column in columns:
        if column not in there:
            raise ValueError(f"there is no column {column!r}; there are {', '.join(map(repr, there))}")
