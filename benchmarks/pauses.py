"""The longest pauses of each family: processor time of single calls of `seen`, and of the first during a save.

    uv run benchmarks/pauses.py [--windows 100000 1000000]

Each filter takes two and a half windows of new keys, one call each, and the second half of these calls counts. A thread
then saves the filter to a file that is slow to write, and the first call meanwhile counts alone. Processor time is that
of the calling thread: what other processes do does not count, except through the caches. Writes `results/pauses.md`.
"""

import argparse
import platform
import threading
from collections.abc import Iterator
from pathlib import Path
from time import thread_time_ns
from typing import Any

import numpy as np

import lately
from lately._families import FAMILIES

RESULTS = Path(__file__).parent / "results" / "pauses.md"
RATE = 1e-6


class Slow:
    """A file that blocks at its first write until it is released."""

    def __init__(self) -> None:
        self.began, self.released = threading.Event(), threading.Event()

    def write(self, data: Any) -> int:
        self.began.set()
        self.released.wait()
        return len(data)


def during_a_save(f: Any, **at: int) -> int:
    """Return the processor time of a call while another thread saves the filter, in nanoseconds."""
    file = Slow()
    saving = threading.Thread(target=f.save, args=[file])
    saving.start()
    file.began.wait()
    began = thread_time_ns()
    f.seen(-1, **at)
    taken = thread_time_ns() - began
    file.released.set()
    saving.join()
    return taken


def made(window: int) -> Iterator[tuple[str, Any]]:
    """Yield the filters for a window of insertions, and those for a window of time with as many keys."""
    for name, family in FAMILIES.items():
        if family.promise and not family.baseline:
            if family.windows != "unknown rate" and family.windows != "time":
                yield name, family.make(window, fpr=RATE, seed=0)
            if family.windows != "insertions" and (name == "aged-cuckoo" or "rate" in family.windows):
                yield f"{name}, time", family.make(f"{window}s", fpr=RATE, seed=0, max_ahead=None)
    yield "exact", lately.ExactFilter(window)
    yield "exact, time", lately.ExactFilter(f"{window}s", max_ahead=None)


def row(name: str, f: Any, window: int) -> str:
    """Measure a filter, and return its row of the table."""
    taken = np.empty(5 * window // 2, np.int64)
    seen, at = f.seen, {}
    for key in range(len(taken)):
        if isinstance(f.window, float):
            at = {"at": key}
        began = thread_time_ns()
        seen(key, **at)
        taken[key] = thread_time_ns() - began
    counted, megabytes = taken[len(taken) // 2 :] / 1e3, f.nbytes / 1e6
    figures = [*np.quantile(counted, [0.5, 0.9999]), counted.max(), during_a_save(f, **at) / 1e3]
    return f"| {name} | {window:,} | {megabytes:.1f} | {' | '.join(f'{figure:,.1f}' for figure in figures)} |"


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, nargs="+", default=[100_000, 1_000_000], metavar="W")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    lines = [
        "# The longest pauses",
        "",
        f"Processor time of one `seen` of a new key in microseconds, at a rate of {RATE:g}, by `benchmarks/pauses.py`",
        f"on {platform.machine()}, Python {platform.python_version()}. The reading of the clock takes some .5 of each.",
        "*Save*: the first call while another thread saves the filter, which copies the cells.",
        "",
        "| filter | window | MB | median | 99.99 % | longest | save |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for window in arguments.windows:
        for name, f in made(window):
            lines.append(row(name, f, window))
            print(lines[-1], flush=True)
    arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
