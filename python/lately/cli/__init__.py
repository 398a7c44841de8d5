"""The command ``lately``: its start, and its exit status.

`main` handles Ctrl-C before it imports the rest, because the imports take a tenth of a second.
"""

import gc
import io
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
        Arguments. The default is those of the process, which then ends after this call.

    Returns
    -------
    int
        0 when done; 1 after an error; 2 if options contradict each other or are out of range; 128 plus the number of a
        signal (130 after Ctrl-C, 143 after SIGTERM); 141 when the reader of standard output has gone. Unless it is 0,
        files are unchanged and no state was saved.

    Raises
    ------
    SystemExit
        If the arguments are wrong (2), or request help or the version (0).
    """
    if argv is None:
        _open_standard_streams()
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _end)
    try:
        return _main(argv)
    except (ImportError, OSError) as error:
        # Standard output is full or closed, or the disk failed while modules were imported. What is imported to write
        # messages may be missing too.
        os.write(2, f"lately: error: {' '.join(str(error).split())}\n".encode(errors="backslashreplace"))
        return 1
    finally:
        if argv is None:
            _discard_unwritten()


def _main(argv: Sequence[str] | None) -> int:
    """Run the command, and write the messages of the errors that it expects."""
    from lately.cli.errors import CliError, UsageError
    from lately.cli.options import parser
    from lately.cli.report import print_error
    from lately.cli.signals import interrupted

    try:
        options = parser().parse_args(argv)
        run = getattr(import_module(options.module), options.run)
        with interrupted(to_the_end=argv is None):
            run(options)
            sys.stdout.flush()
        if argv is None:
            gc.freeze()  # so that the interpreter does not search all objects for garbage as it ends
    except CliError as error:
        print_error(f"lately: error: {error}")
        if not isinstance(error, UsageError):
            return 1
        print_error(f"`lately {options.run} --help` describes the options")
        return 2
    except KeyboardInterrupt as interrupt:
        from lately.cli.outputs import remove_temporaries

        remove_temporaries()
        print_error("lately: interrupted")
        return 128 + next(iter(interrupt.args), signal.SIGINT)  # as a shell reports the signal
    except BrokenPipeError:
        # The output did not arrive, so no state was saved, and no message is written.
        return 128 + 13  # as a shell reports SIGPIPE
    return 0


def _open_standard_streams() -> None:
    """Open the standard streams that the shell has closed, so that no file gets the descriptor of one.

    Records cannot be read from these or written to them. Messages are lost. A character that the encoding of standard
    output lacks is escaped.
    """
    for descriptor, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _discard_unwritten() -> None:
    """Discard what cannot be written, or the interpreter would try again as it ends, and end with another status."""
    for descriptor, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def _end(number: int, _frame: FrameType | None) -> None:
    """End the process at once. Nothing is open yet, and an exception would leave a half-imported module."""
    os.write(2, b"lately: interrupted\n")
    os._exit(128 + number)
