"""What a posterior costs relative to a query, per family, with one prior for all keys and with one per key.

    uv run --group bench benchmarks/inference/speed.py [--window N] [--bits N] [--out FILE]

Every repeat times all three in turn on the same batch, half of which is in the window. Ratios are taken within a
repeat; the median over repeats is printed with the least and the greatest. Processor time is measured, which other work
on the machine disturbs less. Takes a minute.
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time_ns

import numpy as np
from tqdm import tqdm

from calibration import PLANNED
from lately._families import EVERY

WANTED = (1.5, 2.5)


def seconds(call: Callable[[], object]) -> float:
    begin = process_time_ns()
    call()
    return (process_time_ns() - begin) / 1e9


def spread(ratios: list[float], wanted: float) -> str:
    """Median, least and greatest; bold where the median is more than wanted."""
    median = f"{np.median(ratios):.2f}"
    return f"{f'**{median}**' if np.median(ratios) > wanted else median} ({min(ratios):.2f} to {max(ratios):.2f})"


def rows(window: int, bits: int, batch: int, repeats: int) -> Iterator[str]:
    """Give the table line by line."""
    yield f"| filter | query, ns per key | one p for all (wanted: {WANTED[0]}) | p per key (wanted: {WANTED[1]}) |"
    yield "|---|--:|--:|--:|"
    rng = np.random.default_rng(0)
    for name in tqdm(PLANNED, leave=False):
        try:
            made = EVERY[name].make(window, nbytes=window * bits // 8)
        except ValueError as error:
            yield f"| {name} | {error} | | |"
            continue
        made.insert(np.arange(3 * window))
        # From the window, and from keys that never came.
        keys = rng.integers(2 * window, 4 * window, batch)
        prior = rng.choice(1 / np.arange(1, 2**16), batch) / 12
        queries, scalar, own = [], [], []
        for repeat in range(repeats + 1):
            times = [
                seconds(lambda made=made, keys=keys: made.query(keys)),
                seconds(lambda made=made, keys=keys: made.posterior(keys, 1e-5)),
                seconds(lambda made=made, keys=keys, prior=prior: made.posterior(keys, prior)),
            ]
            if repeat:  # the first one warms up
                queries.append(times[0])
                scalar.append(times[1] / times[0])
                own.append(times[2] / times[0])
        each = np.median(queries) / batch * 1e9
        yield f"| {name} | {each:.1f} | {spread(scalar, WANTED[0])} | {spread(own, WANTED[1])} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--window", type=int, default=2**16, help="insertions")
    parser.add_argument("--bits", type=int, default=10, help="bits per key of the window")
    parser.add_argument("--batch", type=int, default=2**18, help="keys of a call")
    parser.add_argument("--repeats", type=int, default=31)
    parser.add_argument("--out", type=Path, help="append the table to this file as well")
    arguments = parser.parse_args()
    lines = []
    for line in rows(arguments.window, arguments.bits, arguments.batch, arguments.repeats):
        print(line, flush=True)
        lines.append(line)
    if arguments.out:
        head = f"w = {arguments.window:,}, {arguments.bits} bits per key, batches of {arguments.batch:,} keys:\n\n"
        with arguments.out.open("a", encoding="utf-8") as file:
            file.write(head + "\n".join(lines) + "\n\n")


if __name__ == "__main__":
    main()
