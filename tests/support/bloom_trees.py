"""A tree of nine nodes, filters for it, a log whose hosts are at its leaves, and what its nodes hold."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

import lately
from lately.distributed._contents.cells import NEVER

NASA = Path(__file__).parents[2] / "examples" / "nasa-http-1995-08-01.tsv.gz"

# The root, three nodes below it of which one is a leaf, six leaves in all.
SHAPE = [-1, 0, 0, 0, 1, 1, 2, 2, 2]
LEAVES = [3, 4, 5, 6, 7, 8]
KINDS = ["sparse", "dense"]


def timing(window="10min", *, blocks=4, bpt=4, slice_timers=300, k=4):
    return lately.TimingBloomFilter.from_parameters(
        window, k=k, bpt=bpt, blocks=blocks, slice_timers=slice_timers, capacity=500
    )


F = lately.BloomFilter(1000, 0.01)
FILTERS = {
    "bits": lambda: lately.BloomFilter.from_parameters(capacity=1000, k=4, bits=6_000),
    "bits in slices": lambda: lately.BloomFilter.from_parameters(capacity=1000, k=4, slice_bits=1_500),
    "few blocks": lambda: timing(blocks=3),
    "many blocks": lambda: timing(blocks=100, bpt=8),
    "a window of a day": lambda: timing("1d", blocks=6, slice_timers=2_000),
}
BITS, TIMED = ["bits", "bits in slices"], ["few blocks", "many blocks", "a window of a day"]


@cache
def nasa():
    """A log: the hash of each URL, the leaf of its host, the time."""
    log = pd.read_csv(NASA, sep="\t", quoting=3, encoding="latin-1", dtype=str)
    leaf = lately.hash_keys(log["host"]) % np.uint64(len(LEAVES))
    return lately.hash_keys(log["url"]), np.array(LEAVES)[leaf.astype(int)], log["time"].astype(np.int64).to_numpy()


def producers(tree):
    return {leaf: tree.at(leaf) for leaf in tree.leaves}


def contents(tree, node):
    return tree._exchange.sites._sites[node]._contents


def nowhere_younger_than_above(tree):
    """Whether no cell of a node that counts was set later than that of its parent."""
    topology = tree._spec.topology
    nodes = [contents(tree, node)._slice for node in range(len(topology))]
    cells = np.stack([last_set(node) for node in nodes])
    cells[cells < max(node.newest for node in nodes) - tree._like.retained] = NEVER
    return all((cells[i] <= cells[topology.parents[i]]).all() for i in range(1, len(topology)))


def last_set(part):
    """The generation in which each cell of a slice was last set, or `NEVER`."""
    ages, base = part.ages(np.arange(part.stop - part.start, dtype=np.uint64))
    return np.where(ages == np.iinfo(ages.dtype).max, NEVER, base - ages.astype(np.int64))


def words(f):
    return np.frombuffer(f.to_bytes(), np.uint8)[-f.nbytes :].copy().view(np.uint64)


def by_leaf(leaves, times, sizes):
    """The rows of each leaf, stretch by stretch, all at the stretch's first moment, so that time does not step back."""
    start = 0
    for size in sizes:
        stretch = leaves[start : start + size]
        for leaf in np.unique(stretch):
            rows = start + np.flatnonzero(stretch == leaf)
            yield rows, leaf, np.full(len(rows), times[start])
        start += size
        if start >= len(leaves):
            return
