"""A process that stands still for a while."""

import contextlib
import fcntl
import os
import signal
import subprocess
import time
from pathlib import Path


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


def stop_with_the_lock(child, path):
    """Stop a child that locks a file again and again, at a moment when it has the lock."""
    with Path(path).open("rb") as file:
        while True:
            os.kill(child, signal.SIGSTOP)
            os.waitpid(child, os.WUNTRACED)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            fcntl.flock(file, fcntl.LOCK_UN)
            os.kill(child, signal.SIGCONT)
            time.sleep(0.001)
