"""Layouts of filters that several processes may share."""

from functools import partial

import lately
from support.planned import planned

LAYOUTS = {
    "aged cuckoo": lately.AgedCuckooFilter,
    "lines": lately.AgePartitionedBloomFilter,
    "sliced": partial(planned, "age-partitioned"),
    "transposed": lately.GuardedEpochBloomFilter,
    "epochs in lines": partial(planned, "guarded-epoch-line"),
    "epochs in blocks": partial(planned, "guarded-epoch-512"),
}
