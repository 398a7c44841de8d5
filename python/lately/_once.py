"""Work that is done once for each key, and remembered only if it succeeds."""

from __future__ import annotations

import os
import time

from lately._core import Filter, KeyClaim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from typing import Any, Literal, Self

    from lately._core import _Missing, _Moments, _Span

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.001, 0.05

_LOST = (
    "the lease of this claim ended and another block has claimed the key, so its work may be done twice: pass a longer "
    "lease= to once(), or call renew() within the lease"
)


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

    __slots__ = ("_claim", "_inserted", "_process", "_state")

    def __init__(
        self, filter: Filter, key: Any, at: _Moments, wait: _Span | None, lease: _Span, missing: _Missing
    ) -> None:
        if isinstance(key, list):
            raise TypeError("key must be one key, got a list: claim each of its elements, or pass a tuple for a row")
        self._claim = KeyClaim(filter, key, at, wait, lease, missing)
        self._process = os.getpid()
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

    @property
    def lost(self) -> bool:
        """bool: True if the lease of this claim ended and another block has claimed the key: stop the work."""
        return self._state == "first" and self._claim.lost

    def renew(self) -> None:
        """Begin the lease anew, while the work goes on. Waits for no other process.

        Raises
        ------
        RuntimeError
            If this block does not hold the claim, or has lost it.
        """
        self._check_held("renew")
        if not self._claim.renew():
            raise RuntimeError(_LOST)

    def commit(self) -> None:
        """Insert the key now, not at the end of the block, for example to save the filter within the block.

        The claim lasts to the end of the block. The key stays inserted if an exception follows.

        Raises
        ------
        RuntimeError
            If this block does not hold the claim, or has lost it. The key is not inserted then.
        """
        self._check_held("commit")
        for pause in self._insertion():
            time.sleep(pause)

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

    def __exit__(self, *error: object) -> None:
        for pause in self._leave(error[0]):
            time.sleep(pause)

    async def __aexit__(self, *error: object) -> None:
        from asyncio import sleep

        for pause in self._leave(error[0]):
            await sleep(pause)

    def _attempts(self) -> Iterator[float]:
        """Try to claim the key; yield how many seconds to pause before each further attempt."""
        if self._state != "new":
            raise RuntimeError("this claim has served a block already: call once() again")
        give_up, pause = time.monotonic() + self._claim.wait, _SHORTEST_PAUSE
        try:
            while True:
                self._state = yield from self._unlocked(self._claim.take)
                left = give_up - time.monotonic()
                if self._state != "busy" or left <= 0:
                    return
                yield min(pause, left)
                pause = min(2 * pause, _LONGEST_PAUSE)
        except BaseException:
            # An interrupt may come after the claim was taken. The block does not begin, and would never end it.
            self._claim.end()
            raise

    def _insertion(self) -> Iterator[float]:
        """Insert the key; yield how many seconds to pause before each further attempt."""
        if not (yield from self._unlocked(self._claim.insert)):
            raise RuntimeError(_LOST)
        self._inserted = True

    def _leave(self, error: object) -> Iterator[float]:
        """End the block: insert the key if the work succeeded; yield as `_insertion` does."""
        try:
            # In a child of a fork within the block, the claim is the parent's.
            if self._state == "first" and error is None and not self._inserted and self._process == os.getpid():
                yield from self._insertion()
        finally:
            self._end()

    def _unlocked(self, attempt: Callable[[float], Any]) -> Generator[float, None, Any]:
        """Call `attempt` until no other process has the lock of the filter's file; return its result."""
        began = time.monotonic()
        while (result := attempt(time.monotonic() - began)) is None:
            yield _SHORTEST_PAUSE
        return result

    def _check_held(self, call: str) -> None:
        if self._state != "first":
            raise RuntimeError(
                f"{call}() needs a block that holds the claim; the state of this claim is {self._state!r}"
            )

    def _end(self) -> None:
        if self._state == "first":
            self._state = "ended"
        self._claim.end()


def once(
    filter: Filter,
    key: Callable[..., Any] | None = None,
    *,
    at: Callable[..., Any] | None = None,
    wait: _Span | None = None,
    lease: _Span = "10min",
    missing: _Missing = "distinct",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function so that it does its work once for each key; only success is remembered.

    Each call is a block of `Filter.once`. If the work of a key was done within the window, the function is not called,
    and the result is None. A function defined by ``async def`` stays asynchronous.

    Parameters
    ----------
    filter : Filter
        Contains the keys whose work is done. If processes share it, a claim holds for all of them.
    key : callable, optional
        ``key(*args, **kwargs)`` returns the key of a call. By default the key is the first argument.
    at : callable, optional
        ``at(*args, **kwargs)`` returns the time of a call's event. The default is now.
    wait, lease, missing
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
    if not isinstance(filter, Filter):
        raise TypeError(f"filter must be a filter of lately, got {type(filter).__name__}")
    for name, given in (("key", key), ("at", at)):
        if given is not None and not callable(given):
            raise TypeError(f"{name} must be callable, got {type(given).__name__}")
    Claim(filter, None, None, wait, lease, missing)  # checks them

    def claim(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Claim:
        if key is None and not args:
            raise TypeError("the first argument is the key and must be positional; for other keys pass key= to once()")
        of_call = args[0] if key is None else key(*args, **kwargs)
        moment = None if at is None else at(*args, **kwargs)
        try:
            return Claim(filter, of_call, moment, wait, lease, missing)
        except TypeError as error:
            if key is not None:
                raise
            raise TypeError(f"{error}; the first argument is the key: for a method, pass key= to once()") from None

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        from functools import wraps
        from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction

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
    from inspect import isasyncgen, isawaitable, isgenerator

    if isawaitable(result) or isgenerator(result) or isasyncgen(result):
        if hasattr(result, "close"):
            result.close()
        raise TypeError(_unfinished(function, f"returned a {type(result).__name__}"))
    return result


def _unfinished(function: Callable[..., Any], what: str) -> str:
    name = getattr(function, "__qualname__", repr(function))
    return f"{name} {what}: its work is not done when the call returns; decorate the function that does it"


def _is_first(claim: Claim) -> bool:
    if claim.busy:
        raise TimeoutError("another call holds a claim of this key: retry later, or pass a longer wait= to once()")
    return bool(claim)
