"""A filter for Python's `logging` that lets a message through once a window."""

import logging
import os
import sys
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from copy import copy
from typing import Any

import lately

__all__ = ["OncePerWindow"]

_COUNTED = 1024
"""Messages whose counts are kept; the one that was held back least recently goes first."""


class OncePerWindow(logging.Filter):
    """Let a message through once a window, and say then how many like it were held back.

    Pass it to `addFilter` of a handler, or of a logger (which then filters its own messages, not its children's). The
    first message goes through. One that is the same is held back until longer than `window` has passed since it last
    went through, at most half a window longer. The next then ends in " (41 like it held back)".

    Parameters
    ----------
    window : span of time or int
        How long a message is held back, such as ``"1min"`` or a `datetime.timedelta`; or a number of messages.
    key : callable, optional
        ``key(record)`` tells which messages are the same, by anything `hash_keys` takes. By default those of the same
        logger, level and text, with arguments filled in, and the same exception. ``lambda record: record.msg`` takes
        messages that differ only in their arguments for the same.
    fpr : float, default 1e-6
        Greatest chance of holding back a message that is new.

    Attributes
    ----------
    held_back : int
        How many messages were held back so far.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of the wrong type or out of range.

    Notes
    -----
    Memory follows the rate of different messages, some 6 bytes for each one of the window: not their texts. Only the
    counts are kept by text, for the 1024 messages that were held back most recently.

    A message that goes through with a count has it as ``record.held_back`` too. From Python 3.12 on, the record is a
    copy: other handlers see the message as it was. Before, they see the one that is changed.

    The filter's clock is monotonic: a change of the system's time holds nothing back. It may be used from many threads,
    and goes on in a process that is forked. A message that cannot be formatted goes through, so that logging reports
    it as ever.

    Examples
    --------
    >>> import logging, sys
    >>> handler = logging.StreamHandler(sys.stdout)
    >>> handler.addFilter(lately.integrations.logging.OncePerWindow("1min"))
    >>> log = logging.Logger("shop")
    >>> log.addHandler(handler)
    >>> for attempt in range(1000):
    ...     log.warning("cannot reach %s", "db-1")
    cannot reach db-1
    >>> handler.filters[0].held_back
    999
    """

    def __init__(
        self, window: Any, *, key: Callable[[logging.LogRecord], Hashable] | None = None, fpr: float = 1e-6
    ) -> None:
        super().__init__()
        self._timed = not hasattr(window, "__index__")
        # Texts may come from strangers, who must not find one that silences another: a secret seed.
        self._seen = lately.Filter(window, fpr, ahead=None, seed="random")
        self._key = _said if key is None else key
        self._counts: OrderedDict[Hashable, int] = OrderedDict()
        self.held_back = 0
        self._lock = threading.RLock()
        _FILTERS.add(self)

    # bool, or from Python 3.12 on a LogRecord.
    def filter(self, record: logging.LogRecord) -> Any:
        """Tell whether the record goes through, and hand on one that has a count."""
        try:
            key = self._key(record)
        except Exception:
            if self._key is _said:
                return True  # logging reports what cannot be formatted
            raise
        with self._lock:
            at = time.monotonic() if self._timed else None
            if self._seen.seen(key, at=at, refresh=False):
                self._hold(key)
                return False
            held = self._counts.pop(key, 0)
        return _counted(record, held) if held else True

    def _hold(self, key: Hashable) -> None:
        self.held_back += 1
        self._counts[key] = self._counts.get(key, 0) + 1
        self._counts.move_to_end(key)
        if len(self._counts) > _COUNTED:
            self._counts.popitem(last=False)


def _said(record: logging.LogRecord) -> Hashable:
    """What makes a message the same: who says what, how loud, and about which error."""
    raised = record.exc_info[1] if record.exc_info else None
    return (record.name, record.levelno, _text(record), repr(raised))


def _text(record: logging.LogRecord) -> str:
    """The message without the count that another filter may have added."""
    alone: str = getattr(record, "_lately_text", None) or record.getMessage()
    return alone


def _counted(record: logging.LogRecord, held: int) -> logging.LogRecord:
    text = _text(record)
    if sys.version_info >= (3, 12):
        record = copy(record)
    record.msg, record.args = f"{text} ({held} like it held back)", None
    record.held_back, record._lately_text = held, text
    return record


_FILTERS: "weakref.WeakSet[OncePerWindow]" = weakref.WeakSet()


def _unlock() -> None:
    """Give the child of a fork free locks: whoever held them is not in it."""
    for filter in _FILTERS:
        filter._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)
