"""Where the penalty at 10 bits per key comes from, on the uniform stream with w = 2^16.

    uv run --group bench benchmarks/inference/decomposed.py [--bits N] [--queries N] [--out FILE]

By the true age of the key: missed in the window; reported although in the generation in which the window ends, or just
beyond; reported although older. The last column is what would be left if every key's generation were known, and nothing
else of its age: the price of generations, which only more generations reduce. Prints a table in Markdown.
"""

import argparse
from collections.abc import Iterator
from math import ceil
from pathlib import Path

import numpy as np

from support.inference.printed import surviving
from support.inference.streams import CHUNK, CONDITIONS, ages
from support.inference.trials import Outcome, Parameters, Stream, make

SHAPES: list[tuple[str, dict[str, int], int]] = [
    ("BTBF as printed", {"k": 3}, 5),
    ("timing", {"k": 4, "bpt": 3}, 6),
    *(("guarded-epoch", {"r": r, "k": 6}, r) for r in (2, 4, 5, 8, 16)),
]
"""Family, parameters, and the generations that a window has."""


def generation_known(stream: Stream, generations: int) -> Outcome:
    """Decide by the generation of each key, as if its cells contained it for certain."""
    window, probability = stream.condition.window, stream.condition.prior(np.arange(1))
    length = ceil((window - 1) / generations)
    age = np.minimum(ages(stream.keys, stream.starts), 4 * window)
    started = (stream.starts % length)[:, None]
    number = np.where(age < started, 0, (age - started) // length + 1)
    youngest, oldest = np.where(number > 0, started + (number - 1) * length, 0), started + number * length
    kept, ended, at_window = (surviving(probability, each) for each in (youngest, oldest, window))
    posterior = np.clip((kept - at_window) / np.maximum(kept - ended, 1e-300), 0, 1)
    return stream.compare(np.ones(age.shape, bool), posterior)


def rows(bits: int, queries: int) -> Iterator[str]:
    """Give the table line by line."""
    yield "| filter | shape | penalty per query | missed | just beyond the window | older | generations known |"
    yield "|---|---|--:|--:|--:|--:|--:|"
    condition = CONDITIONS[0]
    stream = Stream.draw(condition, 2 * condition.window, queries, 9)
    age = ages(stream.keys, stream.starts).ravel()
    for family, shape, generations in SHAPES:
        parameters: Parameters = tuple(shape.items())
        outcome = stream.run(make(family, condition, bits, parameters))
        beyond = age >= condition.window * (1 + 1 / generations)
        kinds = [outcome.truth, ~outcome.truth & ~beyond, beyond]
        costs = outcome.costs(outcome.decided)
        parts = " | ".join(f"{costs[kind].sum() / len(costs):.3f}" for kind in kinds)
        text = ", ".join(f"{name}={value}" for name, value in shape.items())
        known = generation_known(stream, generations).penalty
        yield f"| {family} | {text} | {outcome.penalty:.3f} | {parts} | {known:.3f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bits", type=int, default=10, help="bits per key of the window")
    parser.add_argument("--queries", type=int, default=256 * CHUNK)
    parser.add_argument("--out", type=Path, help="write the table to this file as well")
    arguments = parser.parse_args()
    text = "\n".join(rows(arguments.bits, arguments.queries))
    print(text)
    if arguments.out:
        title = f"# Where the penalty comes from: uniform stream, w = 2^16, {arguments.bits} bits per key"
        arguments.out.write_text(f"{title}\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
