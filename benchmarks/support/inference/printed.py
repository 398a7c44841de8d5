"""What paper 5 compares: timers with its formulas for them, as printed or with G corrected, and the simple buffer.

Small models in NumPy that keep block numbers and places instead of bits. They answer like a filter of the package.
"""

from collections.abc import Callable
from math import ceil

import numpy as np
from numpy.typing import NDArray

from support.inference.streams import UNIVERSE, Bools, Floats, Keys

NEVER = -(2**40)


def surviving(prior: float | Floats, insertions: float | Floats) -> Floats:
    """(1 - p)^j: the chance that a key does not come in j insertions."""
    return np.exp(np.asarray(insertions) * np.log1p(-np.asarray(prior)))


class BlockTimers:
    """A block timing Bloom filter (paper 5, section 3.2) with the posterior of section 4.

    `distinct` is D(j). `corrected` takes G by erratum INF-6: of the block's keys only those count that do not come
    again later. Timers have k bits, at least 3; the padding is the least that lets k timers be checked per insertion.
    """

    def __init__(
        self, window: int, bits: int, k: int, distinct: Callable[[Floats], Floats], *, corrected: bool = False
    ) -> None:
        self.window, self.k, self.distinct, self.corrected = window, k, distinct, corrected
        timer_bits = max(k, 3)
        self.timers = np.full(bits // timer_bits, NEVER)
        self.block = self.shortest_block(window, len(self.timers), k, timer_bits)
        # A key's cells are a set: of cells that coincide only the first counts (erratum INF-7).
        cells = np.sort(np.random.default_rng(k).integers(0, len(self.timers), (UNIVERSE + 1, k)), axis=1)
        self.cells, self.counts = cells, np.diff(cells, axis=1, prepend=-1) != 0
        self.inserted = 0

    @staticmethod
    def shortest_block(window: int, timers: int, k: int, timer_bits: int) -> int:
        """Least B whose timestamps 0 .. ceil(w/B) + 1 + padding, and "none", fit (definitions 7 and 8, INF-1 and 2)."""
        for block in range(1, window + 1):
            padding = max(ceil(timers / (k * block)) - 1, 0)
            if ceil(window / block) + padding + 3 <= 2**timer_bits:
                return block
        raise ValueError(f"{timer_bits} bits are too few for a timer of {timers}")

    def insert(self, keys: Keys) -> None:
        blocks = (self.inserted + np.arange(len(keys))) // self.block
        # Where cells repeat, the last value stays: that of the latest insertion.
        self.timers[self.cells[keys].ravel()] = np.repeat(blocks, self.k)
        self.inserted += len(keys)

    def oldest(self, keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Lambda, c and r: the age of the oldest timer in blocks, how many have it, and how many there are."""
        ages = self.inserted // self.block - self.timers[self.cells[keys]]
        oldest, counts = ages.max(axis=1), self.counts[keys]
        return oldest, np.count_nonzero((ages == oldest[:, None]) & counts, axis=1), np.count_nonzero(counts, axis=1)

    @property
    def expires_after(self) -> int:
        """The greatest age of a timer in the window, in blocks."""
        return ceil((self.window - self.inserted % self.block) / self.block)

    def query(self, keys: Keys) -> Bools:
        return self.oldest(keys)[0] <= self.expires_after

    def posterior(self, keys: Keys, prior: float | Floats) -> Floats:
        """Theorems 2 to 5, over the chance of the evidence if the key came in the block of its oldest timer."""
        oldest, count, all_timers = self.oldest(keys)
        length, window, since_rotation = self.block, self.window, self.inserted % self.block
        younger = np.maximum((oldest - 1) * length + since_rotation, 0).astype(float)  # insertions since that block
        until = np.where(oldest > 0, younger + length, since_rotation)
        untouched = np.log1p(-1 / len(self.timers)) * self.k
        distinct = self.distinct
        touching = distinct(until) - distinct(younger) if self.corrected else distinct(until - younger)
        touched = -np.expm1(untouched * touching)
        gone = touched ** np.where(oldest > 0, count, all_timers)  # G / F; F(r, 0, b) in the open block
        kept, ended, at_window = (surviving(prior, age) for age in (younger, until, window))
        total = kept - ended + gone * ended
        beyond = np.where(until >= window, at_window - ended + gone * ended, gone * at_window)
        posterior = 1 - beyond / np.maximum(total, 1e-300)
        return np.where(oldest <= self.expires_after, np.clip(posterior, 0, 1), 0.0)


class SimpleBuffer:
    """A list of hashes of the last keys (paper 5, section 6.2, eq. 36 as of erratum INF-12)."""

    def __init__(self, window: int, bits: int, hash_bits: int, distinct: Callable[[Floats], Floats]) -> None:
        self.window, self.length = window, min(window, bits // hash_bits)
        self.colliding = float(-np.expm1(np.log1p(-(0.5**hash_bits)) * distinct(np.array([float(self.length)]))[0]))
        hashes = np.random.default_rng(hash_bits).integers(0, 2**hash_bits, UNIVERSE + 1)
        self.classes = np.unique(hashes, return_inverse=True)[1]
        self.last = np.full(int(self.classes.max()) + 1, NEVER)
        self.inserted = 0

    def insert(self, keys: Keys) -> None:
        self.last[self.classes[keys]] = self.inserted + np.arange(len(keys))
        self.inserted += len(keys)

    def query(self, keys: Keys) -> Bools:
        return np.asarray(self.inserted - self.last[self.classes[keys]] <= self.length)

    def posterior(self, keys: Keys, prior: float | Floats) -> Floats:
        listed, in_window = surviving(prior, self.length), surviving(prior, self.window)
        found = 1 - in_window / ((1 - listed) / self.colliding + listed)
        return np.where(self.query(keys), found, 1 - surviving(prior, self.window - self.length))
