"""A node is cut off while the processes of its sites stand still, and go on once others have taken their place.

    python tests/support/cut_off_node.py

A cluster of two nodes on this machine, with a filter of each kind. The processes of the sites on the second node are
stopped, and the node itself is killed. Ray starts the sites again on the first. A request waits in the socket of each
old process; then the old processes go on. None may answer, and none may replace a checkpoint.
"""

import os
import signal
import tempfile
import threading
import time
import warnings
from pathlib import Path

os.environ |= {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0", "RAY_USAGE_STATS_ENABLED": "0"}

import numpy as np
import ray
from ray.cluster_utils import Cluster

import lately
from lately.distributed import BloomTree, RaySites, SlicedFilter
from lately.distributed._sites.frames import framed
from lately.distributed._sites.interface import Failed
from lately.distributed._sites.port import key_of, links

KEYS = np.arange(1000)
LIKE = lately.BloomFilter(20_000, 1e-9)
KINDS = {
    "horizontal": {"kind": "horizontal", "slices": 2},
    "vertical": {"kind": "vertical", "slices": 2},
    "h-v": {"kind": "diced", "slices": (2, 2), "dice": "h-v"},
    "v-h": {"kind": "diced", "slices": (2, 2), "dice": "v-h"},
}


def placed(makers):
    """Start sites on both nodes."""
    return RaySites(makers, actors=2, deadline=120, num_cpus=0, resources={"site": 0.01})


def start(folder):
    """Start a filter of each kind; return what writes a batch to each, by its name."""
    filters, writers = {}, {}
    for name, shape in KINDS.items():
        f = SlicedFilter(**shape, filter=LIKE, sites=placed, checkpoint=folder, interval=0, name=name, producer=name)
        filters[name], writers[name] = f, f.duplicated
    tree = BloomTree("sparse", [-1, 0], LIKE, sites=placed, checkpoint=folder, interval=0, name="tree")
    filters["tree"], writers["tree"] = tree, tree.at(1, producer="tree").duplicated
    return filters, writers


def main(folder):
    """Cut the node off, and print what the old processes did."""
    warnings.simplefilter("error")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "resources": {"site": 1}})
    node = cluster.add_node(num_cpus=1, resources={"site": 1})
    ray.init(cluster.address, log_to_driver=False)
    filters, writers = start(folder)
    for write in writers.values():
        assert not write(KEYS, number=1).any()
    # The port, the key and a site of each process on the second node.
    old = {}
    for name, f in filters.items():
        sites = f.sites
        for site, status in enumerate(sites.status()):
            if status["node"] == node.node_id:
                actor = sites._actor_of[site]
                key = key_of(sites._spec.secret, actor)
                old[name, site] = tuple(status["port"]), key, status["process"]
    print(f"{len(old)} sites of {len({name for name, _ in old})} filters on the node")
    assert {name for name, _ in old} == set(filters), "Ray has put no site of some filter on the second node"
    for _, _, process in old.values():
        os.kill(process, signal.SIGSTOP)
    cluster.remove_node(node, allow_graceful=False)
    began = time.monotonic()
    answers = {}

    def ask(which):
        address, key, _ = old[which]
        message = ["call", [which[1], [["fill", [], {}, None, 0]]]]
        answers[which] = links().exchange({0: (address, key, framed(message))}, time.monotonic() + 240)[0]

    for f in filters.values():
        while any(isinstance(status, Failed) or status["node"] == node.node_id for status in f.status()):
            assert time.monotonic() - began < 240, "the sites have not come back"
            time.sleep(0.2)
    print("the sites are back on the other node")
    for write in writers.values():
        assert write(KEYS, number=1).sum() == 0, "a batch that came again has another answer"
        assert not write(KEYS + 5000, number=2).any()
    waiting = [threading.Thread(target=ask, args=(which,)) for which in old]
    for thread in waiting:
        thread.start()
    # Until all requests lie in the sockets of the old processes.
    time.sleep(2)
    for _, _, process in old.values():
        os.kill(process, signal.SIGCONT)
    for thread in waiting:
        thread.join()
    answered = {which: answer for which, answer in answers.items() if isinstance(answer, list)}
    print(f"{len(answered)} of {len(old)} old processes answered: {answered}")
    time.sleep(3)
    for name, write in writers.items():
        assert not write(KEYS + 5000, number=2).any(), "a batch that came again has another answer"
        assert write(np.concatenate([KEYS, KEYS + 5000]), number=3).all(), f"{name} has lost keys"
    assert not answered
    print("nothing is lost, and nothing is new twice")
    for f in filters.values():
        f.close()
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as kept:
        main(Path(kept))
