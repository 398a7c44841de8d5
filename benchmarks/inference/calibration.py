"""Are posteriors calibrated? Paper 5, section 6.1.4, on its two synthetic streams.

    uv run --group bench benchmarks/inference/calibration.py [--queries N] [--out FILE]

For every family that can tell probabilities, in the shape it gives itself for so much memory, and for the paper's
timers, of k = 4 as in its Table 5: the mean of |frequency - mean posterior| in 20 bins, weighted by queries, and
eq. 35, which takes the middle of the bin for the posterior. Prints a table in Markdown. Takes two to four minutes. The
time-limited filter is there for its posteriors only: its memory follows the rate, and is the same in every column.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from tqdm import tqdm

from support.inference.streams import CONDITIONS, Condition
from support.inference.trials import EverySecond, Outcome, Stream, Subject, as_planned, buffer, missing, timers

BITS = [5, 10, 15, 20, 25, 30]
TARGET = 0.01
PLANNED = [
    "timing",
    "age-partitioned",
    "age-partitioned-64",
    "age-partitioned-512",
    "guarded-epoch",
    "guarded-epoch-64",
    "guarded-epoch-512",
    "swamp",
    "counting",
    "stable",
]


def subjects(condition: Condition, bits: int) -> Iterator[tuple[str, Subject]]:
    """Give a filter of each family."""
    yield "BTBF as printed", timers(condition, bits, 4, corrected=False)
    yield "BTBF, G corrected", timers(condition, bits, 4, corrected=True)
    yield "simple buffer", buffer(condition, bits, 16)
    absent = missing()
    for name in PLANNED:
        if name not in absent:
            yield name, as_planned(condition, bits, name)
    yield "time-limited", EverySecond(condition)


def row(name: str, condition: Condition, outcomes: list[Outcome]) -> str:
    """Both errors at each memory; bold where the first is beyond the target."""
    errors = [(each.calibration_error, each.printed_error) for each in outcomes]
    cells = [f"**{own:.4f}** ({eq35:.3f})" if own > TARGET else f"{own:.4f} ({eq35:.3f})" for own, eq35 in errors]
    return f"| {condition.name} | {name} | {' | '.join(cells)} |"


def rows(queries: int) -> Iterator[str]:
    """Give the table line by line."""
    yield f"| stream | filter | {' | '.join(f'{bits} bits' for bits in BITS)} |"
    yield f"|---|---|{'--:|' * len(BITS)}"
    for condition in (each for each in CONDITIONS if each.window != 2**18 or each.stream != "uniform"):
        # It is preceded by a stream of two windows, more than any slack.
        stream = Stream.draw(condition, 2 * condition.window, queries, 5)
        found: dict[str, list[Outcome]] = {}
        for bits in tqdm(BITS, desc=condition.name, leave=False):
            for name, subject in subjects(condition, condition.window * bits):
                found.setdefault(name, []).append(stream.run(subject))
        yield from (row(name, condition, outcomes) for name, outcomes in found.items())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=2**18, help="of each filter")
    parser.add_argument("--out", type=Path, help="write the table to this file as well")
    arguments = parser.parse_args()
    lines = []
    for line in rows(arguments.queries):
        print(line, flush=True)
        lines.append(line)
    if arguments.out:
        head = (
            f"# Are posteriors true as often as they say?\n\nMean of |frequency - mean posterior| in 20 bins over "
            f"{arguments.queries:,} queries, and in parentheses eq. 35 of paper 5. Bold: beyond {TARGET}. "
            "The memory of the time-limited filter follows the rate, and is the same in every column. "
            f"Cannot tell probabilities yet: {', '.join(missing()) or 'none'}.\n\n"
        )
        arguments.out.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
