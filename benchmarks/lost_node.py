"""How long are the sites of a lost node away?

    uv run benchmarks/lost_node.py

Starts a cluster of two nodes on this machine, puts sites on both, writes keys and waits for their checkpoints. Then one
node is killed. Its sites come back on the other, from the folder of checkpoints; all keys are queried again.
"""

import os
import signal
import tempfile
import time
from functools import partial
from pathlib import Path

# Under `uv run`, Ray would start its workers by `uv run` too.
os.environ |= {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0", "RAY_USAGE_STATS_ENABLED": "0"}

import numpy as np
import ray
from ray.cluster_utils import Cluster

import lately
from lately.distributed._contents.whole_filter import WholeFilter
from lately.distributed._sites.interface import Failed, Message
from lately.distributed._sites.ray_sites import RaySites
from lately.distributed._sites.site import Site
from lately.distributed._sites.store import Folder

SITES, KEYS, LIMIT = 4, 10_000, 120


def site(folder: Path, number: int) -> Site:
    """Make a site, at the node where it is to run."""
    contents = WholeFilter(lately.BloomFilter(KEYS, fpr=0.001))
    return Site(contents, name=f"site {number}", store=Folder(folder), interval=0.1)


def call(sites: RaySites, method: str) -> list:
    """Call each site with its share of the keys."""
    hashes = lately.hash_keys(np.arange(KEYS))
    return sites.call([Message(i, method, (hashes[i::SITES],)) for i in range(SITES)])


def missed(answers: list) -> int:
    """Count the keys that are missing, or were not inserted."""
    absent = (1 if isinstance(answer, Failed) else (~answer).mean() for answer in answers)
    return round(sum(absent) * KEYS / SITES)


def measure(folder: Path) -> None:
    """Lose a node, and print what became of its sites."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "resources": {"site": SITES}})
    node = cluster.add_node(num_cpus=1, resources={"site": SITES})
    ray.init(cluster.address, log_to_driver=False)
    sites = RaySites([partial(site, folder, i) for i in range(SITES)], deadline=1.0, resources={"site": 0.5})
    call(sites, "insert")
    while any(status["changed"] for status in sites.status()):
        time.sleep(0.1)
    there = [status["process"] for status in sites.status() if status["node"] == node.node_id]
    assert there, "Ray has put no site on the second node"
    cluster.remove_node(node, allow_graceful=False)
    # Ray ends the node's own process; the processes of its sites would go on for seconds, unlike on a lost machine.
    for process in there:
        os.kill(process, signal.SIGKILL)
    began, answers = time.monotonic(), call(sites, "query")
    while any(isinstance(answer, Failed) for answer in answers):
        assert time.monotonic() - began < LIMIT, "the sites have not come back"
        time.sleep(0.2)
        answers = call(sites, "query")
    away = time.monotonic() - began
    assert node.node_id not in {status["node"] for status in sites.status()}
    print(f"{len(there)} of {SITES} sites were on the lost node; back on the other after {away:.1f} s")
    print(f"{missed(answers)} of {KEYS} keys missed")
    sites.close()
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as kept:
        measure(Path(kept))
