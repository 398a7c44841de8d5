"""The one-liner that tells which keys of a column were seen lately."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lately._core import Filter, Hashes, read_moments, read_span
from lately._families import fastest, generations
from lately._plan import Choice, family_of


def duplicated(
    keys: Any,
    window: Any,
    *,
    fpr: float = 0.001,
    at: Any = None,
    refresh: "bool | Literal['delivered']" = True,
    seed: "int | bytes | Literal['random']" = "random",
    filter: str | type[Filter] | Choice | None = None,
    threads: int = 1,
) -> NDArray[np.bool_]:
    """Tell for each key in order whether it was seen lately.

    Parameters
    ----------
    keys : array-like, Series, column or frame
        n keys; a row of a frame or of a 2-D array is one key. See `hash_keys`.
    window : int or span of time
        What "lately" means: the last `window` keys, or a span such as ``"10min"``, a `datetime.timedelta` or a
        `numpy.timedelta64`, which needs `at`.
    fpr : float, default 0.001
        Greatest allowed chance, in (0, 1), of marking a key that was never seen, or last seen longer than window and
        slack ago. In the slack, up to half a window (or 64 keys, or what late times add) after leaving the window, a
        key may still be marked. `Swamp` has no slack; a filter that you construct has the slack you choose.
    at : n times, optional
        When each key was seen, for a window of time: numbers are Unix seconds, or datetimes. They may step back: a key
        is marked if it was seen within `window` before the latest time so far.
    refresh : {True, False, "delivered"}, default True
        True: every occurrence restarts the key's window. False: only keys that are not marked do, so that a key comes
        through again once it was last let through longer ago than the window, which goes on with every key. "delivered"
        is paper 4's: a window of insertions goes on only with keys that are not marked. See `Filter.duplicated`.
    seed : int, bytes or "random", default "random"
        Seed of the key hashes, as in `AgePartitionedBloomFilter`. By default they are keyed anew by each call, so that
        nobody can choose keys that collide; `Hashes` keep the seed they were made with. Give an int for the same
        mistakes in every run.
    filter : str, type of Filter or Choice, optional
        The family to use: a name such as ``"guarded-epoch-transposed"``, as `plan` shows them, a class such as
        `GuardedEpochBloomFilter`, or a row of `plan`, of which only the name counts. The filter itself is planned here,
        for `window`, `fpr` and the times of these keys; a filter that is already made has a `duplicated` of its own.
        The default is `AgePartitionedBloomFilter` in lines, the fastest. `StableBloomFilter` may miss keys, and
        `FingerprintBuffer` takes a time per key that grows with the window. In `TimeLimitedBloomFilter` `fpr` holds for
        a steady rate of keys.
    threads : int, default 1
        How many threads share the column; the answers are the same. The default filter gains most by it: see
        `Filter.duplicated`.

    Returns
    -------
    ndarray of bool, shape (n,)
        True where the key was seen lately. With `refresh`, no such key is ever missed (but by `StableBloomFilter`).

    Raises
    ------
    TypeError
        If a key is of a type that has no canonical form, a window of time comes without `at`, or one of insertions is
        asked of a filter that has none, or `filter` is neither a name, a class of filters nor a `Choice`.
    ValueError
        If a parameter is out of range, `at` is missing a time or does not fit `keys`, or the filter has no windows of
        time or no `fpr`.

    See Also
    --------
    AgePartitionedBloomFilter : The filter behind this, for streams that come in batches.
    plan : The families side by side.

    Examples
    --------
    >>> lately.duplicated(["a", "b", "a", "c", "b"], window=100)
    array([False, False,  True, False,  True])
    >>> lately.duplicated(["a", "a", "a"], window="10min", at=[0, 599, 2000])
    array([False,  True, False])
    >>> lately.duplicated(["a", "b", "a", "c", "b"], window=2, filter="swamp")
    array([False, False,  True, False, False])
    """
    make = fastest if filter is None else family_of(filter).make
    if seed == "random" and isinstance(keys, Hashes) and keys.seed is not None:
        seed = keys.seed
    if not hasattr(keys, "__len__"):
        keys = list(keys)
    if at is None:
        if not hasattr(window, "__index__"):
            raise TypeError("a window of time needs at: when each key was seen")
        # Nothing beyond the column itself needs to be remembered.
        made = make(min(window, max(len(keys), 1)), fpr=fpr, seed=seed)
        return made.duplicated(keys, refresh=refresh, threads=threads)
    moments = np.asarray(read_moments(at))
    if moments.ndim == 0:
        moments = np.repeat(moments, len(keys))
    made = _planned_for(moments, make, read_span(window, "window"), fpr=fpr, seed=seed)
    return made.duplicated(keys, at=at, refresh=refresh, threads=threads)


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
