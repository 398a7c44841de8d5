"""The events of a stream whose key was not seen lately, one after the other."""

import heapq
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from operator import itemgetter
from secrets import token_bytes
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from lately._core import Exact, Filter, hash_keys, read_moment, read_span
from lately._duplicated import FPR, hashed
from lately._families import FAMILIES, fastest, whole
from lately._frames import columns_of, is_lazy
from lately._plan import Choice, family_of

Event = TypeVar("Event")


class Counted(NamedTuple, Generic[Event]):
    """An event that `unique` yields with ``counts=True``, and what it held back of its key.

    Attributes
    ----------
    event : object
        The event that came first.
    count : int
        How many events it stands for, itself included.
    first, last : time or int
        The earliest and the latest time of these events, as `at` returned them. Without `at`, Unix seconds; in a window
        of events their places in the stream, from 0.

    Examples
    --------
    >>> [(event, count) for event, count, first, last in lately.unique("abaac", 9, counts=True)]
    [('a', 3), ('b', 1), ('c', 1)]
    """

    event: Event
    count: int  # type: ignore[assignment]
    first: Any
    last: Any


def unique(
    events: Iterable[Event],
    window: Any,
    *,
    key: Any = None,
    at: Any = None,
    counts: bool = False,
    fpr: float | None = None,
    capacity: int | None = None,
    lateness: Any = None,
    refresh: "bool | Literal['delivered']" = True,
    missing: "Literal['same', 'distinct']" = "same",
    seed: "int | bytes | Literal['random']" = "random",
    filter: str | type[Filter] | Choice | None = None,
) -> Iterator[Any]:
    """Yield the events whose key was not seen within the window: exactly, unless `fpr` or `filter` is given.

    The exact answer has no slack, and takes memory of the window, 26 to 38 bytes a key, for a window of time 50 to
    100. With `fpr` or `filter` a filter answers, in a few bytes a key. It holds back every event whose key was seen
    within the window too, but also a new one with probability `fpr`, and maybe one whose key has left the window by no
    more than the slack.

    Parameters
    ----------
    events : iterable
        It may be endless: an event is yielded before the next one is taken.
    window : int or span of time
        What "lately" means: the last `window` events, or a span such as ``"10min"``, a `datetime.timedelta` or a
        `numpy.timedelta64`.
    key : callable, name, index or list of these, optional
        The key of an event: ``key(event)``, or ``event[key]``, or for a list the tuple of these. By default the event
        itself.
    at : callable, name or index, optional
        When an event happened, for a window of time: as `key`. Numbers are Unix seconds, or datetimes. By default it is
        now.
    counts : bool, default False
        Yield each event as a `Counted`, with how often its key came, and when first and last: not before its window is
        over, when nothing more can be held back for it. At the end of the stream all others follow. For the exact
        answer; the events of the window are kept in memory.
    fpr : float, optional
        Takes a filter, with this as the greatest allowed chance, in (0, 1), of holding back an event whose key was
        never seen, or last seen longer than window and slack ago. With `filter` alone it is 0.001.
    capacity : int, optional
        Of a filter for a window of time: the events expected within it when they come fastest. By default its memory
        follows their rate.
    lateness : span of time, optional
        For a window of time: how far times may step back from the latest. The default is 0.
    refresh, missing, seed, filter
        As in `duplicated`.

    Yields
    ------
    object
        The events themselves, in order; or a `Counted` each, in the order in which their windows end.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range, at once; or, when its event is taken, if a key is of a type that has no
        canonical form, or a time steps back by more than `lateness`.
    MemoryError
        If there is not enough memory for the keys of the window.

    See Also
    --------
    duplicated : The mask of a column or a frame.
    drop_duplicates : The rows of a frame that are left.

    Examples
    --------
    >>> list(lately.unique(["a", "b", "a", "c", "b"], window=2))
    ['a', 'b', 'c', 'b']
    >>> clicks = [{"ip": "a", "time": 0}, {"ip": "a", "time": 599}, {"ip": "a", "time": 2000}]
    >>> [click["time"] for click in lately.unique(clicks, "10min", key="ip", at="time")]
    [0, 2000]
    >>> [tuple(kept)[1:] for kept in lately.unique(clicks, "10min", key="ip", at="time", counts=True)]
    [(2, 0, 599), (1, 2000, 2000)]
    """
    if columns_of(events) is not None or is_lazy(events):
        raise TypeError(f"events is a {type(events).__name__}: for frames there is lately.drop_duplicates")
    if at is None and lateness is not None:
        raise ValueError("lateness is for times of the events' own: at")
    options: dict[str, Any] = {"refresh": refresh, "missing": missing, "seed": seed}
    exactly = fpr is None and filter is None
    if counts and not exactly:
        raise ValueError("counts=True is for the exact answer: leave out fpr and filter")
    if exactly and capacity is not None:
        raise ValueError("capacity is for filters: give fpr or filter too")
    key_of, time_of = _reader(key), None if at is None else _reader(at)
    if counts:
        return _Counting(window, lateness, **options).run(iter(events), key_of, time_of)
    if exactly:
        exact, marks = remembering(window, {"lateness": lateness}, **options)
        return _fresh(iter(events), key_of, time_of, _singly(partial(exact.seen, refresh=refresh), marks))
    made, marks = filtering(window, filter, fpr, {"capacity": capacity, "lateness": lateness}, **options)
    seen = _singly(partial(made.seen, refresh=refresh) if missing == "same" else None, marks)
    return _fresh(iter(events), key_of, time_of, seen)


def _singly(seen: Callable[..., bool] | None, marks: Callable[..., NDArray[np.bool_]]) -> Callable[..., bool]:
    def singly(key: Any, at: Any) -> bool:
        # Here a list is one key, such as a row of `csv.reader`. A filter would take it for several.
        if seen is None or isinstance(key, list):
            return bool(marks([key], at=at)[0])
        return seen(key, at=at)

    return singly


