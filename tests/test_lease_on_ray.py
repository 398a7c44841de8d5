"""The actor that grants the lease is killed again and again: no key is lost, and none is reported new twice."""

import threading
import time
import warnings

import numpy as np
import pytest

import lately
from lately.distributed import FailedSitesWarning, SlicedFilter
from lately.distributed._sites.actors import LEASE_ACTOR
from lately.distributed._sites.lease import GRACE

KINDS = {
    "vertical": {"kind": "vertical", "slices": 2},
    "h-v": {"kind": "diced", "slices": (2, 2), "dice": "h-v"},
}
BATCH = 200
# Seconds that Ray may take to start the actor again on a busy machine.
RESTART = 60


class Stream:
    """Batches of several producers, each with half of the keys of the batch before, until it is stopped."""

    def __init__(self, made, producers):
        self.new, self.lock, self.over = np.zeros(10**6, dtype=int), threading.Lock(), threading.Event()
        self.batches, self.errors, self.sent = 0, [], 0
        self._threads = [threading.Thread(target=self._send, args=(made.handle(),)) for _ in range(producers)]
        for thread in self._threads:
            thread.start()

    def _send(self, handle):
        while not self.over.is_set():
            with self.lock:
                # Each key is sent by two batches or more, mostly of different producers at the same time.
                first, self.sent = self.sent, self.sent + BATCH // 2
            batch = np.arange(first, first + BATCH)
            try:
                seen = handle.duplicated(batch)
            except Exception as error:
                self.errors.append(error)
                return
            with self.lock:
                self.new[batch] += ~seen
                self.batches += 1

    def until(self, more):
        """Wait until this many more batches have been answered."""
        goal, end = self.batches + more, time.monotonic() + RESTART + GRACE + 60
        while self.batches < goal and not self.errors:
            assert time.monotonic() < end, "nothing gets through"
            time.sleep(0.02)

    def stop(self):
        self.over.set()
        for thread in self._threads:
            thread.join(300)
        assert not self.errors, self.errors
        return self.new[: self.sent + BATCH // 2]


def kills(ray, shape, folder, number):
    rng = np.random.default_rng(1)
    made = {**shape, "filter": lately.BloomFilter(10**6, 1e-9), "sites": "ray", "deadline": 120, "interval": 0}
    with SlicedFilter(**made, checkpoint=folder) as f, warnings.catch_warnings():
        # Each death is announced, since the producer that had the lease might have died too.
        warnings.simplefilter("ignore", FailedSitesWarning)
        stream = Stream(f, producers=3)
        for _ in range(number):
            # Between two deaths that lie so far apart, something gets through.
            stream.until(3)
            time.sleep(rng.uniform(0, 0.05))
            ray.kill(f.sites._handles[LEASE_ACTOR], no_restart=False)
        stream.until(10)
        new = stream.stop()
        assert f.query(np.arange(len(new))).all()
    print(
        f"{number} kills, {stream.batches} batches, {len(new)} keys: {(new == 0).sum()} lost, {(new > 1).sum()} twice"
    )
    assert (new == 1).all()


def test_no_key_is_new_twice_when_the_actor_of_the_lease_dies(ray_cluster, tmp_path):
    kills(ray_cluster, KINDS["h-v"], tmp_path, 2)


@pytest.mark.campaign
@pytest.mark.parametrize("name", KINDS)
def test_no_key_is_new_twice_when_the_actor_of_the_lease_dies_many_times(ray_cluster, name, tmp_path):
    kills(ray_cluster, KINDS[name], tmp_path, 20)
