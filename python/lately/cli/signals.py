"""Signals that end a run: SIGINT, SIGTERM and SIGHUP.

They end it at once while it has replaced no file. From the first replacement to the exit they are ignored.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interrupted(*, to_the_end: bool) -> Iterator[None]:
    """Raise `KeyboardInterrupt` for each signal that ends a run, unless the process ignores it, as under nohup.

    With `to_the_end` the process ends after this context, and from then on it ignores the signals. A signal may neither
    change the exit status of a run that has replaced its state, nor make the interpreter print a message.
    """
    before = {}
    with suppress(ValueError):  # only the main thread handles signals
        for number in _ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, _interrupt)
    try:
        yield
    finally:
        if to_the_end:
            ignore_signals()
        else:
            for number, handler in before.items():
                signal.signal(number, handler)


def ignore_signals() -> None:
    """Ignore the signals from now on, so that the exit status states what the run has done."""
    with suppress(ValueError):
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt(number)
