"""The classes of filters: how each is made, and what it alone can answer; `_core.Filter` does the rest."""

from lately.filters.aging import AgePartitionedBloomFilter, GuardedEpochBloomFilter
from lately.filters.exact import CountingBloomFilter, FingerprintBuffer, Swamp
from lately.filters.quotient import AgedQuotientFilter
from lately.filters.timed import TimeLimitedBloomFilter, TimingBloomFilter
from lately.filters.windowless import BloomFilter, GeneralizedBloomFilter, StableBloomFilter

__all__ = [
    "AgePartitionedBloomFilter",
    "AgedQuotientFilter",
    "BloomFilter",
    "CountingBloomFilter",
    "FingerprintBuffer",
    "GeneralizedBloomFilter",
    "GuardedEpochBloomFilter",
    "StableBloomFilter",
    "Swamp",
    "TimeLimitedBloomFilter",
    "TimingBloomFilter",
]
