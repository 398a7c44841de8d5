"""Real streams through the filter and through an exact sliding window: every difference, and the bytes of both.

    uv run benchmarks/real_streams.py [folder]

prints a table in Markdown for the streams in `folder` (by default `examples/`), under the names they have there.
"""

import sys
from pathlib import Path

from support.real_streams import EXAMPLES
from support.stream_comparison import cases, compare, run_exact


def main() -> None:
    """Print the table."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else EXAMPLES
    print("Reported as duplicates, by when the key was last inserted:\n")
    print(
        "| stream | filter | refresh | within the window | within the slack | not lately (bound) | again "
        "| bytes | exact window, bytes |"
    )
    print("|---|---|---|--:|--:|--:|--:|--:|--:|")
    for case in cases(folder):
        keys, times = case.load(folder)
        exact = run_exact(keys, times)
        for name in ("age-partitioned", "age-partitioned-512"):
            for refresh in (True, False):
                found = compare(keys, times, name, refresh)
                kind = f"{'blocked' if name.endswith('512') else 'plain'} | {'yes' if refresh else 'no'}"
                print(
                    f"| {case} | {kind} | {found.window} | {found.slack} | {found.fresh} ({found.bound}) "
                    f"| {found.again} | {found.nbytes:,} | {exact.nbytes:,} |"
                )


if __name__ == "__main__":
    main()
