"""`unique`: the events of a stream whose key was not seen lately."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import itemgetter
from secrets import token_bytes
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from lately._duplicated import FPR, hashed
from lately._families import whole, without_none
from lately._frames import is_frame
from lately._moments import moment_of, seconds
from lately._plan import Choice, family_of
from lately.filters import ExactFilter, Filter

Event = TypeVar("Event")


def unique(
    events: Iterable[Event],
    window: Any,
    *,
    key: Any = None,
    at: Any = None,
    fpr: float | None = None,
    capacity: int | None = None,
    lateness: Any = None,
    refresh: "bool | Literal['delivered']" = True,
    missing: "Literal['same', 'distinct']" = "same",
    seed: "int | bytes | Literal['random']" = "random",
    filter: str | type[Filter] | Choice | None = None,
) -> Iterator[Event]:
    """Yield the events whose key was not seen within the window. It is exact, unless `fpr` or `filter` is given.

    The exact answer has no slack. It takes 26 to 38 bytes for each key of the window, or 50 to 100 for a window of
    time. With `fpr` or `filter` a filter answers, in a few bytes per key. It holds back every event whose key was seen
    within the window as well. In addition it holds back a new event with probability `fpr`, and may hold back one whose
    key left the window by at most the slack.

    Parameters
    ----------
    events : iterable
        May be endless: an event is yielded before the next one is read.
    window : int or span of time
        What "lately" means: the last `window` events, or a span such as ``"10min"``, a `datetime.timedelta` or a
        `numpy.timedelta64`.
    key : callable, name, index or list of these, optional
        The key of an event: ``key(event)``, or ``event[key]``, or for a list the tuple of these. The default is the
        event itself.
    at : callable, name or index, optional
        The time of an event, for a window of time, read as `key` is: Unix seconds or a datetime. The default is now.
    fpr : float, optional
        Take a filter, with this as the highest chance, in (0, 1), of holding back an event whose key was never seen, or
        left the window by more than the slack. With `filter` alone the default is 0.001.
    capacity : int, optional
        For a filter and a window of time: the events expected within it at the highest rate. By default its memory
        follows the events.
    lateness : span of time, optional
        For a window of time: how far times may step back from the latest. The default is 0.
    refresh, missing, seed, filter
        As in `duplicated`.

    Yields
    ------
    object
        The events that are new, in order.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range. When an event is read: if its key has no canonical form, or its time steps back
        by more than `lateness`.
    MemoryError
        If there is not enough memory for the keys of the window.

    See Also
    --------
    duplicated : Marks the repeats of a column or a frame.
    drop_duplicates : Returns the rows of a frame that are not repeats.

    Examples
    --------
    >>> list(lately.unique(["a", "b", "a", "c", "b"], window=2))
    ['a', 'b', 'c', 'b']
    >>> clicks = [{"ip": "a", "time": 0}, {"ip": "a", "time": 599}, {"ip": "a", "time": 2000}]
    >>> [click["time"] for click in lately.unique(clicks, "10min", key="ip", at="time")]
    [0, 2000]
    """
    if is_frame(events):
        raise TypeError(
            f"events must be an iterable of events, got a {type(events).__name__}: call lately.drop_duplicates"
        )
    if at is None and lateness is not None:
        raise ValueError("lateness needs at=: the times of the events")
    options: dict[str, Any] = {"refresh": refresh, "missing": missing, "seed": seed}
    exactly = fpr is None and filter is None
    if exactly and capacity is not None:
        raise ValueError("capacity is for filters: pass fpr or filter too")
    key_of, time_of = _reader(key), None if at is None else _reader(at)
    made, marks = remembering(window, filter, fpr, {"capacity": capacity, "lateness": lateness}, **options)
    seen = partial(made.seen, refresh=refresh) if exactly or missing == "same" else None
    return _fresh(_Events(events, time_of), key_of, time_of, made, seen, marks)


class _Events(Generic[Event]):
    """The events, one after the other, and after a late one the furthest step back, unless they may be endless."""

    def __init__(self, events: Iterable[Event], time_of: Callable[[Event], Any] | None) -> None:
        self._events, self._time_of, self._sized = iter(events), time_of, hasattr(events, "__len__")

    def __iter__(self) -> Iterator[Event]:
        return self._events

    def late(self, error: ValueError, made: ExactFilter | Filter, at: Any) -> ValueError:
        """Return the error of a call for many keys as one of `unique`, where `at` is of one event."""
        what, late, _ = str(error).partition(": sort by time")
        needed = ""
        if late and self._sized and self._time_of is not None and made.latest is not None:
            latest, moment = int(made.latest.astype("M8[ns]").astype(np.int64)), moment_of(at)
            furthest = latest - moment
            for moment in map(moment_of, map(self._time_of, self._events)):
                latest = max(latest, moment)
                furthest = max(furthest, latest - moment)
            needed = f", of {seconds(furthest)} s for these events"
        return ValueError(what.replace("at[0]", "at") + (late and f"{late}, or pass a larger lateness{needed}"))


def _fresh(
    events: _Events[Event],
    key_of: Callable[[Event], Any],
    time_of: Callable[[Event], Any] | None,
    made: ExactFilter | Filter,
    seen: Callable[..., bool] | None,
    marks: Callable[..., NDArray[np.bool_]],
) -> Iterator[Event]:
    """Yield the events that are new: by `seen`, which is faster, where it takes the key, else by `marks`."""
    for event in events:
        at = None if time_of is None else time_of(event)
        if at is None and time_of is not None:
            raise ValueError("at must give the time of each event, got None")
        key = key_of(event)
        try:
            # Here a list is one key, such as a row of `csv.reader`. A filter would read it as several keys.
            repeat = marks([key], at=at)[0] if seen is None or isinstance(key, list) else seen(key, at=at)
        except ValueError as error:
            raise events.late(error, made, at) from None
        if not repeat:
            yield event


def _reader(what: Any) -> Callable[[Any], Any]:
    """Return a function that reads the key or the time of an event."""
    if what is None:
        return lambda event: event
    if callable(what):
        read: Callable[[Any], Any] = what
        return read
    if isinstance(what, list):
        parts = [_reader(part) for part in what]
        return lambda event: tuple([part(event) for part in parts])
    return itemgetter(what)


def remembering(
    window: Any, filter: Any, fpr: float | None, times: dict[str, Any], *, refresh: Any, missing: Any, seed: Any
) -> tuple[Filter, Callable[..., NDArray[np.bool_]]]:
    """Make an exact window or a filter for a stream; return it with the function that marks its keys."""
    if fpr is None and filter is None:
        exact = ExactFilter(window, lateness=times.get("lateness"), max_ahead=None, missing=missing, seed=seed)
        exact.duplicated([], refresh=refresh)  # raises if `refresh` is out of range
        return exact, partial(exact.duplicated, refresh=refresh)
    request = without_none(times)
    window = whole(window)
    counts = hasattr(window, "__index__")
    family = None if filter is None else family_of(filter)
    make: Callable[..., Filter] = Filter if family is None else family.make
    if not counts:
        request["max_ahead"] = None  # the answer does not depend on the system's clock, nor does the exact one
    seed = token_bytes(16) if seed == "random" else seed
    if counts and family is not None and family.windows in ("time", "unknown rate"):
        raise ValueError("this filter is for windows of time, such as '10min': pass another filter or window")
    made = make(window, fpr=FPR if fpr is None else fpr, seed=seed, **request)

    def duplicated(keys: Any, *, at: Any, threads: int = 1) -> NDArray[np.bool_]:
        if missing != "same":
            keys, _ = hashed(keys, seed, missing)
        return made.duplicated(keys, at=at, refresh=refresh, threads=threads)

    return made, duplicated
