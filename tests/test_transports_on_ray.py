"""Sites on Ray fail alike whether messages travel by their ports or by calls of Ray."""

import os
import pickle
import signal
import socket
import threading
import time
from contextlib import suppress

import numpy as np
import pytest

import lately
from lately.distributed import FailedSitesError, FailedSitesWarning, RaySites, SlicedFilter
from lately.distributed._sites import port as _port
from lately.distributed._sites.actors import LEASE_ACTOR
from lately.distributed._sites.interface import Failed, Message
from lately.distributed._sites.port import Listener, key_of
from support.site import close
from support.stopped import stopped

KEYS = np.arange(2000)


# Without ports, the filter that sends more: keys, cells and what concerns the lease.
@pytest.fixture(scope="module", params=["horizontal by sockets", "vertical by sockets", "vertical by ray"])
def sliced(request, ray_cluster, tmp_path_factory):
    """Two sites that save every answer."""
    like = lately.BloomFilter(100_000, 1e-9)
    folder = tmp_path_factory.mktemp("checkpoints")

    kind, _, transport = request.param.split()

    def sites(makers):
        return RaySites(makers, deadline=60, transport=transport)

    with SlicedFilter(kind, 2, like, sites=sites, checkpoint=folder, interval=0) as made:
        yield made


@pytest.fixture
def transport(request):
    """How the messages of `sliced` travel."""
    return request.node.callspec.params["sliced"].split()[-1]


@pytest.fixture
def fresh():
    """Keys that no other test has."""
    fresh.start = getattr(fresh, "start", 0) + 10**6
    return fresh.start + KEYS


@pytest.fixture
def by_ports(monkeypatch):
    """What came back by ports, of the sites of each call; calls about the lease are not counted."""
    calls, exchange = [], _port.Links.exchange

    def counted(self, requests, end):
        answers = exchange(self, requests, end)
        if LEASE_ACTOR not in requests:
            calls.append(answers)
        return answers

    monkeypatch.setattr(_port.Links, "exchange", counted)
    return calls


def test_messages_take_the_stated_transport(sliced, transport, by_ports, fresh):
    assert not sliced.duplicated(fresh).any()
    assert sliced.duplicated(fresh).all()
    assert (len(by_ports) > 0) == (transport == "sockets")
    assert all(set(answers) == {0, 1} for answers in by_ports)
    assert all((site["port"] is not None) == (transport == "sockets") for site in sliced.status())


def test_a_site_that_dies_loses_no_key_and_reports_none_as_new_twice(sliced, fresh):
    batches = np.split(fresh, 10)
    for i, batch in enumerate(batches, 1):
        assert not sliced.duplicated(batch).any()
        if i == 5:
            os.kill(sliced.status()[1]["process"], signal.SIGKILL)
        assert not sliced.duplicated(batch, number=sliced.number).any()
    assert sliced.query(fresh).all()
    assert (sliced.failures, sliced.restarts) == (0, 0)


def test_a_site_that_dies_during_a_call_is_replaced(sliced, fresh):
    """Killed again and again by another thread; the keys are new once, and then seen."""
    over = threading.Event()

    def kill():
        for site in (0, 1):
            sliced.sites.kill(site)
            over.wait(1)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        seen = [sliced.duplicated(batch) for batch in np.split(fresh, 40)]
    finally:
        over.set()
        killer.join()
    assert not np.concatenate(seen).any()
    assert sliced.query(fresh).all()


def test_a_site_that_hangs_is_an_error_or_a_guess_and_neither_when_it_is_back(sliced, fresh):
    other = pickle.loads(pickle.dumps(sliced.sites))
    other._deadline = 1.0
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
            ("touch", ((hashes % 1000).astype(np.uint32),), {"before": 0, "now": 0}),
        ),
    }[sliced.kind]
    written = sliced.status()[1]["keys"]
    with pytest.raises(ValueError, match=r"times for 3 keys|cell \d+ is not of this slice") as caught:
        sliced.sites.call([Message(0, *wrong), Message(1, *right)])
    assert type(caught.value) is ValueError
    assert sliced.status()[1]["keys"] == written + 3


def broken(request):
    raise SystemExit


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("how", ["closed", "another's", "lost"])
def test_where_a_port_fails_ray_carries_the_message(sliced, transport, by_ports, fresh, how):
    if transport == "ray":
        # There are no ports.
        return
    handle = sliced.handle()
    sites = handle._exchange.sites
    port = sites._ports[0]
    with socket.create_server(("127.0.0.1", 0)) as server:
        unused = server.getsockname()
    key = key_of(sites._spec.secret, how == "another's")
    listener = Listener("127.0.0.1", key, broken if how == "lost" else print)
    sites._ports[0] = unused if how == "closed" else listener.address
    assert not handle.duplicated(fresh).any()
    assert handle.duplicated(fresh).all()
    assert [type(call[0]).__name__ for call in by_ports[:1]] == ["LostError" if how == "lost" else "UnreachableError"]
    # Ray has returned the right one.
    assert sites._ports[0] == tuple(port)
    assert not isinstance(by_ports[-1][0], Exception)
    close(listener)


def test_a_producer_keeps_its_lease_when_the_node_of_the_lease_falls_silent(sliced, transport):
    """Renewals look for the actor elsewhere before another producer gets the lease, for any deadline."""
    if transport == "ray" or sliced.kind == "horizontal":
        # There are no ports, or nothing is written under the lease.
        return
    sites = sliced.sites
    other, over = pickle.loads(pickle.dumps(sites)), threading.Event()
    silent = Listener("127.0.0.1", key_of(sites._spec.secret, LEASE_ACTOR), lambda request: over.wait(60))
    with sites.lease():
        sites._ports[LEASE_ACTOR] = silent.address
        assert other.of_lease(60, "take")[0] == 0
    over.set()
    close(silent)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("how", ["closed", "another's", "lost"])
def test_where_the_port_of_the_lease_fails_ray_grants_it(sliced, transport, how):
    sites = sliced.handle()._exchange.sites
    with sites.lease() as lease:
        fences = [lease.fence]
    with socket.create_server(("127.0.0.1", 0)) as server:
        unused = server.getsockname()
    key = key_of(sites._spec.secret, 1 if how == "another's" else LEASE_ACTOR)
    listener = Listener("127.0.0.1", key, broken if how == "lost" else print)
    ports, wrong = sites._ports, unused if how == "closed" else listener.address
    port, ports[LEASE_ACTOR] = ports[LEASE_ACTOR], wrong
    for _ in range(3):
        with sites.lease(("p", 1)) as lease:
            assert lease.left is None
            lease.hold(("p", 2))
            fences.append(lease.fence)
    assert fences == sorted(set(fences))
    assert ports[LEASE_ACTOR] == port
    assert (port is None) == (transport == "ray")
    # One that cannot be reached is not tried again; a connection may be lost for other reasons.
    assert (wrong in sites._refused) == (how != "lost")
    for _ in range(2):
        # By Ray, and then by the port.
        with suppress(RuntimeError), sites.lease() as lease:
            lease.hold(("p", 3))
            raise RuntimeError
    with sites.lease() as lease:
        assert tuple(lease.left) == ("p", 3)
    close(listener)
