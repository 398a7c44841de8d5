"""The one-liner that tells which keys of a column were seen lately."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately import _time
from lately._core import AgePartitionedBloomFilter


def duplicated(
    keys: Any,
    window: Any,
    *,
    fpr: float = 0.001,
    at: Any = None,
    refresh: bool = True,
    seed: int = 0,
) -> NDArray[np.bool_]:
    """Tell for each key in order whether it was seen lately.

    Parameters
    ----------
    keys : array-like, Series, column or frame
        n keys; a row of a frame or of a 2-D array is one key. See `hash_keys`.
    window : int or span of time
        What "lately" means: the last so many keys, or a span such as ``"10min"``, a `datetime.timedelta` or a
        `numpy.timedelta64`, which needs `at`.
    fpr : float, default 0.001
        Most that the chance may be of marking a key that was never seen, or longer ago than window and slack, in
        (0, 1). In the slack, up to half a window (or 64 keys, or what late times add) after leaving the window, a key
        may be marked for its own sake; a filter of your own can have less.
    at : n times, optional
        When each key was seen, for a window of time: numbers are Unix seconds, or datetimes. They may step back: a key
        is marked if it was seen within `window` before the latest time so far.
    refresh : bool, default True
        True: every sighting restarts the key's window. False: only keys that are not marked do, so that a key comes
        through again once it was last let through longer ago than the window.
    seed : int, default 0
        Seed of the key hashes.

    Returns
    -------
    ndarray of bool, shape (n,)
        True where the key was seen lately. With `refresh`, no such key is ever missed.

    Raises
    ------
    TypeError
        If a key is of a type that has no canonical form, or a window of time comes without `at`.
    ValueError
        If a parameter is out of range, or `at` is missing a time or does not fit `keys`.

    See Also
    --------
    AgePartitionedBloomFilter : The filter behind this, for streams that come in batches.

    Examples
    --------
    >>> lately.duplicated(["a", "b", "a", "c", "b"], window=2)
    array([False, False,  True, False, False])
    >>> lately.duplicated(["a", "a", "a"], window="10min", at=[0, 599, 2000])
    array([False,  True, False])
    """
    if not hasattr(keys, "__len__"):
        keys = list(keys)
    plan: dict[str, Any] = {"fpr": fpr, "block_bits": 512, "seed": seed}
    if at is None:
        if not hasattr(window, "__index__"):
            raise TypeError("a window of time needs at: when each key was seen")
        # More than the whole column need not be remembered.
        return AgePartitionedBloomFilter(min(window, max(len(keys), 1)), **plan).duplicated(keys, refresh=refresh)
    moments = np.asarray(_time.moments(at))
    if moments.ndim == 0:
        moments = np.repeat(moments, len(keys))
    return _filter_for(_time.span(window, "window"), moments, plan).duplicated(keys, at=at, refresh=refresh)


def _filter_for(span: int, moments: NDArray[np.int64], plan: dict[str, Any]) -> AgePartitionedBloomFilter:
    """Plan a filter for times that are all known: late by as much as they are, and as full as it gets at the peak."""
    latest = np.maximum.accumulate(moments)
    lateness = int((latest - moments).max(initial=0))
    kept = span + lateness
    capacity = 1
    while True:
        made = AgePartitionedBloomFilter(
            np.timedelta64(span, "ns"), capacity=capacity, lateness=np.timedelta64(lateness, "ns"), **plan
        )
        generations = made.parameters["l"]
        _, keys = np.unique(latest // -(-kept // generations), return_counts=True)
        peak = int(keys.max(initial=1))
        # The filter plans for capacity * kept / (span * generations) keys in each generation, rounded up.
        needed = -(-peak * generations * span // kept)
        if needed <= capacity:
            return made
        capacity = needed
