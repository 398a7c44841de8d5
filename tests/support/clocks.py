"""A child process whose clocks a test moves, by a library that is preloaded into it."""

import mmap
import os
import shutil
import struct
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

TESTS = Path(__file__).parents[1]


@cache
def library() -> Path:
    """Build the library."""
    if sys.platform != "linux" or not (compiler := shutil.which("cc")):
        pytest.skip("needs Linux and a C compiler")
    path = Path(mkdtemp(prefix="clocks-")) / "clocks.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", path, TESTS / "core" / "clocks.c", "-ldl"], check=True)
    return path


def machine(folder: Path) -> dict[str, str]:
    """Return the environment of processes whose clocks the files in a folder move; write these, with clocks set right.

    Another text in the file "boot" is another start of the machine.
    """
    (folder / "clocks").write_bytes(bytes(16))
    if not (folder / "boot").exists():
        (folder / "boot").write_bytes(Path("/proc/sys/kernel/random/boot_id").read_bytes())
    files = {"LATELY_CLOCKS": str(folder / "clocks"), "LATELY_BOOT": str(folder / "boot")}
    return os.environ | {"LD_PRELOAD": str(library())} | files


def command(module: str, function: str, *arguments: str) -> list[str]:
    """Return the command that runs a function of a test module."""
    code = f"import sys; sys.path.insert(0, {str(TESTS)!r}); import {module}; {module}.{function}(*sys.argv[1:])"
    return [sys.executable, "-c", code, *arguments]


def run_with_clocks(module: str, function: str, folder: Path, *arguments: str) -> str:
    """Run a function of a test module in a child whose clocks it can move; return what it printed."""
    started = command(module, function, *arguments)
    done = subprocess.run(started, env=machine(folder), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Clocks:
    """The clocks of this process, or those of a file."""

    def __init__(self, file: Path | None = None) -> None:
        with Path(file or os.environ["LATELY_CLOCKS"]).open("r+b") as opened:
            self._moved = mmap.mmap(opened.fileno(), 16)

    def _add(self, wall: float, since_start: float) -> None:
        before = struct.unpack("qq", self._moved[:16])
        moved = (before[0] + round(wall * 1e9), before[1] + round(since_start * 1e9))
        self._moved[:16] = struct.pack("qq", *moved)

    def pass_time(self, seconds: float) -> None:
        """Let time pass, awake or asleep."""
        self._add(seconds, seconds)

    def set_wall(self, seconds: float) -> None:
        """Set the wall clock ahead, or back."""
        self._add(seconds, 0)

    def start_again(self, seconds: float) -> None:
        """Start the machine again: the clock of its start begins at 0."""
        self._add(seconds, -time.clock_gettime(time.CLOCK_BOOTTIME) - self.since_start())

    def since_start(self) -> float:
        """Return what is added to the clock of the machine's start."""
        return struct.unpack("qq", self._moved[:16])[1] / 1e9
