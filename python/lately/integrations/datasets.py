"""A predicate for the method `filter` of Hugging Face datasets: whether an example is new."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import lately
from lately._core import ExactFilter
from lately.integrations._missing import missing as _missing

try:
    import datasets  # noqa: F401
    import pyarrow as pa
except ModuleNotFoundError as _error:
    raise _missing("Hugging Face datasets", "datasets") from _error

__all__ = ["new"]

_FOREVER = "1d"
"""A window of time, because its memory follows the keys. All times are 0, so no key leaves it."""


class new:  # noqa: N801
    """Predicate that is true for the examples whose key was not seen before: ever, or within a window.

    Pass it to the method `filter` of a `Dataset` or an `IterableDataset`, with ``with_indices=True``, batched or not::

        ds.filter(lately.integrations.datasets.new("text"), with_indices=True, batched=True)

    Parameters
    ----------
    key : str or list of str
        Column, or columns, of the key of an example. Lists in it, such as token ids, are equal if their items are.
    window : int or span of time, optional
        What "lately" means: the last `window` examples, or a span such as ``"10min"``, which needs `at`. The default is
        the whole dataset.
    at : str, optional
        Column of times: Unix seconds, or datetimes. They may not step back.
    refresh : bool, default True
        True: every occurrence restarts the key's window. False: only the occurrences that are new do.
    missing : {"same", "distinct"}, default "same"
        "same": all missing keys are one key. "distinct": each is its own key, and always new.
    filter : Filter, optional
        Instead of a window: a filter. A copy of it answers, in constant memory. Take `BloomFilter` for a whole
        dataset. Keys that it contains already, such as those of a test set, are not new.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of the wrong type or out of range. When it is called: if there are no indices, or a key has no
        canonical form.
    KeyError
        When it is called: if a column does not exist.
    RuntimeError
        When it is called in another process, or in the middle of a dataset.

    Notes
    -----
    Without `filter` the answer is exact. It takes 26 to 100 bytes for each key of the window, for its hash.

    Index 0 begins a pass over the dataset, and each pass begins with no keys. So the second epoch of an
    `IterableDataset` has the same examples as the first, and the cache of `datasets` is correct.

    A process of ``num_proc``, or a worker of a data loader, gets only some of the examples, and would miss repeats of
    the others. It raises an error, and so does an iteration that ``load_state_dict`` resumes.

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
            raise TypeError(f"key must be the name of a column, or a list of names, got {key!r}")
        if filter is not None and not (window is None and missing == "same"):
            raise ValueError(
                "filter has its own window, and missing keys are one key in it: leave out window and missing"
            )
        if filter is not None and not isinstance(filter, lately.Filter):
            raise TypeError(f"filter must be a filter of lately, got {type(filter).__name__}")
        if filter is None and at is None and window is not None and not hasattr(window, "__index__"):
            raise TypeError("a window of time needs at=: the column with the times of the examples")
        self._at = at
        self._refresh = refresh
        self._filter = filter
        self._window: dict[str, Any] = {
            "window": _FOREVER if window is None else window,
            "missing": missing,
        }
        self._process = os.getpid()
        self._begin()
        self._seen.duplicated([], refresh=refresh)  # raises if `refresh` is out of range

    def _begin(self) -> None:
        """Begin a pass over the dataset, without keys."""
        # A secret seed: texts may come from an attacker.
        self._seen: Any = ExactFilter(**self._window, seed="random") if self._filter is None else self._filter.copy()
        self._next = 0

    def __getstate__(self) -> dict[str, Any]:
        """Return the request without the keys. `datasets` looks a result up in its cache by this state."""
        return {name: value for name, value in vars(self).items() if name not in ("_seen", "_next")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the request, without keys."""
        vars(self).update(state)
        self._begin()

    def __call__(self, examples: Any, indices: Any = None) -> Any:
        """Return which examples are new: a list of bool for a batch, a bool for one example."""
        if not (isinstance(examples, Mapping) or hasattr(examples, "columns")):
            raise TypeError(f"examples must have columns, got {type(examples).__name__}: leave out input_columns")
        if indices is None:
            raise TypeError("indices are missing: pass with_indices=True to filter, because index 0 begins a pass")
        batched = not isinstance(indices, int)
        self._check_order(indices[0] if batched else indices)
        keys = [self._column(examples, name, batched) for name in self._keys]
        times: Any = None if self._at is None else self._column(examples, self._at, batched)
        if self._window["window"] is _FOREVER and self._filter is None:
            times = 0
        rows = keys[0] if len(keys) == 1 else list(zip(*keys, strict=True))
        fresh = (~self._seen.duplicated(rows, at=times, refresh=self._refresh)).tolist()
        self._next += len(fresh)
        return fresh if batched else fresh[0]

    def _check_order(self, index: int) -> None:
        if os.getpid() != self._process:
            raise RuntimeError(
                "this process gets only some of the examples, and would miss repeats of the others: "
                "leave out num_proc, and workers of a data loader"
            )
        if index == 0:
            self._begin()
        elif index != self._next:
            raise RuntimeError(
                f"expected example {self._next}, got {index}: the examples between them did not pass here. "
                "Begin the dataset again, or skip() after the filter"
            )

    def _column(self, examples: Any, name: str, batched: bool) -> Any:
        """Return the keys or times in a column, in any format of `datasets`."""
        try:
            values: Any = examples[name]
        except KeyError:
            raise KeyError(f"the examples have no column {name!r}") from None
        if not batched:
            values = [values]
        if hasattr(values, "to_pylist"):
            return values if len(self._keys) == 1 and not pa.types.is_nested(values.type) else values.to_pylist()
        return [value.tolist() if isinstance(value, np.ndarray) else value for value in values]
