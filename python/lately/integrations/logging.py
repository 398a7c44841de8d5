"""A filter for Python's `logging` that lets each message through once a window."""

import logging
import os
import sys
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from copy import copy
from typing import Any, NamedTuple

import lately

__all__ = ["Held", "OncePerWindow"]

_COUNTED = 1024
"""Messages whose counts are kept; the one that was held back least recently goes first."""


class Held(NamedTuple):
    """What a filter held back of a message: how often, and when first and last, in Unix seconds as ``record.created``.

    Examples
    --------
    >>> import logging
    >>> once = lately.integrations.logging.OncePerWindow("1min", key=lambda record: record.msg)
    >>> for _ in range(3):
    ...     passed = once.filter(logging.makeLogRecord({"msg": "no route", "created": 1769904000.0}))
    >>> once.held()
    {'no route': Held(count=2, first=1769904000.0, last=1769904000.0)}
    """

    count: int  # type: ignore[assignment]
    first: float
    last: float


class OncePerWindow(logging.Filter):
    """Let a message through once a window, and report then how many like it were held back, and when.

    Pass it to `addFilter` of a handler, or of a logger (which then filters its own messages, not its children's). The
    first message goes through. One with the same key is held back until longer than `window` has passed since it last
    went through, at most half a window longer. The next then ends in " (41 like it held back)".

    Parameters
    ----------
    window : span of time or int
        How long a message is held back, such as ``"1min"`` or a `datetime.timedelta`; or a number of messages.
    key : callable, optional
        ``key(record)`` returns the key of a message: anything that `hash_keys` takes. By default it is the logger, the
        level, the text with its arguments, and the exception. With ``lambda record: record.msg``, messages that differ
        only in their arguments have one key.
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

    A message that goes through with a count has three attributes more: ``record.held_back``, and the first and last
    time that it was held back, ``record.held_first`` and ``record.held_last``, in Unix seconds as ``record.created``.
    `held` returns the counts of messages that did not come again. From Python 3.12 on, the record is a copy: other
    handlers get the message as it was. Before, they get the changed one.

    The filter's clock is monotonic: a change of the system's time holds nothing back. It may be used from many threads,
    and goes on in a process that is forked. A message that cannot be formatted goes through, so that logging reports
    the error.

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
        # A secret seed: texts may come from an attacker, who must not find one that silences another.
        self._seen = lately.Filter(window, fpr, max_ahead=None, seed="random")
        self._key = _identity if key is None else key
        self._held: OrderedDict[Hashable, Held] = OrderedDict()
        self.held_back = 0
        self._lock = threading.RLock()
        _FILTERS.add(self)

    # bool, or from Python 3.12 on a LogRecord.
    def filter(self, record: logging.LogRecord) -> Any:
        """Return whether the record goes through, or the record with its count."""
        try:
            key = self._key(record)
        except Exception:
            if self._key is _identity:
                return True  # logging reports what cannot be formatted
            raise
        with self._lock:
            at = time.monotonic() if self._timed else None
            if self._seen.seen(key, at=at, refresh=False):
                self._hold(key, record.created)
                return False
            held = self._held.pop(key, None)
        return True if held is None else _counted(record, held)

    def held(self) -> dict[Hashable, Held]:
        """Return what is held back now, by key: what no later message has reported yet.

        Returns
        -------
        dict of key to Held
            The least recent first; at most 1024.
        """
        with self._lock:
            return dict(self._held)

    def _hold(self, key: Hashable, created: float) -> None:
        self.held_back += 1
        held = self._held.get(key)
        self._held[key] = Held(1, created, created) if held is None else Held(held.count + 1, held.first, created)
        self._held.move_to_end(key)
        if len(self._held) > _COUNTED:
            self._held.popitem(last=False)


def _identity(record: logging.LogRecord) -> Hashable:
    """Return the default key of a message: logger, level, text and exception."""
    raised = record.exc_info[1] if record.exc_info else None
    return (record.name, record.levelno, _text(record), repr(raised))


def _text(record: logging.LogRecord) -> str:
    """Return the message without the count that another filter may have added."""
    alone: str = getattr(record, "_lately_text", None) or record.getMessage()
    return alone


def _counted(record: logging.LogRecord, held: Held) -> logging.LogRecord:
    text = _text(record)
    if sys.version_info >= (3, 12):
        record = copy(record)
    record.msg, record.args = f"{text} ({held.count} like it held back)", None
    record.held_back, record.held_first, record.held_last = held
    record._lately_text = text
    return record


_FILTERS: "weakref.WeakSet[OncePerWindow]" = weakref.WeakSet()


def _unlock() -> None:
    """Replace the locks in the child of a fork: the threads that held them are not in it."""
    for filter in _FILTERS:
        filter._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)
