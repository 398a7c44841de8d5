"""Sites on Ray that die, hang and come back. Every wait has its limit."""

import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import lately
from lately.distributed import RaySites, SlicedFilter
from lately.distributed._contents.whole_filter import WholeFilter
from lately.distributed._sites.actors import LEASE_ACTOR
from lately.distributed._sites.errors import SupersededError
from lately.distributed._sites.interface import Failed, Message
from lately.distributed._sites.results import RequestId
from lately.distributed._sites.site import Site
from lately.distributed._sites.store import Folder
from support.site import fences

ROOT = Path(__file__).parent.parent
INTERVAL = 0.25


class CrashesOnce(Folder):
    """A folder whose next write ends the process, if there is a file named crash."""

    def write(self, name, data):
        super().write(name, data)
        crash = self.path / "crash"
        if crash.exists():
            crash.unlink()
            os._exit(1)


@dataclass(frozen=True)
class Maker:
    """Makes a site with a filter that has hardly any false positives."""

    name: str
    folder: Path
    interval: float = INTERVAL

    def __call__(self):
        contents = WholeFilter(lately.BloomFilter(100_000, fpr=1e-12))
        return Site(contents, name=self.name, store=CrashesOnce(self.folder), interval=self.interval)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(scope="module")
def pair(ray_cluster, folder):
    """Two sites with time to answer."""
    ray_cluster.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    sites = RaySites([Maker(f"site {i}", folder) for i in range(2)], name="pair", deadline=60)
    yield sites
    sites.close()
    with pytest.raises(RuntimeError, match="the sites are closed"):
        sites.status()
    last = [Maker(f"site {i}", folder)() for i in range(2)]
    assert all(site.status()["restored"] for site in last)


def duplicated(sites, keys, request=None):
    """Send each key to the site that the lowest bit of its hash selects, and combine the answers."""
    hashes = lately.hash_keys(keys)
    places = [np.flatnonzero(hashes % len(sites) == i) for i in range(len(sites))]
    messages = [
        Message(i, "duplicated", (hashes[its],), {"refresh": True}, request and RequestId(*request, its))
        for i, its in enumerate(places)
    ]
    answer = np.empty(len(hashes), dtype=bool)
    for its, part in zip(places, sites.call(messages), strict=True):
        assert not isinstance(part, Failed), part
        answer[its] = part
    return answer


def query(sites, keys, site=0):
    return sites.call([Message(site, "query", (lately.hash_keys(keys),))])[0]


def eventually(holds, seconds=90):
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it has not come"
        time.sleep(0.05)


def test_sites_are_found_by_name_and_pickled(pair):
    keys = [f"found {i}" for i in range(1000)]
    assert not duplicated(pair, keys).any()
    for other in (RaySites.connect("pair", deadline=60), pickle.loads(pickle.dumps(pair))):
        assert len(other) == 2
        assert duplicated(other, keys).all()
    with pytest.raises(ValueError, match="there are sites named 'pair'"):
        RaySites([Maker("pair", Path())], name="pair")
    with pytest.raises(ValueError, match="no sites named 'trio'"):
        RaySites.connect("trio")


def test_bad_arguments(ray_cluster):
    with pytest.raises(ValueError, match="makers is empty"):
        RaySites([])
    with pytest.raises(ValueError, match="got 0"):
        RaySites([print], deadline=0)


def test_a_site_gets_its_messages_in_order(pair):
    batches = [lately.hash_keys([f"in order {i}"]) for i in range(50)]
    messages = [m for batch in batches for m in (Message(0, "query", (batch,)), Message(0, "insert", (batch,)))]
    answers = pair.call([*messages, *(Message(0, "query", (batch,)) for batch in batches)])
    assert not any(answer.any() for answer in answers[:100])
    assert all(answer.all() for answer in answers[100:])


def test_a_site_killed_in_mid_stream_forgets_nothing_that_it_had_saved(pair):
    batches = [np.array([f"killed {i} {j}" for j in range(200)]) for i in range(60)]
    for number, batch in enumerate(batches):
        if number == 40:
            # It saves every quarter of a second by itself.
            eventually(lambda: not pair.status()[1]["changed"])
        if number == 50:
            process = Path(f"/proc/{pair.status()[1]['process']}")
            os.kill(pair.status()[1]["process"], signal.SIGKILL)
            # Until it is gone it answers, and forgets those keys too.
            eventually(lambda process=process: not process.exists())
        assert not duplicated(pair, batch, ("killed", number)).any(), number
    eventually(lambda: not isinstance(pair.status()[1], Failed))
    assert pair.status()[1]["restored"]
    hashes = lately.hash_keys(np.concatenate(batches))
    mine = hashes % 2 == 1
    assert query(pair, np.concatenate(batches)[~mine], site=0).all()
    forgotten = np.flatnonzero(mine)[~query(pair, np.concatenate(batches)[mine], site=1)] // 200
    assert all(40 <= batch < 50 for batch in forgotten)


