"""Everyday costs: a key at a time, the import, a large filter made, saved and opened."""

import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import median
from time import perf_counter

import lately
from speed.race import ratio, seconds

# Calls for a key at a time.
CALLS = 20_000


def one_by_one(window: int, fpr: float, rounds: int) -> dict[str, float]:
    """Seconds of a call for one key, the median over rounds."""
    made = lately.Filter(window, fpr)
    keys = list(range(CALLS))
    calls = {"f.add(key)": made.add, "f.seen(key)": made.seen, "key in f": made.__contains__}
    times: dict[str, list[float]] = defaultdict(list)
    for _ in range(rounds):
        for name, call in calls.items():
            start = perf_counter()
            for key in keys:
                call(key)
            times[name].append((perf_counter() - start) / len(keys))
    return {name: median(each) for name, each in times.items()}


def imported(rounds: int) -> float:
    """Seconds that ``import lately`` adds to the start of an interpreter."""

    def python(code: str) -> float:
        return seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True))

    return median(python("import lately") - python("pass") for _ in range(rounds))


def write(path: Path, content: bytes) -> None:
    """Write a file until it is on the disk, as `save` does."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def large(nbytes: int, rounds: int) -> dict[str, list[float]]:
    """Seconds of each round for a filter of this many bytes, and for a file of the same size."""
    times: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        ours, plain = Path(folder, "filter.lately"), Path(folder, "plain")
        for _ in range(rounds):
            start = perf_counter()
            made = lately.Filter(nbytes // 3, nbytes=nbytes)
            times["made"].append(perf_counter() - start)
            content = made.to_bytes()
            times["written"].append(seconds(lambda content=content: write(plain, content)))
            times["saved"].append(seconds(lambda made=made: made.save(ours)))
            times["read"].append(seconds(plain.read_bytes))
            times["opened"].append(seconds(lambda: lately.open(ours)))
            times["verified"].append(seconds(lambda: 1 in lately.open(ours, mmap=True)))
            times["mapped"].append(seconds(lambda: 1 in lately.open(ours, mmap=True, verify=False)))
    return times


def rows(window: int, fpr: float, rounds: int, nbytes: int) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Ratios, and times in microseconds."""
    each, found = one_by_one(window, fpr, rounds), large(nbytes, rounds)
    one = f"a filter of {nbytes / 1e6:,.0f} MB"
    ratios = [
        (f"{one}, saved over a file of as many bytes written", ratio(found["saved"], found["written"])),
        (f"{one}, opened over a file of as many bytes read", ratio(found["opened"], found["read"])),
    ]
    times = each | {
        "import lately": imported(rounds),
        f"{one}, made": median(found["made"]),
        f"{one}, mapped, first answer, verified": median(found["verified"]),
        f"{one}, mapped, first answer, not verified": median(found["mapped"]),
    }
    return ratios, [
        (name, f"{1e6 * time:,.3f}" if name in each else f"{1e6 * time:,.0f}") for name, time in times.items()
    ]
