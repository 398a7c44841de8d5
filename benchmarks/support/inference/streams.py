"""The two synthetic streams of paper 5, section 6, with what is true of every query."""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

import lately

UNIVERSE = 2**16
# Keys queried at a time, then inserted. A prime, so that a filter is not always queried at the same phase of a
# generation.
CHUNK = 1021

Keys = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Law(Protocol):
    """What is known of a stream beforehand."""

    def probability(self, keys: Keys) -> float | Floats: ...

    def distinct(self, insertions: Floats) -> Floats: ...


def printed_power_law(insertions: Floats) -> Floats:
    """D(j) of the power law by eq. 17, good between some 10 and 2**16 insertions only (erratum INF-5)."""
    harmonic = np.sum(1 / np.arange(1, UNIVERSE + 1))
    j = np.maximum(insertions, 1.0)
    return np.asarray(j / harmonic * (1 - np.euler_gamma + np.log(UNIVERSE * harmonic / j)))


@dataclass(frozen=True)
class Condition:
    """A stream and a window: one experiment of the paper. Keys are 1 .. 2**16."""

    stream: str
    window: int
    law: Law

    @property
    def name(self) -> str:
        return f"{self.stream}, w = 2^{self.window.bit_length() - 1}"

    @cached_property
    def probability(self) -> float | Floats:
        """Probability of all keys, or of each by its number."""
        if isinstance(self.law, lately.Uniform):
            return self.law.probability()
        return np.asarray(self.law.probability(np.arange(UNIVERSE + 1)))

    def prior(self, keys: Keys) -> float | Floats:
        """Give p of these keys: a single one where all have the same."""
        return self.probability if isinstance(self.probability, float) else self.probability[keys]

    def printed_distinct(self, insertions: Floats) -> Floats:
        """D(j) as the paper has it: eq. 16 or 17."""
        return self.law.distinct(insertions) if self.stream == "uniform" else printed_power_law(insertions)

    def draw(self, insertions: int, seed: int) -> Keys:
        """Draw a stream."""
        rng = np.random.default_rng(seed)
        if isinstance(self.probability, float):
            return rng.integers(1, UNIVERSE + 1, insertions)
        # Inverse of the distribution function: the last entry is 1 but for rounding, which must not make a key.
        return np.minimum(np.searchsorted(np.cumsum(self.probability), rng.random(insertions), "right"), UNIVERSE)


UNIFORM, POWER = lately.Uniform(UNIVERSE), lately.Zipf(UNIVERSE)
CONDITIONS = [
    Condition("uniform", 2**16, UNIFORM),
    Condition("uniform", 2**18, UNIFORM),
    Condition("power law", 2**11, POWER),
    Condition("power law", 2**18, POWER),
]
"""[Pos≈Neg] and [Pos>Neg] of each stream (paper 5, Table 4)."""


def ages(keys: Keys, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give the age of each key of the chunks that begin there, as of the beginning of its chunk.

    Of shape (chunks, keys); 0 for the latest insertion, and large where the key had not come before.
    """
    last = np.full(UNIVERSE + 1, -(2**62))
    found = np.empty((len(starts), CHUNK), np.int64)
    inserted = 0
    for chunk, start in enumerate(starts.tolist()):
        last[keys[inserted:start]] = np.arange(inserted, start)
        inserted = start
        found[chunk] = start - 1 - last[keys[start : start + CHUNK]]
    return found
