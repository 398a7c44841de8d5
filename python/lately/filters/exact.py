"""The exact window as an object: its answers are right, for the memory of its keys."""

from __future__ import annotations

import lately._core as _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, Self

    import numpy as np
    from numpy.typing import NDArray

    from lately._core import _Moments, _Refresh, _Seed, _Span
    from lately._once import Claim


class ExactFilter(_core.Exact):
    """Exact window: right answers, without slack and without false positives, in memory that holds every key.

    It has the calls of `Filter`, and is no subclass of it: it has no rate, no prior and no generations. A window of
    keys takes 26 bytes for each of them (38 up to 131,072 keys), a window of time 50 to 100 for each key in it.

    Parameters
    ----------
    window : int or span of time
        What "lately" means: the last `window` keys, or a span of time such as ``"10min"``, a `datetime.timedelta` or a
        `numpy.timedelta64`. Memory of a window of time follows the keys in it.
    lateness : span of time, optional
        For a window of time: how far `at` may step back. Keys stay for so much longer. The default is 0.
    max_ahead : span of time or None, default "1 d"
        For a window of time: how far `at` may lie ahead of the system's clock when keys are inserted. None accepts any
        time: for simulations.
    missing : {"same", "distinct"}, default "same"
        What keys that are missing (None, NaN, NaT, NA, null) are: one key, or each its own and never seen.
    seed : int, bytes or "random", default "random"
        Seed of the key hashes: an int, 16 secret bytes, or "random" for such bytes that the filter draws itself. By
        default an attacker cannot choose keys that collide. See Notes of `hash_keys`.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range, or of the wrong type. The message names it.
    MemoryError
        If there is not enough memory. The keys before that are inserted.

    See Also
    --------
    Filter : A few bytes per key, and a chance of false positives.
    duplicated : The same answers for a whole column.

    Notes
    -----
    Keys are compared by 64-bit hashes: a new key is taken for one of n keys in the window with the chance n / 2**64.

    A filter may be used from many threads; a batch holds the lock for a block of keys at a time. Times that threads
    pass are those of one clock: `lateness` gives room to threads that lag. Processes cannot share it.

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
        max_ahead: _Span | None = "1 d",
        missing: Literal["same", "distinct"] = "same",
        seed: _Seed = "random",
    ) -> Self:
        return super().__new__(cls, window, lateness=lateness, max_ahead=max_ahead, missing=missing, seed=seed)

    def seen(self, key: Any, *, at: _Moments = None, refresh: _Refresh = True) -> bool:
        """Return whether one key was seen within the window, and insert it, in one step.

        Of threads with one new key, one gets False.

        Parameters
        ----------
        key : int, float, str, bytes, datetime, tuple, None ...
            A tuple is a row: one key of several fields.
        at : time, optional
            When it was seen, for a window of time: a Unix second or a datetime. The default is now, or `latest` where
            that is later.
        refresh : {True, False, "delivered"}, default True
            Whether a key that was seen begins its window anew. See `Filter.duplicated`.

        Returns
        -------
        bool

        Examples
        --------
        >>> seen = lately.ExactFilter("10min")
        >>> seen.seen(("10.0.0.1", "/")), seen.seen(("10.0.0.1", "/"))
        (False, True)
        """
        return super().seen(key, at=at, refresh=refresh)

    def duplicated(
        self, keys: Any, *, at: _Moments = None, refresh: _Refresh = True, threads: int = 1
    ) -> NDArray[np.bool_]:
        """Return for each key in order whether it was seen within the window, and insert it.

        Parameters
        ----------
        keys : array-like, Series, column or frame
            A batch of n keys; a row of a frame or of a 2-D array is one key. See `hash_keys`.
        at : time or n times, optional
            When they were seen, as in `seen`. Times may step back by at most `lateness`.
        refresh : {True, False, "delivered"}, default True
            As in `Filter.duplicated`.
        threads : int, default 1
            How many threads share the hashing, which gains for long strings.

        Returns
        -------
        ndarray of bool, shape (n,)

        Raises
        ------
        TypeError, ValueError
            If a key has no canonical form, or a time is missing, too late or too far ahead. Nothing was inserted then,
            unless another thread moved the clock meanwhile: the answers so far are the attribute ``answers``.
        MemoryError
            If there is not enough memory. The keys before that are inserted.

        Examples
        --------
        >>> lately.ExactFilter(100).duplicated(["a", "b", "a"])
        array([False, False,  True])
        """
        return super().duplicated(keys, at=at, refresh=refresh, threads=threads)

    def insert(self, keys: Any, *, at: _Moments = None, threads: int = 1) -> None:
        """Insert keys, in order; parameters and errors are those of `duplicated`."""
        super().insert(keys, at=at, threads=threads)

    update = insert

    def add(self, key: Any, *, at: _Moments = None) -> None:
        """Insert one key; parameters and errors are those of `seen`."""
        super().add(key, at=at)

    def query(self, keys: Any, *, at: _Moments = None, threads: int = 1) -> NDArray[np.bool_]:
        """Return for each key whether it was seen within the window, and insert nothing.

        Parameters
        ----------
        keys, threads
            As in `duplicated`.
        at : time or n times, optional
            The end of the window, for a window of time. The default is now, or `latest` where that is later, or where
            every key so far came with a time of its own.

        Returns
        -------
        ndarray of bool, shape (n,)

        Examples
        --------
        >>> seen = lately.ExactFilter("10min")
        >>> seen.insert(["a", "b"], at=[0, 500])
        >>> seen.query(["a", "b", "c"], at=700)
        array([False,  True, False])
        """
        return super().query(keys, at=at, threads=threads)

    def once(self, key: Any, *, at: _Moments = None, wait: _Span | None = None, lease: _Span = "10min") -> Claim:
        """Claim a key for a block of work that is done once, and remembered only when it succeeds.

        As `Filter.once`, without its false positives. Claims are those of this process.

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

        return Claim(self, key, at, wait, lease)

    def clear(self) -> None:
        """Forget all keys, and the time; `inserted` is 0 again."""
        super().clear()

    @property
    def window(self) -> int | float:
        """Int or float: the window in keys, or in seconds."""
        return super().window

    @property
    def lateness(self) -> float | None:
        """Float or None: how far, in seconds, `at` may step back; None for a window of keys."""
        return super().lateness

    @property
    def max_ahead(self) -> float | None:
        """Float or None: how far, in seconds, `at` may lie ahead of the system's clock; None for no limit."""
        return super().max_ahead

    @property
    def latest(self) -> np.datetime64 | None:
        """numpy.datetime64 or None: the latest time of a key; None before the first, and for a window of keys."""
        return super().latest

    @property
    def inserted(self) -> int:
        """int: keys so far, repeats included. ``len(f)`` is the number of different keys in the window."""
        return super().inserted

    @property
    def nbytes(self) -> int:
        """int: bytes of the table of keys. A window of keys uses them as keys arrive."""
        return super().nbytes

    @property
    def missing(self) -> str:
        """str: what missing keys are, "same" or "distinct"."""
        return super().missing

    @property
    def seed(self) -> int | None:
        """Int or None: seed of the key hashes; None for a secret one, which is not shown."""
        return super().seed

    def save(self, file: Any) -> None:
        """Save to a file; `lately.open` reads it. One given by its path is replaced in one step, when all is on disk.

        Parameters
        ----------
        file : path-like or binary file
            As in `Filter.save`. It has 16 bytes for each key of the window, and the secret seed: its owner's alone.

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
        """Return the saved form, which `lately.from_bytes` reads. Equal windows have equal bytes."""
        return super().to_bytes()

    def copy(self) -> Self:
        """Return a copy, which goes on apart from this filter."""
        made = _core.Exact.__new__(type(self), self._unclaimed_copy())
        if hasattr(self, "__dict__"):
            made.__dict__.update(self.__dict__)
        return made

    __copy__ = copy

    def __deepcopy__(self, _memo: Any) -> Self:
        """Return a copy."""
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what pickle stores: class, saved form and attributes."""
        return _restored, (type(self), self.to_bytes()), getattr(self, "__dict__", None)

    def __eq__(self, other: object) -> bool:
        """Return whether both have one window, one seed and the same keys and times."""
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
    return made if kind is ExactFilter else _core.Exact.__new__(kind, made._unclaimed_copy())
