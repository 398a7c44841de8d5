"""Bloom trees over the actors of Ray give the verdicts that they give in one process."""

import numpy as np

import lately
from lately.distributed import BloomTree


def test_on_ray_as_in_one_process(ray_cluster):
    # With leases.
    given = {"top_down": 1}
    f = lately.TimingBloomFilter("10min", 1e-6, capacity=2_000)
    rng = np.random.default_rng(0)
    shape = {"world": None, "eu": "world", "us": "world"}
    with BloomTree("dense", shape, f, **given) as local, BloomTree("dense", shape, f, sites="ray", **given) as tree:
        ours, theirs = ([each.at(leaf) for leaf in each.leaves] for each in (local, tree))
        for i in range(8):
            keys, leaf = rng.integers(300, size=200), i % 2
            expected = ours[leaf].duplicated(keys, at=8e8 + 100 * i)
            assert (theirs[leaf].duplicated(keys, at=8e8 + 100 * i) == expected).all()
            assert (theirs[leaf].duplicated(keys, at=8e8 + 100 * i, number=theirs[leaf].number) == expected).all()
        # Handles that are sent to tasks are producers of their own, and a key is new to one of them.
        keys = np.arange(1_000, 1_300)
        produce = ray_cluster.remote(lambda leaf: leaf.duplicated(keys, at=8e8 + 800))
        seen = ray_cluster.get([produce.remote(theirs[leaf]) for leaf in (0, 1, 1)], timeout=120)
        assert (sum(~each for each in seen) == 1).all()
