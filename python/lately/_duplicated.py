"""`duplicated`: marks the keys of a column that were seen lately."""

from __future__ import annotations

from collections.abc import Callable
from secrets import token_bytes
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lately._core import Hashes, duplicated_exactly, hash_keys, read_moments, read_span
from lately._docstrings import complete
from lately._families import generations, whole
from lately._frames import picked
from lately._plan import Choice, family_of
from lately.filters import AgePartitionedBloomFilter, Filter

FPR = 0.001
"""Rate of a filter for which the caller gave none."""


@complete
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
        When each key was seen, for a window of time: Unix seconds, datetimes, dates, or text in ISO 8601. Times may
        step back: a key is marked if it was seen earlier in the column, at a time of at most `window` before its own.
        The memory is that of the window and of the furthest step back.
    keep : {"first", "last", False}, default "first"
        Which occurrences stay unmarked, as in pandas. "first": those without the same key in the window before them.
        "last": those without the same key in the window after them. False: those without the same key in either window.
        "last" and False need the exact answer and ``refresh=True``.
    fpr : float, optional
        Take a filter, with this as the highest chance, in (0, 1), of marking a key that was never seen, or that left
        the window by more than the slack. The slack is up to half a window (or 64 keys, or as far as times step back).
        With `filter` alone the default is 0.001.
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
        alone it is the fastest, `AgePartitionedBloomFilter` in lines. `StableBloomFilter` may miss keys, and the time
        per key of `FingerprintBuffer` grows with the window. In `TimeLimitedBloomFilter` `fpr` holds for a steady rate
        of keys.
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
        If the times are numbers that look like dates (20260131) or years. As Unix seconds they all lie in 1970.

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
    >>> lately.duplicated(["a", "b", "a", "c", "b"], window=2, keep="last")
    array([ True, False, False, False, False])
    >>> lately.duplicated(["a", "b", "a", "c", "b"], window=100, fpr=0.001)
    array([False, False,  True, False,  True])
    """
    exactly = fpr is None and filter is None
    check_keep(keep, exactly=exactly, refresh=refresh)
    keys, at = picked(keys, subset, at)
    if keep != "first":
        return _on_both_sides(keys, at, keep, window=window, missing=missing, seed=seed, threads=threads)
    if exactly:
        return duplicated_exactly(keys, window, at=at, refresh=refresh, missing=missing, seed=seed, threads=threads)
    make: Callable[..., Filter] = AgePartitionedBloomFilter if filter is None else family_of(filter).make
    if isinstance(keys, Hashes):
        _check_missing(keys, missing)
        if seed == "random":
            # The filter is for this call: it may have another seed than a secret one, which is not shown.
            seed, keys = 0, Hashes(np.asarray(keys))
    elif missing != "same" or not hasattr(keys, "__len__"):
        seed = token_bytes(16) if seed == "random" else seed
        keys = hashed(keys, seed, missing)
    request = {"fpr": FPR if fpr is None else fpr, "seed": seed}
    if at is None:
        window = whole(window)
        if not hasattr(window, "__index__"):
            read_span(window, "window")
            raise TypeError("a window of time needs at=: when each key was seen")
        # The filter needs to remember no more keys than the column has.
        made = make(min(window, max(len(keys), 1)), **request)
        return made.duplicated(keys, refresh=refresh, threads=threads)
    moments = np.asarray(read_moments(at, warn_of_dates=True))
    if moments.ndim == 0:
        moments = np.repeat(moments, len(keys))
    made = _planned_for(moments, make, read_span(window, "window"), **request)
    return made.duplicated(keys, at=at, refresh=refresh, threads=threads)


def check_keep(keep: Any, *, exactly: bool, refresh: Any) -> None:
    """Raise `ValueError` if `keep` is out of range, or needs the exact answer or ``refresh=True``."""
    if keep is not False and keep not in ("first", "last"):
        raise ValueError(f"keep must be 'first', 'last' or False, got {keep!r}")
    if keep != "first" and not exactly:
        raise ValueError(f"keep={keep!r} needs the exact answer: leave out fpr and filter")
    if keep != "first" and refresh is not True:
        raise ValueError(f"keep={keep!r} needs refresh=True, got refresh={refresh!r}")


def _on_both_sides(keys: Any, at: Any, keep: Literal["last", False], *, seed: Any, **options: Any) -> NDArray[np.bool_]:
    """Mark the keys with the same key in the window after them, and for a `keep` of False also before them."""
    missing = options.pop("missing")
    if isinstance(keys, Hashes):
        _check_missing(keys, missing)
        hashes = np.asarray(keys)
    else:
        hashes = hash_keys(keys, seed=token_bytes(16) if seed == "random" else seed, missing=missing)
    if at is not None:
        at = np.asarray(read_moments(at, warn_of_dates=True))

    def marks(hashes: NDArray[np.uint64], at: NDArray[np.int64] | None) -> NDArray[np.bool_]:
        times = None if at is None else at.view("datetime64[ns]")
        return duplicated_exactly(Hashes(hashes), at=times, refresh=True, missing="same", seed="random", **options)

    # In the reversed column, with negated times, the window after a key is a window before it.
    mirrored = None if at is None else -at[::-1] if at.ndim else -at
    after = marks(np.ascontiguousarray(hashes[::-1]), mirrored)[::-1]
    return np.ascontiguousarray(after) if keep == "last" else after | marks(hashes, at)


def _check_missing(keys: Hashes, missing: Literal["same", "distinct"]) -> None:
    """Raise `ValueError` if missing keys are to be distinct: `Hashes` do not store which these are."""
    if missing != "same":
        hash_keys(keys, missing=missing)


def hashed(keys: Any, seed: int | bytes, missing: Literal["same", "distinct"]) -> Hashes:
    """Hash keys for a filter of this seed; missing keys are one key or distinct, by `missing`."""
    return Hashes(hash_keys(keys, seed=seed, missing=missing), seed=seed)


def _planned_for(moments: NDArray[np.int64], make: Callable[..., Filter], span: int, **request: Any) -> Filter:
    """Plan a filter for known times: with their lateness, and a capacity for their highest rate."""
    latest = np.maximum.accumulate(moments)
    lateness = int((latest - moments).max(initial=0))
    kept = span + lateness
    # The answer does not depend on the system's clock.
    times: dict[str, Any] = {"lateness": np.timedelta64(lateness, "ns"), "max_ahead": None}
    capacity = 1
    while True:
        made = make(np.timedelta64(span, "ns"), capacity=capacity, **times, **request)
        full = generations(made)
        peak = _fullest(latest, -(-kept // full), aligned="pages" not in made.parameters)
        # The filter plans for capacity * kept / (span * full) keys in each generation, rounded up.
        needed = -(-peak * full * span // kept)
        if needed <= capacity:
            return made
        capacity = needed


def _fullest(latest: NDArray[np.int64], length: int, *, aligned: bool) -> int:
    """Count the keys of the fullest span: between multiples of its length, or anywhere if pages rotate in turn."""
    if aligned:
        _, keys = np.unique(latest // length, return_counts=True)
    else:
        keys = np.searchsorted(latest, latest + length) - np.arange(len(latest))
    return int(keys.max(initial=1))
