"""The classes of filters: their constructors, and the methods that only one class has. `_core.Filter` has the rest."""

from lately.filters.age_partitioned import AgePartitionedBloomFilter
from lately.filters.aged_cuckoo import AgedCuckooFilter
from lately.filters.base import Filter
from lately.filters.bloom import BloomFilter
from lately.filters.exact import ExactFilter
from lately.filters.guarded_epoch import GuardedEpochBloomFilter
from lately.filters.swamp import Swamp
from lately.filters.time_limited import TimeLimitedBloomFilter
from lately.filters.timing import TimingBloomFilter

__all__ = [
    "AgePartitionedBloomFilter",
    "AgedCuckooFilter",
    "BloomFilter",
    "ExactFilter",
    "Filter",
    "GuardedEpochBloomFilter",
    "Swamp",
    "TimeLimitedBloomFilter",
    "TimingBloomFilter",
]
