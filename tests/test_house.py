"""The house is in order: the Rust core passes its own tests, and every linter is silent."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CHECKS = {
    "cargo test": ["cargo", "test", "--locked"],
    "clippy": ["cargo", "clippy", "--locked", "--all-targets", "--features", "python", "--", "-D", "warnings"],
    "clippy without python": ["cargo", "clippy", "--locked", "--all-targets", "--", "-D", "warnings"],
    "rustdoc": ["cargo", "doc", "--locked", "--no-deps"],
    "rustfmt": ["cargo", "fmt", "--check"],
    "ruff check": [sys.executable, "-m", "ruff", "check"],
    "ruff format": [sys.executable, "-m", "ruff", "format", "--check"],
    "mypy": [sys.executable, "-m", "mypy"],
    "stubtest": [sys.executable, "-m", "mypy.stubtest", "lately", "--mypy-config-file", "pyproject.toml"],
}


@pytest.mark.parametrize("name", CHECKS)
def test_check_passes(name):
    command = CHECKS[name]
    if command[0] == "cargo":
        assert shutil.which("cargo"), "the tests need Rust, from https://rustup.rs"
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
