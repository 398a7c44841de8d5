"""How fast is `lately.distributed.deduplicate`, beside what Ray Data has of its own?

    uv run --group bench benchmarks/deduplicate.py STREAM [--rows 5000000] [--rounds 3]

writes `results/deduplicate.md`. STREAM is a file of unsigned 32-bit keys, big-endian, plain or compressed by xz:
for example the accesses of a shop's object cache that cache2k is measured with. Row i of the dataset has the i-th key
and the time i / 1000 s. Every way is run in turn in each round, on this machine alone, and all ways of a question
must have one result. Memory is the most that all processes of Ray have together, above what they have at rest.
"""

import argparse
import lzma
import os
import platform
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

# Under `uv run`, Ray would start its workers by `uv run` too.
# And workers are as nice as this process.
os.environ |= {
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_kill_idle_workers_interval_ms": "0",
    "RAY_worker_niceness": "0",
}

import numpy as np
import psutil
import pyarrow as pa
import ray
from ray.data.aggregate import Min

from lately.distributed import deduplicate

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("lately", "ray", "numpy", "pyarrow")
WINDOW = 600
BLOCKS = 16
# Seconds above which a way is run once.
SLOW = 60


class Memory(threading.Thread):
    """The most memory that the processes of Ray have together, by their proportional set sizes."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.over, self.most = threading.Event(), 0

    def now(self) -> int:
        """Sum the memory of this process's children, and of theirs."""
        total = 0
        for child in psutil.Process().children(recursive=True):
            try:
                total += child.memory_full_info().pss
            except psutil.Error:
                continue
        return total

    def run(self) -> None:
        """Read the memory again and again."""
        while not self.over.wait(0.2):
            self.most = max(self.most, self.now())

    def stop(self) -> int:
        """Return the most."""
        self.over.set()
        self.join()
        return self.most


def first_of_key(rows: Any) -> Any:
    """Keep the rows of a key that come later than the window after the row before, as Ray Data's users write it."""
    rows = rows.sort_values("t")
    gaps = rows["t"].diff()
    return rows[gaps.isna() | (gaps > WINDOW)]


def total(data: Any) -> tuple[int, int]:
    """Count the rows that are left, and sum their keys, in one pass."""
    sums = data.map_batches(
        lambda batch: {"n": [len(batch["key"])], "sum": [int(batch["key"].astype(np.int64).sum())]}, batch_size=None
    ).take_all()
    return sum(row["n"] for row in sums), sum(row["sum"] for row in sums)


def of_keys(keys: list[int]) -> tuple[int, int]:
    """Count keys, and sum them."""
    return len(keys), sum(keys)


def ways(partitions: int) -> dict[str, dict[str, Callable[[Any], tuple[int, int]]]]:
    """Return each way to remove repeats, by the question that it answers."""
    return {
        "one row for each key": {
            "lately: `deduplicate(data, 'key')`": lambda data: total(
                deduplicate(data.select_columns(["key"]), "key", num_partitions=partitions)
            ),
            "Ray Data: `data.unique('key')`": lambda data: of_keys(data.unique("key")),
            "Ray Data: `data.groupby('key').aggregate(Min('t'))`": lambda data: total(
                data.groupby("key", num_partitions=partitions).aggregate(Min("t"))
            ),
        },
        f"rows whose key did not come in the {WINDOW // 60} minutes before": {
            "lately: `deduplicate(data, 'key', '10min', at='t')`": lambda data: total(
                deduplicate(data, "key", "10min", at="t", num_partitions=partitions)
            ),
            "Ray Data: `data.groupby('key').map_groups(...)`, in pandas": lambda data: total(
                data.groupby("key", num_partitions=partitions).map_groups(first_of_key, batch_format="pandas")
            ),
        },
    }


def read(path: Path, rows: int) -> np.ndarray:
    """Read the keys."""
    with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as file:
        return np.frombuffer(file.read(4 * rows), ">u4").astype(np.int64)


def measure(options: argparse.Namespace) -> str:
    """Time all ways, and return the report."""
    keys = read(options.stream, options.rows)
    load = os.getloadavg()[0]
    ray.init(address="local", num_cpus=os.cpu_count(), include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    table = pa.table({"key": keys, "t": np.arange(len(keys)) / 1000})
    data = ray.data.from_arrow(table).repartition(BLOCKS).materialize()
    lines = ["| rows left | | thousand rows a second | memory |", "| --: | --- | --: | --: |"]
    seconds, memory = defaultdict(list), defaultdict(list)
    found: dict[str, tuple[int, int]] = {}
    # The first jobs start processes, which import libraries.
    few = ray.data.from_arrow(table[:10_000]).repartition(BLOCKS).materialize()
    for each in ways(options.partitions).values():
        for run in each.values():
            run(few)
    for _ in range(options.rounds):
        for question, each in ways(options.partitions).items():
            for name, run in each.items():
                if seconds[name] and seconds[name][0] > SLOW:
                    continue
                rest = Memory().now()
                watch = Memory()
                watch.start()
                began = time.perf_counter()
                result = run(data)
                seconds[name].append(time.perf_counter() - began)
                memory[name].append(watch.stop() - rest)
                print(f"{name}: {seconds[name][-1]:.1f} s, {memory[name][-1] / 1e6:,.0f} MB, {result}", flush=True)
                assert found.setdefault(question, result) == result, f"{name} has another result: {result}"
    for question, each in ways(options.partitions).items():
        lines.append(f"| | **{question}** | | |")
        for name in each:
            speeds = sorted(len(keys) / 1000 / took for took in seconds[name])
            lines.append(
                f"| {found[question][0]:,} | {name} | {median(speeds):,.0f} ({speeds[0]:,.0f} to {speeds[-1]:,.0f}) "
                f"| {median(memory[name]) / 1e6:,.0f} MB |"
            )
    ray.shutdown()
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return f"""# `deduplicate` on a dataset of Ray Data

{os.cpu_count()} cores, {platform.system()}; Python {platform.python_version()}, {packages}.
{len(keys):,} rows of `{options.stream.name}`, {len(np.unique(keys)):,} different keys, in {BLOCKS} blocks;
{options.partitions} partitions; {options.rounds} rounds, one of what takes above {SLOW} s; load average {load:.1f} as
it began, {os.getloadavg()[0]:.1f} as it ended. Speeds are medians, with the least and the greatest in brackets; memory
is a median. All ways of a question left the same number of rows with the same sum of keys, in every round.

{chr(10).join(lines)}
"""


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stream", type=Path, metavar="STREAM")
    parser.add_argument("--rows", type=int, default=5_000_000, help="rows at most")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the table")
    options = parser.parse_args()
    report = measure(options)
    options.out.mkdir(exist_ok=True)
    (options.out / "deduplicate.md").write_text(report, encoding="utf-8")
    print(report)


if __name__ == "__main__":
    main()
