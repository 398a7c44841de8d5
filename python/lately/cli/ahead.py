"""Work ahead: the next item is made while this one is worked on."""

from __future__ import annotations

from queue import SimpleQueue
from threading import Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeVar

    _Item = TypeVar("_Item")


def ahead(items: Iterator[_Item]) -> Iterator[_Item]:
    """Give items; a thread makes the next one meanwhile. An error comes where the item would have come.

    Who ends early waits until the one that is being made is there: nobody but the machine should be waited for.
    """
    asked: SimpleQueue[bool] = SimpleQueue()
    made: SimpleQueue[tuple[_Item] | BaseException] = SimpleQueue()

    def make() -> None:
        while asked.get():
            try:
                made.put((next(items),))
            except BaseException as error:
                made.put(error)

    thread = Thread(target=make, daemon=True)
    thread.start()
    asked.put(True)
    try:
        while not isinstance(given := made.get(), BaseException):
            asked.put(True)
            yield given[0]
    finally:
        asked.put(False)
        thread.join()
    if not isinstance(given, StopIteration):
        raise given
