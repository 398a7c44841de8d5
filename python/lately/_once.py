"""Work that is done once for each key, and remembered only if it succeeds."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import wraps
from inspect import isasyncgen, isasyncgenfunction, isawaitable, iscoroutinefunction, isgenerator, isgeneratorfunction

import numpy as np

from lately._claims import Owner, claims_of
from lately._core import ExactFilter, Filter, read_span
from lately._moments import moment_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import Any, Literal, Self

    from lately._core import _Moments, _Span

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.001, 0.05


class Claim:
    """Claim of one key: whether this block has to do the work of the key. `Filter.once` makes it.

    A claim is true in the block that has to do the work, and false in every other block. It serves one ``with`` or
    ``async with`` block.

    Examples
    --------
    >>> seen = lately.Filter("1d", 1e-9)
    >>> for _ in range(2):
    ...     with seen.once("evt_1") as claim:
    ...         print(bool(claim), claim.done, claim.busy)
    True False False
    False True False
    """

    __slots__ = ("_at", "_claims", "_filter", "_hash", "_inserted", "_key", "_lease", "_owner", "_state", "_wait")

    def __init__(self, filter: Filter | ExactFilter, key: Any, at: _Moments, wait: _Span | None, lease: _Span) -> None:
        if isinstance(key, list):
            raise TypeError("key must be one key, got a list: claim each of its elements, or pass a tuple for a row")
        self._filter = filter
        self._key = key
        self._at = at
        self._wait = 0.0 if wait is None else read_span(wait, "wait") / 1e9
        self._lease = read_lease(lease)
        self._claims = claims_of(filter)
        self._hash = self._claims.hash(key)
        self._owner = Owner()
        self._state: Literal["new", "first", "done", "busy", "ended"] = "new"
        self._inserted = False

    def __bool__(self) -> bool:
        return self._state == "first"

    @property
    def done(self) -> bool:
        """bool: True if the work was done within the window."""
        return self._state == "done"

    @property
    def busy(self) -> bool:
        """bool: True if another block holds a claim of the key. Its work may still fail."""
        return self._state == "busy"

    def commit(self) -> None:
        """Insert the key now, not at the end of the block, for example to save the filter within the block.

        The claim lasts to the end of the block. The key stays inserted if an exception follows.

        Raises
        ------
        RuntimeError
            If this block does not hold the claim.
        """
        self._check_held("commit")
        _insert(self._filter, self._key, self._at)
        self._inserted = True

    def release(self) -> None:
        """End the claim without inserting the key, as an exception does.

        Raises
        ------
        RuntimeError
            If this block does not hold the claim.
        """
        self._check_held("release")
        self._end()

    def __enter__(self) -> Self:
        for pause in self._attempts():
            time.sleep(pause)
        return self

    async def __aenter__(self) -> Self:
        from asyncio import sleep

        for pause in self._attempts():
            await sleep(pause)
        return self

    def __exit__(self, error: type[BaseException] | None, value: object, traceback: TracebackType | None) -> None:
        try:
            if self._state == "first" and error is None and not self._inserted:
                _insert(self._filter, self._key, self._at)
        finally:
            if self._state == "first":
                self._end()

    async def __aexit__(
        self, error: type[BaseException] | None, value: object, traceback: TracebackType | None
    ) -> None:
        self.__exit__(error, value, traceback)

    def _attempts(self) -> Iterator[float]:
        """Try to claim the key; yield how many seconds to pause before each further attempt."""
        if self._state != "new":
            raise RuntimeError("this claim has served a block already: call once() again")
        _check_ahead(self._filter, self._at)
        give_up = time.monotonic() + self._wait
        pause = _SHORTEST_PAUSE
        try:
            while True:
                self._state = self._claims.take(self._hash, self._owner, self._lease, self._is_done)
                left = give_up - time.monotonic()
                if self._state != "busy" or left <= 0:
                    return
                yield min(pause, left)
                pause = min(2 * pause, _LONGEST_PAUSE)
        except BaseException as error:
            # An interrupt may come after the claim was taken. The block does not begin, and would never end it.
            if not _is_of_file(error):
                with suppress(OSError):
                    self._end()
            raise

    def _is_done(self) -> bool:
        if self._at is None:
            return self._key in self._filter
        return bool(self._filter.query([self._key], at=self._at)[0])

    def _check_held(self, call: str) -> None:
        if self._state != "first":
            raise RuntimeError(
                f"{call}() needs a block that holds the claim; the state of this claim is {self._state!r}"
            )

    def _end(self) -> None:
        try:
            self._claims.end(self._hash, self._owner)
        except BaseException as error:
            # After an interrupt no other code would end the claim.
            if not _is_of_file(error):
                self._claims.end(self._hash, self._owner)
            raise
        finally:
            self._state = "ended"


def once(
    filter: Filter | ExactFilter,
    key: Callable[..., Any] | None = None,
    *,
    at: Callable[..., Any] | None = None,
    wait: _Span | None = None,
    lease: _Span = "10min",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function so that it does its work once for each key; only success is remembered.

    Each call is a block of `Filter.once`. If the work of a key was done within the window, the function is not called,
    and the result is None. A function defined by ``async def`` stays asynchronous.

    Parameters
    ----------
    filter : Filter or ExactFilter
        Contains the keys whose work is done. If processes share it, a claim holds for all of them.
    key : callable, optional
        ``key(*args, **kwargs)`` returns the key of a call. By default the key is the first argument.
    at : callable, optional
        ``at(*args, **kwargs)`` returns the time of a call's event. The default is now.
    wait, lease
        As in `Filter.once`.

    Returns
    -------
    callable
        The decorator.

    Raises
    ------
    TypeError
        If `filter` is not a filter, `key` or `at` is not callable, or the function is a generator. In a call: if the
        function returns a generator or an awaitable, whose work is not done then. The key is not inserted.
    ValueError
        If `wait` or `lease` is out of range.

    See Also
    --------
    Filter.once : A block of code instead of a function. It can distinguish all cases.

    Notes
    -----
    A call raises `TimeoutError` if another call still holds a claim of the key after `wait`. The work of that call may
    fail, so the event must be delivered again.

    Examples
    --------
    >>> seen = lately.Filter("1d", 1e-9)
    >>> @lately.once(seen, key=lambda event: event["id"])
    ... def ship(event):
    ...     print("shipped", event["id"])
    >>> for id in ("evt_1", "evt_2", "evt_1"):
    ...     ship({"id": id})
    shipped evt_1
    shipped evt_2
    """
    if not isinstance(filter, Filter | ExactFilter):
        raise TypeError(f"filter must be a filter of lately, got {type(filter).__name__}")
    for name, given in (("key", key), ("at", at)):
        if given is not None and not callable(given):
            raise TypeError(f"{name} must be callable, got {type(given).__name__}")
    read_lease(lease)
    if wait is not None:
        read_span(wait, "wait")

    def claim(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Claim:
        if key is None and not args:
            raise TypeError("the first argument is the key and must be positional; for other keys pass key= to once()")
        of_call = args[0] if key is None else key(*args, **kwargs)
        moment = None if at is None else at(*args, **kwargs)
        try:
            return Claim(filter, of_call, moment, wait, lease)
        except TypeError as error:
            if key is not None:
                raise
            raise TypeError(f"{error}; the first argument is the key: for a method, pass key= to once()") from None

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(function):
            raise TypeError(f"function must be callable, got {type(function).__name__}")
        if isgeneratorfunction(function) or isasyncgenfunction(function):
            raise TypeError(_unfinished(function, "is a generator"))

        if iscoroutinefunction(function):

            @wraps(function)
            async def asynchronous(*args: Any, **kwargs: Any) -> Any:
                async with claim(args, kwargs) as first:
                    return await function(*args, **kwargs) if _is_first(first) else None

            return asynchronous

        @wraps(function)
        def synchronous(*args: Any, **kwargs: Any) -> Any:
            with claim(args, kwargs) as first:
                return _finished(function, function(*args, **kwargs)) if _is_first(first) else None

        return synchronous

    return decorate


def _finished(function: Callable[..., Any], result: Any) -> Any:
    """Return the result of a call, or raise `TypeError` if its work is not done."""
    if isawaitable(result) or isgenerator(result) or isasyncgen(result):
        if hasattr(result, "close"):
            result.close()
        raise TypeError(_unfinished(function, f"returned a {type(result).__name__}"))
    return result


def _unfinished(function: Callable[..., Any], what: str) -> str:
    name = getattr(function, "__qualname__", repr(function))
    return f"{name} {what}: its work is not done when the call returns; decorate the function that does it"


def read_lease(lease: _Span) -> float:
    """Return a lease in seconds."""
    span = read_span(lease, "lease")
    if span <= 0:
        raise ValueError(f"lease must be longer than zero, got {lease!r}")
    return span / 1e9


def _is_of_file(error: BaseException) -> bool:
    """Return whether an error means that the file of claims cannot be used."""
    # Signal handlers raise subclasses, such as `TimeoutError`.
    return type(error) is OSError


def _is_first(claim: Claim) -> bool:
    if claim.busy:
        raise TimeoutError("another call holds a claim of this key: retry later, or pass a longer wait= to once()")
    return bool(claim)


def _check_ahead(filter: Filter | ExactFilter, at: _Moments) -> None:
    """Raise now for a time that the filter rejects, not when the key is inserted after the work."""
    if at is None or filter.max_ahead is None:
        return
    moment = moment_of(at)
    ahead = (moment - time.time_ns()) / 1e9
    # Floats are read to the microsecond.
    if ahead > filter.max_ahead + 1e-6 and (filter.latest is None or moment > moment_of(filter.latest)):
        raise ValueError(
            f"at lies {ahead:g} s ahead of the system's clock, but max_ahead is {filter.max_ahead:g} s: correct the "
            "time, or construct the filter with a larger max_ahead"
        )


def _insert(filter: Filter | ExactFilter, key: Any, at: _Moments) -> None:
    """Insert a key after its work: at its own time, or at the latest time where its own is too late for the filter.

    Other keys may have moved the filter's clock since the claim. A later time keeps the key for longer.
    """
    if at is None:
        filter.add(key)
        return
    moment = moment_of(at)
    while True:
        try:
            filter.add(key, at=np.datetime64(moment, "ns"))
            return
        except ValueError:
            latest = filter.latest
            if latest is None or moment_of(latest) <= moment:
                raise
            moment = moment_of(latest)
