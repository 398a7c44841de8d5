"""Many producers of a tree, and batches that are sent again."""

import itertools
import threading
import time

import numpy as np
import pytest

import lately
from lately.distributed._sites.local import LocalSites
from lately.distributed._tree.tree import BloomTree
from support.bloom_trees import KINDS, LEAVES, SHAPE, timing
from support.site import unsynced as unsynced

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


class LostError(Exception):
    """A call that never returned."""


class Breaking(LocalSites):
    """Sites whose producer dies at the n-th call, after some of its messages were delivered."""

    def __init__(self, makers):
        super().__init__(makers)
        self.calls, self.dies, self.delivered = 0, None, 0

    def call(self, messages):
        self.calls += 1
        if self.calls - 1 == self.dies:
            super().call(messages[: round(self.delivered * len(messages))])
            raise LostError
        return super().call(messages)


@pytest.mark.parametrize("delivered", [0, 0.5, 1])
@pytest.mark.parametrize("given", TREES)
@pytest.mark.parametrize("name", ["bits", "few blocks"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("meanwhile", [None, 4, 8])
def test_a_batch_sent_again_loses_no_new_key(kind, name, given, delivered, meanwhile):
    when = None if name == "bits" else 8e8
    for dies in itertools.count():
        f = lately.BloomFilter(1_000, 1e-6) if name == "bits" else timing(slice_timers=100_000, k=6)
        tree = BloomTree(kind, SHAPE, f, sites=Breaking, **given)
        sites = tree._exchange.sites
        leaf = tree.at(4, producer="one")
        tree.at(7).duplicated(np.arange(20), at=when)
        keys = np.concatenate([np.arange(100), np.arange(50)])
        sites.calls, sites.dies, sites.delivered = 0, dies, delivered
        try:
            leaf.duplicated(keys, at=when, number=1)
        except LostError:
            pass
        else:
            break
        new = np.zeros(100, dtype=int)
        if meanwhile is not None:
            new += ~tree.at(meanwhile).duplicated(np.arange(100), at=when)
        for _ in range(2):  # The second time all answers are known.
            again = tree.at(4, producer="one").duplicated(keys, at=when, number=1)
            assert again[100:].all()
            answered = (new + ~again[:100])[20:]
            assert (answered >= 1).all()
            # Where one site decides, no key comes through twice either.
            assert given or (answered == 1).all()
            assert again[:20].all()
    assert dies >= 2


@pytest.mark.parametrize("kind", KINDS)
def test_without_its_number_a_lost_batch_is_reported_as_seen(kind):
    # What the numbers are for: the same, but as a new batch.
    tree = BloomTree(kind, SHAPE, lately.BloomFilter(1_000, 1e-6))
    leaf = tree.at(4)
    leaf.duplicated(np.arange(100))
    assert leaf.duplicated(np.arange(100)).all()
    assert leaf.number == 2


@pytest.mark.parametrize("given", TREES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_sent_again_after_all_sites_crashed(kind, given, tmp_path):
    """Cells and answers come back together: what was written is answered as it was, what was not is new."""
    f = lately.BloomFilter(1_000, 1e-6)
    tree = BloomTree(kind, SHAPE, f, checkpoint=tmp_path, interval=0, name="t", **given)
    sites, leaf = tree._exchange.sites, tree.at(5)
    assert not leaf.duplicated(np.arange(100)).any()
    for site in range(len(sites)):
        sites.kill(site)
        sites.restart(site)
    assert not leaf.duplicated(np.arange(100), number=1).any()
    assert tree.at(5).duplicated(np.arange(100)).all()
    assert tree.at(8).duplicated(np.arange(100)).all()


class Stolen(LocalSites):
    """Sites whose first lease always ends before its last message."""

    def __init__(self, makers):
        super().__init__(makers)
        self.steal = True

    def call(self, messages):
        if self.steal and any(message.method == "set" and message.fence for message in messages):
            self.steal = False
            self._fence += 1
            for message in messages:
                self._sites[message.site]._fence = self._fence
        return super().call(messages)


@pytest.mark.parametrize("given", TREES[1:])
@pytest.mark.parametrize("kind", KINDS)
def test_a_lease_that_was_lost_is_taken_again(kind, given):
    tree = BloomTree(kind, SHAPE, lately.BloomFilter(1_000, 1e-6), sites=Stolen, **given)
    assert not tree.at(4).duplicated(np.arange(100)).any()
    assert not tree._exchange.sites.steal
    assert tree.at(8).duplicated(np.arange(100)).all()
