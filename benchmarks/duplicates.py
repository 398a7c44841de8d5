"""How fast are duplicates found, beside the other ways to find them in Python, at what error and in what memory?

    uv run --group bench benchmarks/duplicates.py

prints a table in Markdown. All structures are timed in turn within each repeat, so that they share the machine's moods;
ratios are taken within a repeat. Structures whose promise is another one say so in their name.
"""

import argparse
import os
import platform
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from abloom import BloomFilter
from rbloom import Bloom
from tqdm import tqdm

import lately
from exact import ExactWindow

SEED = 20_261_121
# Share of the stream that repeats a key of the last W events, any of them alike.
REPEATS = 0.5
# What every ratio is taken to.
OURS = "lately, blocked"
OPERATIONS = ("duplicated", "query", "insert")


def truths(answers: Iterable[bool], n: int) -> np.ndarray:
    """Collect n answers; with `map` no line of Python runs per key, and it is the fastest way to ask a peer."""
    return np.fromiter(answers, bool, n)


class Structure:
    """One way to find duplicates; what most have in common."""

    operations = OPERATIONS
    # The form of keys it is fastest with, see `Stream.give`.
    takes = "list"
    # It gets one in so many of the keys.
    share = 1
    bits: int | None
    # Keys after which it errs most.
    fullest: int


