"""Sites move from host to host while producers go on: each key is told new once, whoever dies meanwhile."""

import threading
import time
import warnings
from functools import partial

import numpy as np
import pytest

import lately
from lately.distributed import FailedSitesWarning, SlicedFilter
from lately.distributed._sites import host as _host
from lately.distributed._sites.host import Host
from lately.distributed._sites.interface import Message
from lately.distributed._sites.layout import Layout
from lately.distributed._sites.memo import Ticket
from lately.distributed._sites.site import CheckpointError, MovedError
from support.hosts import LocalHosts
from support.sliced import every_kind, timers

KINDS = {
    "horizontal": {"kind": "horizontal", "slices": 16},
    "vertical": {"kind": "vertical", "slices": 8},
    "h-v": {"kind": "diced", "slices": (4, 2), "dice": "h-v"},
    "v-h": {"kind": "diced", "slices": (2, 4), "dice": "v-h"},
}
any_kind = pytest.mark.parametrize("shape", KINDS.values(), ids=KINDS)
KEYS, BATCH = 10_000, 100


def made(shape, hosts=4, **more):
    like = lately.BloomFilter(100_000, 1e-9)
    return SlicedFilter(**shape, filter=like, sites=partial(LocalHosts, hosts=hosts), **more)


def elsewhere(f):
    """A producer with a layout of its own, as in another process."""
    return SlicedFilter.connect(f.sites.another())


