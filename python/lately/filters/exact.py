"""The exact window: answers without false positives, in memory that holds every key."""

from __future__ import annotations

from copy import deepcopy

import lately._core as _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, Self

    import numpy as np
    from numpy.typing import NDArray

    from lately._core import _Missing, _Moments, _Refresh, _Seed, _Span
    from lately._once import Claim


class ExactFilter(_core.ExactFilter):
    """Exact window: no slack and no false positives, in memory that holds every key.

    It has the calls of `Filter`, but is not a subclass of it: it has no rate, no prior and no generations. A window of
    keys takes 26 bytes for each of them (38 up to 131,072 keys), a window of time 50 to 100 for each key in it.

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
    __slots__ = ("__weakref__",)

    def __new__(
        cls,
        window: int | _Span,
        *,
        lateness: _Span | None = None,
        max_ahead: _Span | None = "window",
        missing: Literal["same", "distinct"] = "same",
        seed: _Seed = "random",
    ) -> Self:
        return super().__new__(cls, window, lateness=lateness, max_ahead=max_ahead, missing=missing, seed=seed)

    def seen(self, key: Any, *, at: _Moments = None, refresh: _Refresh = True) -> bool:
        """Return whether one key was seen within the window, and insert it, in one step.

        If several threads pass the same new key, exactly one gets False.

        Parameters
        ----------
        key
            As in `Filter.add`.
        at : time, optional
            When the key was seen, for a window of time: a Unix second or a datetime. The default is now, or `latest`
            where that is later.
        refresh : {True, False, "delivered"}, default True
            Whether a key that was seen restarts its window. See `Filter.duplicated`.

        Returns
        -------
        bool
            True if the key was seen within the window.

        Raises
        ------
        TypeError, ValueError
            If the key has no canonical form, or `at` is missing, too late or too far ahead. Nothing was inserted then.

        Examples
        --------
        >>> seen = lately.ExactFilter("10min")
        >>> seen.seen(("10.0.0.1", "/")), seen.seen(("10.0.0.1", "/"))
        (False, True)
        """
        return super().seen(key, at=at, refresh=refresh)

    def duplicated(
        self, keys: Any, *, at: _Moments = None, subset: Any = None, refresh: _Refresh = True, threads: int = 1
    ) -> NDArray[np.bool_]:
        """Return for each key in order whether it was seen within the window, and insert it.

        Parameters
        ----------
        keys
            As in `Filter.duplicated`.
        at : time or n times, optional
            When the keys were seen, as in `seen`, or the column of a frame that has the times. Times may step back by
            at most `lateness`.
        subset, refresh
            As in `Filter.duplicated`.
        threads : int, default 1
            Number of threads that share the hashing, which is faster for long strings. The answers are the same.

        Returns
        -------
        ndarray of bool, shape (n,)
            True where the key was seen within the window, repeats within the batch included.

        Raises
        ------
        TypeError, ValueError
            If a key has no canonical form, or a time is missing, too late or too far ahead. Nothing was inserted then,
            unless another thread moved the clock during the call. The attribute ``answers`` of the error has the
            answers until then.
        MemoryError
            If there is not enough memory. The keys before that are inserted.

        Examples
        --------
        >>> lately.ExactFilter(100).duplicated(["a", "b", "a"])
        array([False, False,  True])
        """
        if subset is not None or (isinstance(at, str) and hasattr(keys, "columns")):
            from lately._frames import picked

            keys, at = picked(keys, subset, at)
        return super().duplicated(keys, at=at, refresh=refresh, threads=threads)

    def insert(self, keys: Any, *, at: _Moments = None, threads: int = 1) -> None:
        """Insert keys, in order.

        Parameters
        ----------
        keys, at, threads
            As in `ExactFilter.duplicated`.

        Raises
        ------
        TypeError, ValueError, MemoryError
            As in `ExactFilter.duplicated`.

        Examples
        --------
        >>> seen = lately.ExactFilter(100)
        >>> seen.insert(["a", "b"])
        >>> len(seen)
        2
        """
        super().insert(keys, at=at, threads=threads)

    update = insert

    def add(self, key: Any, *, at: _Moments = None) -> None:
        """Insert one key.

        Parameters
        ----------
        key, at
            As in `ExactFilter.seen`.

        Raises
        ------
        TypeError, ValueError
            As in `ExactFilter.seen`.

        Examples
        --------
        >>> seen = lately.ExactFilter(100)
        >>> seen.add(("10.0.0.1", "/"))
        >>> ("10.0.0.1", "/") in seen
        True
        """
        super().add(key, at=at)

    def query(self, keys: Any, *, at: _Moments = None, threads: int = 1) -> NDArray[np.bool_]:
        """Return for each key whether it was seen within the window, and insert nothing.

        Parameters
        ----------
        keys, threads
            As in `ExactFilter.duplicated`.
        at : time or n times, optional
            The end of the window, for a window of time. The default is now, or `latest` where that is later, or where
            every key so far came with a time of its own.

        Returns
        -------
        ndarray of bool, shape (n,)
            True where the key was seen within the window.

        Raises
        ------
        TypeError, ValueError
            If a key has no canonical form, or `at` does not fit the window or the keys.

        Examples
        --------
        >>> seen = lately.ExactFilter("10min")
        >>> seen.insert(["a", "b"], at=[0, 500])
        >>> seen.query(["a", "b", "c"], at=700)
        array([False,  True, False])
        """
        return super().query(keys, at=at, threads=threads)

    def once(
        self,
        key: Any,
        *,
        at: _Moments = None,
        wait: _Span | None = None,
        lease: _Span = "10min",
        missing: _Missing = "distinct",
    ) -> Claim:
        """Claim a key for a block of work that is done once, and remembered only if it succeeds.

        Parameters, claims and errors are those of `Filter.once`. A new key is never taken for done, and the claims are
        those of this process: other processes cannot share them.

        Parameters
        ----------
        key, at, wait
            As in `Filter.once`.
        lease : span of time, default "10min"
            Without effect, because no other process has claims. It is there for code that takes either filter.
        missing
            As in `Filter.once`.

        Returns
        -------
        Claim
            As in `Filter.once`.

        Examples
        --------
        >>> seen = lately.ExactFilter("1d")
        >>> for _ in range(2):
        ...     with seen.once("evt_1") as claim:
        ...         print("to do" if claim else "done")
        to do
        done
        """
        from lately._once import Claim

        return Claim(self, key, at, wait, lease, missing)

    def clear(self) -> None:
        """Remove all keys, and forget the latest time; `inserted` is 0 again."""
        super().clear()

    @property
    def window(self) -> int | float:
        """Window in keys, int, or in seconds, float."""
        return super().window

    @property
    def lateness(self) -> float | None:
        """How far `at` may step back, in seconds: float, or None for a window of keys."""
        return super().lateness

    @property
    def max_ahead(self) -> float | None:
        """How far `at` may lie ahead of the system's clock, in seconds: float, or None for no limit."""
        return super().max_ahead

    @property
    def latest(self) -> np.datetime64 | None:
        """numpy.datetime64 or None: the latest time of a key; None before the first key, and for a window of keys."""
        return super().latest

    @property
    def inserted(self) -> int:
        """int: number of insertions so far, repeats included. ``len(f)`` counts the different keys in the window."""
        return super().inserted

    @property
    def nbytes(self) -> int:
        """int: bytes of the table of keys. The operating system provides them as keys arrive."""
        return super().nbytes

    @property
    def missing(self) -> str:
        """str: whether missing keys are one key ("same"), or each its own ("distinct")."""
        return super().missing

    @property
    def seed(self) -> int | None:
        """Seed of the key hashes: int, or None for a secret, which is not shown."""
        return super().seed

    def save(self, file: Any) -> None:
        """Save to a file, which `lately.open` reads. A file given by its path is replaced whole, once all is on disk.

        Parameters
        ----------
        file : path-like or binary file
            Path, or an object with a method `write`. The file has 16 bytes for each key of the window. It contains the
            secret seed, so only its owner may read it.

        Raises
        ------
        OSError
            If the file cannot be written. A file that was there is unchanged.

        Examples
        --------
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "seen.lately")
        >>> seen = lately.ExactFilter("1d")
        >>> seen.add("a")
        >>> seen.save(path)
        >>> "a" in lately.open(path)
        True
        """
        super().save(file)

    def to_bytes(self) -> bytes:
        """Return the saved form, which `lately.from_bytes` reads. Equal filters have equal bytes."""
        return super().to_bytes()

    def copy(self) -> Self:
        """Return an independent copy."""
        made = _core.ExactFilter.__new__(type(self), self._state_copy())
        if hasattr(self, "__dict__"):
            made.__dict__.update(self.__dict__)
        return made

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy; the attributes of a subclass are copied deeply."""
        made = memo[id(self)] = self.copy()
        if hasattr(self, "__dict__"):
            made.__dict__.update(deepcopy(self.__dict__, memo))
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Return class, saved form and attributes for pickle."""
        return _restored, (type(self), self.to_bytes()), getattr(self, "__dict__", None)

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same window, seed, keys and times."""
        if not isinstance(other, ExactFilter):
            return NotImplemented
        return self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Return class, window, number of keys and bytes."""
        window = f"{self.window} s" if isinstance(self.window, float) else self.window
        return f"<{type(self).__name__} window={window} keys={len(self)} nbytes={self.nbytes} inserted={self.inserted}>"


def _restored(kind: type[ExactFilter], data: bytes) -> ExactFilter:
    """Make the filter that a pickle contains."""
    made: Any = _core.from_bytes(data)
    return made if kind is ExactFilter else _core.ExactFilter.__new__(kind, made._state_copy())
