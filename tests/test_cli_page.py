"""The blocks of the command's page print what it says, and it names every option."""

import argparse
import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lately.cli.options import parser

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "command.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```console\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def shell(tmp_path):
    """Run lines of a shell where the examples are, and a command `lately` is."""
    (tmp_path / "lately").write_text(f'#!/bin/sh\nexec {sys.executable} -m lately "$@"\n')
    (tmp_path / "lately").chmod(0o755)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    path = f"{tmp_path}:{os.environ['PATH']}"

    def run(lines):
        ended = subprocess.run(
            ["sh", "-c", f"exec 2>&1; {lines}"], cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True
        )
        return ended.stdout.decode()

    return run


def test_the_blocks_print_what_the_page_says(shell):
    checker = doctest.OutputChecker()
    commands = 0
    for line, wanted in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", "".join(BLOCKS), re.MULTILINE):
        got = shell(line)
        assert checker.check_output(wanted, got, doctest.ELLIPSIS), f"{line}\n{got}"
        commands += 1
    assert commands == PAGE.count("\n$ ") > 9


def test_the_page_names_every_option():
    commands = next(action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    options = [option for action in commands.choices["dedupe"]._actions for option in action.option_strings]
    missing = [option for option in options if f"`{option}" not in PAGE]
    assert missing == ["-h", "--help"]