class Stream:
    """Two producers that send the same keys, in other orders, until all are sent; each sends some batches twice."""

    def __init__(self, f):
        self.new = np.zeros((2, KEYS), dtype=int)
        self.sent, self.errors = [0, 0], []
        self.threads = [threading.Thread(target=self.produce, args=(i, elsewhere(f))) for i in range(2)]

    def produce(self, i, f):
        try:
            keys = np.random.default_rng(i).permutation(KEYS)
            for number, batch in enumerate(np.split(keys, KEYS // BATCH), 1):
                seen = f.duplicated(batch, number=number)
                if number % 3 == 0:
                    assert (f.duplicated(batch, number=number) == seen).all()
                self.new[i, batch[~seen]] += 1
                self.sent[i] += len(batch)
        except BaseException as error:
            self.errors.append(error)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *failed):
        for thread in self.threads:
            thread.join(120)
        assert self.errors == []
        assert self.sent == [KEYS, KEYS]

    def reach(self, share):
        """Wait until so much is sent."""
        until = time.monotonic() + 120
        while sum(self.sent) < 2 * KEYS * share:
            assert time.monotonic() < until
            assert not self.errors
            time.sleep(0.001)


@any_kind
@pytest.mark.parametrize("interval", [None, 0, 3600])
def test_four_hosts_become_eight_and_three_under_a_stream_of_two_producers(shape, interval, tmp_path):
    kept = {} if interval is None else {"checkpoint": tmp_path, "interval": interval}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with made(shape, **kept) as f, Stream(f) as stream:
            for share, hosts in ((0.2, 8), (0.5, 3), (0.7, 5)):
                stream.reach(share)
                f.resize(hosts)
                held = np.bincount(f.sites._ledger.latest().places)
                assert np.ptp(held[held > 0]) <= 1
                assert np.count_nonzero(held) == hosts
        # Of each key one producer was told once that it is new.
        assert (stream.new.sum(axis=0) == 1).all()
    assert f.failures == f.restarts == 0


@any_kind
def test_who_knows_only_the_old_layout_finds_its_sites_and_gets_its_answers_again(shape):
    with made(shape) as f:
        late, gone = elsewhere(f), elsewhere(f)
        keys = np.arange(5000)
        assert not late.duplicated(keys, number=1).any()
        f.resize(8)
        f.resize(2)
        # Most of its hosts are no more.
        assert not late.duplicated(keys, number=1).any()
        assert late.duplicated(keys).all()
        assert gone.query(keys).all()
        assert (late.failures, late.restarts) == (0, 0)


DYING = {
    "source before it gives": ("give", 1),
    "source before it arrives": ("take", 1),
    "source before it is put down": ("put", 1),
    "source when it is put down": ("settle", 1),
    "target before it gives": ("give", 2),
    "target before it arrives": ("take", 2),
    "target before it is put down": ("put", 2),
    "target when it is put down": ("settle", 2),
}


@pytest.mark.parametrize(("step", "who"), DYING.values(), ids=DYING)
@any_kind
def test_a_host_that_dies_while_a_site_moves_loses_nothing_that_is_saved(shape, step, who, tmp_path):
    with made(shape, hosts=2, checkpoint=tmp_path, interval=0) as f:
        other, keys = elsewhere(f), np.arange(3000)
        assert not other.duplicated(keys[:1000], number=1).any()
        sites = f.sites
        sites.before[step] = lambda *told: sites.crash(told[who])
        f.resize(4)
        assert not sites.before
        assert not other.duplicated(keys[:1000], number=1).any()
        assert not other.duplicated(keys[1000:2000]).any()
        assert other.duplicated(keys[:2000]).all()
        assert not other.duplicated(keys[2000:]).any()
        assert (np.bincount(sites._ledger.latest().places) == len(sites) // 4).all()
        assert (other.failures, other.restarts) == (0, 0)


@pytest.mark.parametrize(("step", "who"), DYING.values(), ids=DYING)
def test_a_host_that_dies_with_what_is_not_saved_is_told_of_and_loses_no_new_key(step, who):
    """Without checkpoints: what the host had is new once more, and nothing else."""
    with made(KINDS["horizontal"], hosts=2) as f:
        other, keys = elsewhere(f), np.arange(4000)
        other.insert(keys[:2000])
        sites = f.sites
        sites.before[step] = lambda *told: sites.crash(told[who])
        f.resize(4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seen = other.duplicated(keys)
        assert not seen[2000:].any()
        # What a target has not begun with is still at the source, which holds other sites too.
        assert seen[:2000].all() == (who == 2 and step != "settle")
        assert (other.restarts > 0) == (not seen[:2000].all())
        assert other.duplicated(keys).all()


class StoppedError(Exception):
    """Whoever moves sites stops here."""


def stop(*_):
    raise StoppedError


@any_kind
@pytest.mark.parametrize("step", ["give", "take", "put", "settle"])
@pytest.mark.parametrize("interval", [None, 0, 3600])
@pytest.mark.parametrize("told", [True, False])
def test_who_moves_sites_may_die_and_another_goes_on(shape, step, interval, told, tmp_path, monkeypatch):
    """The site that was on its way is taken back after the lease, or at once if its host is told."""
    monkeypatch.setattr(_host, "LEASE", 60.0 if told else 0.05)
    monkeypatch.setattr(_host.Host.wait, "__defaults__", (_host.LEASE,))
    kept = {} if interval is None else {"checkpoint": tmp_path, "interval": interval}
    with made(shape, hosts=2, **kept) as f:
        other, keys = elsewhere(f), np.arange(3000)
        assert not other.duplicated(keys[:1000], number=1).any()
        f.sites.before[step] = stop
        if not told:
            monkeypatch.setattr(LocalHosts, "_keep", stop)
        with pytest.raises(StoppedError):
            f.resize(4)
        monkeypatch.undo()
        assert not other.duplicated(keys[:1000], number=1).any()
        assert not other.duplicated(keys[1000:2000]).any()
        other.sites.resize(4)
        assert f.duplicated(keys[:2000]).all()
        assert not f.duplicated(keys[2000:]).any()
        assert (np.bincount(f.sites._ledger.latest().places) == len(f.sites) // 4).all()
        assert f.restarts == other.restarts == 0


def test_of_two_who_move_sites_at_the_same_time_the_later_has_what_has_come_meanwhile():
    """The first had taken a copy, and is slow; it is not believed."""
    with made(KINDS["horizontal"], hosts=1) as f:
        f.insert(np.arange(1000))
        second = f.sites.another()

        def meanwhile(site, source, to):
            # It is taken back, and goes on, and then another moves it.
            second._hosts[source].wait(site, 0.0)
            f.insert(np.arange(1000, 2000))
            second._spread(second._ledger.latest().hosts)
            f.insert(np.arange(2000, 3000))

        for step in ("take", "put"):
            f.sites.before[step] = meanwhile
            f.resize(2 if step == "take" else 4)
            assert f.query(np.arange(3000)).all()
            assert f.restarts == 0
            second.resize(1)
            assert f.query(np.arange(3000)).all()


def test_who_is_slow_to_put_down_a_move_does_not_once_the_site_is_taken_back():
    with made(KINDS["horizontal"], hosts=1) as f:
        f.insert(np.arange(1000))

        def meanwhile(site, source, to):
            f.sites._keep(site, source)
            f.insert(np.arange(1000, 2000))

        f.sites.before["put"] = meanwhile
        f.resize(2)
        assert f.query(np.arange(2000)).all()


def test_what_arrives_late_replaces_nothing():
    with made(KINDS["horizontal"], hosts=2) as f:
        f.insert(np.arange(1000))
        site, source, to = 0, 0, 1
        sites, version = f.sites, f.sites._ledger.latest().version
        old = sites._hosts[source].give(site)
        sites._keep(site, source)
        f.insert(np.arange(1000, 2000))
        assert sites._move(sites._ledger.latest(), [(site, to)])
        # Of a move that was given up; the site is here by now, was given and taken back, and leaves again.
        for _ in range(2):
            sites._hosts[to].take(site, version, old)
            sites._keep(site, to)
            assert f.query(np.arange(2000)).all()
            data = sites._hosts[to].give(site)
        sites._hosts[to].take(site, version, old)
        sites._hosts[source].take(site, sites._ledger.latest().version, data)
        sites._hosts[source].take(site, version, old)
        assert sites._ledger.put(sites._ledger.latest().moved((site, source)))
        # Nor does one forget by an old order what has come back.
        sites._hosts[source].forget(site)
        assert f.query(np.arange(2000)).all()
        assert f.restarts == 0


def test_a_site_that_cannot_save_stays_where_it_is(tmp_path):
    with made(KINDS["horizontal"], hosts=1, checkpoint=tmp_path, interval=3600) as f:
        f.insert(np.arange(1000))
        first = f.sites._hosts[0]._sites[8]
        write, first._kept._store.write = first._kept._store.write, stop
        with pytest.raises(CheckpointError):
            f.resize(2)
        assert f.query(np.arange(1000)).all()
        first._kept._store.write = write
        f.resize(2)
        assert f.query(np.arange(1000)).all()


def test_an_old_turn_is_refused_where_a_site_has_moved():
    """A producer that has lost its turn is not heard at the new host either."""
    with made(KINDS["vertical"], hosts=1) as f:
        f.insert(np.arange(100))
        f.insert(np.arange(100))
        f.resize(2)
        message = Message(
            7, "touch", (np.arange(3, dtype=np.uint32),), {"before": 0, "now": 0}, Ticket("p", 1, None), 1
        )
        with pytest.raises(RuntimeError, match="turn 1 is over: 2 has begun"):
            f.sites.call([message])


def test_a_site_on_its_way_is_waited_for_no_longer_than_the_deadline(monkeypatch):
    with made(KINDS["horizontal"], hosts=2, on_failure="duplicate") as f:
        monkeypatch.setattr(LocalHosts, "_patience", 0.05)
        f.sites._hosts[0].give(0)
        with pytest.warns(FailedSitesWarning, match=r"site 0 does not answer \(it is being moved\)"):
            f.duplicated(np.arange(100))
        assert 0 < f.unanswered.sum() < 50
        f.sites._keep(0, 0)
        assert not f.duplicated(np.arange(100, 200)).any()
        assert not f.unanswered.any()


def test_a_host_whose_site_cannot_start_says_so_and_tries_again(tmp_path):
    f = made(KINDS["horizontal"], hosts=1, checkpoint=tmp_path, interval=0)
    f.insert(np.arange(100))
    f.close()
    (path,) = (path for path in tmp_path.iterdir() if path.name == "site-3-of-16")
    kept = path.read_bytes()
    path.write_bytes(b"not what it should be")
    host = Host(0, f.sites._makers, f.sites._ledger)
    message = Message(3, "query", (lately.hash_keys(["a"]),)).plain()
    assert "site-3-of-16 is no site's, or one's of an earlier version" in host.call([(3, [message])])[0]["error"][1]
    with pytest.raises(ValueError, match="no site's, or one's of an earlier version"):
        host.status([3])
    path.write_bytes(kept)
    assert host.call([(3, [message])])[0]["answers"][0].tolist() == [False]
    host.close()


def test_who_had_found_a_site_before_it_left_is_sent_after_it():
    with made(KINDS["horizontal"], hosts=1) as f:
        found = f.sites._hosts[0].site(0)
        f.sites._hosts[0].give(0)
        for method in ("fill", "insert"):
            with pytest.raises(MovedError, match="has left"):
                found.call(method, (lately.hash_keys(["a"]),) * (method == "insert"), {})


def test_sites_of_different_hosts_move_side_by_side_and_a_host_gives_or_takes_one_at_a_time():
    busy, most, lock, full = set(), [], threading.Lock(), threading.Barrier(4)

    class Watched(LocalHosts):
        def _hand(self, site, source, to, version):
            with lock:
                assert busy.isdisjoint((source, to))
                busy.update((source, to))
            # All four that have sites to give are at it.
            full.wait(60)
            super()._hand(site, source, to, version)
            with lock:
                most.append(len(busy))
                busy.difference_update((source, to))

    with SlicedFilter("horizontal", 16, timers(), sites=lambda makers: Watched(makers, 4)) as f:
        f.insert(np.arange(1000))
        f.resize(8)
        assert max(most) == 8
        assert f.query(np.arange(1000)).all()


def test_one_site_that_cannot_leave_does_not_keep_others_from_moving(monkeypatch):
    def broken():
        raise CheckpointError("the disk is full")

    with made(KINDS["horizontal"], hosts=2) as f:
        f.insert(np.arange(1000))
        stays = next(site for site, to in f.sites._layout.moves(range(4)) if to == 2)
        monkeypatch.setattr(f.sites._hosts[0]._sites[stays], "leave", broken)
        before = f.sites._layout.places
        with pytest.raises(CheckpointError, match="the disk is full"):
            f.resize(4)
        moved = [site for site, host in enumerate(f.sites._ledger.latest().places) if host != before[site]]
        assert len(moved) == 1
        assert stays not in moved
        assert f.query(np.arange(1000)).all()
        monkeypatch.undo()
        f.resize(4)
        assert f.query(np.arange(1000)).all()
        assert f.restarts == 0


def test_layouts_move_the_fewest_sites():
    rng = np.random.default_rng(2)
    layout = Layout.first(64, 4)
    assert np.bincount(layout.places).tolist() == [16] * 4
    assert len(layout.moves(range(8))) == 32
    assert layout.moves(layout.hosts) == []
    for _ in range(50):
        hosts = int(rng.integers(1, 65))
        layout = layout.grown(max(0, hosts - len(layout.hosts)))
        kept = layout.hosts[:hosts]
        fair = 64 // hosts
        moves = layout.moves(kept)
        held = np.bincount(layout.places, minlength=layout.made)[list(kept)]
        more = min(64 % hosts, int((held > fair).sum()))
        # All that is missing to a fair share, and who had more than that keeps one more where there is one to spare.
        assert len(moves) == 64 - np.minimum(held, fair).sum() - more
        layout = layout.moved(*moves)
        layout = layout.without(set(layout.hosts) - set(kept))
        assert set(layout.places) <= set(layout.hosts) == set(kept)
        assert Layout.of(layout.plain()) == layout
        held = np.bincount(layout.places)
        assert np.ptp(held[held > 0]) <= 1


@every_kind
def test_sites_of_this_process_do_not_move(shape):
    with SlicedFilter(**shape, filter=timers()) as f, pytest.raises(TypeError, match="are those of Ray"):
        f.resize(2)
    with pytest.raises(ValueError, match="actors is for sites='ray'"):
        SlicedFilter(**shape, filter=timers(), actors=2)
    with pytest.raises(ValueError, match="actors is for sites='ray'"):
        SlicedFilter(**shape, filter=timers(), actors=2, sites=partial(LocalHosts, hosts=2))


def test_what_moved_is_not_here():
    with made(KINDS["horizontal"], hosts=2) as f, pytest.raises(MovedError, match="site 0 is elsewhere"):
        f.sites._hosts[1].site(0)
