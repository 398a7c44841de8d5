"""Paper 2's query throughput, as written: guarded epochs in plain NumPy, beside the same budget in lines.

*Guarded epoch Bloom filters for sliding-window membership*, section 4: a window of 40 million keys, 14 bits for each,
r = 8, half of the queries live. Not stated there: k, here 8, which is best at 14 bits; and how a bit is kept, here as a
byte, which NumPy reads and writes fastest. In as many bits, lines err more often; so beside them stand lines that
err as rarely, in more.
"""

from functools import partial
from statistics import median
from time import perf_counter

import numpy as np
from tqdm import tqdm

import lately
from lately._families import EVERY
from speed.race import ratio
from speed.streams import SEED

BITS = 14
EPOCHS = 8
HASHES = 8
# What the paper measured of this filter, in table 1.
RATE = 0.0222
NUMPY = "NumPy, as written"
PORTION = 1_000_000


class NumPyEpochs:
    """Algorithm 1 of paper 2 on whole arrays, with the double hashing of Kirsch and Mitzenmacher."""

    def __init__(self, window: int) -> None:
        self.size = BITS * window // (EPOCHS + 1)
        self.segments = np.zeros((EPOCHS + 1, self.size), bool)
        self.epoch, self.inserted, self.current = -(-window // EPOCHS), 0, 0

    def positions(self, keys: np.ndarray) -> list[np.ndarray]:
        first, second = self.hashes(keys)
        return [(first + np.uint64(i) * second) % np.uint64(self.size) for i in range(HASHES)]

    @staticmethod
    def hashes(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Two rounds of multiplication and shift, of which each half is a base hash."""
        mixed = (keys ^ keys >> np.uint64(32)) * np.uint64(0xD6E8FEB86659FD93)
        mixed = (mixed ^ mixed >> np.uint64(32)) * np.uint64(0xD6E8FEB86659FD93)
        return mixed >> np.uint64(32), mixed & np.uint64(0xFFFFFFFF) | np.uint64(1)

    def insert(self, keys: np.ndarray) -> None:
        while len(keys):
            if self.inserted and self.inserted % self.epoch == 0:
                self.current = (self.current + 1) % (EPOCHS + 1)
                self.segments[self.current] = False
            now, keys = np.split(keys, [self.epoch - self.inserted % self.epoch])
            for places in self.positions(now):
                self.segments[self.current, places] = True
            self.inserted += len(now)

    def query(self, keys: np.ndarray) -> np.ndarray:
        places = self.positions(keys)
        present = np.zeros(len(keys), bool)
        for segment in self.segments:
            matches = segment[places[0]]
            for each in places[1:]:
                matches &= segment[each]
            present |= matches
        return present


def measure(window: int, rounds: int, threads: int) -> tuple[str, str]:
    """Table, and how many times as fast lines are that err as rarely, on all threads."""
    random = np.random.default_rng(SEED)
    kind, pages = lately.GuardedEpochBloomFilter, BITS * window // (8 * 4096)
    numpy = NumPyEpochs(window)
    in_lines = {
        "in one line": kind.from_parameters(window, r=EPOCHS - 1, pages=pages, lines=1),
        "in two lines": kind.from_parameters(window, r=EPOCHS - 1, pages=pages, lines=2),
        "in lines, as rarely wrong": EVERY["guarded-epoch-line"].make(window, fpr=RATE),
    }
    # Nine epochs fill every segment.
    for _ in tqdm(range(0, window + window // EPOCHS, PORTION), desc=f"paper 2, W = {window:,}: fill", unit="portion"):
        keys = random.integers(0, 2**63, min(PORTION, window)).astype(np.uint64)
        for structure in (numpy, *in_lines.values()):
            structure.insert(keys)
    queries, bits = {NUMPY: numpy.query}, {NUMPY: BITS}
    for way, made in in_lines.items():
        for shared in (1, threads):
            name = f"{way}, threads: {shared}"
            queries[name], bits[name] = partial(made.query, threads=shared), made.bits_per_key
    seconds: dict[str, list[float]] = {name: [] for name in queries}
    wrong: dict[str, float] = {}
    for _ in tqdm(range(rounds), desc="paper 2", unit="round"):
        # The last keys inserted are live.
        fresh = random.integers(2**63, 2**64, len(keys), np.uint64)
        queried = random.permutation(np.concatenate([keys, fresh]))
        live = queried < 2**63
        for name, query in queries.items():
            start = perf_counter()
            answer = query(queried)
            seconds[name].append((perf_counter() - start) / len(queried))
            assert answer[live].all(), f"{name} missed a key of the window"
            wrong[name] = answer[~live].mean()
    table = ["| guarded epochs | M queries/s | times as fast | false positives | bits |", "|---|--:|--:|--:|--:|"]
    for name, times in seconds.items():
        speed, quicker = f"{1e-6 / median(times):.3g}", ratio(seconds[NUMPY], times)
        table.append(f"| {name} | {speed} | {quicker} | {wrong[name]:.2%} | {bits[name]:.1f} |")
    return "\n".join(table), quicker
