"""How the cost of a key depends on the window, the batch, the error and threads."""

from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import median
from time import perf_counter

import numpy as np
from tqdm import tqdm

import lately
from speed.ours import EXACT, OURS, Make, layouts
from speed.peers import Rotated, frames
from speed.race import Figures, race, ratio, seconds
from speed.streams import SEED, Round, Stream

RATES = (0.1, 0.01, 0.001, 0.0001)
BATCHES = (1, 10, 100, 1_000, 10_000, 100_000)
# Most calls per size of batch.
CALLS = 20_000
# Keys that threads share in one call.
SHARED = 2_000_000

# What a filter does with a round, on a number of threads.
Call = Callable[[lately.Filter, Round, int], object]


def some(window: int, fpr: float) -> dict[str, Make]:
    """Make the structures to draw: the layouts of this package, and the rivals."""
    rotated: dict[str, Make] = {"two ablooms, rotated": lambda: Rotated(window, fpr)}
    shown = (OURS, EXACT, "line", "blocks of 512", "plain")
    ours = {name: make for name, make in layouts(window, fpr).items() if name.endswith(shown)}
    return ours | rotated | frames()


def with_window(windows: list[int], fpr: float, events: int, rounds: int) -> list[Figures]:
    """Race them for each window."""
    return [race(Stream("int64", window, events, rounds), some(window, fpr)) for window in windows]


def with_rate(window: int, events: int, rounds: int) -> dict[float, Figures]:
    """Race them for each rate."""
    stream = Stream("int64", window, events, rounds)
    return {
        fpr: race(stream, {name: make for name, make in some(window, fpr).items() if "column" not in name})
        for fpr in RATES
    }


def grown(figures: dict[str, Figures], first: str) -> str:
    """Table of nanoseconds per key of the mask, a column for each race."""
    names = [name for operation, name in next(iter(figures.values())).seconds if operation == "duplicated"]
    lines = [f"| {first} | " + " | ".join(figures) + " |", "|---|" + "--:|" * len(figures)]
    for name in names:
        times = (1e9 * median(found.seconds["duplicated", name]) for found in figures.values())
        lines.append(f"| {name} | " + " | ".join(f"{time:.1f}" for time in times) + " |")
    return "\n".join(lines)


def with_batch(window: int, fpr: float) -> dict[int, float]:
    """Seconds per key of the mask in batches of each size."""
    random = np.random.default_rng(SEED)
    made = lately.Filter(window, fpr)
    made.insert(random.integers(0, 2**63, 2 * window))
    seconds = {}
    for size in tqdm(BATCHES, desc="batches"):
        calls = min(CALLS, 2_000_000 // size)
        batches = random.integers(0, 2**63, (calls, size))
        start = perf_counter()
        for batch in batches:
            made.duplicated(batch)
        seconds[size] = (perf_counter() - start) / (calls * size)
    return seconds


def by_batch(seconds: dict[int, float]) -> str:
    """Table of nanoseconds per key, a column for each size."""
    sizes, times = (f"{size:,}" for size in seconds), (f"{1e9 * each:.1f}" for each in seconds.values())
    rows = [
        f"| keys per call | {' | '.join(sizes)} |",
        "|---|" + "--:|" * len(seconds),
        f"| {OURS} | {' | '.join(times)} |",
    ]
    return "\n".join(rows)


def with_threads(window: int, fpr: float, rounds: int, threads: int) -> dict[str, str]:
    """Speedup of each call that several threads share, for integers and for URLs in Arrow."""
    return {
        f"{name} of {spoken}{how}": found
        for kind, spoken in (("int64", "integers"), ("url", "URLs in Arrow"))
        for (name, how), found in shared(Stream(kind, window, SHARED, rounds), fpr, threads).items()
    }


def shared(stream: Stream, fpr: float, threads: int) -> dict[tuple[str, str], str]:
    """Run one stream: a filter for one thread and a filter for all threads get the same keys.

    Beside them as many filters as threads get the keys at the same time, each in a thread of its own. Nothing is shared
    then, so their speedup is what the cores that can be had at that moment allow.
    """

    def filled() -> lately.Filter:
        made = lately.Filter(stream.window, fpr)
        made.insert(stream.filling)
        return made

    alone, together, apart = filled(), filled(), [filled() for _ in range(threads)]
    prior = 1 / stream.window
    calls: dict[str, Call] = {
        "query": lambda one, now, count: one.query(now.queried, threads=count),
        "posterior": lambda one, now, count: one.posterior(now.queried, prior, threads=count),
        "duplicated": lambda one, now, count: one.duplicated(now.events, threads=count),
        "insert": lambda one, now, count: one.insert(now.fresh, threads=count),
    }
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    with ThreadPoolExecutor(threads) as pool:

        def side_by_side(call: Call, now: Round) -> None:
            list(pool.map(lambda one: call(one, now, 1), apart))

        for now in tqdm(stream.rounds, desc=f"{threads} threads, {stream.kind}", unit="round"):
            for name, call in calls.items():
                times[name, "alone"].append(seconds(partial(call, alone, now, 1)))
                times[name, "together"].append(seconds(partial(call, together, now, threads)))
                # One thread would take as many times as long.
                times[name, "apart"].append(seconds(partial(side_by_side, call, now)) / threads)
    return {
        (name, how): ratio(times[name, "alone"], times[name, which])
        for name in calls
        for how, which in (("", "together"), (", each with a filter of its own", "apart"))
    }
