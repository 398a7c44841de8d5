"""Have I seen this key lately? Sliding-window filters in constant memory.

The shortest way in is `duplicated`, for a column that is all there. For a stream make a filter, such as
`AgePartitionedBloomFilter`, and hand it one batch after another.
"""

from lately import plot
from lately._core import (
    AgePartitionedBloomFilter,
    BloomFilter,
    CountingBloomFilter,
    Filter,
    FingerprintBuffer,
    FormatError,
    GeneralizedBloomFilter,
    GuardedEpochBloomFilter,
    Learned,
    StableBloomFilter,
    Swamp,
    TimeLimitedBloomFilter,
    TimingBloomFilter,
    __version__,
    from_bytes,
    hash_keys,
    open,
)
from lately._duplicated import duplicated
from lately._plan import Choice, Plan, plan
from lately._tune import Trial, Tuned, tune
from lately.priors import DistinctCurve, Probabilities, Uniform, Zipf

__all__ = [
    "AgePartitionedBloomFilter",
    "BloomFilter",
    "Choice",
    "CountingBloomFilter",
    "DistinctCurve",
    "Filter",
    "FingerprintBuffer",
    "FormatError",
    "GeneralizedBloomFilter",
    "GuardedEpochBloomFilter",
    "Learned",
    "Plan",
    "Probabilities",
    "StableBloomFilter",
    "Swamp",
    "TimeLimitedBloomFilter",
    "TimingBloomFilter",
    "Trial",
    "Tuned",
    "Uniform",
    "Zipf",
    "__version__",
    "duplicated",
    "from_bytes",
    "hash_keys",
    "open",
    "plan",
    "plot",
    "tune",
]
