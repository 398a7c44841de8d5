"""Tasks and methods of actors that Ray runs again: their batches are those of the first time."""

import os
import sys

import numpy as np
import pytest

from lately.distributed import SlicedFilter
from support.sliced import timers

KEYS = np.arange(3_000)


def fail_once(marker, how):
    """Fail as `how` names, the first time that this is called with a marker."""
    if not marker.exists():
        marker.touch()
        if how == "dies":
            os._exit(1)
        raise ConnectionError("the sink is away")


@pytest.fixture(scope="module")
def sliced(ray_cluster):
    """A filter whose batches go through an orderer. `test_kills.py` has those that do not."""
    ray_cluster.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with SlicedFilter("vertical", 2, timers(slice_timers=100_000), sites="ray", deadline=60) as sliced:
        yield sliced


@pytest.mark.parametrize("how", ["dies", "raises"])
def test_a_task_that_is_retried_gets_the_same_answers(sliced, ray_cluster, tmp_path, how):
    """Of a worker that dies Ray starts another; after an error it may run the task in the same one."""
    first, second = KEYS.reshape(2, -1) + (10_000 if how == "dies" else 20_000)

    def new_keys():
        # The handle lies in the task's code: where the process goes on, it does too.
        answers = [sliced.duplicated(keys, at=0) for keys in (first, second, first)]
        fail_once(tmp_path / how, how)
        return answers

    task = ray_cluster.remote(max_retries=2, retry_exceptions=True)(new_keys)
    answers = ray_cluster.get(task.remote(), timeout=300)
    assert [seen.mean() for seen in answers] == [0, 0, 1]
    assert sliced.duplicated([*first, *second], at=0).all()


def test_a_method_of_an_actor_that_is_retried_gets_the_same_answers(sliced, ray_cluster, tmp_path):
    class Consumer:
        def __init__(self, handle):
            self.handle = handle

        def new(self, keys, marker=None):
            seen = self.handle.duplicated(keys, at=0)
            if marker:
                fail_once(marker, "dies")
            return int((~seen).sum())

    actor = ray_cluster.remote(max_restarts=-1, max_task_retries=-1)(Consumer).remote(sliced)
    keys = KEYS.reshape(3, -1) + 30_000
    calls = [actor.new.remote(keys[0]), actor.new.remote(keys[1], tmp_path / "marker"), actor.new.remote(keys[2])]
    assert ray_cluster.get(calls, timeout=300) == [1000, 1000, 1000]
    # Another call with the same keys is another batch.
    assert ray_cluster.get(actor.new.remote(keys[0]), timeout=300) == 0


def test_two_handles_of_one_task_are_two_producers(sliced, ray_cluster):
    def twice(handle, same):
        return handle.duplicated(KEYS + 40_000, at=0).mean(), same.handle().duplicated(KEYS + 40_000, at=0).mean()

    assert ray_cluster.get(ray_cluster.remote(twice).remote(sliced, sliced), timeout=300) == (0, 1)
