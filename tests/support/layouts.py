"""Layouts of filters that several processes may share."""

from functools import partial

import lately

A, G = lately.AgePartitionedBloomFilter, lately.GuardedEpochBloomFilter
LAYOUTS = {
    "lines": A,
    "sliced": partial(A, layout="sliced"),
    "transposed": G,
    "epochs in lines": partial(G, layout="line"),
    "epochs in blocks": partial(G, layout="sliced", block_bits=512),
}
