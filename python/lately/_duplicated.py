"""`duplicated`: marks the keys of a column that were seen lately."""

from __future__ import annotations

from collections.abc import Callable
from secrets import token_bytes
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lately._core import Hashes, duplicated_exactly, hash_keys, read_moments, read_span
from lately._families import generations, whole
from lately._frames import picked
from lately._plan import Choice, family_of
from lately.filters import Filter

FPR = 0.001
"""Rate of a filter for which the caller gave none."""


def duplicated(
    keys: Any,
    window: Any,
    *,
    subset: Any = None,
    at: Any = None,
    keep: Literal["first", "last", False] = "first",
    fpr: float | None = None,
    refresh: bool | Literal["delivered"] = True,
    missing: Literal["same", "distinct"] = "same",
    seed: int | bytes | Literal["random"] = "random",
    filter: str | type[Filter] | Choice | None = None,
    threads: int = 1,
) -> NDArray[np.bool_]:
    """Mark the keys that were seen within the window. The answer is exact, unless `fpr` or `filter` is given.

    The exact answer has no slack. It takes 26 to 38 bytes for each key of the window, or 50 to 100 for a window of
    time; never more than for the column. With `fpr` or `filter` a filter answers, in a few bytes per key. It marks
    every key that was seen within the window as well. In addition it marks a new key with probability `fpr`, and may
    mark a key that left the window by at most the slack.

    Parameters
    ----------
    keys : array-like, Series, column or frame
        n keys; a row of a frame or of a 2-D array is one key. See `hash_keys`.
    window : int or span of time
        What "lately" means: the last `window` keys, or a span such as ``"10min"``, a `datetime.timedelta` or a
        `numpy.timedelta64`, which needs `at`. A key that comes again after exactly this long is a repeat.
    subset : column name or list of them, optional
        The columns of the frame that are the key. The default is all columns, except the one that `at` names.
    at : column name, or n times, optional
        When each key was seen, for a window of time: Unix seconds, datetimes, dates, or text in ISO 8601. In pandas
        also the name of a level of the index. Keys count in the order of their times, however the column is sorted, and
        keys of equal times in the order of the column. Times in order take one pass; others are sorted first, in 40
        bytes per key.
    keep : {"first", "last", False}, default "first"
        Which occurrences stay unmarked, as in pandas, in the order of times. "first": those without the same key in the
        window before them.
        "last": those without the same key in the window after them. False: those without the same key in either window.
        "last" and False need the exact answer and ``refresh=True``.
    fpr : float, optional
        Take a filter, with this as the highest chance, in (0, 1), of marking a key that was never seen, or that left
        the window by more than the slack, which is at most 1/64 of the window. With `filter` alone the default is
        0.001.
    refresh : {True, False, "delivered"}, default True
        Which occurrences restart the key's window. True: every one. False: only those that are not marked, so that a
        key passes again once its last unmarked occurrence has left the window; every key advances the window.
        "delivered": as False, but only unmarked keys advance a window of insertions (paper 4, definition 4). See
        `Filter.duplicated`.
    missing : {"same", "distinct"}, default "same"
        Whether missing keys (None, NaN, NaT, NA, null) are one key. "same": yes, as in `pandas.duplicated` and SQL's
        DISTINCT. "distinct": each is its own key and never marked (by a filter with probability `fpr`), as in SQL's
        UNIQUE and in joins. A row with a missing field is then its own key too.
    seed : int, bytes or "random", default "random"
        Seed of the key hashes, as in `Filter`. By default each call draws a secret one, so that an attacker cannot
        choose keys that collide. `Hashes` have the seed that they were made with. With an int, a filter makes the same
        mistakes in every run.
    filter : str, type of Filter or Choice, optional
        Take a filter of this family: a name in the table of `plan`, such as ``"guarded-epoch-transposed"``; a class,
        such as `GuardedEpochBloomFilter`; or a row of `plan`, which counts only by its name. The filter is planned for
        `window`, `fpr` and the times of these keys. (A filter that exists has its own method `duplicated`.) With `fpr`
        alone it is the default, `AgedCuckooFilter`. `StableBloomFilter` may miss keys, and the time per key of
        `FingerprintBuffer` grows with the window. In `TimeLimitedBloomFilter` `fpr` holds for a steady rate of keys.
    threads : int, default 1
        Number of threads that share the column; the answers are the same. For the exact answer they share the hashing
        only, which is faster for long strings. Filters gain more: see `Filter.duplicated`.

    Returns
    -------
    ndarray of bool, shape (n,)
        True where the key was seen lately. With ``refresh=True`` no such key is missed, except by `StableBloomFilter`
        and `GeneralizedBloomFilter`.

    Raises
    ------
    KeyError
        If `subset` or `at` names a column that does not exist.
    TypeError
        If a key has no canonical form, a window of time comes without `at`, the filter has no windows of that kind,
        `filter` is not a name, a class of filters or a `Choice`, or `subset` or `at` names a column and `keys` is not a
        frame.
    ValueError
        If a parameter is out of range, `at` lacks a time or has not as many times as keys, the filter has no windows of
        time or no `fpr`, or `keep` needs the exact answer.
    MemoryError
        If there is not enough memory for the keys of the window.

    Warns
    -----
    UserWarning
        If the times are numbers that are probably no Unix seconds: all look like dates (20260131) or years, or there
        are a thousand and more, all before 1990, such as milliseconds from a start.

    See Also
    --------
    drop_duplicates : Returns the rows that are not marked.
    unique : Yields the events of a stream that are not marked.
    ExactFilter, Filter : Remember keys from one batch to the next.
    plan : Compares the families.

    Notes
    -----
    "Exact" is by 64-bit hashes. Two different keys are taken for one key with a chance of 2**-64, so among n keys
    one is marked by mistake with a chance of n * window / 2**64: 5e-7 for ten million keys and a window of a million.

    In a window as long as the column, `keep` gives the masks of pandas and polars. In a shorter window, consider the
    occurrences of a key that follow each other without a pause longer than the window: "first" leaves the first of
    them, "last" the last. False leaves a key only if no other occurrence is within the window on either side.
    ``keep="last"`` reads the column from its end.

    Examples
    --------
    >>> lately.duplicated(["a", "b", "a", "c", "b"], window=2)
    array([False, False,  True, False, False])
    >>> lately.duplicated(["a", "a", "a"], window="10min", at=[0, 599, 2000])
    array([False,  True, False])
    >>> lately.duplicated(["a", "a", "a"], window="10min", at=[2000, 599, 0])
    array([False,  True, False])
    >>> lately.duplicated(["a", "b", "a", "c", "b"], window=2, keep="last")
    array([ True, False, False, False, False])
    >>> lately.duplicated(["a", "b", "a", "c", "b"], window=100, fpr=0.001)
    array([False, False,  True, False,  True])
    """
    exactly = fpr is None and filter is None
    check_keep(keep, exactly=exactly, refresh=refresh)
    keys, at = picked(keys, subset, at)
    if at is not None:
        moments = np.asarray(read_moments(at, warn=True))
        at = moments.view("datetime64[ns]")
        if moments.ndim and (moments[1:] < moments[:-1]).any():
            order = moments.argsort(kind="stable")
            hashes, seed = hashed(keys, seed, missing)
            if len(hashes) != len(order):
                raise ValueError(f"at has {len(order)} times for {len(hashes)} keys: one each, or a single one")
            in_order = Hashes(np.asarray(hashes)[order], seed=seed)
            marks = np.empty(len(order), bool)
            options: dict[str, Any] = {"keep": keep, "fpr": fpr, "refresh": refresh, "filter": filter}
            marks[order] = duplicated(in_order, window, at=at[order], seed=seed, threads=threads, **options)
            return marks
    if keep != "first":
        return _on_both_sides(keys, at, keep, window=window, missing=missing, seed=seed, threads=threads)
    if exactly:
        return duplicated_exactly(keys, window, at=at, refresh=refresh, missing=missing, seed=seed, threads=threads)
    make: Callable[..., Filter] = Filter if filter is None else family_of(filter).make
    if isinstance(keys, Hashes) or missing != "same" or not hasattr(keys, "__len__"):
        keys, seed = hashed(keys, seed, missing)
    request: dict[str, Any] = {"fpr": FPR if fpr is None else fpr, "seed": seed}
    if at is None:
        window = whole(window)
        if not hasattr(window, "__index__"):
            read_span(window, "window")
            raise TypeError("a window of time needs at=: when each key was seen")
        # The filter needs to remember no more keys than the column has.
        made = make(min(window, max(len(keys), 1)), **request)
        return made.duplicated(keys, refresh=refresh, threads=threads)
    if moments.ndim == 0:
        moments = np.repeat(moments, len(keys))
    # The answer does not depend on the system's clock.
    request |= {"lateness": "0s", "max_ahead": None}
    span = np.timedelta64(read_span(window, "window"), "ns")
    made = Filter(span, **request) if filter is None else _planned_for(moments, make, span, **request)
    return made.duplicated(keys, at=at, refresh=refresh, threads=threads)


