"""Layouts of filters that several processes may share."""

from functools import partial

import lately
from support.planned import planned

# Bytes at the end of a shared file, for claims.
CLAIMS = 4 * 8 * 2**14
LAYOUTS = {
    "aged cuckoo": lately.AgedCuckooFilter,
    "lines": lately.AgePartitionedBloomFilter,
    "sliced": partial(planned, "age-partitioned"),
    "transposed": lately.GuardedEpochBloomFilter,
    "epochs in lines": partial(planned, "guarded-epoch-line"),
    "epochs in blocks": partial(planned, "guarded-epoch-512"),
}
