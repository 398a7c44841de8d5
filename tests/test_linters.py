"""Checks of the repository: the tests of the core, linters, types, documents.

They start when the run begins, beside the other tests, and are waited for at its end: `running_checks` in conftest.py.
Linters read tracked files only, so that a file that a user leaves in the clone fails no test.
"""

import importlib
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

import lately
from support.tree import ROOT, tracked

PYTHON, FILES = ([path.relative_to(ROOT) for path in tracked(*of)] for of in ((".py", ".pyi", ".ipynb"), ()))
CHECKS = {
    "cargo test": ["cargo", "test", "--locked"],
    # The build of the extension has the macros that these need, and they do not wait for the folder of the tests.
    "clippy": ["cargo", "clippy", "--release", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"],
    "rustdoc": ["cargo", "doc", "--release", "--locked", "--no-deps"],
    "rustfmt": ["cargo", "fmt", "--all", "--check"],
    "ruff check": [sys.executable, "-m", "ruff", "check", "--force-exclude", *PYTHON],
    "ruff format": [sys.executable, "-m", "ruff", "format", "--check", "--force-exclude", *PYTHON],
    "typos": [Path(sysconfig.get_path("scripts"), "typos"), "--force-exclude", *FILES],
    # `strict` in mkdocs.yml makes a warning an error. With `--quiet` it would not count them.
    "site": [sys.executable, "-m", "mkdocs", "build"],
    # It runs mypy, by the same settings, before it compares.
    "stubtest": [
        *(sys.executable, "-m", "mypy.stubtest", "lately", "--mypy-config-file", "pyproject.toml"),
        *("--allowlist", "tests/support/stubtest.txt", "--ignore-unused-allowlist"),
    ],
}


@pytest.mark.parametrize("name", CHECKS)
def test_check_passes(running_checks, name):
    assert shutil.which(CHECKS[name][0]), "the tests need Rust, from https://rustup.rs"
    output = running_checks / name.replace(" ", "-")
    while not (status := output.with_suffix(".status")).exists():
        time.sleep(0.1)
    assert int(status.read_text()) == 0, output.read_text()


def test_no_line_is_wider_than_the_page():
    """rustfmt and ruff check code. Comments and pages have at most 120 columns too, except tables and commands."""
    wide = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked(".rs", ".py", ".pyi")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > 120 and not line.lstrip().startswith(("//! |", "#[pyo3(", "text_signature"))
    ]
    assert not wide


@pytest.mark.campaign
def test_campaign_of_the_core():
    """Every value of every byte, and all trials of the rates."""
    environment = os.environ | {"LATELY_CAMPAIGN": "1"}
    done = subprocess.run(CHECKS["cargo test"], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_debug_build_warns(monkeypatch):
    assert not lately._core._debug_build
    monkeypatch.setattr(lately._core, "_debug_build", True)
    with pytest.warns(RuntimeWarning, match="debug build"):
        importlib.reload(lately)
