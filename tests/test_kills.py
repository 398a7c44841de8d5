"""Sites, orderers and producers are killed, at every moment of a batch: no key is lost, and none is new twice.

In one process each fault comes at each call of the sites, by the table `FAULTS`. On Ray processes are killed by
SIGKILL; ``uv run pytest -m campaign -n0 -s tests/test_kills.py`` kills 40 of each kind of process, and prints counts.
"""

import itertools
import os
import signal
import threading
import time
from contextlib import nullcontext, suppress

import numpy as np
import pytest

import lately
from lately.distributed import BloomTree, FailedSitesError, FailedSitesWarning, LocalSites, SlicedFilter
from lately.distributed._sites.errors import SupersededError
from support.bloom_trees import SHAPE
from support.site import unsynced as unsynced

KEYS, TWICE = np.arange(60), np.concatenate([np.arange(60), np.arange(30)])
LIKE = lately.BloomFilter(20_000, 1e-9)
# Three sites get a message each: a fault comes before, between and after them.
SLICED = {
    "horizontal": {"kind": "horizontal", "slices": 3},
    "vertical": {"kind": "vertical", "slices": 3},
    "h-v": {"kind": "diced", "slices": (2, 2), "dice": "h-v"},
    "v-h": {"kind": "diced", "slices": (2, 2), "dice": "v-h"},
}
TREES = {
    "sparse": {"kind": "sparse", "parents": SHAPE},
    "dense": {"kind": "dense", "parents": SHAPE},
    "sparse, top down": {"kind": "sparse", "parents": SHAPE, "top_down": 1},
    "dense, top down": {"kind": "dense", "parents": SHAPE, "top_down": 1},
}


class DiesError(BaseException):
    """The process ends here."""


class Sites(LocalSites):
    """Sites of which some get the messages of call number `at`, before the fault."""

    def __init__(self, makers):
        super().__init__(makers)
        self.calls, self.at, self.delivered, self.cut, self.fault = 0, None, 0, 0, None
        # An orderer that was replaced may be in the middle of a batch.
        self._lock = nullcontext()

    def put_in_order(self, make):
        super().put_in_order(make)
        self.make = make

    def replace_orderer(self):
        if self._orderer is not None:
            self._orderer = self.make(self)

    def restart_all(self):
        for site in range(len(self)):
            self.restart(site)
        self.replace_orderer()

    def call(self, messages):
        self.calls += 1
        if self.calls - 1 == self.at:
            self.cut = len(messages)
            return super().call(messages[: self.delivered]) + self.fault(self, messages[self.delivered :])
        return super().call(messages)


def process_dies(sites, messages):
    """The process of the producer or of the orderer dies; another one has its place."""
    sites.replace_orderer()
    raise DiesError


def all_die(sites, messages):
    """All processes die, and start from what was saved."""
    sites.restart_all()
    raise DiesError


def site_dies(sites, messages):
    """A site dies, starts again from what was saved, and gets its messages then."""
    sites.restart(0)
    return sites.call(messages)


def zombie(sites, messages):
    """The orderer is replaced, and goes on when its successor has written a batch with the same keys."""
    sites.replace_orderer()
    sites.meanwhile()
    return sites.call(messages)


FAULTS = {
    "the process dies": process_dies,
    "all processes die": all_die,
    "a site dies": site_dies,
    "the orderer is a zombie": zombie,
}


def opened(name, folder):
    """A filter or tree, and what makes a producer of a name."""
    kept = {"filter": LIKE, "sites": Sites, "checkpoint": folder, "interval": 0}
    if name in TREES:
        tree = BloomTree(**TREES[name], **kept)
        return tree, lambda producer, leaf=4: tree.at(leaf, producer=producer).duplicated
    sliced = SlicedFilter(**SLICED[name], **kept)
    return sliced, lambda producer, leaf=None: sliced.handle(producer).duplicated


def grid():
    """Yield what there is: trees refresh always, and only cells that lie apart need an orderer."""
    for name, fault, refresh in itertools.product([*SLICED, *TREES], FAULTS, [True, False]):
        unordered = name in ("horizontal", "sparse", "dense")
        if (refresh or name in SLICED) and not (unordered and fault == "the orderer is a zombie"):
            yield name, fault, refresh


