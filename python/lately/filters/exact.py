"""The exact window: answers without false positives, in memory that holds every key."""

from __future__ import annotations

import lately._core as _core
from lately.filters.base import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, Self

    from lately._core import _Seed, _Span


class ExactFilter(Filter):
    """Exact window: no slack and no false positives, in memory that holds every key.

    It has the calls of `Filter`, but for those that need a prior, and `union`. A window of keys takes 26 bytes for each
    of them (38 up to 131,072 keys), a window of time 50 to 100 for each key in it. ``len(f)`` counts the different keys
    in the window.

    Parameters
    ----------
    window : int or span of time
        What "lately" means: the last `window` keys, or a span of time such as ``"10min"``, a `datetime.timedelta` or a
        `numpy.timedelta64`. The memory of a window of time follows the keys in it.
    lateness : span of time, optional
        For a window of time: how far `at` may step back. Keys are kept for this much longer. The default is 0.
    max_ahead
        As in `Filter`.
    missing : {"same", "distinct"}, default "same"
        "same": all missing keys (None, NaN, NaT, NA, null) are one key. "distinct": each is its own key, never seen.
    seed : int, bytes or "random", default "random"
        Seed of the key hashes: an int in [0, 2**64), or 16 secret bytes, or "random", for which the filter draws such
        bytes. With a secret an attacker cannot choose keys that collide. See the notes of `hash_keys`.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range, or of the wrong type. The message names it.
    MemoryError
        If there is not enough memory. The keys before that are inserted.

    See Also
    --------
    Filter : A few bytes per key, and a chance of false positives.
    duplicated : Exact answers for a whole column.

    Notes
    -----
    Keys are compared by 64-bit hashes. With n keys in the window, a new key is taken for one of them with a chance of
    n / 2**64.

    Several threads may use one filter; a batch holds the lock for one block of keys at a time. All threads that pass
    times share one clock, and `lateness` is the room for threads that lag behind. Processes cannot share it.

    Examples
    --------
    >>> seen = lately.ExactFilter("10min")
    >>> [seen.seen("a", at=time) for time in (0, 600, 1201)]
    [False, True, False]
    >>> seen = lately.ExactFilter(2)
    >>> seen.duplicated(["a", "b", "a", "c", "b"])
    array([False, False,  True, False, False])
    >>> len(seen), seen.inserted
    (2, 5)
    """

    __module__ = "lately"
    __slots__ = ()
    _family = "ExactFilter"

    def __new__(
        cls,
        window: int | _Span,
        *,
        lateness: _Span | None = None,
        max_ahead: _Span | None = "window",
        missing: Literal["same", "distinct"] = "same",
        seed: _Seed = "random",
    ) -> Self:
        given = {"lateness": lateness, "max_ahead": max_ahead, "missing": missing, "seed": seed}
        return cls._built(cls._family, window=window, **given)

    def __len__(self) -> int:
        """Return the number of different keys in the window. Reads the whole table."""
        return _core.keys(self)

    @property
    def missing(self) -> str:
        """str: whether missing keys are one key ("same"), or each its own ("distinct")."""
        return "distinct" if self.parameters.get("missing_differ") else "same"