class Lately(Structure):
    """The filter of this package, plain or blocked."""

    takes = "array"

    def __init__(self, window: int, fpr: float, block_bits: int | None) -> None:
        self.filter = lately.AgePartitionedBloomFilter(window, fpr, block_bits=block_bits)
        self.insert, self.query, self.duplicated = self.filter.insert, self.filter.query, self.filter.duplicated
        self.bits = self.filter.nbytes * 8
        # Fullest just before a shift: whole generations, here those of two windows.
        generation = -(-(window - 1) // self.filter.parameters["l"])
        self.fullest = 2 * window // generation * generation


class OneFilter(Structure):
    """One classical Bloom filter for W keys: no window, it only fills."""

    operations = ("query", "insert")

    def __init__(self, window: int, fpr: float, kind: type) -> None:
        self.filter, self.fullest = kind(window, fpr), window
        self.insert = self.filter.update
        self.bits = self.filter.bit_count if kind is BloomFilter else self.filter.size_in_bits

    def query(self, keys: list) -> np.ndarray:
        return truths(map(self.filter.__contains__, keys), len(keys))


class TwoFilters(Structure):
    """Two abloom filters that keep a window together; the older is emptied every W keys."""

    def __init__(self, window: int, capacity: int, fpr: float) -> None:
        self.window, self.inserted, self.fullest = window, 0, 2 * window
        self.current, self.other = BloomFilter(capacity, fpr), BloomFilter(capacity, fpr)
        self.bits = 2 * self.current.bit_count

    def batches(self, keys: list) -> Iterable[list]:
        """Cut the keys where the filters change places, and change them."""
        start = 0
        while start < len(keys):
            if self.inserted and self.inserted % self.window == 0:
                self.turn()
            room = self.window - self.inserted % self.window
            batch = keys[start : start + room]
            yield batch
            self.inserted += len(batch)
            start += len(batch)

    def duplicated(self, keys: list) -> np.ndarray:
        return np.concatenate([self.batch_duplicated(batch) for batch in self.batches(keys)])


class Rotated(TwoFilters):
    """Insert into the current filter, ask both. Each may err half as often, so that both together keep to `fpr`."""

    def __init__(self, window: int, fpr: float) -> None:
        super().__init__(window, window, fpr / 2)

    def turn(self) -> None:
        self.current, self.other = self.other, self.current
        self.current.clear()

    def insert(self, keys: list) -> None:
        for batch in self.batches(keys):
            self.current.update(batch)

    def query(self, keys: list) -> np.ndarray:
        asked = [truths(map(each.__contains__, keys), len(keys)) for each in (self.current, self.other)]
        return asked[0] | asked[1]

    def batch_duplicated(self, keys: list) -> np.ndarray:
        # `add` tells whether the key was new, so repeats within the batch are seen.
        new = truths(map(self.current.add, keys), len(keys))
        return truths(map(self.other.__contains__, keys), len(keys)) | ~new


class Overlapping(TwoFilters):
    """Insert into both filters, ask the one that began earlier: twice the memory, but only one call per key."""

    def __init__(self, window: int, fpr: float) -> None:
        super().__init__(window, 2 * window, fpr)

    def turn(self) -> None:
        self.current.clear()
        self.current, self.other = self.other, self.current

    def insert(self, keys: list) -> None:
        for batch in self.batches(keys):
            self.current.update(batch)
            self.other.update(batch)

    def query(self, keys: list) -> np.ndarray:
        return truths(map(self.current.__contains__, keys), len(keys))

    def batch_duplicated(self, keys: list) -> np.ndarray:
        self.other.update(keys)
        return ~truths(map(self.current.add, keys), len(keys))


class Pandas(Structure):
    """The whole column at once: exact, no window, and nothing to ask later."""

    operations = ("duplicated",)
    takes = "series"
    bits, fullest = None, 0

    def duplicated(self, keys: pd.Series) -> np.ndarray:
        return keys.duplicated().to_numpy()


class Exact(Structure):
    """The exact window. So slow that it gets a tenth of the events."""

    operations = ("duplicated",)
    share = 10

    def __init__(self, window: int) -> None:
        self.exact, self.fullest, self.position = ExactWindow(window), window, 0

    def duplicated(self, keys: list) -> np.ndarray:
        first, self.position = self.position, self.position + len(keys)
        return np.array(self.exact.duplicated(keys, range(first, self.position)))

    insert = duplicated

    @property
    def bits(self) -> int:
        return self.exact.nbytes() * 8


def structures(window: int, fpr: float) -> dict[str, partial]:
    """All that are compared, each made empty by a call."""
    return {
        OURS: partial(Lately, window, fpr, 512),
        "lately, plain": partial(Lately, window, fpr, None),
        "two ablooms, rotated": partial(Rotated, window, fpr),
        "two ablooms, overlapping": partial(Overlapping, window, fpr),
        "OrderedDict, exact": partial(Exact, window),
        "abloom, no window": partial(OneFilter, window, fpr, BloomFilter),
        "rbloom, no window": partial(OneFilter, window, fpr, Bloom),
        "pandas, whole column": partial(Pandas),
    }


class Stream:
    """Keys for every operation: 2 W different ones to fill with, then events of which some repeat; and fresh ones."""

    def __init__(self, kind: str, window: int, events: int) -> None:
        random = np.random.default_rng(SEED)
        self.kind = kind
        names = random.integers(0, 2**63, 2 * window + 2 * events)
        positions = list(range(2 * window + events))
        self.repeated = random.random(events) < REPEATS
        lags = random.integers(1, window + 1, events)
        for i in np.flatnonzero(self.repeated).tolist():
            here = 2 * window + i
            positions[here] = positions[here - int(lags[i])]
        numbers = names[positions]
        self.filling, self.events = self.form(numbers[: 2 * window]), self.form(numbers[2 * window :])
        self.fresh = self.form(names[2 * window + events :])
        # Half of them in the window.
        inside = names[window : 2 * window][random.integers(0, window, events // 2)]
        self.asked = self.form(random.permutation(np.concatenate([inside, names[-(events - events // 2) :]])))

    def form(self, numbers: np.ndarray) -> Any:
        if self.kind == "int64":
            return numbers
        return pa.array([f"https://example.org/{number:020d}" for number in numbers.tolist()])

    @staticmethod
    def give(keys: Any, takes: str) -> Any:
        """Hand keys over in the form a structure takes best, made anew: a Python string remembers its hash."""
        if takes == "array":
            return keys
        if takes == "series":
            return pd.Series(keys) if isinstance(keys, np.ndarray) else keys.to_pandas()
        return keys.tolist()


@dataclass
class Figures:
    """What was measured of one kind of keys."""

    # Seconds per key of each repeat, by operation and structure.
    seconds: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    # Share of fresh keys reported, with the structure at its fullest.
    rates: dict[str, float] = field(default_factory=dict)
    # Bits per key of the window.
    bits: dict[str, float] = field(default_factory=dict)

    def rows(self, kind: str) -> Iterator[str]:
        """Lines of the table."""
        for operation, name in sorted(self.seconds, key=lambda timed: OPERATIONS.index(timed[0])):
            seconds = self.seconds[operation, name]
            times = [each / ours for each, ours in zip(seconds, self.seconds[operation, OURS], strict=True)]
            ratio = f"{median(times):.2f} ({min(times):.2f} to {max(times):.2f})"
            rate = f"{self.rates[name]:.2%}" if name in self.rates else "0"
            bits = f"{self.bits[name]:,.1f}" if name in self.bits else "all keys"
            yield f"| {operation} | {kind} | {name} | {1e-6 / median(seconds):.1f} | {ratio} | {rate} | {bits} |"


def measure(stream: Stream, window: int, fpr: float, repeats: int, progress: tqdm) -> Figures:
    """Time every operation of every structure, each structure in turn; begin each repeat with another one."""
    found = Figures()
    for repeat in range(repeats):
        filled = {name: make() for name, make in structures(window, fpr).items()}
        for name, structure in filled.items():
            if structure.fullest:
                structure.insert(stream.give(stream.filling[2 * window - structure.fullest :], structure.takes))
            if repeat == 0 and structure.bits:
                found.bits[name] = structure.bits / window
            if repeat == 0 and "query" in structure.operations:
                found.rates[name] = float(structure.query(stream.give(stream.fresh, structure.takes)).mean())
        turn = repeat % len(filled)
        order = [*filled.items()][turn:] + [*filled.items()][:turn]
        # Queries come first, as long as the keys they ask for are in the window.
        for operation, keys in (("query", stream.asked), ("duplicated", stream.events), ("insert", stream.fresh)):
            for name, structure in order:
                if operation not in structure.operations:
                    continue
                given = stream.give(keys[: len(keys) // structure.share], structure.takes)
                start = perf_counter()
                answer = getattr(structure, operation)(given)
                found.seconds[operation, name].append((perf_counter() - start) / len(given))
                progress.update()
                # pandas knows only this column.
                if operation == "duplicated" and structure.fullest:
                    assert answer[stream.repeated[: len(given)]].all(), f"{name} missed a key of the window"
    return found


def machine() -> str:
    """Name the machine and what ran on it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    packages = ", ".join(f"{name} {version(name)}" for name in ("lately", "abloom", "rbloom", "pandas", "numpy"))
    model = models[0] if models else platform.processor()
    return f"{model}, {os.cpu_count()} cores, {platform.system()}; Python {platform.python_version()}, {packages}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--window", type=int, default=1_000_000, metavar="W", help="keys of the window")
    parser.add_argument("--fpr", type=float, default=0.01, help="false positive rate asked for")
    parser.add_argument("--events", type=int, default=1_000_000, help="keys per timing")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="W and events 10,000, two repeats: only to see it run")
    parser.add_argument("--out", type=Path, help="write the table to this file too")
    options = parser.parse_args()
    if options.quick:
        options.window, options.events, options.repeats = 10_000, 10_000, 2

    lines = [
        f"{machine()}. W = {options.window:,}, {options.fpr:.2%} asked for, {options.events:,} keys per timing, "
        f"{options.repeats} repeats.",
        "",
        f"| operation | keys | structure | M keys/s | time over that of {OURS} (min to max) | false positives "
        "| bits per key of W |",
        "|---|---|---|--:|--:|--:|--:|",
    ]
    timings = sum(len(make.func.operations) for make in structures(options.window, options.fpr).values())
    with tqdm(total=2 * options.repeats * timings, unit="timing") as progress:
        for kind, form in (("int64", "NumPy int64"), ("url", "40-byte URL, Arrow")):
            stream = Stream(kind, options.window, options.events)
            found = measure(stream, options.window, options.fpr, options.repeats, progress)
            lines += found.rows(form)
    table = "\n".join(lines)
    print(table)
    if options.out:
        options.out.write_text(table + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
