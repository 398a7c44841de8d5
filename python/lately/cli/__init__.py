"""The command ``lately``: how it begins and how it ends.

It imports nothing of size before `main`, which says what Ctrl-C does meanwhile: a tenth of a second is long enough.
"""

import gc
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from types import FrameType


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, optional
        Its arguments; the default is those of the process, which then is about to end.

    Returns
    -------
    int
        0 when done, 1 after an error, 128 and the number of the signal after one (130 after Ctrl-C, 143 after SIGTERM),
        141 when the reader of standard output has gone. In all but the first case files are as they were and no state
        was saved.

    Raises
    ------
    SystemExit
        If the arguments are wrong (2), or ask for help or the version (0).
    """
    if argv is None and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    from lately.cli.errors import CliError
    from lately.cli.options import parser
    from lately.cli.report import say
    from lately.cli.signals import interrupted

    options = parser().parse_args(argv)
    options.alone = argv is None
    run = getattr(import_module(options.module), options.run)
    try:
        with interrupted(to_the_end=argv is None):
            run(options)
            sys.stdout.flush()
        if argv is None:
            gc.freeze()  # nothing is to be collected any more: the interpreter would look through all there is
    except CliError as error:
        say(f"lately: error: {error}")
        return 1
    except KeyboardInterrupt as interrupt:
        say("lately: interrupted")
        return 128 + next(iter(interrupt.args), signal.SIGINT)  # as a shell reports the signal
    except BrokenPipeError:
        # What was kept did not arrive, so no state may remember it. Nobody listens: no message either, not even of the
        # interpreter, which writes what is left when it ends.
        if argv is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 128 + 13  # as a shell reports SIGPIPE
    return 0


def _end(number: int, _frame: FrameType | None) -> None:
    """End at once, while there is nothing yet to put away: an exception would end in half a module, whichever it is."""
    os.write(2, b"lately: interrupted\n")
    os._exit(128 + number)
