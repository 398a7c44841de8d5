"""Have I seen this key lately? Sliding-window filters in constant memory.

The shortest way in is `duplicated`, for a column that is all there. For a stream make a filter, such as
`AgePartitionedBloomFilter`, and hand it one batch after another.
"""

from lately._core import (
    AgePartitionedBloomFilter,
    CountingBloomFilter,
    Filter,
    FormatError,
    StableBloomFilter,
    __version__,
    from_bytes,
    hash_keys,
    open,
)
from lately._duplicated import duplicated

__all__ = [
    "AgePartitionedBloomFilter",
    "CountingBloomFilter",
    "Filter",
    "FormatError",
    "StableBloomFilter",
    "__version__",
    "duplicated",
    "from_bytes",
    "hash_keys",
    "open",
]
