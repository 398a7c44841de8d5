"""How fast is the exact mask of a window, beside `pandas.duplicated` of the whole column, which knows no window?

    uv run --group bench benchmarks/exact_mask.py [--keys 10000000] [--rounds 5]

Each round times all in turn; ratios are taken within a round. Given are the median over rounds, with the least and the
greatest: times of pandas over those of `lately.duplicated`, so that more is better.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import lately

WINDOWS = (1000, 100_000, 1_000_000)


def columns(n: int) -> Iterator[tuple[str, Any, Any]]:
    """What pandas gets, and what lately gets: the same column, as its users have it."""
    rng = np.random.default_rng(5)
    back = np.minimum(rng.geometric(1 / 50_000, n), np.arange(n))
    fresh = rng.integers(0, 2**62, n)
    half = np.where(rng.random(n) < 0.5, fresh, fresh[np.arange(n) - back])
    few = rng.integers(0, n // 5, n)
    for name, keys in (("int64, half repeats", half), ("int64, no repeats", fresh), ("int64, a fifth distinct", few)):
        series = pd.Series(keys)
        yield name, series, series
    texts = pa.array([f"https://example.org/{key:x}" for key in half[: n // 5].tolist()])
    series = pd.Series(texts, dtype=pd.ArrowDtype(pa.string()))
    yield "URLs, half repeats, pandas' ArrowDtype", series, series
    series = pd.Series(texts.to_pylist(), dtype="str")
    yield "URLs, half repeats, pandas' str", series, series
    series = pd.Series(texts.to_pylist(), dtype=object)
    yield "URLs, half repeats, objects", series, series


def seconds(work: Callable[[], Any]) -> float:
    """Time it once."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print("| keys | n | window | pandas: ns a key | lately: ns a key | pandas over lately |\n|---|--:|--:|--:|--:|--:|")
    for name, theirs, ours in columns(options.keys):
        n = len(ours)
        times: dict[str | int, list[float]] = {"pandas": []} | {window: [] for window in WINDOWS}
        for _ in range(options.rounds):
            times["pandas"].append(seconds(theirs.duplicated))
            for window in WINDOWS:
                times[window].append(seconds(partial(lately.duplicated, ours, window)))
        for window in WINDOWS:
            ratios = [whole / exact for whole, exact in zip(times["pandas"], times[window], strict=True)]
            a_key = [1e9 * median(times[who]) / n for who in ("pandas", window)]
            print(
                f"| {name} | {n:,} | {window:,} | {a_key[0]:.1f} | {a_key[1]:.1f} "
                f"| {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |"
            )


if __name__ == "__main__":
    main()
