"""Draw the picture of speed, and put its table into the README, from what `how_fast.py` has measured.

uv run benchmarks/front_page.py
"""

import re
from pathlib import Path

from speed import plot

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
TABLE = re.compile(r"(?<=<!-- benchmarks/front_page\.py writes this -->\n).*?(?=\n<!-- so far -->)", re.DOTALL)


def main() -> None:
    """Write picture and table."""
    report = (RESULTS / "speed.md").read_text(encoding="utf-8")
    plot.bars(report, ROOT / "docs" / "speed.svg")
    page = ROOT / "README.md"
    page.write_text(TABLE.sub(plot.front(report), page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
