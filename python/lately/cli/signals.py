"""Being told to end: at once while nothing is replaced, and not at all from the first replacement to the exit.

Who follows files that go on and on is told so when the files are to end here.
"""

from __future__ import annotations

import signal
from contextlib import contextmanager, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interrupted(*, to_the_end: bool) -> Iterator[None]:
    """Raise KeyboardInterrupt where a signal tells the process to end; those it ignores, as under nohup, it ignores on.

    With `to_the_end` the process ends after this, and they are held: none may turn the exit status of a run that has
    replaced its state, or have the interpreter speak while it ends.
    """
    before = {}
    with suppress(ValueError):  # only the main thread may, and need
        for number in _ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, _interrupt)
    try:
        yield
    finally:
        if to_the_end:
            hold()
        else:
            for number, handler in before.items():
                signal.signal(number, handler)


class Stop:
    """Whether a run that follows its files was told to end: once, to end as if the files did; twice, at once."""

    def __init__(self) -> None:
        self.told = False
        with suppress(ValueError):
            for number in _ENDING:
                if signal.getsignal(number) is _interrupt:
                    signal.signal(number, self._stop)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self.told:
            _interrupt(number, frame)
        self.told = True


def hold() -> None:
    """Ignore them from now on: the exit status has to say what was done."""
    with suppress(ValueError):
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt(number)
