"""How fast are several processes that share one filter?

    uv run benchmarks/shared.py [--keys 4000000] [--rounds 5]

k processes, 1, 2 and 4, do the same work together: a stream of new keys, cut into equal parts, in batches or one by
one. Given is the median over rounds of keys a second, of all processes together; the rounds take the kinds in turn.
Beside it, what one process does with a filter in memory of its own.
"""

import argparse
import multiprocessing
import tempfile
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median

import numpy as np

import lately

WINDOW = 1_000_000
BATCHES = {"batches of 100,000": 100_000, "batches of 1,000": 1000, "one by one": 1}


def work(path: str, shared: bool, call: str, start: int, keys: int, batch: int, ready: Barrier) -> None:
    f = lately.open(path, shared=shared)
    parts = np.array_split(np.arange(start, start + keys), max(keys // batch, 1))
    one_by_one = range(start, start + keys)
    ready.wait()
    if batch == 1:
        method = f.seen if call == "duplicated" else f.__contains__
        for key in one_by_one:
            method(key)
    else:
        method = getattr(f, call)
        for part in parts:
            method(part)
    ready.wait()


def seconds(folder: Path, shared: bool, call: str, processes: int, keys: int, batch: int) -> float:
    path = str(folder / "f.lately")
    f = lately.Filter(WINDOW, 1e-6)
    f.insert(np.arange(1 << 40, (1 << 40) + WINDOW))
    f.save(path)
    ready = multiprocessing.Barrier(processes + 1)
    each = keys // processes
    workers = [
        multiprocessing.Process(target=work, args=(path, shared, call, i * each, each, batch, ready))
        for i in range(processes)
    ]
    for worker in workers:
        worker.start()
    ready.wait()
    begin = time.perf_counter()
    ready.wait()
    taken = time.perf_counter() - begin
    for worker in workers:
        worker.join()
    return taken


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    kinds = [(False, 1), (True, 1), (True, 2), (True, 4)]
    print("| million keys a second | own | 1 process | 2 | 4 |\n|---|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for call in ("duplicated", "query"):
            for name, batch in BATCHES.items():
                keys = options.keys if batch > 1 else options.keys // 20
                rounds = [
                    [keys / 1e6 / seconds(Path(folder), shared, call, k, keys, batch) for shared, k in kinds]
                    for _ in range(options.rounds)
                ]
                print(
                    f"| {call}, {name} |",
                    " | ".join(f"{median(rates):.3g}" for rates in zip(*rounds, strict=True)),
                    "|",
                )


if __name__ == "__main__":
    main()
