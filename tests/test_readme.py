"""The README shows no speed that the benchmark did not print."""

from pathlib import Path

ROOT = Path(__file__).parent.parent


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("|")]


def test_every_figure_is_from_the_benchmark():
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("## How fast")[2].partition("\n## ")[0]
    measured = rows((ROOT / "benchmarks" / "results" / "speed.md").read_text(encoding="utf-8"))
    shown = rows(section)
    assert len(shown) > 20
    assert [row for row in shown if row not in measured] == []