def test_a_crash_between_write_and_answer(pair, tmp_path):
    sites = RaySites([Maker("one", tmp_path, interval=0)], deadline=60)
    keys = np.arange(10_000)
    (tmp_path / "crash").touch()
    seen = duplicated(sites, keys, ("producer", 1))
    assert not (tmp_path / "crash").exists()
    assert sites.status()[0]["restored"]
    # Every key is written; without the answers of the first time all would count as repeats, and be lost.
    assert not seen.any()
    assert query(sites, keys).all()
    sites.close()


def test_leases_exclude_each_other_and_end(pair):
    hasty = pickle.loads(pickle.dumps(pair))
    hasty._deadline = 1.0
    hashes = lately.hash_keys(["turn"])
    found = fences(hasty, producers=3, leases=10)
    assert len(set(found)) == 30
    with hasty.lease() as early:
        # Three deadlines later it is another's.
        with hasty.lease() as late:
            hasty.call([Message(0, "insert", (hashes,), fence=late.fence)])
        with pytest.raises(SupersededError):
            hasty.call([Message(0, "insert", (hashes,), fence=early.fence)])
    assert max(found) < early.fence < late.fence


def test_a_producer_that_dies_with_the_lease_delays_others_briefly(pair, ray_cluster):
    @ray_cluster.remote(max_retries=0)
    def dies(sites):
        with sites.lease():
            os._exit(1)

    with pytest.raises(ray_cluster.exceptions.WorkerCrashedError):
        ray_cluster.get(dies.remote(pair), timeout=300)
    began = time.monotonic()
    with pair.lease():
        # Its deadline is 60 seconds; who lives holds it for as long as he needs: the call ends in vain after the time
        # of a lease, which this one outlasts.
        assert time.monotonic() - began < 30
        assert pair.of_lease(60, "take")[0] == 0


def test_fences_ascend_when_the_actor_of_the_lease_dies(pair, ray_cluster):
    with pair.lease() as before:
        ray_cluster.kill(pair._handles[LEASE_ACTOR], no_restart=False)
    with pair.lease() as after:
        assert after.fence > before.fence


def for_ever(call):
    while True:
        call()


def test_a_consumer_that_leaves_ends_no_site_and_calls_without_sites_raise(pair):
    like, keys = lately.BloomFilter(10_000, fpr=1e-9), np.arange(1000)
    with SlicedFilter("vertical", 2, like, sites="ray", name="shared", deadline=60) as made:
        for new in np.split(keys, 2):
            # By name, and pickled: each leaves its block, and the others go on.
            with SlicedFilter.connect("shared", deadline=60) as found:
                assert not found.duplicated(new).any()
            with pytest.raises(RuntimeError, match="this filter is closed"):
                found.duplicated(new)
            with pickle.loads(pickle.dumps(made)) as pickled:
                assert pickled.duplicated(new).all()
        assert made.duplicated(keys).all()
        left = made.handle()
    began = time.monotonic()
    for call in (left.duplicated, left.query):
        with pytest.raises(RuntimeError, match=r"is gone, and with it the filter|the sites are closed"):
            call(keys)
    # Ray ends actors with a delay.
    for call in (found.sites.status, lambda: found.sites.lease().__enter__()):
        with pytest.raises(RuntimeError, match="is gone, and with it the filter"):
            for_ever(call)
    # Not one of them has waited for a deadline.
    assert time.monotonic() - began < 60


def test_without_ray_the_error_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'ray\[data\]'"):
        RaySites([print])


def test_sites_of_a_lost_node_come_back_on_another():
    script = ROOT / "benchmarks" / "lost_node.py"
    # A node is taken for lost after 5 seconds of silence, not Ray's 15.
    hasty = os.environ | {"RAY_health_check_period_ms": "1000"}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, env=hasty)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 of 10000 keys missed" in done.stdout