@pytest.mark.parametrize(("name", "fault", "refresh"), list(grid()))
def test_each_key_is_new_once_wherever_a_fault_comes(name, fault, refresh, tmp_path):
    """Before the first message of a batch, and after each one."""
    options = {} if name in TREES else {"refresh": refresh}
    at = delivered = 0
    while True:
        made, producer = opened(name, tmp_path / f"{at}.{delivered}")
        sites, new = made._exchange.sites, np.zeros(len(KEYS), dtype=int)
        producer("before")(KEYS[:10], number=1, **options)

        def send(who, leaf=4, producer=producer, new=new):
            seen = producer(who, leaf)(TWICE, number=1, **options)
            # A repeat within the batch is one.
            assert seen[len(KEYS) :].all()
            return ~seen[: len(KEYS)]

        def meanwhile(send=send, new=new):
            new += send("other", 8)

        sites.meanwhile = meanwhile
        sites.calls, sites.at, sites.delivered, sites.fault = 0, at, delivered, FAULTS[fault]
        first = None
        with suppress(DiesError, SupersededError):
            first = send("one")
        over, sites.at = sites.calls <= at, None
        if fault != "the orderer is a zombie":
            meanwhile()
        again = send("one")
        assert first is None or (again == first).all()
        assert (send("one") == again).all()
        new += again
        new[:10] += 1
        if "top down" in name and fault != "a site dies":
            # No site has a record of a tree's batch.
            assert (new >= 1).all(), (at, new)
        else:
            assert (new == 1).all(), (at, new)
        made.close()
        if over:
            break
        # After all messages of a call is before the next one's.
        at, delivered = (at, delivered + 1) if delivered < sites.cut else (at + 1, 1)
    assert at >= 1


class DiesWithRecord(Sites):
    """Sites of which the first that has a record dies, and its orderer with it."""

    down = None

    def call(self, messages):
        answers = super().call(messages)
        if self.down is None and messages and messages[0].record is not None:
            self.down = messages[0].site
            self.kill(self.down)
            self.replace_orderer()
            raise DiesError
        return answers


@pytest.mark.parametrize("refresh", [True, False])
def test_a_new_orderer_waits_for_a_site_that_may_have_the_record(refresh, tmp_path):
    with SlicedFilter("vertical", 4, LIKE, sites=DiesWithRecord, checkpoint=tmp_path, interval=0) as f:
        other = f.handle()
        with pytest.raises(DiesError):
            f.duplicated(KEYS, refresh=refresh)
        guessing = SlicedFilter.connect(f.sites, on_failure="distinct")
        with pytest.warns(FailedSitesWarning, match=f"site {f.sites.down} does not answer"):
            guessing.insert(KEYS + 1000)
        for _ in range(2):
            with pytest.raises(FailedSitesError, match=f"no answer from site {f.sites.down}"):
                other.duplicated(KEYS, refresh=refresh, number=1)
        f.sites.restart(f.sites.down)
        # The batch that was cut off comes first.
        assert other.duplicated(KEYS, refresh=refresh, number=1).all()
        assert not f.duplicated(KEYS, refresh=refresh, number=1).any()


def test_an_orderer_that_was_replaced_writes_nothing_more(tmp_path):
    with SlicedFilter("vertical", 4, LIKE, sites=Sites) as f:
        f.duplicated(KEYS)
        zombie = f.sites._orderer
        f.sites.replace_orderer()
        f.sites._orderer, successor = zombie, f.sites._orderer
        # Until the successor has announced itself there is none.
        assert f.duplicated(KEYS).all()
        f.sites._orderer = successor
        assert f.duplicated(KEYS).all()
        f.sites._orderer = zombie
        for _ in range(2):
            with pytest.raises(SupersededError, match="was replaced by"):
                f.duplicated(KEYS + 1000)
        f.sites._orderer = successor
        assert not f.duplicated(KEYS + 1000, number=f.number).any()


# --- on Ray

