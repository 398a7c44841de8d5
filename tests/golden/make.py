"""Filters whose saved form is kept here, so that no release changes the format or a hash unnoticed.

``python tests/golden/make.py`` writes them anew. That is right only together with a new version of the format or a new
number of the key scheme, or for a kind of filter that is not here yet: files that users saved do not change either.
Parameters are given, not found: better sizing changes no byte. At most 4 KiB each.
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

import lately

HERE = Path(__file__).parent
ANSWERS = HERE / "answers.json"

plan = lately.AgePartitionedBloomFilter.from_parameters


def plain() -> lately.Filter:
    f = plan(300, k=4, l=6, slice_bits=1000, seed=7)
    f.insert(np.arange(1234))
    f.insert([f"key {i}" for i in range(77)])
    return f


def lines() -> lately.Filter:
    f = plan(500, k=2, l=3, blocks=7, block_bits=512, parts=8, seed=2**64 - 1)
    f.duplicated(np.arange(3000) % 701)
    return f


def words() -> lately.Filter:
    f = plan(200, k=3, l=5, blocks=37, block_bits=64, parts=4)
    f.insert([(i, str(i)) for i in range(555)])
    return f


def timed() -> lately.Filter:
    f = plan("10min", k=3, l=5, slice_bits=700, capacity=200, lateness="30s", seed=1)
    i = np.arange(700)
    f.insert(i, at=np.datetime64(1_700_000_000_123_456_789, "ns") + (4 * i - 29 * (i % 2)) * np.timedelta64(1, "s"))
    return f


def fresh() -> lately.Filter:
    return plan("1s", k=1, l=2, blocks=1, parts=1, capacity=1)


def counting() -> lately.Filter:
    f = lately.CountingBloomFilter.from_parameters(150, k=3, slice_cells=501, seed=3)
    f.insert(np.arange(300) % 8)  # counters that stick
    f.insert(np.arange(333))
    f.insert([f"key {i}" for i in range(70)])
    return f


def stable() -> lately.Filter:
    f = lately.StableBloomFilter.from_parameters(200, k=3, slice_cells=601, bits=2, decrements=17, seed=11)
    f.insert(np.arange(900))
    f.duplicated([f"key {i}" for i in range(60)])
    return f


FILTERS: dict[str, Callable[[], lately.Filter]] = {
    f.__name__: f for f in (plain, lines, words, timed, fresh, counting, stable)
}


def answers(f: lately.Filter) -> str:
    """Which of 2000 keys the filter holds, one bit each: some of every kind inserted, and as many that were not."""
    probes: list[object] = [*range(800), *(f"key {i}" for i in range(400)), *((i, str(i)) for i in range(400))]
    probes += range(2700, 3100)
    at = {} if f.lateness is None else {"at": 1_700_000_000 + 4 * 700 + 60}
    return np.packbits(f.query(probes, **at)).tobytes().hex()


if __name__ == "__main__":
    made = {name: make() for name, make in FILTERS.items()}
    for name, f in made.items():
        f.save(HERE / f"{name}.lately")
    ANSWERS.write_text(json.dumps({name: answers(f) for name, f in made.items()}, indent=1) + "\n")
