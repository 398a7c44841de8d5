"""The events of a stream that were not seen lately, one after the other."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import itemgetter
from secrets import token_bytes
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from lately._core import Exact, Filter
from lately._duplicated import FPR, hashed
from lately._families import FAMILIES, fastest, whole
from lately._frames import columns_of, is_lazy
from lately._plan import Choice, family_of

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
        What of an event is its key: ``key(event)``, or ``event[key]``, or of a list the tuple of these. By default the
        event itself.
    at : callable, name or index, optional
        When an event happened, for a window of time: as `key`. Numbers are Unix seconds, or datetimes. By default it is
        now.
    fpr : float, optional
        Asks for a filter, with this as the greatest allowed chance, in (0, 1), of holding back an event whose key was
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
        The events themselves, in order.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range, at once; or, when its event is taken, if a key is of a type that has no
        canonical form, or a time steps back by more than `lateness`.
    MemoryError
        If there is not enough memory for the keys of the window.

    See Also
    --------
    duplicated : The same for a column or a frame.
    drop_duplicates : The same for a frame.

    Examples
    --------
    >>> list(lately.unique(["a", "b", "a", "c", "b"], window=2))
    ['a', 'b', 'c', 'b']
    >>> clicks = [{"ip": "a", "time": 0}, {"ip": "a", "time": 599}, {"ip": "a", "time": 2000}]
    >>> [click["time"] for click in lately.unique(clicks, "10min", key="ip", at="time")]
    [0, 2000]
    """
    if columns_of(events) is not None or is_lazy(events):
        raise TypeError(f"events is a {type(events).__name__}: for frames there is lately.drop_duplicates")
    if at is None and lateness is not None:
        raise ValueError("lateness is for times of the events' own: at")
    asked: dict[str, Any] = {"refresh": refresh, "missing": missing, "seed": seed}
    if fpr is None and filter is None:
        if capacity is not None:
            raise ValueError("capacity is for filters: give fpr or filter too")
        exact = Exact(window, lateness=lateness, **asked)
        seen = _singly(exact.seen, exact.duplicated)
    else:
        made, marks = filtering(window, filter, fpr, {"capacity": capacity, "lateness": lateness}, **asked)
        seen = _singly(partial(made.seen, refresh=refresh) if missing == "same" else None, marks)
    return _fresh(iter(events), _reader(key), None if at is None else _reader(at), seen)


def _singly(seen: Callable[..., bool] | None, marks: Callable[..., NDArray[np.bool_]]) -> Callable[..., bool]:
    def singly(key: Any, at: Any) -> bool:
        # One list is one key here, such as a row of `csv.reader`; alone it would be taken for several.
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


def _reader(what: Any) -> Callable[[Any], Any]:
    """What reads the key or the time of an event."""
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
    """Plan a filter for a stream, and say how it is asked about keys, their times, and by how many threads."""
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
