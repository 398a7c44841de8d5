"""A child process whose clocks a test moves, by a library that is preloaded into it."""

import mmap
import os
import shutil
import struct
import subprocess
import sys
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


def run_with_clocks(module: str, function: str, folder: Path, *arguments: str) -> str:
    """Run a function of a test module in a child whose clocks it can move; return what it printed."""
    environment = os.environ | {"LD_PRELOAD": str(library()), "LATELY_CLOCKS": str(folder / "clocks")}
    (folder / "clocks").write_bytes(bytes(16))
    code = f"import sys; sys.path.insert(0, {str(TESTS)!r}); import {module}; {module}.{function}(*sys.argv[1:])"
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Clocks:
    """The clocks of this process."""

    def __init__(self) -> None:
        with Path(os.environ["LATELY_CLOCKS"]).open("r+b") as file:
            self._moved = mmap.mmap(file.fileno(), 16)

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
