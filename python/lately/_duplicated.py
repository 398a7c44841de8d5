"""The one-liner that tells which keys of a column were seen lately."""

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
"""Rate of a filter that is asked for without one."""


def duplicated(
    keys: Any,
    window: Any,
    *,
    subset: Any = None,
    at: Any = None,
    fpr: float | None = None,
    refresh: bool | Literal["delivered"] = True,
    missing: Literal["same", "distinct"] = "same",
    seed: int | bytes | Literal["random"] = "random",
    filter: str | type[Filter] | Choice | None = None,
    threads: int = 1,
) -> NDArray[np.bool_]:
    """Tell for each key in order whether it was seen within the window: exactly, unless `fpr` or `filter` is given.

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
        `numpy.timedelta64`, which needs `at`.
    subset : column name or list of them, optional
        The columns of the frame that are the key. By default all of them, but for the one that `at` names.
    at : column name, or n times, optional
        When each key was seen, for a window of time: numbers are Unix seconds; or datetimes, dates, or text of ISO
        8601. They may step back: a key is marked if it was seen before in the column, at a time of at most `window`
        before its own. Memory is that of the window and of the furthest step back.
    fpr : float, optional
        Asks for a filter: the greatest allowed chance, in (0, 1), of marking a key that was never seen, or last seen
        longer than window and slack ago. In the slack, up to half a window (or 64 keys, or what late times add) after
        leaving the window, a key may still be marked. With `filter` alone it is 0.001.
    refresh : {True, False, "delivered"}, default True
        True: every occurrence restarts the key's window. False: only keys that are not marked do, so that a key comes
        through again once it was last let through longer ago than the window, which goes on with every key. "delivered"
        is paper 4's: a window of insertions goes on only with keys that are not marked. See `Filter.duplicated`.
    missing : {"same", "distinct"}, default "same"
        What keys that are missing (None, NaN, NaT, NA, null) are: "same", one key, as to `pandas.duplicated` and to
        SQL's DISTINCT; "distinct", each its own, never marked (by a filter with probability `fpr`), as to SQL's UNIQUE
        and to joins. Then a row of which any field is missing is its own too.
    seed : int, bytes or "random", default "random"
        Seed of the key hashes, as in `AgePartitionedBloomFilter`. By default they are keyed anew by each call, so that
        nobody can choose keys that collide; `Hashes` keep the seed they were made with. Give an int for the same
        mistakes of a filter in every run.
    filter : str, type of Filter or Choice, optional
        Asks for a filter, of this family: a name such as ``"guarded-epoch-transposed"``, as `plan` shows them, a class
        such as `GuardedEpochBloomFilter`, or a row of `plan`, of which only the name counts. The filter itself is
        planned here, for `window`, `fpr` and the times of these keys; a filter that is already made has a `duplicated`
        of its own. With `fpr` alone it is `AgePartitionedBloomFilter` in lines, the fastest. `StableBloomFilter` may
        miss keys, and `FingerprintBuffer` takes a time per key that grows with the window. In `TimeLimitedBloomFilter`
        `fpr` holds for a steady rate of keys.
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
        If `subset` or `at` names a column that there is not.
    TypeError
        If a key is of a type that has no canonical form, a window of time comes without `at`, or one of insertions is
        asked of a filter that has none, `filter` is neither a name, a class of filters nor a `Choice`, or columns are
        named of what is no frame.
    ValueError
        If a parameter is out of range, `at` is missing a time or does not fit `keys`, or the filter has no windows of
        time or no `fpr`.
    MemoryError
        If there is not enough memory for the keys of the window.

    Warns
    -----
    UserWarning
        If the times are numbers that look like dates (20260131) or years: as Unix seconds they all lie in 1970.

    See Also
    --------
    drop_duplicates : The rows of a frame that are left.
    unique : The same for a stream.
    AgePartitionedBloomFilter : A filter, for streams that come in batches.
    plan : The families side by side.

    Notes
    -----
    "Exactly" is by hashes of 64 bits: two different keys of one window are taken for one another with chance 2**-64, so
    of n keys one is marked by mistake with chance n * window / 2**64. For ten million keys and a window of a million
    that is 5e-7.

    Examples
    --------
    >>> lately.duplicated(["a", "b", "a", "c", "b"], window=2)
    array([False, False,  True, False, False])
    >>> lately.duplicated(["a", "a", "a"], window="10min", at=[0, 599, 2000])
    array([False,  True, False])
    >>> lately.duplicated(["a", "b", "a", "c", "b"], window=100, fpr=0.001)
    array([False, False,  True, False,  True])
    """
    keys, at = picked(keys, subset, at)
    if fpr is None and filter is None:
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


def hashed(keys: Any, seed: int | bytes, missing: Literal["same", "distinct"]) -> Hashes:
    """Hash keys for a filter of this seed, those that are missing as they are taken."""
    return Hashes(hash_keys(keys, seed=seed, missing=missing), seed=seed)


def _planned_for(moments: NDArray[np.int64], make: Callable[..., Filter], span: int, **request: Any) -> Filter:
    """Plan a filter for known times: with the lateness they have, and the capacity of their peak."""
    latest = np.maximum.accumulate(moments)
    lateness = int((latest - moments).max(initial=0))
    kept = span + lateness
    # The same answer whenever it is asked: the system's clock has no say.
    times: dict[str, Any] = {"lateness": np.timedelta64(lateness, "ns"), "ahead": None}
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
    """Count the keys in the fullest stretch: between multiples of its length, or anywhere for pages that take turns."""
    if aligned:
        _, keys = np.unique(latest // length, return_counts=True)
    else:
        keys = np.searchsorted(latest, latest + length) - np.arange(len(latest))
    return int(keys.max(initial=1))
