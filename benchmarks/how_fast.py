"""How fast are duplicates found, beside the other ways to find them and the speed of memory, at what error and size?

    uv run --group bench benchmarks/how_fast.py [--quick] [--only core small]

writes `results/speed.md`, of which `front_page.py` puts a part into the README. It needs Rust,
for the roofline; Redis takes part where a `redis-server` is installed. All structures are timed in turn within each
round, and ratios are taken within a round.
"""

import argparse
import os
import platform
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from speed import core, growth, ours, paper2, peers, small
from speed.race import Figures, race
from speed.streams import Stream

RESULTS = Path(__file__).parent / "results"
CORES = os.cpu_count() or 1
PACKAGES = ("lately", "abloom", "rbloom", "fastbloom-rs", "redis", "pandas", "polars", "numpy")


def machine() -> str:
    """Name the machine and its software."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    model = models[0] if models else platform.processor()
    return f"{model}, {CORES} cores, {platform.system()}; Python {platform.python_version()}, {packages}"


def everything(kind: str, options: argparse.Namespace) -> Figures:
    """Race all structures over keys of one kind."""
    window, fpr = options.window, options.fpr
    stream = Stream(kind, window, options.events, options.rounds)
    # Windows of time are as long as the stream.
    length = 2 * window + 2 * options.events * options.rounds
    makes = ours.layouts(window, fpr) | ours.containers(window, fpr, kind) | ours.others(window, fpr, length)
    return race(stream, makes | peers.peers(window, fpr, kind))


def rows_of(rows: list[tuple[str, str]], figure: str = "ratio") -> str:
    """Table of figures, by default of ratios."""
    return "\n".join([f"| time of | {figure} |", "|---|--:|", *(f"| {what} | {found} |" for what, found in rows)])


def rivals(ints: Figures, urls: Figures) -> list[tuple[str, str]]:
    """Ratios for which the others are raced."""
    others = ("two ablooms, rotated", "two ablooms, overlapping", "pandas, whole column", "polars, whole column")
    rows = [
        (f"mask of {what}: {name} over {ours.OURS}", found.over("duplicated", name))
        for what, found in (("integers", ints), ("URLs in Arrow", urls))
        for name in others
    ]
    plain = "age-partitioned, plain"
    return [*rows, (f"query of integers: {plain} over {ours.OURS}", ints.over("query", plain))]


def threads(options: argparse.Namespace) -> list[tuple[str, str]]:
    """Speedups by threads."""
    scaled = growth.with_threads(options.window, options.fpr, options.rounds, CORES)
    return [(f"{name}: one thread over {CORES}", found) for name, found in scaled.items()]


def small_calls(options: argparse.Namespace) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """What everyday calls cost: ratios, and times in microseconds."""
    return small.rows(options.window, options.fpr, options.rounds, options.large)


def beside_memory(options: argparse.Namespace) -> str:
    """Table of the core beside the roofline."""
    return core.table(core.roofline(options.core_windows, 6 * options.rounds))


def grown(options: argparse.Namespace) -> str:
    """Tables by window, by rate and by batch."""
    raced = growth.with_window(options.windows, options.fpr, options.events, options.rounds)
    windows = {f"W = {window:,}": found for window, found in zip(options.windows, raced, strict=True)}
    by_rate = growth.with_rate(options.window, options.events, options.rounds)
    rates = {f"{fpr:.2%}": found for fpr, found in by_rate.items()}
    batches = growth.by_batch(growth.with_batch(options.window, options.fpr))
    return "\n\n".join([growth.grown(windows, "window"), growth.grown(rates, "error requested"), batches])


def as_written(options: argparse.Namespace) -> tuple[str, str]:
    """Table of paper 2, and the ratio of its last row."""
    return paper2.measure(options.paper_window, options.rounds, CORES)


# What `--only` may select.
PARTS: dict[str, Callable[[argparse.Namespace], str]] = {
    "core": beside_memory,
    "integers": lambda options: everything("int64", options).table(),
    "urls": lambda options: everything("url", options).table(),
    "growth": grown,
    "threads": lambda options: rows_of(threads(options)),
    "small": lambda options: rows_of(small_calls(options)[1], "microseconds"),
    "paper-2": lambda options: as_written(options)[0],
}


def measure(options: argparse.Namespace) -> str:
    """Measure all, and return the report."""
    load, memory = os.getloadavg()[0], beside_memory(options)
    ints, urls = everything("int64", options), everything("url", options)
    by_size, (numpy_table, numpy_ratio) = grown(options), as_written(options)
    of_numpy = f"query of guarded epochs: NumPy as in paper 2 over lines as rarely wrong, {CORES} threads"
    small_ratios, times = small_calls(options)
    short = [*rivals(ints, urls), *threads(options), (of_numpy, numpy_ratio), *small_ratios]
    return f"""# How fast

{machine()}. W = {options.window:,}, {options.fpr:.2%} requested, {options.events:,} keys per timing, {options.rounds}
rounds; load average {load:.1f} as it began, {os.getloadavg()[0]:.1f} as it ended. A ratio is taken within a round: the
median over rounds, with the least and the greatest in brackets. Speeds are medians.

## In short

{rows_of(short)}

{rows_of(times, "microseconds")}

## The core beside the speed of memory

One process, no Python: `speed/roofline.rs`. A line read is one random cache line, fetched ahead, of as many bytes.

{memory}

## Integers, as NumPy array

{ints.table()}

## URLs of 40 bytes, in Arrow

{urls.table()}

## Growth

Nanoseconds per key of the duplicate mask.

{by_size}

![Cost per key against window, error, batch; and beside the roofline](speed.svg)

## Paper 2 as written

A window of {options.paper_window:,} keys, half of the queries live; bits are per key.

{numpy_table}
"""


def main() -> None:
    """Measure, and write the tables."""
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
    parser.add_argument("--fpr", type=float, default=0.01, help="false positive rate requested")
    parser.add_argument("--events", type=int, default=1_000_000, help="keys per timing")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="small windows, two rounds: to see it run")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the tables")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="print these parts, and write nothing")
    options = parser.parse_args()
    # The largest window of the core is far beyond the caches; paper 2 has a window of its own.
    options.core_windows, options.paper_window, options.large = [*options.windows, 50_000_000], 40_000_000, 10**9
    if options.quick:
        options.window, options.windows, options.events, options.rounds = 10_000, [10_000, 100_000], 20_000, 2
        options.core_windows, options.paper_window, options.large = options.windows, 400_000, 10**7
    if options.only:
        print("\n\n".join(PARTS[part](options) for part in options.only))
        return
    options.out.mkdir(exist_ok=True)
    report = measure(options)
    (options.out / "speed.md").write_text(report, encoding="utf-8")
    print(report)


if __name__ == "__main__":
    main()
