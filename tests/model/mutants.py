"""Runs the loom model on the page as it is, and on three mutants of it, each of which has to fail."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PAGE = Path("src/concurrent/page.rs")
DECIDES = "first = before & mask != mask;"
LOOKS_AGAIN = "if !first || self.is_open(rotation, end, timing) {"
MUTANTS = {
    "a thread is first if the key was absent when it looked": (DECIDES, "first = true;"),
    "a thread is first if any of its writes changed a word": (DECIDES, "first |= before & mask != mask;"),
    "a thread does not look at the rotation again": (LOOKS_AGAIN, "if !first || true {"),
}


def passes(page: str) -> bool:
    """Run the model with this text of the page."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        (copy / PAGE).parent.mkdir(parents=True)
        (copy / PAGE).write_text(page)
        shutil.copytree(HERE, copy / "tests/model", ignore=shutil.ignore_patterns("target"))
        target = os.environ.get("CARGO_TARGET_DIR", str(HERE.parents[1] / "target" / "model"))
        environment = os.environ | {"RUSTFLAGS": "--cfg loom", "CARGO_TARGET_DIR": target}

        def cargo(*words: str) -> "subprocess.CompletedProcess[str]":
            command = ["cargo", *words, "--release", "--manifest-path", str(copy / "tests/model/Cargo.toml")]
            return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

        # Cargo takes the same package in another folder for the one it has built.
        cargo("clean", "--package", "lately-model")
        run = cargo("run", "--quiet")
    if run.returncode and "panicked" not in run.stderr:
        sys.exit(run.stderr)
    return run.returncode == 0


def main() -> None:
    """Run all, and exit with a message if one of them does what it should not."""
    page = (HERE.parents[1] / PAGE).read_text()
    if not passes(page):
        sys.exit("the model fails on the page as it is")
    for rule, (text, mutant) in MUTANTS.items():
        if page.count(text) != 1:
            sys.exit(f"{text!r} must occur once in {PAGE}")
        if passes(page.replace(text, mutant)):
            sys.exit(f"the model passes although {rule}")
        print(f"fails, as it should: {rule}")


if __name__ == "__main__":
    main()
