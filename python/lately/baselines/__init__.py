"""What the papers compare their filters with: for comparisons, not to be taken.

Each has the calls of `lately.Filter`. `lately.plan` lists them too, and never chooses one.
"""

from lately.baselines._buffer import FingerprintBuffer
from lately.baselines._counting import CountingBloomFilter
from lately.baselines._generalized import GeneralizedBloomFilter
from lately.baselines._stable import StableBloomFilter

__all__ = ["CountingBloomFilter", "FingerprintBuffer", "GeneralizedBloomFilter", "StableBloomFilter"]
