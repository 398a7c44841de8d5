"""Cuts a node off from a cluster of Ray while the processes of its sites live on.

    python tests/support/cut_off_node.py HOW

A cluster of two nodes on this machine, with a filter of each kind, whose sites lie on both nodes and whose leases are
granted on the second. The sites of the second node are in the middle of writing a batch when its raylet is stopped.
HOW is what its other processes do meanwhile: "alive", they go on and reach the cluster; "apart", they go on and do not;
"still", they stand still, and go on once others have taken their place.

Prints when the old processes last answered and when the new ones first did, in seconds since the raylet was stopped.
"""

import contextlib
import json
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from functools import partial
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
from lately.distributed import BloomTree, FailedSitesError, FailedSitesWarning, RaySites, SlicedFilter
from lately.distributed._sites import ray_sites
from lately.distributed._sites.frames import framed
from lately.distributed._sites.port import LINKS, key_of

FIRST, SECOND = np.arange(1000), np.arange(5000, 6000)
LIKE = lately.BloomFilter(200_000, 1e-9)
KINDS = {
    "horizontal": {"kind": "horizontal", "slices": 2},
    "vertical": {"kind": "vertical", "slices": 2},
    "h-v": {"kind": "diced", "slices": (2, 2), "dice": "h-v"},
    "v-h": {"kind": "diced", "slices": (2, 2), "dice": "v-h"},
}
DEADLINE = 20
ROOM = 100
LIMIT = 150


class Held:
    """A store whose writes wait while there is a file that names their process."""

    def __init__(self, store, folder):
        self._store, self._folder, self._process = store, folder, os.getpid()
        self.read, self.remove = store.read, store.remove

    def _wait(self):
        while (self._folder / f"hold-{self._process}").exists():
            (self._folder / f"waits-{self._process}").touch()
            time.sleep(0.05)

    def write(self, name, data):
        self._wait()
        self._store.write(name, data)

    def append(self, name, data):
        self._wait()
        return self._store.append(name, data)


class Watched:
    """Makes a site whose checkpoints are held, and that notes what became of each call that was held."""

    def __init__(self, maker, folder):
        self._maker, self._folder = maker, folder

    def __call__(self):
        site = self._maker()
        site._kept._store = Held(site._kept._store, self._folder)
        call, became = site.call, self._folder / f"became-{os.getpid()}"

        def noted(method, *arguments, **options):
            text = "answered"
            try:
                return call(method, *arguments, **options)
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
                raise
            finally:
                if method in site._contents.writes and (self._folder / f"watch-{os.getpid()}").exists():
                    with became.open("a") as file:
                        file.write(f"{text}\n")

        site.call = noted
        return site


def pass_on(server, to):
    """Pass on what comes by a port, and back; in a process of its own, with which all connections end."""

    def copy(one, other):
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    while True:
        here, _ = server.accept()
        there = socket.create_connection(to)
        for ends in ((here, there), (there, here)):
            threading.Thread(target=copy, args=ends, daemon=True).start()


class Filler:
    """Takes the room of a node."""


def start(folder):
    """Start a filter of each kind; return them, and what writes a batch to each, by its name."""

    # Room for all on either node; but until all are started the first is full.
    filler = ray.remote(Filler).options(resources={"first": 1, "site": ROOM}).remote()
    ray.get(filler.__ray_ready__.remote())
    # The actors of leases take room as the sites do.
    ray_sites.OPTIONS = {**ray_sites.OPTIONS, "resources": {"site": 1}}

    def placed(makers, room="site"):
        watched = [Watched(maker, folder) for maker in makers]
        return RaySites(watched, actors=1, deadline=DEADLINE, num_cpus=0, resources={room: 1})

    filters, writers = {}, {}
    shared = {"filter": LIKE, "sites": placed, "checkpoint": folder / "checkpoints", "interval": 0}
    for name, shape in KINDS.items():
        filters[name] = SlicedFilter(**shape, **shared, name=name, producer=name)
        writers[name] = filters[name].duplicated
    filters["tree"] = BloomTree("sparse", [-1, 0, 0], **shared, name="tree", top_down=1)
    writers["tree"] = filters["tree"].at(1, producer="tree").duplicated
    # Of this one only the lease is on the second node.
    shared["sites"] = partial(placed, room="first")
    filters["lease"] = SlicedFilter("vertical", 2, **shared, name="lease", producer="lease")
    writers["lease"] = filters["lease"].duplicated
    ray.kill(filler)
    return filters, writers


