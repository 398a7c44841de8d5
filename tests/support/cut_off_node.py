"""Cuts a node off from a cluster of Ray while the processes of its sites and of its orderer live on.

    python tests/support/cut_off_node.py HOW

A cluster of two nodes on this machine, with a vertical filter whose sites and orderer lie on the second. Producers send
batches while the raylet of that node is stopped. HOW is what its other processes do meanwhile: "alive", they go on;
"still", they stand still in the middle of a batch, and go on once others have taken their place.
"""

import contextlib
import os
import signal
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

# A busy machine may take long to start a node.
os.environ |= {
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_raylet_start_wait_time_s": "120",
    "RAY_worker_niceness": "0",
}

import numpy as np
import ray
from ray.cluster_utils import Cluster

import lately
from lately.distributed import FailedSitesError, FailedSitesWarning, RaySites, SlicedFilter

ROOM, DEADLINE, LIMIT, BATCH = 100, 10, 240, 100


class Stream(threading.Thread):
    """Batches of one producer, each sent again by its number until it is answered."""

    def __init__(self, handle, new, taken):
        super().__init__(daemon=True)
        self._handle, self._new, self._taken = handle, new, taken
        self.batches, self.retries, self.over = 0, 0, False
        self.start()

    def run(self):
        """Send batches until it is over; each key comes in two of them."""
        while not self.over:
            with LOCK:
                first, self._taken[0] = self._taken[0], self._taken[0] + BATCH // 2
            keys, seen = np.arange(first, first + BATCH), None
            number = self._handle.number + 1
            while seen is None:
                try:
                    seen = self._handle.duplicated(keys, number=number)
                except (FailedSitesError, TimeoutError, RuntimeError):
                    self.retries += 1
                    time.sleep(0.2)
            with LOCK:
                self._new[keys] += ~seen
            self.batches += 1


LOCK = threading.Lock()


class Filler:
    """Takes the room of a node."""


def eventually(holds, what):
    """Wait until something holds."""
    end = time.monotonic() + LIMIT
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.2)


def main(how, folder):
    """Start a cluster of two nodes, and end it however that goes."""
    warnings.simplefilter("ignore", FailedSitesWarning)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "resources": {"first": 1, "site": ROOM}})
    node = cluster.add_node(num_cpus=1, resources={"site": ROOM})
    raylet, workers = node.all_processes["raylet"][0].process.pid, []
    ray.init(cluster.address, log_to_driver=False)
    try:
        # Room for all on either node; but until all are started the first is full.
        filler = ray.remote(Filler).options(num_cpus=0, resources={"first": 1, "site": ROOM}).remote()
        ray.get(filler.__ray_ready__.remote())

        def placed(makers):
            return RaySites(makers, deadline=DEADLINE, num_cpus=0, resources={"site": 1})

        like = lately.BloomFilter(10**6, 1e-9)
        f = SlicedFilter("vertical", 2, like, sites=placed, checkpoint=folder, interval=0)
        assert {status["node"] for status in f.status()} == {node.node_id}
        workers += [status["process"] for status in f.status()]
        workers.append(ray.get(f.sites._orderer.process.remote()))
        ray.kill(filler)
        new, taken = np.zeros(10**6, dtype=int), [0]
        streams = [Stream(f.handle(), new, taken) for _ in range(3)]
        eventually(lambda: min(stream.batches for stream in streams) > 3, "nothing gets through")
        os.kill(raylet, signal.SIGSTOP)
        if how == "still":
            for worker in workers:
                os.kill(worker, signal.SIGSTOP)

        def moved(status):
            return isinstance(status, dict) and status["node"] != node.node_id

        eventually(lambda: all(map(moved, f.status())), "the sites have not come back")
        before = [stream.batches for stream in streams]
        eventually(
            lambda: all(s.batches > n + 3 for s, n in zip(streams, before, strict=True)), "nothing gets through then"
        )
        alive = [worker for worker in workers if Path(f"/proc/{worker}").exists()]
        for worker in alive if how == "still" else ():
            os.kill(worker, signal.SIGCONT)
        before = [stream.batches for stream in streams]
        time.sleep(5)
        eventually(
            lambda: all(s.batches > n + 3 for s, n in zip(streams, before, strict=True)), "nothing gets through at last"
        )
        for stream in streams:
            stream.over = True
        for stream in streams:
            stream.join(LIMIT)
        sent = new[: taken[0] + BATCH // 2]
        lost, twice = int((sent == 0).sum()), int((sent > 1).sum())
        retries = sum(stream.retries for stream in streams)
        print(f"{how}: {len(alive)} of 3 old processes outlived the takeover; {len(sent)} keys, {retries} retries")
        print(f"{lost} lost, {twice} new twice")
        assert (lost, twice) == (0, 0)
        f.close()
    finally:
        for process in [raylet, *workers]:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        ray.shutdown()
        cluster.shutdown()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        main(sys.argv[1], Path(made))
