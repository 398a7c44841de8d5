"""Many producers share a sliced filter or a tree: each key is new to one of them."""

import copy
import pickle
import threading
import time

import numpy as np
import pytest

import lately
from lately.distributed import BloomTree, LocalSites, SlicedFilter
from support.bloom_trees import KINDS as TREES
from support.bloom_trees import LEAVES, SHAPE, timing
from support.sliced import KINDS, timers
from support.threads import together


class Slow(LocalSites):
    """Sites that are so far away that others act between the calls of a producer."""

    def call(self, messages):
        answers = super().call(messages)
        time.sleep(1e-3)
        return answers


BLOOM, TIMERS = lately.BloomFilter(20_000, 1e-6), timing(slice_timers=100_000, k=6)
# What is shared, and what makes the calls of producer number i.
SHARED = {name: (SlicedFilter, shape, [BLOOM]) for name, shape in KINDS.items() if name != "pipelined"} | {
    f"{kind} tree, top_down={depth}": (BloomTree, {"kind": kind, "parents": SHAPE, "top_down": depth}, [BLOOM, TIMERS])
    for kind in TREES
    for depth in (None, 1, 2)
}


@pytest.mark.parametrize("name", SHARED)
def test_of_producers_with_the_same_new_keys_exactly_one_sees_them_as_new(name):
    cls, shape, filters = SHARED[name]
    for f in filters:
        made = cls(**shape, filter=f, sites=Slow)
        new, barrier = np.zeros((8, 300), dtype=bool), threading.Barrier(8)
        options = {"refresh": False} if cls is SlicedFilter else {"at": None if f is BLOOM else 8e8}

        def produce(i, made=made, new=new, barrier=barrier, options=options, cls=cls):
            producer = made.handle() if cls is SlicedFilter else made.at(LEAVES[i % 6])
            barrier.wait(60)
            for batch in np.arange(300).reshape(10, 30):
                new[i, batch] = ~producer.duplicated(batch, **options)

        together(*(lambda i=i, produce=produce: produce(i) for i in range(8)))
        np.testing.assert_array_equal(new.sum(axis=0), 1)
        made.close()


def test_a_handle_of_sites_of_this_process_does_not_travel():
    with SlicedFilter("vertical", 2, timers()) as sliced:
        for handle in (sliced, BloomTree("dense", SHAPE, BLOOM).at(4)):
            with pytest.raises(TypeError, match="sites of this process cannot be pickled"):
                pickle.dumps(handle)
        other = copy.copy(sliced)
        assert other.producer != sliced.producer
        other.insert(["a"], at=0)
        assert sliced.query(["a"], at=0).all()


ON_RAY = {
    "horizontal": {"kind": "horizontal", "slices": 2},
    "vertical": {"kind": "vertical", "slices": 2},
    "tree": {"kind": "dense", "parents": {"world": None, "eu": "world", "us": "world"}, "top_down": 1},
}


@pytest.mark.parametrize("name", ON_RAY)
def test_on_ray_as_in_one_process(ray_cluster, name, tmp_path):
    rng = np.random.default_rng(8)
    batches = [(rng.integers(0, 500, 400), 100.0 * i + np.sort(rng.uniform(0, 100, 400))) for i in range(6)]
    made, f = BloomTree if name == "tree" else SlicedFilter, timers()
    kept = {"checkpoint": tmp_path, "interval": 0, "deadline": 60}
    with made(**ON_RAY[name], filter=f) as local, made(**ON_RAY[name], filter=f, sites="ray", **kept) as far:
        for number, (keys, times) in enumerate(batches, 1):
            refresh = {} if name == "tree" else {"refresh": number % 2 == 0}
            ours, theirs = (each.at("eu") if name == "tree" else each for each in (local, far))
            expected = ours.duplicated(keys, at=times, **refresh)
            assert (theirs.duplicated(keys, at=times, **refresh) == expected).all()
            if name == "vertical" and number == 3:
                # It is started again with all that it has answered; the next message waits for it.
                far.sites.kill(1)
            assert (theirs.duplicated(keys, at=times, **refresh, number=theirs.number) == expected).all()
            queried = np.arange(700)
            assert (theirs.query(queried, at=times[-1]) == ours.query(queried, at=times[-1])).all()
        assert (far.failures, far.nbytes) == (0, local.nbytes)
        assert name == "tree" or (far.fill == local.fill).all()
        # Handles sent to tasks are separate producers, and each key is new to one of them.
        keys, at = np.arange(1000, 1300), times[-1]
        task = ray_cluster.remote(lambda handle: handle.duplicated(keys, at=at))
        handles = [far.at(leaf) for leaf in ("eu", "us", "us")] if name == "tree" else [far] * 3
        answers = ray_cluster.get([task.remote(handle) for handle in handles], timeout=120)
        new = sum(~seen for seen in answers)
        # The filter is small, and takes some for seen.
        assert new.max() == 1
        assert new.mean() > 0.9
