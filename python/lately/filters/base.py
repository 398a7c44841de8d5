"""The class of all filters, which chooses among them."""

from __future__ import annotations

from contextlib import suppress

import lately._core as _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, ClassVar, Literal, Self

    from lately._core import _Seed, _Span


class Filter(_core.Filter):
    """Have I seen this key lately? The filter that suits a window: one name for all of them.

    The planner chooses a family, and the filter is an instance of its class, such as `AgePartitionedBloomFilter`. All
    families are subclasses of `Filter`, and share what is below.

    Parameters
    ----------
    window : int or span of time
        What "lately" means: a number of insertions, or a span of time such as ``"10min"``, a `datetime.timedelta` or a
        `numpy.timedelta64`.
    fpr : float
        Highest chance of reporting a key never inserted, at the worst phase, in (0, 1). Give this or `nbytes`.
    nbytes : int
        Most bytes to use. The filter then has the lowest rate that its family can have in them. So few that the rate
        would be above one half are refused, with how many are enough.
    slack : int or span of time, optional
        Longest time for which a key may still be reported after it has left the window, in the unit of `window`. The
        default is at most half the window (or 64 insertions).
    capacity : int, optional
        For a window of time: the keys expected within it when they come fastest. Without it memory follows the keys.
        More of them cost accuracy, never the window, and an `OverfullWarning` says so.
    lateness : span of time, optional
        For a window of time: how far `at` may step back. The window is kept for late keys too. The default is 0.
    ahead : span of time or None, default "1 d"
        For a window of time: how far `at` may lie ahead of the system's clock when keys are inserted; None refuses
        nothing. As in `AgePartitionedBloomFilter`.
    distinct : int, optional
        For a window of insertions: how many different keys it has at most, if not all are. Only `AgedQuotientFilter`
        knows such a plan, and is chosen.
    seed : int, bytes or "random", default 0
        Seed of the key hashes: in [0, 2**64), or for keys that strangers choose 16 secret bytes, or "random" for such
        bytes that the filter draws itself. See Notes of `hash_keys`.
    prefer : {"speed", "memory"}, default "speed"
        "speed": `AgePartitionedBloomFilter` in lines, or in blocks where lines cannot meet the request. "memory": the
        family that takes the fewest bytes (with `nbytes`, that has the lowest rate): `AgedQuotientFilter`, unless the
        window is small. Without `capacity`, for a window of time, both are `TimeLimitedBloomFilter`. What neither lines
        nor blocks can meet, such as a slack of 0, is met by the family that moves the fewest cache lines among those up
        to half as large again as the smallest.

    Raises
    ------
    ValueError
        If a parameter is out of range, or no filter meets all of them. The message says why.
    TypeError
        If a parameter is of the wrong type, or neither `fpr` nor `nbytes` is given.
    MemoryError
        If there is not enough memory.

    See Also
    --------
    plan : The families side by side, with all that they promise and cost.
    duplicated : A whole column in one call.

    Notes
    -----
    The same request is the same filter, on every machine. No memory is taken for families that are not chosen.

    Keys are anything that `hash_keys` takes; keys that compare equal in Python are one key, whatever holds them. A
    filter may be used from many threads: queries run side by side, and each key of a batch acts as a whole. (Threads
    that insert into one window of time with times of their own move one clock: a batch that others leave behind by more
    than `lateness` stops with an error half-way.) `os.fork` waits until no thread is within a block of keys: the child
    has a filter of its own, as it was between two.

    ``key in f`` takes no time: it asks as of now, or as of the latest time told where every key has come with its own.
    `query` and `seen` take one.

    A subclass of `Filter` itself has the engine of the family that is chosen, but not what its class alone can do.

    Examples
    --------
    >>> f = lately.Filter(1_000_000, 0.001)
    >>> f.seen("a"), f.seen("b"), f.seen("a")
    (False, False, True)
    >>> type(f).__name__, isinstance(f, lately.Filter)
    ('AgePartitionedBloomFilter', True)
    >>> small = lately.Filter(1_000_000, 0.001, prefer="memory")
    >>> type(small).__name__, small.nbytes < f.nbytes
    ('AgedQuotientFilter', True)
    >>> f = lately.Filter("10min", 0.001)
    >>> f.duplicated(["a", "a", "a"], at=[0, 599, 2000])
    array([False,  True, False])
    """

    __module__ = "lately"
    __slots__ = ()

    # What knows all families lies above them: the package puts it here.
    _chosen: ClassVar[Callable[..., tuple[Any, dict[str, Any]]]]
    _explained: ClassVar[Callable[[Filter, str], str]]

    def __new__(
        cls,
        window: int | _Span,
        fpr: float | None = None,
        *,
        nbytes: int | None = None,
        slack: int | _Span | None = None,
        capacity: int | None = None,
        lateness: _Span | None = None,
        ahead: _Span | None = "1 d",
        distinct: int | None = None,
        seed: _Seed = 0,
        prefer: Literal["speed", "memory"] = "speed",
    ) -> Self:
        limits: dict[str, Any] = {"capacity": capacity, "lateness": lateness, "distinct": distinct}
        limits |= {"slack": slack, "ahead": ahead, "seed": seed}
        family, given = Filter._chosen(window, prefer, fpr=fpr, nbytes=nbytes, **limits)
        kind: Any = family.kind if cls is Filter else cls
        made: Self = kind._of(family.family, **given)
        return made

    @classmethod
    def _of(cls, family: str, **given: Any) -> Self:
        """Make a filter of a family, of which this is the class."""
        return super().__new__(cls, _core.build(family, **given))

    @classmethod
    def _in_first(cls, layouts: Sequence[dict[str, Any]], family: str, **given: Any) -> Self:
        """Make it in the first layout that meets the request; where none does, the first says why."""
        first, *others = layouts
        try:
            return cls._of(family, **given, **first)
        except ValueError as error:
            for layout in others:
                with suppress(ValueError):
                    return cls._of(family, **given, **layout)
            raise error

    update = _core.Filter.insert

    def explain(self) -> str:
        """Say in words what this filter is, what it promises, and how it is now.

        Returns
        -------
        str
            Its family and why one takes it, window, slack, the rate planned and the rate now, bytes, fill, keys so far
            and the kind of its seed. Reads all of the filter's memory.

        Examples
        --------
        >>> print(lately.Filter(1_000_000, 0.001).explain())
        AgePartitionedBloomFilter, age-partitioned-line
          why              the fastest for windows of either kind: a key's bits are in one cache line, or a few
          window           the last 1,000,000 keys: a key inserted within it is always reported
          slack            up to 334,400 keys more, in which a key may still be reported for its own sake
          false positives  a key never inserted is reported with a chance of 0.000968 as planned, 0 now
          memory           3,416,064 bytes, 27.3 bits per key of a full window
          fill             0.0% of the cells in use, 0.0% at most of 8 parts
          inserted         0 so far
          seed             0, which is no secret: for keys that strangers choose, take seed="random"
        """
        return Filter._explained(self, "text")

    def _repr_html_(self) -> str:
        return Filter._explained(self, "html")
