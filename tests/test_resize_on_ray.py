"""Four actors become eight, and two, on a stream that two processes send: each key is told new once."""

import threading
import time

import numpy as np
import pytest

import lately
from lately.distributed import RaySites, SlicedFilter
from lately.distributed._sites.layout import Layout
from lately.distributed._sites.ledger import RayLedger

BATCH = 200
# Room for all that the producers send while sites move, on a machine that is as busy as it may be.
LIKE = lately.BloomFilter(2_000_000, 1e-9)


@pytest.fixture
def producers(ray_cluster):
    """Two processes, each with the same batches, in other orders of their keys; each third it sends twice."""

    @ray_cluster.remote(max_concurrency=2, num_cpus=0.1)
    class Producer:
        def __init__(self, seed):
            self.rng, self.sent, self.last = np.random.default_rng(seed), 0, 10**6

        def produce(self, f):
            new, slowest = [], 0.0
            while self.sent < self.last:
                batch = self.sent * BATCH + self.rng.permutation(BATCH)
                began = time.monotonic()
                seen = f.duplicated(batch, number=self.sent + 1)
                slowest = max(slowest, time.monotonic() - began)
                if self.sent % 3 == 0:
                    assert (f.duplicated(batch, number=self.sent + 1) == seen).all()
                new.append(batch[~seen])
                self.sent += 1
            return np.concatenate(new), slowest, f.failures, f.restarts

        def end(self, last):
            """Tell how many batches there are in all, and how many are sent."""
            self.last = last
            return self.sent

    made = [Producer.remote(seed) for seed in range(2)]
    yield made
    for producer in made:
        ray_cluster.kill(producer)


# A new actor takes three seconds of a core to start, so that one kind stands for both, with kills in the campaign.
@pytest.mark.parametrize("dies", [False, pytest.param(True, marks=pytest.mark.campaign)])
@pytest.mark.parametrize("kind", ["horizontal", pytest.param("vertical", marks=pytest.mark.campaign)])
def test_four_actors_become_eight_and_two(ray_cluster, producers, kind, dies, tmp_path):
    def sent(last=10**6):
        return max(ray_cluster.get([producer.end.remote(last) for producer in producers], timeout=120))

    def reach(more):
        until = time.monotonic() + 120
        while sent() < more:
            assert time.monotonic() < until
            time.sleep(0.01)

    def processes():
        return len({status["process"] for status in f.status()})

    kept = {"checkpoint": tmp_path, "interval": 0} if dies else {}
    with SlicedFilter(kind, 16, LIKE, sites="ray", actors=4, deadline=120, **kept) as f:
        assert processes() == 4
        streams = [producer.produce.remote(f) for producer in producers]
        reach(20)
        # While new actors start, or while sites move.
        killers = [threading.Timer(seconds, f.sites.kill, (site,)) for site, seconds in ((15, 0.1), (3, 3), (9, 6))]
        for killer in killers if dies else ():
            killer.start()
        for actors in (8, 2):
            before, began = sent(), time.monotonic()
            f.resize(actors)
            took, meanwhile = time.monotonic() - began, sent() - before
            print(f"\n{kind}, to {actors} actors in {took:.1f} s, {meanwhile} batches meanwhile", end="")
            assert processes() == actors
            assert meanwhile > 0
            reach(before + meanwhile + 20)
        for killer in killers if dies else ():
            killer.join()
        last = sent() + 200
        sent(last)
        new, slowest, failures, restarts = zip(*ray_cluster.get(streams, timeout=300), strict=True)
        told = np.bincount(np.concatenate(new), minlength=last * BATCH)
        wrong = np.count_nonzero(told != 1)
        print(f"; {len(told)} keys, {wrong} of them not told new once; slowest batch {max(slowest):.3f} s")
        assert len(told) == last * BATCH
        assert (told == 1).all()
        assert failures == restarts == (0, 0)
        assert f.duplicated(np.arange(len(told))).all()


def test_sites_with_a_name_are_moved_by_whoever_knows_it(ray_cluster):
    keys = np.arange(1000)
    with SlicedFilter("horizontal", 4, LIKE, sites="ray", actors=1, name="elastic", deadline=120) as f:
        f.insert(keys)

        @ray_cluster.remote(num_cpus=0.1)
        def move(to):
            with SlicedFilter.connect("elastic", deadline=120) as found:
                found.resize(to)
                return len({status["process"] for status in found.status()})

        assert ray_cluster.get(move.remote(3), timeout=120) == 3
        # The task's process has ended, and the new actors have not.
        assert f.duplicated(keys).all()
        assert ray_cluster.get(move.remote(2), timeout=120) == 2
        late = RaySites.connect("elastic", deadline=120)
        assert len(late) == 4
        assert f.duplicated(keys).all()
        assert not f.restarts
    with pytest.raises(RuntimeError, match=r"closed|is gone"):
        late.status()


def test_who_moves_sites_dies_and_another_call_goes_on(ray_cluster):
    """It had put down actors that it has not started, and left a site on its way."""
    keys = np.arange(1000)
    with SlicedFilter("horizontal", 4, LIKE, sites="ray", actors=2, name="left", deadline=120) as f:
        f.insert(keys)
        sites = f.sites
        assert sites._ledger.put(sites._layout.grown(2))
        ray_cluster.get(sites._calls.handle(0).give.remote(1), timeout=60)
        f.resize(4)
        assert len({status["process"] for status in f.status()}) == 4
        assert f.duplicated(keys).all()
        assert not f.restarts


def test_a_layout_is_put_down_once(ray_cluster):
    one, other = RayLedger("once"), RayLedger("once")
    first = Layout.first(4, 2)
    assert one.latest() is None
    assert one.put(first)
    assert other.latest() == one.latest() == first
    mine, theirs = first.moved((0, 1)), first.grown(1)
    assert one.put(mine)
    assert not other.put(theirs)
    assert other.latest() == mine
    for _ in range(12):
        assert one.put(one.latest().again())
    # Whoever looks for the first time, and whoever has looked before.
    assert RayLedger("once").latest() == other.latest() == one.latest()
    assert one.latest().version == 14
    one.end()
    assert one.latest() is other.latest() is None


def test_sites_without_a_name_end_with_who_started_them_and_are_moved_by_him_alone(ray_cluster):
    with SlicedFilter("horizontal", 2, LIKE, sites="ray", actors=1, deadline=120) as f:

        @ray_cluster.remote(num_cpus=0.1)
        def move(f):
            f.resize(2)

        with pytest.raises(RuntimeError, match="only by the process that has started them"):
            ray_cluster.get(move.remote(f), timeout=120)
        for wrong, error in ((0, ValueError), (3, ValueError), ("2", TypeError)):
            with pytest.raises(error, match="actors must be"):
                f.resize(wrong)
