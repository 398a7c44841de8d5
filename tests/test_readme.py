"""The front page: its code runs, its two commands are those that are run, and its speeds are measured."""

import re
import sys
from pathlib import Path

from support import pages

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [block.code.strip() for block in pages.blocks(TEXT) if block.kind == "bash"]


def test_code(tmp_path, monkeypatch):
    monkeypatch.chdir(pages.folder(tmp_path, ROOT))
    assert pages.run(TEXT, "README.md", {}) == 4


def test_first_command(tmp_path, monkeypatch):
    """But for uv, which would build the package."""
    monkeypatch.chdir(pages.folder(tmp_path, ROOT))
    install, _, job = COMMANDS[0].partition(" lately ")
    assert install == "pip install uv && uv run --no-dev"
    report = pages.shell(f"lately {job}")
    (example,) = (block.code for block in pages.blocks(TEXT) if block.kind == "console")
    (shown,) = (shown for command, shown in pages.commands(example) if command == f"lately {job}")
    pages.same(report, shown, "the job")
    assert len((tmp_path / "new.tsv").read_bytes().splitlines()) > 20_000


def test_second_command():
    assert COMMANDS[1:] == [(ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()[-1]]


def test_speeds_are_those_of_the_benchmark(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    from speed import plot

    report = (ROOT / "benchmarks" / "results" / "speed.md").read_text(encoding="utf-8")
    table = plot.front(report)
    assert table in TEXT
    assert table.count("\n") == len(plot.FRONT) + 1
    for row in table.splitlines()[2:]:
        for figure in re.findall(r"\d[\d.,]*\d%?", row.partition("|")[2].partition("|")[2]):
            assert f" {figure} |" in report
    for name in [name for name in sys.modules if name.partition(".")[0] == "speed"]:
        monkeypatch.delitem(sys.modules, name)


def test_is_two_screens():
    """Of some sixty lines; what is folded, such as tables, counts as it is written."""
    shown = [line for line in TEXT.splitlines() if line.strip()]
    assert len(shown) < 130
