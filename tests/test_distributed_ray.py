"""Sites on Ray that die, hang and come back. Every wait has its limit."""

import os
import pickle
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import lately
from lately.distributed import FailedSitesError, FailedSitesWarning, RaySites, SlicedFilter
from lately.distributed._contents.whole_filter import WholeFilter
from lately.distributed._sites import start
from lately.distributed._sites.interface import Failed, Message
from lately.distributed._sites.results import RequestId
from lately.distributed._sites.site import Site
from lately.distributed._sites.store import Folder
from support.stopped import stopped

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
    with pytest.raises(RuntimeError, match="is gone, and with it the filter"):
        for_ever(found.sites.status)
    # Not one of them has waited for a deadline.
    assert time.monotonic() - began < 60


@pytest.fixture(scope="module", params=["horizontal", "vertical"])
def sliced(request, ray_cluster, tmp_path_factory):
    """Two sites that save every answer."""
    like, folder = lately.BloomFilter(100_000, 1e-9), tmp_path_factory.mktemp("checkpoints")
    made = {"filter": like, "sites": "ray", "deadline": 60, "checkpoint": folder, "interval": 0}
    with SlicedFilter(request.param, 2, **made) as opened:
        yield opened


def test_sites_and_orderer_start_again_when_their_driver_has_ended(ray_cluster, tmp_path):
    driver = f"""
import lately, ray
ray.init(address={ray_cluster.get_runtime_context().gcs_address!r}, log_to_driver=False)
f = lately.distributed.SlicedFilter("vertical", 2, lately.BloomFilter(100_000, 1e-9), sites="ray", name="left",
                                    checkpoint={str(tmp_path)!r}, interval=0, deadline=60)
f.insert(range(100))
"""
    subprocess.run([sys.executable, "-c", driver], check=True, timeout=120)
    with SlicedFilter.connect("left", deadline=60) as f:
        for actor in (f.sites._orderer, f.sites._handles[0]):
            ray_cluster.kill(actor, no_restart=False)
            assert f.duplicated(range(100)).all()
        assert not f.duplicated(range(100, 200)).any()
        f.sites.close()


def test_a_second_driver_is_refused_while_actors_hold_the_checkpoints(ray_cluster, tmp_path, monkeypatch):
    made = {"filter": lately.BloomFilter(1000, 1e-9), "checkpoint": tmp_path, "interval": 0}
    monkeypatch.setattr(start, "ENDING", 0.1)
    with SlicedFilter("vertical", 2, sites="ray", deadline=60, **made) as first:
        assert not first.duplicated(range(100)).any()
        for where in ("ray", "local"):
            with pytest.raises(ValueError, match=r"has the sites named 'site' in .*: connect to its sites, close it"):
                SlicedFilter("vertical", 2, sites=where, **made)
        first.sites.kill(0)
        assert first.duplicated(range(100)).all()
    with SlicedFilter("vertical", 2, **made) as second:
        assert second.duplicated(range(100)).all()


@pytest.fixture
def fresh():
    """Keys that no other test has."""
    fresh.start = getattr(fresh, "start", 0) + 10**6
    return fresh.start + np.arange(2000)


def test_a_site_that_hangs_is_an_error_or_a_guess_and_neither_when_it_is_back(sliced, fresh):
    other = pickle.loads(pickle.dumps(sliced.sites))
    other.deadline = 1.0
    strict, guessing = (SlicedFilter.connect(other, on_failure=policy) for policy in ("raise", "duplicate"))
    old, new = np.split(fresh, 2)
    sliced.insert(old)
    with stopped(sliced.status()[1]["process"]):
        with pytest.raises(FailedSitesError, match=r"site 1 \(no answer within 1 s.\)") as caught:
            strict.duplicated(new)
        with pytest.warns(FailedSitesWarning, match=r"site 1 does not answer \(no answer within 1 s.\)"):
            seen = guessing.query(fresh)
        # Again they cost no deadline, and there is no second warning.
        began = time.monotonic()
        (failed,) = caught.value.failed
        assert failed == Failed(1, "no answer within 1 s.")
        assert time.time() - 60 < failed.since < time.time()
        for _ in range(20):
            with pytest.raises(FailedSitesError) as again:
                strict.duplicated(new, number=caught.value.number)
            assert (guessing.query(fresh) == seen).all()
            # It is the same outage.
            assert again.value.failed[0].since == failed.since
        assert isinstance(other.status()[1], Failed)
        assert time.monotonic() - began < 20
        assert seen[: len(old)].all()
        assert 0 < guessing.unanswered.sum() == guessing.failures / 21
    until = time.monotonic() + 60
    while isinstance(other.call([Message(1, "fill", ())])[0], Failed):
        assert time.monotonic() < until
    assert not strict.duplicated(new, number=caught.value.number).any()
    assert not guessing.query(fresh + 10_000).any()
    assert guessing.query(fresh).all()


def test_errors_are_those_of_the_site_once_the_others_have_answered(sliced, fresh):
    hashes = fresh[:3].astype(np.uint64)
    wrong, right = {
        "horizontal": (("query", (hashes, fresh[:5])), ("insert", (hashes,))),
        "vertical": (
            ("read", (hashes + 2**60,)),
            ("touch", ((hashes % 1000).astype(np.uint32),), {"before": 0, "now": 0, "latest": 0}),
        ),
    }[sliced.kind]
    written = sliced.status()[1]["keys"]
    with pytest.raises(ValueError, match=r"times for 3 keys|cell \d+ is not of this slice") as caught:
        sliced.sites.call([Message(0, *wrong), Message(1, *right)])
    assert type(caught.value) is ValueError
    assert sliced.status()[1]["keys"] == written + 3


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
