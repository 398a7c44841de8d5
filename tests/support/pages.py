"""The code on a page, run from top to bottom, and held to the output it shows.

- A ``python`` block runs as it is; a ``text`` block right below it is what it prints. With ``>>>`` it is a doctest.
  All blocks of a page share their names.
- In a ``console`` block each ``$`` is a command of the shell, and what follows is what it prints.
- ``...`` in an output stands for anything.
- ``<!-- not run -->`` above a ``python`` or ``console`` block: it is only compiled, and the page states that.
"""

import contextlib
import doctest
import io
import os
import re
import subprocess
import sysconfig
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FENCE = re.compile(
    r"(?P<apart><!-- not run -->\s*)?^(?P<indent> *)```(?P<kind>\w+)[^\n]*\n(?P<code>.*?)^(?P=indent)```$"
    r"(?:\s*^(?P=indent)```text\n(?P<shown>.*?)^(?P=indent)```$)?",
    re.DOTALL | re.MULTILINE,
)


class Checker(doctest.OutputChecker):
    """Compares output without what Ray writes beside it, such as that it calls a killed actor again."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return super().check_output(want, re.sub(r"(?m)^.*\(raylet\).*\n", "", got), optionflags)


CHECKER = Checker()


@dataclass(frozen=True)
class Block:
    """A block of code, and what it should print."""

    kind: str
    code: str
    shown: str
    run: bool
    line: int


def blocks(text: str) -> Iterator[Block]:
    """Give all blocks of a page."""
    for found in FENCE.finditer(text):
        code, shown = (textwrap.dedent(found[name] or "") for name in ("code", "shown"))
        yield Block(found["kind"], code, shown, found["apart"] is None, text.count("\n", 0, found.start("code")) + 1)


def run(text: str, name: str, names: dict[str, Any]) -> int:
    """Run a page in the current folder; return how many blocks were run, or fail with the first that went wrong."""
    ran = 0
    for block in blocks(text):
        place = f"{name}, line {block.line}"
        if block.kind == "python" and not block.run:
            compile(block.code, place, "exec")
        if block.kind not in ("python", "console") or not block.run:
            continue
        ran += 1
        if block.kind == "console":
            for command, shown in commands(block.code):
                same(shell(command), shown, f"{place}: {command}")
        elif block.code.startswith(">>>"):
            found: list[str] = []
            test = doctest.DocTestParser().get_doctest(block.code, names, name, name, block.line - 1)
            doctest.DocTestRunner(CHECKER, optionflags=doctest.ELLIPSIS).run(test, out=found.append, clear_globs=False)
            names |= test.globs
            assert not found, "".join(found)
        else:
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile("\n" * (block.line - 1) + block.code, name, "exec"), names)
            same(printed.getvalue(), block.shown, place)
    return ran


def commands(code: str) -> Iterator[tuple[str, str]]:
    """Give each command of a ``console`` block, and what it should print."""
    for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        last = next(i for i, line in enumerate(lines) if not line.endswith("\\\n"))
        yield "".join(lines[: last + 1]).rstrip("\n"), "".join(lines[last + 1 :])


def shell(command: str) -> str:
    """Run a command and return what it prints, errors too. The hashes have a seed, so that every run is alike."""
    command = command.replace("lately dedupe ", "lately dedupe --seed 0 ")
    path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PATH": path, "COLUMNS": "80"},
    )
    return done.stdout


def same(printed: str, shown: str, place: str) -> None:
    """Fail if what was printed is not what is shown."""
    printed, shown = ("".join(f"{line.rstrip()}\n" for line in text.splitlines()) for text in (printed, shown))
    fits = CHECKER.check_output(shown, printed, doctest.ELLIPSIS)
    assert fits, f"{place}\n--- shown\n{shown}--- printed\n{printed}"


def folder(path: Path, root: Path) -> Path:
    """Give a folder for a page to run in: the examples are there, and what it writes stays there."""
    (path / "examples").symlink_to(root / "examples")
    return path
