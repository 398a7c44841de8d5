"""Many producers of a tree, and batches that are sent again."""

import threading
import time

import numpy as np
import pytest

import lately
from lately.distributed._sites.local import LocalSites
from lately.distributed._tree.tree import BloomTree
from support.bloom_trees import KINDS, LEAVES, SHAPE, timing

TREES = [{}, {"top_down": 1}, {"top_down": 2}]


class Slow(LocalSites):
    """Sites that are so far away that others act between the calls of a producer."""

    def call(self, messages):
        answers = super().call(messages)
        time.sleep(1e-3)
        return answers


@pytest.mark.parametrize("given", TREES)
@pytest.mark.parametrize("name", ["bits", "few blocks"])
@pytest.mark.parametrize("kind", KINDS)
def test_of_producers_with_the_same_new_keys_exactly_one_sees_them_as_new(kind, name, given):
    f = lately.BloomFilter(2_000, 1e-6) if name == "bits" else timing(slice_timers=100_000, k=6)
    tree = BloomTree(kind, SHAPE, f, sites=Slow, **given)
    keys = np.arange(300).reshape(10, 30)
    new = np.zeros((8, 300), dtype=bool)
    barrier = threading.Barrier(8)
    errors = []

    def produce(i):
        try:
            leaf = tree.at(LEAVES[i % 6])
            barrier.wait(60)
            for batch in keys:
                new[i, batch] = ~leaf.duplicated(batch, at=None if name == "bits" else 8e8)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=produce, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not errors
    np.testing.assert_array_equal(new.sum(axis=0), 1)


@pytest.mark.parametrize("kind", KINDS)
def test_without_its_number_a_lost_batch_is_reported_as_seen(kind):
    # What the numbers are for: the same, but as a new batch.
    tree = BloomTree(kind, SHAPE, lately.BloomFilter(1_000, 1e-6))
    leaf = tree.at(4)
    leaf.duplicated(np.arange(100))
    assert leaf.duplicated(np.arange(100)).all()
    assert leaf.number == 2