def _fresh(
    events: Iterator[Event],
    key_of: Callable[[Event], Any],
    time_of: Callable[[Event], Any] | None,
    seen: Callable[..., bool],
) -> Iterator[Event]:
    for event in events:
        at = None if time_of is None else time_of(event)
        if not seen(key_of(event), at=at):
            yield event


class _Open:
    """An event whose window is not over, and what was held back of its key."""

    __slots__ = ("count", "event", "first", "last", "stamp")

    def __init__(self, event: Any, time: tuple[int, Any], stamp: int) -> None:
        self.event = event
        self.count = 1
        self.first = self.last = time
        self.stamp = stamp

    def closed(self) -> Counted[Any]:
        return Counted(self.event, self.count, self.first[1], self.last[1])


class _Counting:
    """The exact answer for a stream, with the events whose windows are not over."""

    def __init__(self, window: Any, lateness: Any, *, refresh: Any, missing: Any, seed: Any) -> None:
        self._seed = token_bytes(16) if seed == "random" else seed
        options = {"refresh": refresh, "missing": missing, "seed": self._seed}
        self._exact, self._marks = remembering(window, {"lateness": lateness}, **options)
        self._refresh, self._missing = refresh, missing
        self._timed = not hasattr(whole(window), "__index__")
        self._span = read_span(window, "window") if self._timed else int(whole(window))
        self._lateness = 0 if lateness is None else read_span(lateness, "lateness")
        # The latest stamp: a moment, or how many keys have moved the window on.
        self._latest = -(2**63) if self._timed else 0
        self._open: dict[int, _Open] = {}
        self._places = count()
        # Stamp, place of the event in the stream, name and event; its stamp may have grown since.
        self._by_stamp: list[tuple[int, int, int, _Open]] = []

    def run(
        self, events: Iterator[Event], key_of: Callable[[Event], Any], time_of: Callable[[Event], Any] | None
    ) -> Iterator[Counted[Event]]:
        for place, event in enumerate(events):
            at = place if time_of is None else time_of(event)
            if self._timed:
                if time_of is None:
                    at = max(time.time(), self._latest / 1e9)
                yield from self._take(event, key_of(event), at, read_moment(at))
            else:
                yield from self._take(event, key_of(event), at, place)
        yield from [event.closed() for event in self._open.values()]

    def _take(self, event: Any, key: Any, at: Any, order: int) -> Iterator[Counted[Any]]:
        name = int(hash_keys([key], seed=self._seed, missing=self._missing)[0])
        repeat = bool(self._marks([key], at=at if self._timed else None)[0])
        if not (repeat and self._refresh == "delivered" and not self._timed):
            self._latest = max(self._latest, order) if self._timed else self._latest + 1
        stamp = order if self._timed else self._latest
        yield from self._closed()
        found = self._open.get(name)
        if repeat and found is not None:
            found.count += 1
            found.first = min(found.first, (order, at), key=itemgetter(0))
            found.last = max(found.last, (order, at), key=itemgetter(0))
            if self._refresh is True:
                found.stamp = max(found.stamp, stamp)
            return
        if found is not None:
            yield self._open.pop(name).closed()
        self._open[name] = opened = _Open(event, (order, at), stamp)
        heapq.heappush(self._by_stamp, (stamp, next(self._places), name, opened))

    def _closed(self) -> Iterator[Counted[Any]]:
        """Yield the events for which nothing more can be held back."""
        least = self._latest - self._span - self._lateness
        while self._by_stamp and self._by_stamp[0][0] < least:
            _, place, name, opened = heapq.heappop(self._by_stamp)
            if opened.stamp >= least:
                heapq.heappush(self._by_stamp, (opened.stamp, place, name, opened))
            elif self._open.get(name) is opened:
                yield self._open.pop(name).closed()


def remembering(
    window: Any, times: dict[str, Any], *, refresh: Any, missing: Any, seed: Any
) -> tuple[Exact, Callable[..., NDArray[np.bool_]]]:
    """Make an exact window for a stream; return it, and the call that marks its keys."""
    exact = Exact(window, lateness=times.get("lateness"), missing=missing, seed=seed)
    exact.duplicated([], refresh=refresh)  # raises if it is no such choice
    return exact, partial(exact.duplicated, refresh=refresh)


def _reader(what: Any) -> Callable[[Any], Any]:
    """Return what reads the key or the time of an event."""
    if what is None:
        return lambda event: event
    if callable(what):
        read: Callable[[Any], Any] = what
        return read
    if isinstance(what, list):
        parts = [_reader(part) for part in what]
        return lambda event: tuple([part(event) for part in parts])
    return itemgetter(what)


def filtering(
    window: Any, filter: Any, fpr: float | None, times: dict[str, Any], *, refresh: Any, missing: Any, seed: Any
) -> tuple[Filter, Callable[..., NDArray[np.bool_]]]:
    """Plan a filter for a stream; return it, and the call that marks its keys."""
    request = {name: given for name, given in times.items() if given is not None}
    window = whole(window)
    counts = hasattr(window, "__index__")
    make = fastest if counts or "capacity" in request else FAMILIES["time-limited"].make
    make = make if filter is None else family_of(filter).make
    seed = token_bytes(16) if seed == "random" else seed
    made = make(window, fpr=FPR if fpr is None else fpr, seed=seed, **request)

    def duplicated(keys: Any, *, at: Any, threads: int = 1) -> NDArray[np.bool_]:
        if missing != "same":
            keys = hashed(keys, seed, missing)
        return made.duplicated(keys, at=at, refresh=refresh, threads=threads)

    return made, duplicated
