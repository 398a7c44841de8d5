"""The race: all structures are timed in turn within each round, so that slow moments of the machine hit all."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Any

from tqdm import tqdm

from speed.ours import OPERATIONS, OURS, Make, Structure
from speed.streams import Stream, give

# Keys passed at a time while a structure is filled: Python lists of all would not fit for large windows.
PORTION = 1_000_000


def seconds(act: Callable[[], object]) -> float:
    """Time one call."""
    start = perf_counter()
    act()
    return perf_counter() - start


def ratio(times: list[float], bases: list[float]) -> str:
    """Spell a ratio taken within each round: the median, the least and the greatest."""
    shares = [time / base for time, base in zip(times, bases, strict=True)]
    return f"{median(shares):.2f} ({min(shares):.2f} to {max(shares):.2f})"


@dataclass
class Figures:
    """Measurements for one kind of keys and one window."""

    window: int
    # Seconds per key of each round, by operation and structure.
    seconds: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    # Share of fresh keys reported, with the structure at its fullest.
    rates: dict[str, float] = field(default_factory=dict)
    # Bits per key of the window.
    bits: dict[str, float] = field(default_factory=dict)

    def over(self, operation: str, slow: str, quick: str = OURS) -> str:
        """Ratio of one structure's time to another's."""
        return ratio(self.seconds[operation, slow], self.seconds[operation, quick])

    def rows(self) -> Iterator[str]:
        """Lines of the table."""
        for operation, name in sorted(self.seconds, key=lambda timed: OPERATIONS.index(timed[0])):
            seconds = self.seconds[operation, name]
            rate = f"{self.rates[name]:.2%}" if name in self.rates else "0"
            bits = f"{self.bits[name]:,.1f}" if name in self.bits else "all keys"
            speed = f"{1e-6 / median(seconds):.3g}"
            yield f"| {operation} | {name} | {speed} | {self.over(operation, name)} | {rate} | {bits} |"

    def table(self) -> str:
        """Table of all that was raced."""
        head = f"| operation | structure | M keys/s | time over that of {OURS} | false positives | bits per key |"
        return "\n".join([head, "|---|---|--:|--:|--:|--:|", *self.rows()])


def filled(make: Make, keys: Any) -> Structure:
    """Make a structure that has seen the keys with which it is fullest."""
    structure = make()
    keys = keys[len(keys) - min(structure.fullest, len(keys)) :]
    for start in range(0, len(keys), PORTION):
        structure.insert(give(keys[start : start + PORTION], structure.takes))
    return structure


def begin(stream: Stream, makes: dict[str, Make], found: Figures, structures: dict[str, Structure]) -> None:
    """Fill all structures, and measure their rates and sizes."""
    for name, make in makes.items():
        structure = structures[name] = filled(make, stream.filling)
        if structure.bits:
            found.bits[name] = structure.bits / stream.window
        if "query" in structure.operations:
            fresh = give(stream.never[: len(stream.never) // structure.share], structure.takes)
            found.rates[name] = float(structure.query(fresh).mean())


def run(stream: Stream, makes: dict[str, Make], found: Figures, structures: dict[str, Structure]) -> None:
    """Time the rounds."""
    timings = sum(len(each.operations) for each in structures.values()) * len(stream.rounds)
    with tqdm(total=timings, desc=f"{stream.kind}, W = {stream.window:,}", unit="timing") as bar:
        for number, now in enumerate(stream.rounds):
            for name in [name for name, each in structures.items() if number and each.renewed]:
                structures[name] = filled(makes[name], now.window)
            turn = number % len(structures)
            order = [*structures.items()][turn:] + [*structures.items()][:turn]
            for operation, keys in (("query", now.queried), ("duplicated", now.events), ("insert", now.fresh)):
                for name, structure in order:
                    if operation not in structure.operations:
                        continue
                    given = give(keys[: len(keys) // structure.share], structure.takes)
                    start = perf_counter()
                    answer = getattr(structure, operation)(given)
                    found.seconds[operation, name].append((perf_counter() - start) / len(given))
                    bar.update()
                    if structure.promise and operation == "duplicated":
                        assert answer[now.repeated[: len(given)]].all(), f"{name} missed a key of the window"


def race(stream: Stream, makes: dict[str, Make]) -> Figures:
    """Time every operation of every structure, each round beginning with another structure.

    Queries come first, while their keys are in the window.
    """
    found, structures = Figures(stream.window), {}
    try:
        begin(stream, makes, found, structures)
        run(stream, makes, found, structures)
    finally:
        for structure in structures.values():
            structure.close()
    return found
