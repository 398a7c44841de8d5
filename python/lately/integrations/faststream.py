"""A middleware of FastStream that drops the messages a handler has dealt with lately."""

import asyncio
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


class DropDelivered:
    """Drop the messages that a handler has dealt with lately: a broker or a producer has sent them again.

    Pass it to a broker or a router, as ``KafkaBroker(middlewares=[DropDelivered(...)])``. Each handler gets each key
    once in the window. A key counts when its handler has returned: if that fails the message may come again, and is
    dealt with. Of two messages with one key at a time, the second waits for what becomes of the first.

    Parameters
    ----------
    filter : filter of lately
        What "lately" means, such as ``lately.Filter("1d", 1e-9, capacity=1_000_000)``. A new message is dropped by
        mistake with its `fpr`.
    key : callable
        ``key(message)`` gives what makes a message the same, by anything `hash_keys` takes: as the producer's id for an
        event, ``lambda message: message.headers["id"]``. The message is FastStream's; its `raw_message` is the
        broker's, with topic, partition and offset. Keys need no order, so offsets may have gaps.
    path : path, optional
        Where the filter is kept, and opened when the program starts again. It is saved when a handler has returned,
        before its message is acknowledged: none that is acknowledged is forgotten. (With ``AckPolicy.ACK_FIRST``, which
        Kafka's subscribers have by default, FastStream acknowledges first, and a crash may lose the message itself.)
    every : int, default 1
        Save after as many messages. With more than one, a crash forgets up to ``every - 1`` keys whose messages are
        acknowledged: what a producer sends again of these is dealt with again.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of the wrong type or out of range, or the filter at `path` was made by another request. While
        messages are handled: if a key is of a type that has no canonical form, or a message is a batch.

    Notes
    -----
    Delivery stays "at least once": a crash after the handler and before the save deals with the message again. What is
    dropped is acknowledged, and publishes nothing. Saving writes all `nbytes` of the filter.

    One process has one filter. Where several share the work, let the broker send a key always to the same one: in Kafka
    by the key of the record, with a `path` for each process and an assignment that stays.

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
        filter: lately.Filter,
        *,
        key: Callable[[Any], Any],
        path: "str | os.PathLike[str] | None" = None,
        every: int = 1,
    ) -> None:
        if not isinstance(filter, lately.Filter):
            raise TypeError(f"filter must be a filter of lately, got {type(filter).__name__}")
        if not callable(key):
            raise TypeError(f"key must be callable, got {type(key).__name__}")
        if every < 1:
            raise ValueError(f"every must be at least 1, got {every}")
        self._path = None if path is None else Path(path)
        self.filter = filter if self._path is None else opened(self._path, filter, "take those, or another path")
        self._key = key
        self._every = every
        self._unsaved = 0
        self._under_way: dict[Any, asyncio.Future[None]] = {}
        self._handlers: dict[str, Any] = {}

    def __call__(self, msg: Any, /, *, context: Any) -> BaseMiddleware[Any, Any]:
        """Give the middleware of one message, as FastStream asks for it."""
        return _Middleware(self, msg, context)

    def save(self) -> None:
        """Save the filter now, such as when the program ends."""
        if self._path is not None:
            self.filter.save(self._path)
            self._unsaved = 0

    async def _once(self, name: str, message: Any, handle: Callable[[Any], Any]) -> Any:
        """Let a handler deal with a message, unless it has dealt with its key."""
        key = (name, self._key(message))
        while (first := self._under_way.get(key)) is not None:
            await asyncio.wait([first])
        if key in self.filter:
            await message.ack()  # where the handler itself acknowledges, nobody else would
            raise AckMessage
        self._under_way[key] = done = asyncio.get_running_loop().create_future()
        try:
            result = await handle(message)
            self.filter.add(key)
            self._unsaved += 1
            if self._unsaved >= self._every:
                self.save()
        finally:
            del self._under_way[key]
            done.set_result(None)
        return result

    def _name(self, handler: Any) -> str:
        """Name a handler, the same in every run."""
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
            raise TypeError("a batch of messages is handled at once, and none can be dropped: leave out batch=True")
        name = self._owner._name(self.context.get_local("handler_"))
        return await self._owner._once(name, msg, call_next)
