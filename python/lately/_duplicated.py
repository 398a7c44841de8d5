"""The one-liner that marks which keys of a column were seen lately."""

from __future__ import annotations

from collections.abc import Callable
from secrets import token_bytes
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lately._core import Hashes, duplicated_exactly, hash_keys, read_moments, read_span
from lately._families import fastest, generations, whole
from lately._frames import picked
from lately._plan import Choice, family_of
from lately.filters import Filter

FPR = 0.001
"""Rate of a filter that is requested without one."""


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
    """Mark the keys that were seen within the window: exactly, unless `fpr` or `filter` is given.

    The exact answer has no slack. It takes memory of the window, 26 to 38 bytes a key, for a window of time 50 to
    100; or of the column where that is shorter. With `fpr` or `filter` a filter answers, in a few bytes a key. It marks
    every key of the window too, but also a new one with probability `fpr`, and maybe one that has left the window by no
    more than the slack.

    Parameters
    ----------
    keys : array-like, Series, column or frame
        n keys; a row of a frame or of a 2-D array is one key. See `hash_keys`.
    window : int or span of time
        What "lately" means: the last `window` keys, or a span such as ``"10min"``, a `datetime.timedelta` or a
        `numpy.timedelta64`, which needs `at`. The window is closed: a repeat after exactly ``"10min"`` is a repeat.
    subset : column name or list of them, optional
        The columns of the frame that are the key. By default all of them, but for the one that `at` names.
    at : column name, or n times, optional
        When each key was seen, for a window of time: numbers are Unix seconds; or datetimes, dates, or text of ISO
        8601. They may step back: a key is marked if it was seen before in the column, at a time of at most `window`
        before its own. Memory is that of the window and of the furthest step back.
    keep : {"first", "last", False}, default "first"
        Which occurrences stay unmarked, as in pandas. "first": those without the same key in the window before them.
        "last": those without the same key in the window after them. False: those without the same key in either window.
        "last" and False are for the exact answer with ``refresh=True``.
    fpr : float, optional
        Takes a filter: the greatest allowed chance, in (0, 1), of marking a key that was never seen, or last seen
        longer than window and slack ago. In the slack, up to half a window (or 64 keys, or what late times add) after
        leaving the window, a key may still be marked. With `filter` alone it is 0.001.
    refresh : {True, False, "delivered"}, default True
        Which occurrences begin the key's window anew. True: every one. False: those that are not marked, so that a key
        comes through again when its last unmarked occurrence is longer ago than the window; every key moves the
        window on. "delivered": as False, but only unmarked keys move a window of insertions on (paper 4). See
        `Filter.duplicated`.
    missing : {"same", "distinct"}, default "same"
        What keys that are missing (None, NaN, NaT, NA, null) are. "same": one key, as in `pandas.duplicated` and SQL's
        DISTINCT. "distinct": each its own, never marked (by a filter with probability `fpr`), as in SQL's UNIQUE and in
        joins; a row with a missing field is then its own too.
    seed : int, bytes or "random", default "random"
        Seed of the key hashes, as in `Filter`. By default each call draws a secret one, so that an attacker cannot
        choose keys that collide; `Hashes` keep the seed they were made with. Pass an int to get the same mistakes of a
        filter in every run.
    filter : str, type of Filter or Choice, optional
        Takes a filter of this family: a name such as ``"guarded-epoch-transposed"``, as `plan` shows them, a class such
        as `GuardedEpochBloomFilter`, or a row of `plan`, of which only the name counts. The filter is planned here, for
        `window`, `fpr` and the times of these keys; a filter that exists has a `duplicated` of its own. With `fpr`
        alone it is `AgePartitionedBloomFilter` in lines, the fastest. `StableBloomFilter` may miss keys, and
        `FingerprintBuffer` takes a time per key that grows with the window. In `TimeLimitedBloomFilter` `fpr` holds for
        a steady rate of keys.
    threads : int, default 1
        How many threads share the column; the answers are the same. For the exact answer they share the hashing alone,
        which gains for long strings; filters gain more: see `Filter.duplicated`.

    Returns
    -------
    ndarray of bool, shape (n,)
        True where the key was seen lately. With `refresh`, no such key is ever missed (but by `StableBloomFilter`).

    Raises
    ------
    KeyError
        If `subset` or `at` names a column that does not exist.
    TypeError
        If a key has no canonical form, a window of time comes without `at`, the filter has no windows of the kind
        requested, `filter` is neither a name, a class of filters nor a `Choice`, or columns are named of an object that
        is no frame.
    ValueError
        If a parameter is out of range, `at` is missing a time or does not fit `keys`, the filter has no windows of time
        or no `fpr`, or `keep` needs the exact answer.
    MemoryError
        If there is not enough memory for the keys of the window.

    Warns
    -----
    UserWarning
        If the times are numbers that look like dates (20260131) or years: as Unix seconds they all lie in 1970.

    See Also
    --------
    drop_duplicates : The rows of a frame that are left.
    unique : The events of a stream that are left.
    ExactFilter, Filter : Objects that remember, for streams that come in batches.
    plan : The families side by side.

    Notes
    -----
    "Exactly" is by hashes of 64 bits: two different keys of one window are taken for one another with chance 2**-64, so
    of n keys one is marked by mistake with chance n * window / 2**64. For ten million keys and a window of a million
    that is 5e-7.

    In a window as long as the column, `keep` gives the masks of pandas and polars. In a shorter one, a key that comes
    again and again without a pause longer than the window keeps the first, or the last, of each such series; False
    keeps only keys that stand alone in the window on both sides. ``keep="last"`` reads the column from its end: a key
    is marked if it comes later in the column, at a time of at most `window` after its own.

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
    make = fastest if filter is None else family_of(filter).make
    if seed == "random" and isinstance(keys, Hashes):
        if keys.seed is not None:
            seed = keys.seed
    elif missing != "same" or not hasattr(keys, "__len__"):
        seed = token_bytes(16) if seed == "random" else seed
        keys = hashed(keys, seed, missing)
    request = {"fpr": FPR if fpr is None else fpr, "seed": seed}
    if at is None:
        window = whole(window)
        if not hasattr(window, "__index__"):
            read_span(window, "window")
            raise TypeError("a window of time needs at: when each key was seen")
        # Nothing beyond the column itself needs to be remembered.
        made = make(min(window, max(len(keys), 1)), **request)
        return made.duplicated(keys, refresh=refresh, threads=threads)
    moments = np.asarray(read_moments(at, warn_of_dates=True))
    if moments.ndim == 0:
        moments = np.repeat(moments, len(keys))
    made = _planned_for(moments, make, read_span(window, "window"), **request)
    return made.duplicated(keys, at=at, refresh=refresh, threads=threads)


def check_keep(keep: Any, *, exactly: bool, refresh: Any) -> None:
    """Raise `ValueError` if `keep` is no such choice, or needs an answer that is not requested."""
    if keep is not False and keep not in ("first", "last"):
        raise ValueError(f"keep must be 'first', 'last' or False, got {keep!r}")
    if keep != "first" and not exactly:
        raise ValueError(f"keep={keep!r} is for the exact answer: leave out fpr and filter")
    if keep != "first" and refresh is not True:
        raise ValueError(f"keep={keep!r} needs refresh=True, got refresh={refresh!r}")


def _on_both_sides(keys: Any, at: Any, keep: Literal["last", False], *, seed: Any, **options: Any) -> NDArray[np.bool_]:
    """Mark the keys with the same key in the window after them; for `keep` False also those with one before them."""
    missing = options.pop("missing")
    if isinstance(keys, Hashes):
        hashes = np.asarray(keys)
        if missing != "same":
            hash_keys(keys, missing=missing)
    else:
        hashes = hash_keys(keys, seed=token_bytes(16) if seed == "random" else seed, missing=missing)
    if at is not None:
        at = np.asarray(read_moments(at, warn_of_dates=True))

    def marks(hashes: NDArray[np.uint64], at: NDArray[np.int64] | None) -> NDArray[np.bool_]:
        times = None if at is None else at.view("datetime64[ns]")
        return duplicated_exactly(Hashes(hashes), at=times, refresh=True, missing="same", seed="random", **options)

    # Read from the end, with its clock running backwards, the window after a key is a window before it.
    mirrored = None if at is None else -at[::-1] if at.ndim else -at
    after = marks(np.ascontiguousarray(hashes[::-1]), mirrored)[::-1]
    return np.ascontiguousarray(after) if keep == "last" else after | marks(hashes, at)


def hashed(keys: Any, seed: int | bytes, missing: Literal["same", "distinct"]) -> Hashes:
    """Hash keys for a filter of this seed, and treat missing ones as `missing` requests."""
    return Hashes(hash_keys(keys, seed=seed, missing=missing), seed=seed)


def _planned_for(moments: NDArray[np.int64], make: Callable[..., Filter], span: int, **request: Any) -> Filter:
    """Plan a filter for known times: with the lateness they have, and the capacity of their peak."""
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
    """Count the keys of the fullest span: between multiples of its length, or anywhere where pages rotate by turns."""
    if aligned:
        _, keys = np.unique(latest // length, return_counts=True)
    else:
        keys = np.searchsorted(latest, latest + length) - np.arange(len(latest))
    return int(keys.max(initial=1))
