"""A process that stands still for a while."""

import contextlib
import os
import signal
import subprocess
import time


@contextlib.contextmanager
def stopped(process):
    """Stop a process, and wait until it stands: the signal alone leaves it time to answer once more."""
    os.kill(process, signal.SIGSTOP)
    try:
        until = time.monotonic() + 60
        while not subprocess.check_output(["ps", "-o", "state=", "-p", str(process)]).startswith(b"T"):
            assert time.monotonic() < until, "it goes on"
        yield
    finally:
        os.kill(process, signal.SIGCONT)
