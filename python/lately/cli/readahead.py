"""Read-ahead: a thread makes the next item while the caller works on this one."""

from __future__ import annotations

from queue import SimpleQueue
from threading import Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeVar

    _Item = TypeVar("_Item")


def read_ahead(items: Iterator[_Item]) -> Iterator[_Item]:
    """Yield items while a thread makes the next one. An error is raised in place of the item that it prevented.

    A caller that stops early waits until the next item is made. Therefore the items must come from the machine itself,
    not from a slow sender.
    """
    requests: SimpleQueue[bool] = SimpleQueue()
    made: SimpleQueue[tuple[_Item] | BaseException] = SimpleQueue()

    def make() -> None:
        while requests.get():
            try:
                made.put((next(items),))
            except BaseException as error:
                made.put(error)

    thread = Thread(target=make, daemon=True)
    thread.start()
    requests.put(True)
    try:
        while not isinstance(given := made.get(), BaseException):
            requests.put(True)
            yield given[0]
    finally:
        requests.put(False)
        thread.join()
    if not isinstance(given, StopIteration):
        raise given
