"""How fast are sliced filters on Ray, beside one filter in this process and beside Redis?

    uv run --group bench benchmarks/distributed.py [--quick]

writes `results/distributed.md`. All run on this machine, so sites do not add speed here: what is measured is what they
cost. Redis takes part where a `redis-server` is installed. A round times everything in turn, and ratios are taken
within a round. The figures for a thousand sites come from a thousand in this process, whose messages are counted.
"""

import argparse
import os
import platform
import shutil
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

# Under `uv run`, Ray would start its workers by `uv run` too.
os.environ |= {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0", "RAY_USAGE_STATS_ENABLED": "0"}

import fsspec
import numpy as np
import ray
from tqdm import tqdm

import lately
from lately.distributed import RaySites, SlicedFilter
from lately.distributed._sites.interface import Message
from speed.peers import Redis
from speed.race import ratio

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("lately", "ray", "redis", "numpy")
KINDS = ("horizontal", "vertical")
# Seconds between checkpoints, as is the default.
INTERVAL = 30
WINDOW, SECONDS, FPR = "10min", 600, 0.01
# Some slices get more keys than others: this many more are planned for.
SPARE = 1.1
# The first calls find pages and processes cold.
WARM = 2

Duplicated = Callable[[np.ndarray], np.ndarray]


def whole(kind: str, keys: int) -> lately.Filter:
    """Make the filter of a kind for this many keys: with a window of time, or one that can be cut."""
    family = lately.AgePartitionedBloomFilter if kind == "horizontal" else lately.TimingBloomFilter
    return family(WINDOW, FPR, capacity=keys)


def sliced(kind: str, slices: int, options: argparse.Namespace, sites: Any = "local", **more: Any) -> SlicedFilter:
    """Slice a filter that is planned for all keys."""
    keys = options.keys if kind == "vertical" else int(SPARE * options.keys / slices) + 100
    return SlicedFilter(kind, slices, whole(kind, keys), sites=sites, **more)


class Server(Redis):
    """Redis as its users find duplicates: set a key unless it exists, with a time to live."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options.keys)
        self.most = options.redis

    def duplicated(self, keys: np.ndarray) -> np.ndarray:
        return ~self.pipelined("set", keys[: self.most].tolist(), value=1, nx=True, ex=SECONDS)


class Race:
    """Times of everything that is raced: seconds per key of each round, by batch, name and number of sites."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.times: dict[tuple[int, str, int], list[float]] = defaultdict(list)
        # Seconds per empty message.
        self.messages: list[float] = []
        self.random = np.random.default_rng(0)

    def draw(self, batch: int) -> np.ndarray:
        """Draw a batch from as many different keys as the filters are made for."""
        return self.random.integers(self.options.keys, size=batch)

    def time(self, name: str, sites: int, batch: int, duplicated: Duplicated) -> None:
        """Time one batch. Small ones are sent ten times."""
        batches = [self.draw(batch) for _ in range(10 if batch < 100_000 else 1)]
        start = perf_counter()
        answers = [duplicated(keys) for keys in batches]
        seconds = perf_counter() - start
        self.times[batch, name, sites].append(seconds / sum(len(answer) for answer in answers))

    def time_messages(self, made: SlicedFilter) -> None:
        """Time messages with the least work for each site."""
        messages = [Message(site, "fill", ()) for site in range(len(made.sites))]
        for _ in range(20):
            start = perf_counter()
            made.sites.call(messages)
            self.messages.append((perf_counter() - start) / len(messages))

    def run(self, redis: Server | None) -> None:
        """Race over all batches and numbers of sites."""
        options = self.options
        alone = {
            "age-partitioned, in this process": whole("horizontal", options.keys).duplicated,
            "timing, in this process": whole("vertical", options.keys).duplicated,
        }
        if redis:
            alone["Redis"] = redis.duplicated
        rounds = len(options.sites) * len(options.batches) * options.rounds
        with tqdm(total=rounds, unit="round") as bar:
            for slices in options.sites:
                filters = {kind: sliced(kind, slices, options, partial(RaySites, deadline=120)) for kind in KINDS}
                turns = [*((name, 0, each) for name, each in alone.items())]
                turns += [(kind, slices, each.duplicated) for kind, each in filters.items()]
                for batch in options.batches:
                    for _ in range(WARM):
                        for each in filters.values():
                            each.duplicated(self.draw(batch))
                    for number in range(options.rounds):
                        for name, sites, duplicated in turns[number % len(turns) :] + turns[: number % len(turns)]:
                            self.time(name, sites, batch, duplicated)
                        bar.update()
                for each in filters.values():
                    self.time_messages(each)
                    each.close()

    def speed(self, batch: int, name: str, sites: int = 0) -> str:
        """Thousands of keys a second: the median, the least and the greatest."""
        found = sorted(1e-3 / seconds for seconds in self.times[batch, name, sites])
        return f"{median(found):,.0f} ({found[0]:,.0f} to {found[-1]:,.0f})"

    def over(self, batch: int, slow: str, name: str, sites: int) -> str:
        """Ratio of another's time to the filter's, over the rounds in which the filter was timed."""
        theirs, ours = self.times[batch, slow, 0], self.times[batch, name, sites]
        first = self.options.sites.index(sites) * self.options.rounds if sites else 0
        return ratio(theirs[first : first + len(ours)], ours)


def table(head: list[str], rows: list[list[str]]) -> str:
    """Table in Markdown, of figures except in the first column."""
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def speeds(race: Race, redis: bool) -> str:
    """Table of all speeds, and of their ratios to that of Redis."""
    options = race.options
    rows = []
    for batch in options.batches:
        names = [(name, 0) for name in ("age-partitioned, in this process", "timing, in this process")]
        names += [(kind, slices) for kind in KINDS for slices in options.sites]
        for name, slices in [*names, *([("Redis", 0)] if redis else [])]:
            over = race.over(batch, "Redis", name, slices) if redis else ""
            sites = f", {slices} site{'s' * (slices > 1)}" if slices else ""
            rows.append([f"{batch:,}", name + sites, race.speed(batch, name, slices), over])
    return table(["batch", "filter", "thousand keys a second", "times as fast as Redis"], rows)


def thousand(options: argparse.Namespace, per_message: float) -> str:
    """Table of what a thousand sites are sent, hold and save for one batch."""
    batch, files = max(options.batches), fsspec.filesystem("memory")
    rows = []
    for kind in KINDS:
        made = sliced(kind, options.many, options, checkpoint=f"memory://{kind}", interval=0)
        made.duplicated(np.random.default_rng(1).integers(options.keys, size=batch))
        traffic, nbytes = made.traffic, made.nbytes
        made.close()
        saved = sum(file["size"] for file in files.ls(f"/{kind}", detail=True))
        parameters = whole("vertical", options.keys).parameters
        k, cells = int(parameters["k"]), int(parameters["slice_timers"]) * int(parameters["k"])
        bits = k * np.log2(cells / options.many if kind == "horizontal" else cells)
        rows.append(
            [
                kind,
                f"{traffic.messages:,}",
                f"{traffic.messages * per_message:.2f} s",
                f"{traffic.sent / batch:.0f} and {traffic.received / batch:.0f} bytes",
                f"{bits / 8:.0f} bytes",
                f"{nbytes / options.many / 1e3:,.1f} kB",
                f"{saved / options.many / 1e3:,.1f} kB",
                f"{saved / INTERVAL / 1e6:,.2f} MB/s",
            ]
        )
    head = ["", "messages", "to send them", "sent and received, a key", "k log2 m", "cells, a site"]
    return table([*head, "checkpoint, a site", "saved by all"], rows)


def measure(options: argparse.Namespace) -> str:
    """Measure all, and return the report."""
    load = os.getloadavg()[0]
    ray.init(address="local", num_cpus=os.cpu_count(), include_dashboard=False, log_to_driver=False)
    redis = Server(options) if shutil.which("redis-server") else None
    race = Race(options)
    try:
        race.run(redis)
    finally:
        ray.shutdown()
        if redis:
            redis.close()
    message = median(race.messages)
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    machine = f"{os.cpu_count()} cores, {platform.system()}; Python {platform.python_version()}, {packages}"
    return f"""# Sliced filters on Ray

{machine}.
A window of {WINDOW}, {FPR:.0%} requested, {options.keys:,} different keys, drawn evenly; {options.rounds} rounds; load
average {load:.1f} as it began, {os.getloadavg()[0]:.1f} as it ended. All sites share this machine's cores with the
producer, so a number of sites shows its cost, not its gain. Speeds and ratios are medians, with the least and the
greatest in brackets; a ratio is taken within a round.

## Speed of `duplicated`

One producer, integers. Horizontal slices are age-partitioned; a vertical filter is a timing filter that is cut, whose
batches an orderer writes. Redis: `SET key 1 NX EX {SECONDS}`, in pipelines of 10,000, of {options.redis:,} keys at
most.

{speeds(race, redis is not None)}

## A thousand sites

A batch of {max(options.batches):,} keys, sent to {options.many:,} sites in this process: messages and bytes are
counted. A message costs its sender {message * 1e3:.2f} ms, as measured above. The paper's k log2 m is what the places
of a key take: of a timing filter, in the slice or in the whole. A checkpoint has the cells and the answers to the last
batch; all are saved every {INTERVAL} s.

{thousand(options, message)}
"""


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, nargs="+", default=[10**3, 10**4, 10**5, 10**6], metavar="N")
    parser.add_argument("--sites", type=int, nargs="+", default=[1, 2, 4, 8], metavar="S")
    parser.add_argument("--keys", type=int, default=2_000_000, help="different keys, which the filters are made for")
    parser.add_argument(
        "--redis", type=int, default=20_000, metavar="N", help="keys that Redis gets of a batch at most"
    )
    parser.add_argument("--many", type=int, default=1000, metavar="S", help="sites of the second table")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="few sites, two rounds: to see it run")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the tables")
    options = parser.parse_args()
    if options.quick:
        options.batches, options.sites, options.keys, options.rounds = [1000, 100_000], [1, 2], 200_000, 2
    options.out.mkdir(exist_ok=True)
    report = measure(options)
    (options.out / "distributed.md").write_text(report, encoding="utf-8")
    print(report)


if __name__ == "__main__":
    main()