def check_keep(keep: Any, *, exactly: bool, refresh: Any) -> None:
    """Raise `ValueError` if `keep` is out of range, or needs the exact answer or ``refresh=True``."""
    if keep is not False and keep not in ("first", "last"):
        raise ValueError(f"keep must be 'first', 'last' or False, got {keep!r}")
    if keep != "first" and not exactly:
        raise ValueError(f"keep={keep!r} needs the exact answer: leave out fpr and filter")
    if keep != "first" and refresh is not True:
        raise ValueError(f"keep={keep!r} needs refresh=True, got refresh={refresh!r}")


def _on_both_sides(
    keys: Any,
    at: NDArray[np.datetime64] | None,
    keep: Literal["last", False],
    *,
    seed: Any,
    missing: Any,
    **options: Any,
) -> NDArray[np.bool_]:
    """Mark the keys with the same key in the window after them, and for a `keep` of False also before them."""
    hashes = np.asarray(hashed(keys, seed, missing)[0])

    def marks(hashes: NDArray[np.uint64], at: NDArray[np.datetime64] | None) -> NDArray[np.bool_]:
        return duplicated_exactly(Hashes(hashes), at=at, refresh=True, missing="same", seed="random", **options)

    # In the reversed column, with negated times, the window after a key is a window before it.
    mirrored = None if at is None else np.flip(-at.view(np.int64)).view(at.dtype)
    after = marks(np.ascontiguousarray(hashes[::-1]), mirrored)[::-1]
    return np.ascontiguousarray(after) if keep == "last" else after | marks(hashes, at)


