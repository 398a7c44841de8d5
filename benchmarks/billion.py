"""From ten thousand keys to a billion: does the rate stay as requested, and what does a key cost?

    uv run --group bench benchmarks/billion.py [--windows 10000 1000000000]

writes `results/billion.md`. The filter that `lately.Filter` makes takes as many keys as its window has, and a tenth
more. Then keys that were never inserted are queried, and keys of the whole window, of which none may be missed. Keys
are integers, and no two are equal. (The Bloom filter of Spark reports 76 % instead of 1 % of a billion keys:
apache/spark#50933.)
"""

import argparse
import os
import resource
from pathlib import Path
from time import perf_counter

import numpy as np
from tqdm import tqdm

import lately

RESULTS = Path(__file__).parent / "results" / "billion.md"
WINDOWS = (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
FPR, BATCH, QUERIED = 0.01, 1_000_000, 10_000_000


def faults() -> int:
    """Pages that this process touched for the first time."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def batches(start: int, end: int) -> list[tuple[int, int]]:
    """Cut a range of keys."""
    return [(begin, min(end, begin + BATCH)) for begin in range(start, end, BATCH)]


def row(window: int) -> str:
    """Fill a filter, and query it."""
    before = faults()
    made = lately.Filter(window, FPR)
    # Enough keys to measure a small window by.
    last = max(window * 11 // 10, 5 * BATCH)
    inserting = 0.0
    for begin, end in tqdm(batches(0, last), desc=f"W = {window:,}", leave=False):
        keys = np.arange(begin, end)
        start = perf_counter()
        made.insert(keys)
        inserting += perf_counter() - start
    touched = faults() - before
    reported, querying = 0, 0.0
    for begin, end in batches(2**62, 2**62 + QUERIED):
        keys = np.arange(begin, end)
        start = perf_counter()
        seen = made.query(keys)
        querying += perf_counter() - start
        reported += int(seen.sum())
    live = np.linspace(last - window, last - 1, min(window, QUERIED)).astype(np.int64)
    missed = len(live) - int(made.query(live).sum())
    return (
        f"| {window:,} | {made.nbytes / 1e6:,.4g} | {made.fpr:.3%} | {reported / QUERIED:.3%} | "
        f"{missed} of {len(live):,} | {1e9 * inserting / last:.1f} | {1e9 * querying / QUERIED:.1f} | {touched:,} |"
    )


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, nargs="+", default=WINDOWS)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    rows = [row(window) for window in options.windows]
    head = (
        "| W | MB | rate planned | rate measured | live keys missed | ns to insert | ns to query | pages touched |\n"
        "|--:|--:|--:|--:|--:|--:|--:|--:|"
    )
    text = (
        f"# From ten thousand keys to a billion\n\n`lately.Filter(W, {FPR})`, integers; "
        f"{QUERIED:,} queried keys that were never inserted.\nLoad average {load:.1f} as it began.\n\n{head}\n"
    )
    RESULTS.write_text(text + "\n".join(rows) + "\n")
    print(RESULTS.read_text())


if __name__ == "__main__":
    main()