ON_RAY = {
    "horizontal": {"kind": "horizontal", "slices": 2},
    "vertical": {"kind": "vertical", "slices": 2},
    "h-v": {"kind": "diced", "slices": (2, 2), "dice": "h-v"},
    "v-h": {"kind": "diced", "slices": (2, 2), "dice": "v-h"},
}
BATCH = 200


class Stream:
    """Batches of several producers, each with half of the keys of the batch before, until it is stopped."""

    def __init__(self, made, ray, producers):
        self.new, self.lock, self.over = np.zeros(10**6, dtype=int), threading.Lock(), threading.Event()
        self.batches, self.errors, self.sent, self._made, self._ray = 0, [], 0, made, ray
        self._threads = [threading.Thread(target=self._send, args=(made.handle(),)) for _ in range(producers)]
        for thread in self._threads:
            thread.start()

    def batch(self):
        """Each key is sent by two batches or more, mostly of different producers at the same time."""
        with self.lock:
            first, self.sent = self.sent, self.sent + BATCH // 2
        return np.arange(first, first + BATCH)

    def answered(self, batch, seen):
        with self.lock:
            self.new[batch] += ~seen
            self.batches += 1

    def _send(self, handle):
        while not self.over.is_set():
            batch = self.batch()
            try:
                self.answered(batch, handle.duplicated(batch))
            except Exception as error:
                self.errors.append(error)
                return

    def kill_producer(self, name, delay):
        """Kill a process in the middle of a batch, which another process of its name sends again."""

        @self._ray.remote(max_restarts=0, num_cpus=0)
        class Producer:
            def process(self):
                return os.getpid()

            def send(self, f, batch):
                return f.handle(name).duplicated(batch, number=1)

        producer, batch = Producer.remote(), self.batch()
        process = self._ray.get(producer.process.remote(), timeout=120)
        producer.send.remote(self._made, batch)
        time.sleep(delay)
        os.kill(process, signal.SIGKILL)
        self.answered(batch, self._made.handle(name).duplicated(batch, number=1))

    def until(self, more):
        """Wait until this many more batches have been answered."""
        goal, end = self.batches + more, time.monotonic() + 120
        while self.batches < goal and not self.errors:
            assert time.monotonic() < end, "nothing gets through"
            time.sleep(0.02)

    def stop(self):
        self.over.set()
        for thread in self._threads:
            thread.join(300)
        assert not self.errors, self.errors
        return self.new[: self.sent + BATCH // 2]


def kills(ray, name, folder, number):
    rng = np.random.default_rng(1)
    made = {**ON_RAY[name], "filter": lately.BloomFilter(10**6, 1e-9), "sites": "ray", "deadline": 120, "interval": 0}
    victims = ["site", "producer"] + ["orderer"] * (name != "horizontal")
    with SlicedFilter(**made, checkpoint=folder) as f:
        stream = Stream(f, ray, producers=3)
        for i, victim in itertools.product(range(number), victims):
            # Between two deaths something gets through.
            stream.until(3)
            delay = float(rng.uniform(0, 0.05))
            if victim == "producer":
                stream.kill_producer(f"p{i}", delay)
            elif victim == "orderer":
                process = ray.get(f.sites._orderer.process.remote(), timeout=120)
                time.sleep(delay)
                os.kill(process, signal.SIGKILL)
            else:
                process = f.status()[int(rng.integers(len(f.sites)))]["process"]
                time.sleep(delay)
                os.kill(process, signal.SIGKILL)
        stream.until(10)
        new = stream.stop()
        assert f.query(np.arange(len(new))).all()
        assert f.restarts == f.failures == 0
    lost, twice = int((new == 0).sum()), int((new > 1).sum())
    print(f"\n{name}: {number} kills of each of {victims}, {len(new)} keys, {lost} lost, {twice} new twice")
    assert (lost, twice) == (0, 0)


def test_each_key_is_new_once_while_processes_are_killed_on_ray(ray_cluster, tmp_path):
    kills(ray_cluster, "vertical", tmp_path, 2)


@pytest.mark.campaign
@pytest.mark.parametrize("name", ON_RAY)
def test_each_key_is_new_once_while_many_processes_are_killed_on_ray(ray_cluster, name, tmp_path):
    kills(ray_cluster, name, tmp_path, 40)
