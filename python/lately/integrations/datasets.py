"""A predicate for `filter` of Hugging Face datasets: which examples are new."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import lately
from lately._core import Exact
from lately.integrations._library import missing as _missing

try:
    import datasets  # noqa: F401
    import pyarrow as pa
except ModuleNotFoundError as _error:
    raise _missing("Hugging Face datasets", "datasets") from _error

__all__ = ["new"]

_FOREVER = "1d"
"""A window of time, whose memory follows its keys. All times are 0, so that no key leaves it."""


class new:  # noqa: N801
    """Keep the examples whose key was not seen before, ever or within a window.

    Pass it to `filter` of a `Dataset` or an `IterableDataset`, with ``with_indices=True``, batched or not::

        ds.filter(lately.integrations.datasets.new("text"), with_indices=True, batched=True)

    Parameters
    ----------
    key : str or list of str
        Column, or columns, that make the key of an example. A list in a column, such as token ids, counts by its items.
    window : int or span of time, optional
        What "lately" means: the last `window` examples, or a span such as ``"10min"``, which needs `at`. The default is
        the whole dataset.
    at : str, optional
        Column of times, which may not step back: Unix seconds, or datetimes.
    refresh : bool, default True
        True: every occurrence restarts the key's window. False: only those that are kept do.
    missing : {"same", "distinct"}, default "same"
        Whether missing keys are one key, or each its own.
    filter : filter of lately, optional
        Instead of a window: answer by a copy of this one, in constant memory, with its promise. ``BloomFilter`` is for
        a whole dataset. If keys are in it already, such as those of a test set, their examples are left out too.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of the wrong type or out of range. While examples are filtered: without indices; or if a key
        is of a type that has no canonical form.
    KeyError
        While examples are filtered: if there is no such column.
    RuntimeError
        While examples are filtered: in another process, or from the middle of a dataset.

    Notes
    -----
    Without `filter` the answer is exact, and takes 26 to 100 bytes for each key of the window: hashes, not texts.

    Index 0 marks the begin of a pass over the dataset. Each begins with nothing seen, so that the second epoch of an
    `IterableDataset` has the same examples as the first, and the cache of `datasets` holds what it should.

    A process of ``num_proc``, or a worker of a data loader, gets only part of the examples, and would keep repeats of
    the others: that is an error, and so is an iteration that goes on from ``load_state_dict``.

    Examples
    --------
    >>> import datasets
    >>> ds = datasets.Dataset.from_dict({"text": ["a", "b", "a"], "id": [1, 2, 3]}).to_iterable_dataset()
    >>> left = ds.filter(lately.integrations.datasets.new("text"), with_indices=True, batched=True)
    >>> [example["id"] for example in left]
    [1, 2]
    """

    def __init__(
        self,
        key: str | Sequence[str],
        *,
        window: Any = None,
        at: str | None = None,
        refresh: bool = True,
        missing: str = "same",
        filter: lately.Filter | None = None,
    ) -> None:
        self._keys = [key] if isinstance(key, str) else list(key)
        if not self._keys or not all(isinstance(column, str) for column in self._keys):
            raise TypeError(f"key must name a column or several, got {key!r}")
        if filter is not None and not (window is None and missing == "same"):
            raise ValueError("filter has its own window, and takes missing keys for one: leave out window and missing")
        if filter is not None and not isinstance(filter, lately.Filter):
            raise TypeError(f"filter must be a filter of lately, got {type(filter).__name__}")
        if filter is None and at is None and window is not None and not hasattr(window, "__index__"):
            raise TypeError("a window of time needs at: the column of the examples' times")
        self._at = at
        self._refresh = refresh
        self._filter = filter
        self._window: dict[str, Any] = {
            "window": _FOREVER if window is None else window,
            "missing": missing,
        }
        self._process = os.getpid()
        self._begin()
        self._seen.duplicated([], refresh=refresh)  # raises if it is no such choice

    def _begin(self) -> None:
        """Begin a pass over the dataset, with nothing seen."""
        # A secret seed: texts may come from an attacker.
        self._seen: Any = Exact(**self._window, seed="random") if self._filter is None else self._filter.copy()
        self._next = 0

    def __getstate__(self) -> dict[str, Any]:
        """Return the request, without what was seen: `datasets` finds a result in its cache by it."""
        return {name: value for name, value in vars(self).items() if name not in ("_seen", "_next")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin with nothing seen."""
        vars(self).update(state)
        self._begin()

    def __call__(self, examples: Any, indices: Any = None) -> Any:
        """Return which examples are new: a list of bool for a batch, a bool for one example."""
        if not (isinstance(examples, Mapping) or hasattr(examples, "columns")):
            raise TypeError(f"examples must come with their columns, got {type(examples).__name__}: no input_columns")
        if indices is None:
            raise TypeError("pass with_indices=True to filter: index 0 marks the begin of a pass over the dataset")
        batched = not isinstance(indices, int)
        self._go_on(indices[0] if batched else indices)
        keys = [self._column(examples, name, batched) for name in self._keys]
        times: Any = None if self._at is None else self._column(examples, self._at, batched)
        if self._window["window"] is _FOREVER and self._filter is None:
            times = 0
        rows = keys[0] if len(keys) == 1 else list(zip(*keys, strict=True))
        fresh = (~self._seen.duplicated(rows, at=times, refresh=self._refresh)).tolist()
        self._next += len(fresh)
        return fresh if batched else fresh[0]

    def _go_on(self, index: int) -> None:
        if os.getpid() != self._process:
            raise RuntimeError(
                "another process gets part of the examples only, and misses repeats of the others: "
                "leave out num_proc, and workers of a data loader"
            )
        if index == 0:
            self._begin()
        elif index != self._next:
            raise RuntimeError(
                f"example {index} comes where {self._next} was expected: those before it were not seen here. "
                "Begin the dataset anew, or skip() to the place behind the filter"
            )

    def _column(self, examples: Any, name: str, batched: bool) -> Any:
        """Return the keys or times of a column, in any format of `datasets`."""
        try:
            values: Any = examples[name]
        except KeyError:
            raise KeyError(f"no column {name!r} to compare examples by") from None
        if not batched:
            values = [values]
        if hasattr(values, "to_pylist"):
            return values if len(self._keys) == 1 and not pa.types.is_nested(values.type) else values.to_pylist()
        return [value.tolist() if isinstance(value, np.ndarray) else value for value in values]