def eventually(holds, what):
    """Wait until something holds."""
    end = time.monotonic() + LIMIT
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.1)


def running(process):
    """Whether a process is there, and no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Batch(threading.Thread):
    """Writes the second batch until it is answered, and counts the errors."""

    def __init__(self, write):
        super().__init__(daemon=True)
        self._write, self.errors, self.seen, self.answered = write, Counter(), None, None
        self.start()

    def run(self):
        """Send the batch, again after each error."""
        while self.seen is None:
            try:
                self.seen = self._write(SECOND, number=2)
            except (FailedSitesError, FailedSitesWarning) as error:
                # Of a tree, whose nodes below the root are passed over, it is a warning too, here made an error.
                named = error.number == 2 if isinstance(error, FailedSitesError) else "number=2" in str(error.__notes__)
                self.errors[type(error).__name__, named] += 1
                time.sleep(0.1)
        self.answered = time.monotonic()


class Stream(threading.Thread):
    """Writes batch after batch until it is over, and notes the longest wait for an answer."""

    def __init__(self, write):
        super().__init__(daemon=True)
        self._write, self.number, self.longest, self.errors, self.over = write, 1, 0.0, [], False
        self.start()

    def run(self):
        """Send new keys; again, if they have no answer."""
        while not self.over:
            began, self.number, seen = time.monotonic(), self.number + 1, None
            while seen is None:
                try:
                    seen = self._write(self.keys(self.number), number=self.number)
                except Exception as error:
                    self.errors.append(error)
                    time.sleep(0.1)
            if seen.any():
                self.errors.append(AssertionError(f"batch {self.number} has {seen.sum()} keys that were seen"))
            self.longest = max(self.longest, time.monotonic() - began)
            time.sleep(0.1)

    def keys(self, number):
        """Return the keys of a batch."""
        return 10**6 + 10 * number + np.arange(10)


class Old(threading.Thread):
    """Calls an old process by its port, again and again, and notes when it last answered."""

    def __init__(self, address, key, site):
        super().__init__(daemon=True)
        self._request = address, key, framed(["call", [site, [["fill", [], {}, None, 0]]]])
        self.last, self.refused, self.over = 0.0, set(), False
        self.start()

    def run(self):
        """Call until it is over."""
        while not self.over:
            answer = LINKS.exchange({0: self._request}, time.monotonic() + LIMIT)[0]
            if isinstance(answer, list):
                self.last = time.monotonic()
            elif isinstance(answer, dict):
                self.refused.add(answer["error"][0])
            time.sleep(0.02)


def main(how, folder):
    """Start a cluster of two nodes, and end it however that goes."""
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", ResourceWarning)
    # An actor that is started again cannot find out whether the producer that had the lease has died.
    warnings.filterwarnings("ignore", "the actor of the lease was restarted", FailedSitesWarning)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "resources": {"first": ROOM, "site": ROOM}})
    host, _, port = cluster.gcs_address.rpartition(":")
    # The second node reaches the cluster by a process that can be ended.
    server = socket.create_server((host, 0))
    way = multiprocessing.get_context("fork").Process(target=pass_on, args=(server, (host, int(port))), daemon=True)
    way.start()
    node = cluster.add_node(num_cpus=1, resources={"site": ROOM}, gcs_address=f"{host}:{server.getsockname()[1]}")
    server.close()
    raylet = node.all_processes["raylet"][0].process.pid
    ray.init(cluster.address, log_to_driver=False)
    workers = []
    try:
        filters, writers = start(folder)
        for write in writers.values():
            assert not write(FIRST, number=1).any()
        children = Path(f"/proc/{raylet}/task/{raylet}/children").read_text().split()
        workers += [int(child) for child in children if "ray::" in Path(f"/proc/{child}/cmdline").read_text()]
        cut_off(how, folder, node.node_id, raylet, workers, way, filters, writers)
    finally:
        for process in [raylet, *workers, way.pid]:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        ray.shutdown()
        cluster.shutdown()


def cut_off(how, folder, node, raylet, workers, way, filters, writers):
    """Cut the node off, and print what the old processes did."""
    old, calls = {}, {}
    for name, f in filters.items():
        for site, status in enumerate(f.status()):
            if status["node"] == node:
                old[name, site] = status["process"]
                key = key_of(f.sites._spec.secret, f.sites._actor_of[site])
                calls[name, site] = Old(tuple(status["port"]), key, site)
    assert {name for name, _ in old} == filters.keys() - {"lease"}, f"Ray has put sites elsewhere: {old}"
    processes = set(old.values())
    for process in processes:
        (folder / f"hold-{process}").touch()
        (folder / f"watch-{process}").touch()
    batches = {name: Batch(write) for name, write in writers.items() if name != "lease"}
    stream = Stream(writers["lease"])
    waits = [folder / f"waits-{process}" for process in processes]
    eventually(lambda: all(map(Path.exists, waits)) and stream.number > 2, "no site is held")
    began = time.monotonic()
    os.kill(raylet, signal.SIGSTOP)
    if how == "apart":
        way.kill()
    if how == "still":
        for worker in workers:
            os.kill(worker, signal.SIGSTOP)
    print(f"{len(old)} sites of {len(filters)} filters are on the node, which is cut off")
    for name, batch in batches.items():
        batch.join(LIMIT)
        assert batch.seen is not None, f"{name} is not answered: {batch.errors}"
        assert not batch.seen.any(), f"{name}: a batch that came again has another answer"
    assert all(status["node"] != node for f in filters.values() for status in f.status())
    if how == "still":
        for worker in workers:
            os.kill(worker, signal.SIGCONT)
    if how == "apart":
        assert all(map(running, old.values())), "the old processes have ended, so that nothing is shown"
    saved = contents(folder)
    for process in processes:
        (folder / f"hold-{process}").unlink()
    if how == "apart":
        became = [folder / f"became-{process}" for process in processes]
        eventually(lambda: all(map(Path.exists, became)), "the old writes have not come to an end")
        found = {line for path in became for line in path.read_text().splitlines()}
        print("the old writes:", found)
        assert all(text.startswith("CheckpointError: ") for text in found)
        assert all("another site of this name has started since, and has its checkpoints" in text for text in found)
    else:
        eventually(lambda: not any(map(running, old.values())), "the old processes go on")
    time.sleep(2)
    changed = {name for name, data in contents(folder).items() if saved.get(name) != data and "lease" not in name}
    assert not changed, f"an old process has replaced {changed}"
    for call in calls.values():
        call.over = True
    for name, batch in batches.items():
        last = max(call.last for (of, _), call in calls.items() if of == name) - began
        new = batch.answered - began
        print(f"{name}: the old ones answered until {last:.1f} s, the new ones from {new:.1f} s on; {batch.errors}")
        assert all(named for _, named in batch.errors), "an error does not have the number of the batch"
        assert last < new, f"an old process of {name} has answered after the new one"
    if how == "apart":
        assert set.union(*(call.refused for call in calls.values())) == {"ReplacedError"}
    stream.over = True
    stream.join(LIMIT)
    print(f"lease: {stream.number - 1} batches, the longest waited {stream.longest:.1f} s")
    assert not stream.errors, stream.errors
    # What the new ones have saved is all there is, and all of it is there.
    for name, f in filters.items():
        f.sites.kill(0)
        if name != "lease":
            again = patiently(writers[name], SECOND, 2)
            assert not again.any(), f"{name}: a batch that came again has another answer"
            assert patiently(writers[name], np.concatenate([FIRST, SECOND]), 3).all(), f"{name} has lost keys"
    sent = np.concatenate([FIRST, *map(stream.keys, range(2, stream.number + 1))])
    assert patiently(writers["lease"], sent, stream.number + 1).all()
    print("nothing is lost, and nothing is new twice")
    for f in filters.values():
        f.sites.close()


def patiently(write, keys, number):
    """Write a batch, again while sites restart."""
    for _ in range(20):
        try:
            return write(keys, number=number)
        except FailedSitesError:
            continue
    raise AssertionError("the sites have not come back")


def contents(folder):
    """Return the checkpoints and logs of the latest runs, by their names."""
    found = {}
    for claim in (folder / "checkpoints").glob("*-of-*[0-9]"):
        if claim.name.count(".") == 0:
            run = json.loads(claim.read_bytes())["run"]
            for path in (folder / "checkpoints").glob(f"{claim.name}.{run}*"):
                found[path.name] = path.read_bytes()
            found[claim.name] = claim.read_bytes()
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as kept:
        main(sys.argv[1], Path(kept))
