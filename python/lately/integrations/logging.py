"""A filter for Python's `logging` that passes each message once per window."""

import logging
import os
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from copy import copy
from typing import Any, NamedTuple

import lately

__all__ = ["Held", "OncePerWindow"]

_COUNTED = 1024
"""Most messages with counts; the one that was held back least recently is removed first."""


class Held(NamedTuple):
    """Count of a message that was held back, and the times of the first and the last, as ``record.created``.

    Attributes
    ----------
    count : int
        How often the message was held back.
    first, last : float
        When that was first and last, in Unix seconds.

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
    """Logging filter that passes a message once per window, with a count of the messages that it held back.

    Pass it to `addFilter` of a handler, or of a logger (which then filters its own messages, not its children's). The
    first message passes. A message with the same key is held back until more than `window` has passed since one last
    passed; at most half a window longer. The next one then ends with " (41 like it held back)".

    Parameters
    ----------
    window : span of time or int
        How long a message is held back, such as ``"1min"`` or a `datetime.timedelta`; or a number of messages.
    key : callable, optional
        ``key(record)`` returns the key of a message: anything hashable that `hash_keys` takes. The default key is the
        logger, the level, the text with its arguments, and the exception. With ``lambda record: record.msg``, messages
        that differ only in their arguments have one key.
    fpr : float, default 1e-6
        Highest chance of holding back a message that is new.

    Attributes
    ----------
    held_back : int
        Number of messages that were held back so far.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of the wrong type or out of range. A logging call never raises: a message without a usable key
        passes, and the error is printed as `logging.Handler.handleError` does.

    Notes
    -----
    Memory follows the rate of different messages: about 6 bytes for each message of the window, without its text. Texts
    are stored only with the counts, for the 1024 messages that were held back most recently.

    A message that passes with a count has three more attributes: ``record.held_back``, and the first and last time that
    it was held back, ``record.held_first`` and ``record.held_last``, as ``record.created``. `held` returns the counts
    of messages that did not come again. From Python 3.12 on, the filter changes a copy of the record, so that other
    handlers get the original. Before, they get the changed record.

    One filter may serve several handlers: a record that passed one of them passes all. Time passes by a clock that
    never steps and that counts the time asleep, so a change of the system's time has no effect. Several threads may use
    one filter, and so may a forked process. A message that cannot be formatted passes, so that logging reports the
    error.

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
        # A secret seed, so that an attacker who writes messages cannot silence others.
        self._seen = lately.Filter(window, fpr, max_ahead=None, seed="random")
        self._key = _identity if key is None else key
        self._held: OrderedDict[Hashable, Held] = OrderedDict()
        self._decided: weakref.WeakKeyDictionary[logging.LogRecord, Any] = weakref.WeakKeyDictionary()
        self.held_back = 0
        self._lock = threading.RLock()
        _FILTERS.add(self)

    # bool, or from Python 3.12 on a LogRecord.
    def filter(self, record: logging.LogRecord) -> Any:
        """Return whether the record passes, or the record with its count."""
        try:
            # Another handler may have passed the record on.
            if record not in self._decided:
                key = self._key(record)
                hash(key)  # raises for a list at the first message, not at the first repeat
                with self._lock:
                    self._decided[record] = self._decide(record, key)
            return self._decided[record]
        except Exception:
            if self._key is not _identity:  # otherwise logging reports that it cannot be formatted
                logging.Handler().handleError(record)
            return True

    def _decide(self, record: logging.LogRecord, key: Hashable) -> Any:
        """Return whether a new record passes, or the record with its count."""
        if self._seen.seen(key, refresh=False):
            self._hold(key, record.created)
            return False
        held = self._held.pop(key, None)
        return True if held is None else _counted(record, held)

    def held(self) -> dict[Hashable, Held]:
        """Return the counts by key that no later message has reported yet.

        Returns
        -------
        dict of key to Held
            The least recent first, at most 1024.
        """
        with self._lock:
            return dict(self._held)

    def _hold(self, key: Hashable, created: float) -> None:
        """Count a message that is held back."""
        self.held_back += 1
        count, first, last = self._held.get(key, (0, created, created))
        # Threads may come out of order, and the system's clock may step back.
        self._held[key] = Held(count + 1, min(first, created), max(last, created))
        self._held.move_to_end(key)
        if len(self._held) > _COUNTED:
            self._held.popitem(last=False)


def _identity(record: logging.LogRecord) -> Hashable:
    """Return the default key of a message: logger, level, text and exception."""
    raised = record.exc_info[1] if record.exc_info else None
    return (record.name, record.levelno, _text(record), repr(raised))


def _text(record: logging.LogRecord) -> str:
    """Return the text of a message without the count that another filter may have added."""
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
    """Replace the locks in a forked process: it does not have the threads that held them."""
    for filter in _FILTERS:
        filter._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)
