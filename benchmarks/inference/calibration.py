"""Are posteriors calibrated? Paper 5, section 6.1.4, on its two synthetic streams.

    uv run --group bench benchmarks/inference/calibration.py [--queries N] [--out FILE]

For every family that can compute probabilities, in the shape it gives itself for so much memory, and for the paper's
timers, of k = 4 as in its Table 5: the mean of |frequency - mean posterior| in 20 bins, weighted by queries, and
eq. 35, which takes the middle of the bin for the posterior. Prints a table in Markdown. Takes two to four minutes. The
time-limited filter is there for its posteriors only: its memory follows the rate, and is the same in every column.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from support.inference.streams import CONDITIONS, Bools, Condition, Floats, Keys
from support.inference.trials import EverySecond, Outcome, Stream, Subject, as_planned, buffer, timers

BITS = [5, 10, 15, 20, 25, 30]
TARGET = 0.01
PLANNED = [
    "timing",
    "age-partitioned",
    "age-partitioned-512",
    "age-partitioned-line",
    "guarded-epoch",
    "guarded-epoch-512",
    "guarded-epoch-line",
    "guarded-epoch-transposed",
    "aged-cuckoo",
    "swamp",
    "stable",
    "generalized",
]


@dataclass
class ByNumbers:
    """A filter that takes the chances of the queried keys, a number or an array, and no law."""

    filter: Any

    def insert(self, keys: Keys) -> None:
        self.filter.insert(keys)

    def query(self, keys: Keys) -> Bools:
        found: Bools = self.filter.query(keys)
        return found

    def posterior(self, keys: Keys, prior: float | Floats) -> Floats:
        posteriors: Floats = self.filter.posterior(keys, prior)
        return posteriors


def subjects(condition: Condition, bits: int) -> Iterator[tuple[str, Subject | None]]:
    """Give a filter of each family."""
    yield "BTBF as printed", timers(condition, bits, 4, corrected=False)
    yield "BTBF, G corrected", timers(condition, bits, 4, corrected=True)
    yield "simple buffer", buffer(condition, bits, 16)
    for name in PLANNED:
        try:
            yield name, as_planned(condition, bits, name)
        except ValueError:
            yield name, None  # no filter of so few bytes
    yield "generalized, by numbers", ByNumbers(as_planned(condition, bits, "generalized"))
    yield "time-limited", EverySecond(condition)


def cell(outcome: Outcome | None) -> str:
    """Both errors; bold where the first is beyond the target."""
    if outcome is None:
        return "no such filter"
    own, eq35 = outcome.calibration_error, outcome.printed_error
    return f"**{own:.4f}** ({eq35:.3f})" if own > TARGET else f"{own:.4f} ({eq35:.3f})"


def row(name: str, condition: Condition, outcomes: list[Outcome | None]) -> str:
    """The errors at each memory."""
    cells = [cell(outcome) for outcome in outcomes]
    return f"| {condition.name} | {name} | {' | '.join(cells)} |"


def rows(queries: int) -> Iterator[str]:
    """Give the table line by line."""
    yield f"| stream | filter | {' | '.join(f'{bits} bits' for bits in BITS)} |"
    yield f"|---|---|{'--:|' * len(BITS)}"
    for condition in (each for each in CONDITIONS if each.window != 2**18 or each.stream != "uniform"):
        # It is preceded by a stream of two windows, more than any slack.
        stream = Stream.draw(condition, 2 * condition.window, queries, 5)
        found: dict[str, list[Outcome | None]] = {}
        for bits in tqdm(BITS, desc=condition.name, leave=False):
            for name, subject in subjects(condition, condition.window * bits):
                found.setdefault(name, []).append(stream.run(subject) if subject else None)
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
            f"# Are posteriors true as often as they state?\n\nMean of |frequency - mean posterior| in 20 bins over "
            f"{arguments.queries:,} queries, and in parentheses eq. 35 of paper 5. Bold: beyond {TARGET}. "
            "The memory of the time-limited filter follows the rate, and is the same in every column.\n\n"
        )
        arguments.out.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