def hashed(keys: Any, seed: Any, missing: Literal["same", "distinct"]) -> tuple[Hashes, int | bytes]:
    """Hash keys for this call; missing keys are one key or distinct, by `missing`. Return also the seed."""
    if not isinstance(keys, Hashes):
        seed = token_bytes(16) if seed == "random" else seed
    elif seed == "random":
        # What answers this call may have another seed than a secret one, which is not shown.
        seed, keys = 0, Hashes(np.asarray(keys))
    return Hashes(hash_keys(keys, seed=seed, missing=missing), seed=seed), seed


def _planned_for(
    moments: NDArray[np.int64], make: Callable[..., Filter], span: np.timedelta64, **request: Any
) -> Filter:
    """Plan a filter for known times in order: with the least capacity at which no generation is overfull."""
    capacity = 1
    while True:
        made = make(span, capacity=capacity, **request)
        count = generations(made)
        length = -(-int(span.astype(int)) // count)
        # A filter is planned for capacity / count keys in each generation, rounded up, and each capacity has its count.
        needed = count * _fullest(moments, length, aligned="pages" not in made.parameters)
        if needed <= capacity:
            return made
        capacity = needed


def _fullest(moments: NDArray[np.int64], length: int, *, aligned: bool) -> int:
    """Count the keys of the fullest span: between multiples of its length, or anywhere if pages rotate in turn."""
    if aligned:
        _, keys = np.unique(moments // length, return_counts=True)
    else:
        keys = np.searchsorted(moments, moments + length) - np.arange(len(moments))
    return int(keys.max(initial=1))
