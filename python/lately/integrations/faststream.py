"""A middleware of FastStream that drops the messages whose work a handler has done within the window."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lately
from lately.integrations._kept import opened
from lately.integrations._library import missing

try:
    from faststream import BaseMiddleware
    from faststream.exceptions import AckMessage
except ModuleNotFoundError as _error:
    raise missing("FastStream", "faststream") from _error

if TYPE_CHECKING:
    import os

__all__ = ["DropDelivered"]

_WAIT = "10min"


class DropDelivered:
    """Drop the messages whose work a handler has done within the window: a broker or a producer sent them again.

    Pass it to a broker or a router, as ``KafkaBroker(middlewares=[DropDelivered(...)])``. Each handler handles each key
    once in the window, by `Filter.once`. A key is remembered when its handler has returned. If the handler fails, the
    message may come again, and is handled. Of two messages with one key at a time, the second waits for up to ten
    minutes for what becomes of the first, and then raises `TimeoutError`.

    Parameters
    ----------
    filter : Filter or ExactFilter
        What "lately" means, such as ``lately.Filter("1d", 1e-9, capacity=1_000_000)``. A new message is dropped by
        mistake with the chance `fpr`. A filter that processes share, such as ``lately.open(path, shared=True)``, drops
        what any of them has handled.
    key : callable
        ``key(message)`` returns what identifies a message: anything that `hash_keys` takes, such as the producer's id
        of an event, ``lambda message: message.headers["id"]``. The message is FastStream's; its `raw_message` is the
        broker's, with topic, partition and offset. Keys need no order, so offsets may have gaps.
    path : path, optional
        Where the filter is saved, and opened from when the program starts again. It is saved when a handler has
        returned, before its message is acknowledged: no acknowledged message is forgotten. (With
        ``AckPolicy.ACK_FIRST``, the default of Kafka's subscribers, FastStream acknowledges first, and a crash may lose
        the message itself.) A filter that processes share is in its file already, and takes no `path`.
    every : int, default 1
        Save after this many messages. With more than one, a crash forgets up to ``every - 1`` keys whose messages are
        acknowledged: they are handled again if a producer sends them again.
    lease : span of time, default "10min"
        Where processes share the filter: when the claim of a process that died ends. Choose more than the longest work
        of a handler takes.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of the wrong type or out of range, or the filter at `path` was made by another request. While
        messages are handled: if a key has no canonical form, or a message is a batch.

    Notes
    -----
    Delivery stays "at least once": after a crash between the handler's return and the save, the message is handled
    again. A dropped message is acknowledged, and publishes nothing. A save writes all `nbytes` of the filter.

    Examples
    --------
    >>> import asyncio
    >>> from faststream import AckPolicy
    >>> from faststream.kafka import KafkaBroker, TestKafkaBroker
    >>> seen = lately.Filter("1d", 1e-9, capacity=10_000)
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
        filter: "lately.Filter | lately.ExactFilter",
        *,
        key: Callable[[Any], Any],
        path: "str | os.PathLike[str] | None" = None,
        every: int = 1,
        lease: Any = "10min",
    ) -> None:
        if not isinstance(filter, (lately.Filter, lately.ExactFilter)):
            raise TypeError(f"filter must be a filter of lately, got {type(filter).__name__}")
        if not callable(key):
            raise TypeError(f"key must be callable, got {type(key).__name__}")
        if every < 1:
            raise ValueError(f"every must be at least 1, got {every}")
        self._path = None if path is None else Path(path)
        self.filter = filter if self._path is None else opened(self._path, filter, "take those, or another path")
        self._key = key
        self._every = every
        self._lease = lease
        self._unsaved = 0
        self._handlers: dict[str, Any] = {}

    def __call__(self, msg: Any, /, *, context: Any) -> BaseMiddleware[Any, Any]:
        """Return the middleware of one message, as FastStream requires."""
        return _Middleware(self, msg, context)

    def save(self) -> None:
        """Save the filter now, for example when the program ends."""
        if self._path is not None:
            self.filter.save(self._path)
            self._unsaved = 0

    async def _once(self, name: str, message: Any, handle: Callable[[Any], Any]) -> Any:
        """Let a handler handle a message, unless it has handled its key."""
        key = (name, self._key(message))
        async with self.filter.once(key, wait=_WAIT, lease=self._lease) as claim:
            if claim.busy:
                raise TimeoutError(f"{name} has worked on a message with the same key for more than {_WAIT}")
            if claim.done:
                await message.ack()  # a handler that acknowledges by itself is not called
                raise AckMessage
            result = await handle(message)
            claim.commit()
            self._unsaved += 1
            if self._unsaved >= self._every:
                self.save()
            return result

    def _name(self, handler: Any) -> str:
        """Return the name of a handler, which is the same in every run."""
        name: str = handler.specification.name
        if self._handlers.setdefault(name, handler) is not handler:
            raise ValueError(f"two handlers are named {name!r}: give one a title, so that each gets its messages")
        return name


class _Middleware(BaseMiddleware[Any, Any]):
    def __init__(self, owner: DropDelivered, msg: Any, context: Any) -> None:
        super().__init__(msg, context=context)
        self._owner = owner

    async def consume_scope(self, call_next: Callable[[Any], Any], msg: Any) -> Any:
        if isinstance(msg.raw_message, (tuple, list)):
            raise TypeError("a batch of messages is handled as a whole, so none can be dropped: leave out batch=True")
        name = self._owner._name(self.context.get_local("handler_"))
        return await self._owner._once(name, msg, call_next)
