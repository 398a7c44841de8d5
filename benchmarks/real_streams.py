"""Real streams through the filters that one chooses between: what each reports beside a dict, and its bytes.

    uv run benchmarks/real_streams.py [folder]

prints a table in Markdown for the streams in `folder` (by default `examples/`), under the names they have there.
"""

import sys
from pathlib import Path

from support.real_streams import EXAMPLES
from support.stream_comparison import FILTERS, FPR, cases, compare


def main() -> None:
    """Print the table."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else EXAMPLES
    print(f"Reported as duplicates at a rate of {FPR}, by when the key was last inserted:\n")
    print(
        "| stream | filter | within the window | within the slack | not lately (bound) | wrongly reported | bytes |\n"
        "|---|---|--:|--:|--:|--:|--:|"
    )
    for case in cases(folder):
        keys, times = case.load(folder)
        for name in FILTERS:
            found = compare(keys, times, name)
            print(
                f"| {case} | {name} | {found.window} | {found.slack} | {found.fresh} ({found.bound}) "
                f"| {found.wrongly:.2%} | {found.nbytes:,} |"
            )


if __name__ == "__main__":
    main()
