"""The filters compared with theory, a line each: how one is made, and what it should do."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

import lately
from support import formulas
from support.planned import planned

FPR = 0.01
TICK = 1_000_000  # nanoseconds from key to key in a window of time, which is as many ticks as it has keys


@dataclass(frozen=True)
class Case:
    """A filter for a window of `window` keys, and what it should do."""

    make: Callable[..., lately.Filter]
    expect: formulas.Expect
    timed: bool = False
    promised: bool = True
    bounds: bool = False  # the stated rate and slack are bounds; its bits give the expected values

    def new(self, window: int, seed: int) -> lately.Filter:
        if self.timed:
            return self.make(np.timedelta64(window * TICK, "ns"), capacity=window, seed=seed)
        return self.make(window, seed=seed)


def half_filled_slices(window: int, k: int, l: int, seed: int) -> lately.Filter:  # noqa: E741
    """Paper 1's own sizes: slices that are half full after k generations."""
    bits = math.ceil(k * math.ceil((window - 1) / l) / math.log(2))
    return lately.AgePartitionedBloomFilter.from_parameters(window, k=k, l=l, slice_bits=bits, seed=seed)


def equal_timers(window: int, seed: int) -> lately.Filter:
    """Few timers: 7 % of fresh keys find all six set, and 2 % find two of them equal; so 5 % are missed."""
    return lately.TimingBloomFilter.from_parameters(
        window, k=6, bpt=6, blocks=50, slice_timers=window, equal_timers=2, seed=seed
    )


def half_a_buffer(window: int, seed: int) -> lately.Filter:
    return lately.baselines.FingerprintBuffer(window // 2, FPR, seed=seed)


def endless(window: int, partitioned: bool, seed: int) -> lately.Filter:
    """A filter with no window holds the whole stream, which has eight."""
    return lately.BloomFilter(8 * window, FPR, partitioned=partitioned, seed=seed)


def in_a_burst(
    span: np.timedelta64, capacity: int, grow: Literal["cardinality", "density"], seed: int
) -> lately.Filter:
    """Timers planned for a fifth of the rate."""
    return lately.TimingBloomFilter(span, FPR, capacity=capacity // 5, grow=grow, seed=seed)


def words_of_slices(window: int, seed: int) -> lately.Filter:
    size = {"k": 2, "l": 4, "blocks": window * 1085 // 20_000, "block_bits": 64, "parts": 4}
    return lately.AgePartitionedBloomFilter.from_parameters(window, **size, seed=seed)


def words_of_epochs(window: int, seed: int) -> lately.Filter:
    size = {"r": 4, "blocks": window * 1635 // 20_000, "block_bits": 64, "parts": 8}
    return lately.GuardedEpochBloomFilter.from_parameters(window, **size, seed=seed)


AGED = partial(planned, "age-partitioned", fpr=FPR)
EPOCHS = partial(planned, "guarded-epoch", fpr=FPR)
CUCKOOS = partial(lately.AgedCuckooFilter, fpr=FPR)
TIMERS = partial(lately.TimingBloomFilter, fpr=FPR)
CASES = {
    "age-partitioned": Case(AGED, formulas.age_partitioned),
    "age-partitioned (10, 7)": Case(partial(half_filled_slices, k=10, l=7), formulas.age_partitioned),
    "age-partitioned, blocks of 64": Case(words_of_slices, formulas.age_partitioned),
    "age-partitioned, blocks of 512": Case(partial(planned, "age-partitioned-512", fpr=FPR), formulas.age_partitioned),
    "age-partitioned, time": Case(AGED, formulas.age_partitioned, timed=True),
    "guarded epochs": Case(EPOCHS, formulas.guarded_epoch),
    "guarded epochs, blocks of 64": Case(words_of_epochs, formulas.guarded_epoch),
    "guarded epochs, blocks of 512": Case(partial(planned, "guarded-epoch-512", fpr=FPR), formulas.guarded_epoch),
    "guarded epochs, time": Case(EPOCHS, formulas.guarded_epoch, timed=True),
    "aged cuckoo": Case(CUCKOOS, formulas.aged_cuckoo, bounds=True),
    "aged cuckoo, 0.1 %": Case(partial(CUCKOOS, fpr=FPR / 10), formulas.aged_cuckoo, bounds=True),
    "aged cuckoo, time": Case(CUCKOOS, formulas.aged_cuckoo, timed=True, bounds=True),
    "timing, B = 1": Case(partial(TIMERS, slack=0), formulas.timing),
    "timing, B > 1": Case(TIMERS, formulas.timing),
    "timing, time": Case(TIMERS, formulas.timing, timed=True),
    "timing, by cardinality": Case(partial(TIMERS, grow="cardinality"), formulas.growing, timed=True, bounds=True),
    "timing, by density": Case(partial(TIMERS, grow="density"), formulas.growing, timed=True, bounds=True),
    "five times the plan, by cardinality": Case(
        partial(in_a_burst, grow="cardinality"), formulas.growing, timed=True, bounds=True
    ),
    "five times the plan, by density": Case(
        partial(in_a_burst, grow="density"), formulas.growing, timed=True, bounds=True
    ),
    "equal timers": Case(equal_timers, formulas.timing, promised=False),
    "time-limited": Case(
        partial(lately.TimeLimitedBloomFilter, fpr=FPR), formulas.time_limited, timed=True, bounds=True
    ),
    "SWAMP": Case(partial(lately.Swamp, fpr=FPR), formulas.fingerprints),
    "fingerprint buffer": Case(partial(lately.baselines.FingerprintBuffer, fpr=FPR), formulas.fingerprints),
    "fingerprint buffer, W/2": Case(half_a_buffer, formulas.fingerprints, promised=False),
    "counting": Case(partial(lately.baselines.CountingBloomFilter, fpr=FPR), formulas.counting),
    "Bloom, classical": Case(partial(endless, partitioned=False), formulas.bloom),
    "Bloom, partitioned": Case(partial(endless, partitioned=True), formulas.bloom),
    "generalized": Case(
        partial(lately.baselines.GeneralizedBloomFilter, fpr=FPR), formulas.generalized, promised=False
    ),
    "stable": Case(partial(lately.baselines.StableBloomFilter, fpr=FPR), formulas.stable, promised=False),
}
