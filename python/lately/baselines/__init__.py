"""Baselines: the filters that the papers compare theirs with. They are for comparisons, not for use.

Each has the methods of `lately.Filter`. `lately.plan` lists them too, and never chooses one.
"""

from lately.baselines._buffer import FingerprintBuffer
from lately.baselines._counting import CountingBloomFilter
from lately.baselines._generalized import GeneralizedBloomFilter
from lately.baselines._stable import StableBloomFilter

__all__ = ["CountingBloomFilter", "FingerprintBuffer", "GeneralizedBloomFilter", "StableBloomFilter"]
