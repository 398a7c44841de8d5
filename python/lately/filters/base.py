"""The class that all filters share, and that chooses a family for a request."""

from __future__ import annotations

import lately._core as _core
from lately._once import Claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, ClassVar, Literal, Self

    from lately._core import _Missing, _Moments, _Seed, _Span


class Filter(_core.Filter):
    """Filter over a window: remembers the keys of the window in constant memory. One name for all families.

    The planner chooses a family, and the filter is an instance of its class, such as `AgedCuckooFilter`. All families
    are subclasses of `Filter`, and have the methods below.

    Parameters
    ----------
    window : int or span of time
        What "lately" means: a number of insertions, or a span of time such as ``"10min"``, a `datetime.timedelta` or a
        `numpy.timedelta64`. A key that comes again after exactly this long is a repeat.
    fpr : float
        Highest chance of reporting a key that was never inserted, at the worst phase, in (0, 1). Give this or `nbytes`.
    nbytes : int
        Greatest number of bytes. The filter then has the lowest rate that its family can have in them. `ValueError` if
        that rate would exceed 0.5; the message gives the minimum.
    slack : int or span of time, optional
        Longest time for which a key may still be reported after it has left the window, in the unit of `window`. By
        default it is at most 1/64 of the window, or 1/200 of window and `lateness` together if that is more.
    capacity : int, optional
        For a window of time: the keys expected within it. More keys get more memory, with or without it: window and
        rate stay as promised. With `nbytes` it is needed. There, and where ``prefer="memory"`` takes another family,
        more keys raise the rate of false positives, and an `OverfullWarning` is issued; the window stays whole.
    lateness : span of time, optional
        For a window of time: how far `at` may step back. Keys are kept for this much longer, so that late keys have
        the full window too. The default is 0.
    max_ahead : span of time or None, default "window"
        For a window of time: how far `at` may lie ahead of the system's clock when keys are inserted. A single time
        from a wrong clock would otherwise end the window of all keys before it, and every correct time after it would
        be rejected. "window" is one window, at least a minute. None accepts any time: for simulations.
    distinct : int, optional
        For a window of insertions with repeats: the greatest number of different keys in it. The planner then
        takes `AgedCuckooFilter`, the only family whose memory follows this number.
    seed : int, bytes or "random", default 0
        Seed of the key hashes: an int in [0, 2**64), or 16 secret bytes, or "random", for which the filter draws such
        bytes. Take "random" where keys come from outside. See the notes of `hash_keys`.
    prefer : {"speed", "memory", "exact"}, optional
        By default the filter is an `AgedCuckooFilter`, with little slack in few bytes. "speed" takes
        `AgePartitionedBloomFilter` in lines where they are faster: for a window of insertions and an fpr of 1 % or
        more. Their slack may be half the window. "memory" takes the family with the fewest bytes (with `nbytes`, the
        lowest rate); its slack may also be half the window. "exact" makes an `ExactFilter`. It takes no `fpr`,
        `nbytes`, `slack`, `capacity` or `distinct`.

    Raises
    ------
    ValueError
        If a parameter is out of range, or no filter meets all of them. The message gives the reason.
    TypeError
        If a parameter is of the wrong type, or neither `fpr` nor `nbytes` is given.
    MemoryError
        If there is not enough memory.

    See Also
    --------
    plan : The families side by side, with what they promise and cost.
    duplicated : A whole column in one call.
    ExactFilter : Exact answers, in memory that holds every key.

    Notes
    -----
    Equal requests make equal filters, on every machine. The planner allocates no memory for the families that it does
    not choose. `from_parameters` of the class of a family takes the parameters of its paper instead of a request.

    A key is anything that `hash_keys` takes. Keys that compare equal in Python are one key, in any container.

    Several threads may use one filter: queries run side by side, and each key of a batch is one step. A window of time
    has one clock for all threads that pass times. If other threads move it past a batch by more than `lateness`, that
    batch stops half-way with an error. `os.fork` waits until no thread is within a block of keys; the child then has a
    filter of its own, in the state between two blocks.

    ``key in f`` cannot have a time. It answers as of now, or as of the latest time if every key came with a time of its
    own. `query` and `seen` accept a time.

    A subclass of `Filter` has the engine of the chosen family, but not the methods that only that family's class has.

    Examples
    --------
    >>> f = lately.Filter(1_000_000, 0.001)
    >>> f.seen("a"), f.seen("b"), f.seen("a")
    (False, False, True)
    >>> type(f).__name__, isinstance(f, lately.Filter)
    ('AgedCuckooFilter', True)
    >>> fast = lately.Filter(1_000_000, 0.01, prefer="speed")
    >>> type(fast).__name__, f.slack, fast.slack
    ('AgePartitionedBloomFilter', 15625, 334368)
    >>> f = lately.Filter("10min", 0.001)
    >>> f.duplicated(["a", "a", "a"], at=[0, 599, 2000])
    array([False,  True, False])
    """

    __module__ = "lately"
    __slots__ = ("__weakref__",)

    _family: ClassVar[str | None] = None
    """Path of the class of the family within the package; None to choose one."""

    def __new__(
        cls,
        window: int | _Span,
        fpr: float | None = None,
        *,
        nbytes: int | None = None,
        slack: int | _Span | None = None,
        capacity: int | None = None,
        lateness: _Span | None = None,
        max_ahead: _Span | None = "window",
        distinct: int | None = None,
        seed: _Seed = 0,
        prefer: Literal["speed", "memory", "exact"] | None = None,
    ) -> Self:
        limits = {"fpr": fpr, "nbytes": nbytes, "slack": slack, "capacity": capacity, "distinct": distinct}
        given = {"window": window, "lateness": lateness, "max_ahead": max_ahead, "seed": seed, "prefer": prefer}
        return cls._built(cls._family, **limits, **given)

    @classmethod
    def from_parameters(
        cls,
        window: int | _Span | None = None,
        *,
        capacity: int | None = None,
        lateness: _Span | None = None,
        max_ahead: _Span | None = "window",
        seed: _Seed = 0,
        **parameters: int,
    ) -> Self:
        """Make a filter of this class with the parameters of its paper.

        Parameters
        ----------
        window : int or span of time, optional
            As in `Filter`. A `BloomFilter` has none.
        capacity : int, optional
            The keys expected: within a window of time, or in all for a `BloomFilter`.
        lateness, max_ahead, seed
            As in `Filter`.
        **parameters : int
            By the names that `parameters` has. The page of each class in the reference has a table of them, and so has
            the error for a name that is unknown. Which are given decides the layout: `pages` and `lines` make lines,
            `blocks` makes blocks.

        Raises
        ------
        TypeError
            If a parameter is missing, unknown, no whole number, or does not go with the others.
        ValueError
            If a parameter is out of range.
        MemoryError
            If there is not enough memory.

        Examples
        --------
        >>> f = lately.AgePartitionedBloomFilter.from_parameters(1000, k=10, l=7, slice_bits=2064)
        >>> f.nbytes, round(f.npws, 3)
        (4488, 0.261)
        >>> f.parameters
        {'k': 10, 'l': 7, 'slice_bits': 2064}
        >>> f = lately.AgePartitionedBloomFilter.from_parameters(1000, k=2, l=6, pages=1, lines=1)
        >>> f.nbytes, f.slack, round(f.fpr, 4)
        (4096, 336, 0.0014)
        """
        if cls._family is None:
            raise TypeError(f"from_parameters needs the class of a family, such as Swamp, got {cls.__name__}")
        given = {"capacity": capacity, "lateness": lateness, "max_ahead": max_ahead, "seed": seed}
        return cls._built(cls._family, window=window, parameters=parameters, **given)

    @staticmethod
    def _shapes(nbytes: int) -> Iterator[dict[str, Any]]:
        """Yield shapes of these bytes for `tune` to try, beside those that are planned."""
        return iter(())

    @classmethod
    def _built(cls, of: str | None, /, **given: Any) -> Self:
        """Make a filter of this class, or of the family's own for `Filter`, from what `_core.build` takes."""
        built = _core.build(of, **given)
        kind: Any = built.kind if cls is Filter else cls
        return _core.Filter.__new__(kind, built)  # type: ignore[no-any-return]

    update = _core.Filter.insert

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

        The block begins with a claim, which is true if the block has to do the work. The key is inserted when the block
        ends. If the block raises, the claim ends without an insertion, and another block may try. Use ``with``, or
        ``async with`` in a coroutine.

        Parameters
        ----------
        key : key
            Anything that `hash_keys` takes, such as the sender's id of an event.
        at : time, optional
            When the event happened, for a window of time. The default is now.
        wait : span of time, optional
            How long to wait at the beginning of the block while another block holds a claim of the key. By default the
            block does not wait.
        lease : span of time, default "10min"
            The longest that a claim lasts in a filter that processes share, because a process may hang with its claims.
            Choose more than the longest work takes, or call `Claim.renew` meanwhile: after it another block may claim
            the key. On Linux the claims of a process that died end at once. In a private filter a claim ends with its
            block.
        missing : {"distinct", "same"}, default "distinct"
            Whether a missing key (None, NaN, NaT, NA) is new each time, so that the work of an event without an id is
            never taken for done, or all missing keys are one.

        Returns
        -------
        Claim
            True if this block has to do the work. Otherwise either `Claim.done` is True, because the work was done
            within the window, or `Claim.busy`, because another block holds a claim. That block may still fail.

        Raises
        ------
        TypeError, ValueError
            If the key has no canonical form, or a parameter is out of range.
        TimeoutError
            If another process has the lock of a shared filter for longer than the `timeout` of `open`.
        RuntimeError
            At the end of the block, if the lease ended and another block has claimed the key (see `Claim.lost`).

        See Also
        --------
        lately.once : A decorator for functions that do such work.
        seen : Insert the key at once, whether the work succeeds or not.

        Notes
        -----
        If several threads, tasks or processes claim one new key, exactly one gets a claim that is true. A repeat does
        not restart the window of its key. With a chance of at most `fpr`, the work of a new key is taken for done.
        The how-to page on `once` describes the state after a crash at each step.

        Processes share a filter by `open` with ``shared=True``. Their claims are in its file, at most some 10,000 at a
        time.

        Examples
        --------
        >>> seen = lately.Filter("1d", 1e-9)
        >>> def receive(event, fails=False):
        ...     with seen.once(event) as claim:
        ...         if claim.busy:
        ...             return "retry later"
        ...         if claim and fails:
        ...             raise ConnectionError(event)
        ...         return "done now" if claim else "done before"
        >>> receive("evt_1", fails=True)
        Traceback (most recent call last):
        ...
        ConnectionError: evt_1
        >>> receive("evt_1"), receive("evt_1")
        ('done now', 'done before')
        """
        return Claim(self, key, at, wait, lease, missing)

    def explain(self) -> str:
        """Describe this filter in words: its family, its promise, and how full it is now.

        Returns
        -------
        str
            The family and the reason to take it, window, slack, planned and current rate of false positives, bytes,
            fill, number of insertions and kind of seed. Reads all of the filter's memory.

        Examples
        --------
        >>> print(lately.Filter(1_000_000, 0.001).explain())
        AgedCuckooFilter, aged-cuckoo
          why              fast, in few bytes, none of them for repeats, and with an age for every key
          window           the last 1,000,000 keys: a key inserted within it is always reported
          slack            up to 15,625 keys more (1/64 of the window), in which a key may still be reported
          false positives  a key never inserted is reported with a chance of 0.000596 as planned, 0 now
          memory           3,328,000 bytes, 26.6 bits per key of a full window
          fill             0.0% of the cells in use, 0.0% at most of 65 parts
          inserted         0 so far
          seed             0, which is no secret: where keys come from outside, take seed="random"
        """
        from lately._explain import explained

        return explained(self)
