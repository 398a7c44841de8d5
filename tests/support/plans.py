"""Filters in every layout, by numbers small enough to try many; and streams that go through their windows."""

import math
from functools import partial

import numpy as np

import lately

A, G = lately.AgePartitionedBloomFilter, lately.GuardedEpochBloomFilter
BLOCKS = {
    "blocks of 512": {"blocks": 5, "block_bits": 512, "parts": 4},
    "blocks of 64": {"blocks": 25, "block_bits": 64, "parts": 2},
}


def epochs(window, _, r, **others):
    """A guarded-epoch filter of r epochs."""
    return G.from_parameters(window, r=r, k=7, segment_bits=1500, **others)


def epochs_in_blocks(window, _, r, **others):
    return G.from_parameters(window, r=r, **others)


def lines(window, k, l, **others):  # noqa: E741
    """A filter in lines of 8, 16 or 32 lanes, of as many pages as l, and one to four lines per key."""
    k = min(k, 4)
    lanes = 8 << l % 3
    return A.from_parameters(window, k=k, l=lanes - k, pages=l, lines=1 + (k + l) % 4, **others)


def epochs_in_lines(window, k, l, **others):  # noqa: E741
    return G.from_parameters(window, r=[7, 15, 31][k % 3], pages=l, lines=1 + l % 4, **others)


def transposed(window, k, l, **others):  # noqa: E741
    return G.from_parameters(window, r=[7, 15, 31, 63][k % 4], k=7, positions=1500 + l, **others)


def timers(window, k, l, **others):  # noqa: E741
    """A timing filter of l blocks, with timers as narrow as these allow."""
    bpt = (l + 1).bit_length()
    return lately.TimingBloomFilter.from_parameters(window, k=k, bpt=bpt, blocks=l, slice_timers=1500, **others)


def aged(window, k, l, **others):  # noqa: E741
    """Fingerprints of 10 to 16 bits with tags, in one page or two."""
    size = {"pages": 2, "lines": 12} if l % 2 else {"pages": 1, "lines": 16 + 2 * l}
    size |= {"fingerprint_bits": [10, 13, 16][k % 3], "epochs": 1 + l}
    return lately.AgedCuckooFilter.from_parameters(window, **size, **others)


def slices(window, k, l, **others):  # noqa: E741
    return A.from_parameters(window, k=k, l=l, **others)


# From a window, with k and l (or r, or blocks) from a pair of small numbers.
PLANS = {"plain": partial(slices, slice_bits=1500), "epochs": epochs}
PLANS |= {name: partial(slices, **size) for name, size in BLOCKS.items()}
PLANS |= {f"epochs in {name}": partial(epochs_in_blocks, **size) for name, size in BLOCKS.items()}
PLANS |= {"lines": lines, "epochs in lines": epochs_in_lines, "transposed": transposed}
PLANS |= {"timers": timers, "aged": aged}
COUNTED = {name: lambda make=make: make(300, 4, 6) for name, make in PLANS.items()}
COUNTED["timers of one insertion"] = lambda: timers(300, 4, 299)
COUNTED["fingerprints"] = lambda: lately.baselines.FingerprintBuffer.from_parameters(300, fingerprint_bits=13)
COUNTED["counting"] = lambda: lately.baselines.CountingBloomFilter.from_parameters(300, k=3, slice_cells=700)
COUNTED["stable"] = lambda: lately.baselines.StableBloomFilter.from_parameters(
    300, k=2, slice_cells=1500, bits=2, decrements=20
)
COUNTED["bloom"] = lambda: lately.BloomFilter.from_parameters(capacity=5000, k=4, bits=30_000)
COUNTED["bloom in slices"] = lambda: lately.BloomFilter.from_parameters(capacity=5000, k=4, slice_bits=7500)
COUNTED["generalized"] = lambda: lately.baselines.GeneralizedBloomFilter.from_parameters(300, bits=2000, k1=2, k0=3)
COUNTED["swamp"] = lambda: lately.Swamp.from_parameters(300, slots=320, remainder_bits=4)
TIMED = {name: lambda make=make: make("60s", 3, 5, capacity=300, lateness="7s") for name, make in PLANS.items()}


TIMED["timers growing by keys"] = lambda: timers("60s", 3, 5, capacity=300, lateness="7s", part_keys=100)
TIMED["timers growing by density"] = lambda: timers("60s", 3, 5, capacity=300, lateness="7s", part_timers=600)
TIMED["aged, in a chain"] = lambda: aged("60s", 3, 4, capacity=300, lateness="7s", chain=1)
TIMED["time-limited"] = lambda: lately.TimeLimitedBloomFilter.from_parameters(
    "60s", k=3, l=5, slice_bits=512, lateness="7s"
)


def stream(n):
    """Keys with repeats near and far, within batches and across them."""
    rng = np.random.default_rng(n)
    keys = rng.integers(0, 2 * n, n)
    repeats = rng.random(n) < 0.5
    back = np.minimum(rng.geometric(0.01, n), np.arange(n))
    keys[repeats] = keys[np.arange(n) - back][repeats]
    return keys


def times(n):
    """Steps within a generation, over several, and beyond all that a filter remembers; some keys late."""
    rng = np.random.default_rng(n)
    steps = rng.choice([0, 0.05, 0.2, 13, 30, 55, 500, 1e5], n, p=[0.3, 0.5, 0.19, 0.004, 0.003, 0.002, 0.0007, 0.0003])
    return 1_700_000_000 + np.cumsum(steps) - rng.choice([0, 1, 7], n, p=[0.8, 0.1, 0.1])


def bound(n, rate):
    """Most successes of n trials: exceeded with a chance below 1e-6 where n * rate is 1 or more."""
    return n * rate + 6 * math.sqrt(n * rate) + 6
