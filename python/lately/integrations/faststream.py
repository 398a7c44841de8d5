"""A middleware for FastStream that drops messages that a handler has handled within the window."""

import operator
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lately
from lately._core import shared_path
from lately._once import read_lease
from lately.integrations._missing import missing
from lately.integrations._saved import opened

try:
    from faststream import BaseMiddleware
    from faststream.exceptions import AckMessage
except ModuleNotFoundError as _error:
    raise missing("FastStream", "faststream") from _error

__all__ = ["DropDelivered"]

_WAIT = "10min"


class DropDelivered:
    """Middleware that drops a message if its handler has handled its key within the window.

    A broker or a producer may send a message again. Pass the middleware to a broker or a router, as in
    ``KafkaBroker(middlewares=[DropDelivered(...)])``. Each handler then handles each key once in the window, by
    `Filter.once`. A key is inserted when its handler has returned. If the handler fails, the message is handled when it
    comes again. If two messages with one key come at the same time, the second waits up to ten minutes for the first,
    and then raises `TimeoutError`.

    Parameters
    ----------
    filter : Filter or ExactFilter
        What "lately" means, such as ``lately.Filter("1d", 1e-9)``. A new message is dropped by mistake with a chance of
        at most `fpr`. With a filter that processes share, such as ``lately.open(path, shared=True)``, a message is
        dropped if any of them has handled its key.
    key : callable
        ``key(message)`` returns the key of a message: anything that `hash_keys` takes, such as the producer's id of an
        event, ``lambda message: message.headers["id"]``. The message is FastStream's; its `raw_message` is the
        broker's, with topic, partition and offset. Keys need no order.
    path : path, optional
        Where the filter is saved, and opened when the program starts again. It is saved after a handler has returned,
        and before the message is acknowledged, so no acknowledged message is forgotten. (With ``AckPolicy.ACK_FIRST``,
        the default of Kafka's subscribers, FastStream acknowledges first, and a crash may lose the message itself.) A
        filter that processes share is in its own file, and takes no `path`.
    every : int, default 1
        Save after this many messages. With more than one, a crash forgets up to ``every - 1`` keys whose messages are
        acknowledged. They are handled again if a producer sends them again.
    lease : span of time, default "10min"
        For a filter that processes share: when the claim of a process that died ends. Choose more than the longest work
        of a handler.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of the wrong type or out of range, or the filter at `path` was made by another request. When a
        message comes: if its key has no canonical form, or the message is a batch.

    Notes
    -----
    Delivery stays "at least once": after a crash between the return of the handler and the save, the message is handled
    again. A dropped message is acknowledged, and nothing is published for it. A save writes all `nbytes` of the filter.

    Examples
    --------
    >>> import asyncio
    >>> from faststream import AckPolicy
    >>> from faststream.kafka import KafkaBroker, TestKafkaBroker
    >>> seen = lately.Filter("1d", 1e-9)
    >>> once = lately.integrations.faststream.DropDelivered(seen, key=lambda message: message.headers["id"])
    >>> broker = KafkaBroker(middlewares=[once])
    >>> @broker.subscriber("orders", group_id="shop", ack_policy=AckPolicy.NACK_ON_ERROR)
    ... async def ship(order: str):
    ...     print("shipped", order)
    >>> async def send_twice():
    ...     async with TestKafkaBroker(broker, connect_only=False):
    ...         for _ in range(2):
    ...             await broker.publish("a book", "orders", headers={"id": "42"})
    >>> asyncio.run(send_twice())
    shipped a book
    """

    def __init__(
        self,
        filter: lately.Filter | lately.ExactFilter,
        *,
        key: Callable[[Any], Any],
        path: str | os.PathLike[str] | None = None,
        every: int = 1,
        lease: Any = "10min",
    ) -> None:
        if not isinstance(filter, (lately.Filter, lately.ExactFilter)):
            raise TypeError(f"filter must be a filter of lately, got {type(filter).__name__}")
        if not callable(key):
            raise TypeError(f"key must be callable, got {type(key).__name__}")
        if operator.index(every) < 1:
            raise ValueError(f"every must be at least 1, got {every}")
        read_lease(lease)
        if path is not None and isinstance(filter, lately.Filter) and (own := shared_path(filter)):
            raise ValueError(f"a filter that processes share is in its own file, {own}: leave out path")
        self._path = None if path is None else Path(path)
        self.filter = filter if self._path is None else opened(self._path, filter, "use its settings, or another path")
        self._key = key
        self._every = every
        self._lease = lease
        self._unsaved = 0
        self._handlers: dict[str, Any] = {}

    def __call__(self, msg: Any, /, *, context: Any) -> BaseMiddleware[Any, Any]:
        """Return the middleware for one message, which FastStream calls."""
        return _Middleware(self, msg, context)

    def save(self) -> None:
        """Save the filter now, for example when the program ends."""
        if self._path is not None:
            self.filter.save(self._path)
            self._unsaved = 0

    async def _once(self, name: str, message: Any, handle: Callable[[Any], Any]) -> Any:
        """Call the handler of a message, unless it has handled the key."""
        key = (name, self._key(message))
        async with self.filter.once(key, wait=_WAIT, lease=self._lease) as claim:
            if claim.busy:
                raise TimeoutError(
                    f"{name} has worked on another message with this key for more than {_WAIT}: retry later"
                )
            if claim.done:
                self._save_when_due()  # if the save after the handler failed
                await message.ack()  # a handler that acknowledges by itself is not called
                raise AckMessage
            result = await handle(message)
            claim.commit()
            self._unsaved += 1
            self._save_when_due()
            return result

    def _save_when_due(self) -> None:
        if self._unsaved >= self._every:
            self.save()

    def _name(self, handler: Any) -> str:
        """Return the name of a handler. It is the same in every run."""
        name: str = handler.specification.name
        if self._handlers.setdefault(name, handler) is not handler:
            raise ValueError(f"handlers must have different names, got two named {name!r}: give one a title")
        return name


class _Middleware(BaseMiddleware[Any, Any]):
    def __init__(self, owner: DropDelivered, msg: Any, context: Any) -> None:
        super().__init__(msg, context=context)
        self._owner = owner

    async def consume_scope(self, call_next: Callable[[Any], Any], msg: Any) -> Any:
        if isinstance(msg.raw_message, (tuple, list)):
            raise TypeError("a message must not be a batch, which is handled as a whole: leave out batch=True")
        name = self._owner._name(self.context.get_local("handler_"))
        return await self._owner._once(name, msg, call_next)
