"""Processes without the start of an interpreter, which takes 0.3 s, and without imports, which take seconds.

One process, started once, has imported what the runs need, and forks itself for each run. A run is a process of its
own in every way that a test can see: its descriptors, limits, signals, exit and death.
"""

import atexit
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

COMMAND = ("pyarrow.parquet", "tqdm", "zstandard", "lately.cli.options")


class Forked:
    """What ``subprocess.Popen([sys.executable, "-c", code, *arguments])`` gives, of it what tests use.

    The process has imported the modules `imports`, by default those of the command, in `environment`, by default ours.
    """

    def __init__(
        self,
        code: str,
        *arguments: object,
        imports: tuple[str, ...] = COMMAND,
        environment: dict[str, str] | None = None,
        stdin: Any = None,
        stdout: Any = None,
        stderr: Any = None,
    ):
        theirs, ours = [], []
        for given, reads in ((stdin, True), (stdout, False), (stderr, False)):
            if given is None:
                ends = os.pipe() if reads else os.pipe()[::-1]
                theirs.append(ends[0])
                ours.append(os.fdopen(ends[1], "wb" if reads else "rb"))
            else:
                theirs.append(os.dup(given if isinstance(given, int) else given.fileno()))
                ours.append(None)
        self.stdin, self.stdout, self.stderr = ours
        reading, writing = os.pipe()
        self._status = os.fdopen(reading, "r")
        self.returncode: int | None = None
        message = json.dumps([code, str(Path.cwd()), *map(str, arguments)]).encode()
        socket.send_fds(_server(imports, tuple((environment or {}).items())), [message], [*theirs, writing])
        for descriptor in (*theirs, writing):
            os.close(descriptor)
        self.pid = int(self._status.readline())

    def send_signal(self, number: int) -> None:
        # Like a `Popen`, which sends nothing to what has ended.
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(int(self._status.readline()))
            self._status.close()
        return self.returncode

    def communicate(self, given: bytes = b"") -> tuple[bytes, bytes]:
        """Write to its standard input, read all it writes, and wait for its end."""
        got: dict[Any, bytes] = {}
        threads = [threading.Thread(target=self._write, args=(given,))]
        threads += [
            threading.Thread(target=lambda pipe=pipe: got.update({pipe: pipe.read()}))
            for pipe in (self.stdout, self.stderr)
            if pipe is not None
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.wait()
        for pipe in (self.stdout, self.stderr):
            if pipe is not None:
                pipe.close()
        return got.get(self.stdout, b""), got.get(self.stderr, b"")

    def _write(self, given: bytes) -> None:
        if self.stdin is None:
            return
        for call in (lambda: self.stdin.write(given), self.stdin.close):
            with suppress(BrokenPipeError):
                call()


@cache
def _server(imports: tuple[str, ...], environment: tuple[tuple[str, str], ...]) -> socket.socket:
    """Start the process that forks; it forks when a message is sent here."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, __file__, str(theirs.fileno()), *imports]
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=dict(environment) or None)
    atexit.register(process.wait)
    atexit.register(ours.close)  # first
    return ours


def _serve(channel: socket.socket) -> tuple[str, list[str]]:
    """Fork for each message; return in the process of a run, with its code and arguments."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the children that wait
    while True:
        message, descriptors, *_ = socket.recv_fds(channel, 1 << 16, 4)
        if not message:
            os._exit(0)
        *standard, status = descriptors
        if os.fork():
            for descriptor in descriptors:
                os.close(descriptor)
            continue
        channel.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if pid := os.fork():
            for descriptor in (0, 1, 2, *standard):
                os.close(descriptor)
            os.write(status, b"%d\n" % pid)
            os.write(status, b"%d\n" % os.waitpid(pid, 0)[1])
            os._exit(0)
        os.close(status)
        for number, descriptor in enumerate(standard):
            os.dup2(descriptor, number)
            os.close(descriptor)
        code, folder, *arguments = json.loads(message)
        os.chdir(folder)
        return code, arguments


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1]))
    for _module in sys.argv[2:]:
        importlib.import_module(_module)
    _code, _arguments = _serve(socket.socket(fileno=int(sys.argv[1])))
    sys.argv = ["-c", *_arguments]
    exec(_code, {"__name__": "__main__"})
