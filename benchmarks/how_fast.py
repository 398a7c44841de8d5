"""How fast are duplicates found, beside the other ways to find them and the speed of memory, at what error and size?

    uv run --group bench benchmarks/how_fast.py [--quick]

writes `results/speed.md` and `results/speed.svg`, of which `front_page.py` puts a part into the README. It needs Rust,
for the roofline; Redis takes part where a `redis-server` is installed. All structures are timed in turn within each
round, and ratios are taken within a round.
"""

import argparse
import os
import platform
from importlib.metadata import version
from pathlib import Path

from speed import core, growth, ours, paper2, peers, plot, small
from speed.race import Figures, race
from speed.streams import Stream

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("lately", "abloom", "rbloom", "fastbloom-rs", "redis", "pandas", "polars", "numpy")


def machine() -> str:
    """Name the machine and its software."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    model = models[0] if models else platform.processor()
    return f"{model}, {os.cpu_count()} cores, {platform.system()}; Python {platform.python_version()}, {packages}"


def everything(kind: str, options: argparse.Namespace) -> Figures:
    """Race all structures over keys of one kind."""
    window, fpr = options.window, options.fpr
    stream = Stream(kind, window, options.events, options.rounds)
    # Windows of time are as long as the stream.
    length = 2 * window + 2 * options.events * options.rounds
    makes = ours.layouts(window, fpr) | ours.containers(window, fpr, kind) | ours.others(window, fpr, length)
    return race(stream, makes | peers.peers(window, fpr, kind))


def in_short(options: argparse.Namespace, ints: Figures, urls: Figures, numpy: str, threads: int) -> str:
    """Table of the ratios for which the others are raced."""
    rivals = ("two ablooms, rotated", "two ablooms, overlapping", "pandas, whole column", "polars, whole column")
    rows = [
        (f"mask of {what}: {name} over {ours.OURS}", found.over("duplicated", name))
        for what, found in (("integers", ints), ("URLs in Arrow", urls))
        for name in rivals
    ]
    plain = "age-partitioned, plain"
    rows.append((f"query of integers: {plain} over {ours.OURS}", ints.over("query", plain)))
    scaled = growth.with_threads(options.window, options.fpr, options.rounds, threads)
    rows += [(f"{name}: one thread over {threads}", found) for name, found in scaled.items()]
    rows.append((f"query of guarded epochs: NumPy as in paper 2 over lines as rarely wrong, {threads} threads", numpy))
    rows += small.rows(options.window, options.fpr, options.rounds, options.large)
    return "\n".join(["| time of | ratio |", "|---|--:|", *(f"| {what} | {figure} |" for what, figure in rows)])


def measure(options: argparse.Namespace) -> str:
    """Measure all, and return the report."""
    threads, load = os.cpu_count() or 1, os.getloadavg()[0]
    memory = core.roofline(options.core_windows, 6 * options.rounds)
    ints, urls = everything("int64", options), everything("url", options)
    raced = growth.with_window(options.windows, options.fpr, options.events, options.rounds)
    windows = dict(zip(options.windows, raced, strict=True))
    rates = growth.with_rate(options.window, options.events, options.rounds)
    batches = growth.with_batch(options.window, options.fpr)
    numpy_table, numpy_ratio = paper2.measure(options.paper_window, options.rounds, threads)
    short = in_short(options, ints, urls, numpy_ratio, threads)
    return f"""# How fast

{machine()}. W = {options.window:,}, {options.fpr:.2%} asked for, {options.events:,} keys per timing, {options.rounds}
rounds; load average {load:.1f} as it began, {os.getloadavg()[0]:.1f} as it ended. A ratio is taken within a round: the
median over rounds, with the least and the greatest in brackets. Speeds are medians.

## In short

{short}

## The core beside the speed of memory

One process, no Python: `speed/roofline.rs`. A line read is one random cache line, fetched ahead, of as many bytes.

{core.table(memory)}

## Integers, as NumPy array

{ints.table()}

## URLs of 40 bytes, in Arrow

{urls.table()}

## Growth

Nanoseconds per key of the duplicate mask.

{growth.grown({f"W = {window:,}": found for window, found in windows.items()}, "window")}

{growth.grown({f"{fpr:.2%}": found for fpr, found in rates.items()}, "error asked for")}

{growth.by_batch(batches)}

![Cost per key against window, error, batch; and beside the roofline](speed.svg)

## Paper 2 as written

A window of {options.paper_window:,} keys, half of the queries live; bits are per key.

{numpy_table}
"""


def main() -> None:
    """Measure, and write table and picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--window", type=int, default=1_000_000, metavar="W", help="keys of the window of the tables")
    parser.add_argument(
        "--windows",
        type=int,
        nargs="+",
        default=[10**4, 10**5, 10**6, 10**7, 10**8],
        metavar="W",
        help="windows to grow through",
    )
    parser.add_argument("--fpr", type=float, default=0.01, help="false positive rate asked for")
    parser.add_argument("--events", type=int, default=1_000_000, help="keys per timing")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="small windows, two rounds: to see it run")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for table and picture")
    options = parser.parse_args()
    # The largest window of the core is far beyond the caches; paper 2 has a window of its own.
    options.core_windows, options.paper_window, options.large = [*options.windows, 50_000_000], 40_000_000, 10**9
    if options.quick:
        options.window, options.windows, options.events, options.rounds = 10_000, [10_000, 100_000], 20_000, 2
        options.core_windows, options.paper_window, options.large = options.windows, 400_000, 10**7
    options.out.mkdir(exist_ok=True)
    report = measure(options)
    (options.out / "speed.md").write_text(report, encoding="utf-8")
    plot.draw(report, options.out / "speed.svg")
    print(report)


if __name__ == "__main__":
    main()
