"""A node is cut off: the processes of its actors answer nothing, and their successors wait until that is certain.

`test_cut_off_node.py` cuts off a node of a real cluster.
"""

import json
import socket
import threading
import time

import pytest

pytest.importorskip("ray")

from lately.distributed._sites import incarnation
from lately.distributed._sites.errors import ReplacedError
from lately.distributed._sites.incarnation import Incarnation


class Store:
    """The key-value store of a cluster, which can be out of reach."""

    def __init__(self):
        self.kept, self.ended, self.reached, self.over, self.parked = {}, [], True, False, 0
        self.processes = 0

    def _internal_kv_put(self, key, value, overwrite):
        assert self.reached
        there = key in self.kept
        if overwrite or not there:
            self.kept[key] = value
        return there

    def _internal_kv_get(self, key):
        if self.over:
            self.parked += 1
            threading.Event().wait()
        assert self.reached
        return self.kept.get(key)

    def _internal_kv_list(self, prefix):
        self.processes += 1
        assert self.reached
        return [key.encode() for key in self.kept if key.startswith(prefix)]


@pytest.fixture
def store(monkeypatch):
    """A store, and processes that read it every hundredth of a second and rely on a reading for half a second."""
    store = Store()
    monkeypatch.setattr(incarnation, "_store", lambda: store)
    monkeypatch.setattr(incarnation, "CONFIRM", 0.01)
    monkeypatch.setattr(incarnation, "TRUST", 0.5)
    monkeypatch.setattr(incarnation.os, "_exit", store.ended.append)
    yield store
    # The threads of the processes stand still before `_exit` ends processes again.
    store.over = True
    eventually(lambda: store.parked == store.processes)


def eventually(holds):
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def refuses(process):
    try:
        process.check()
    except ReplacedError:
        return True
    return False


def test_a_process_that_does_not_reach_the_cluster_answers_nothing_until_it_does(store):
    process = Incarnation("site")
    process.check()
    store.reached = False
    eventually(lambda: refuses(process))
    store.reached = True
    eventually(lambda: not refuses(process))


def test_a_process_ends_when_it_finds_a_successor(store):
    process = Incarnation("site")
    time.sleep(0.1)
    assert process.number == 1
    assert not store.ended
    store.kept["site/2"] = b"null"
    eventually(lambda: store.ended)


@pytest.mark.parametrize("then", ["lives", "has ended", "never had a port"])
def test_a_successor_waits_until_its_predecessor_answers_nothing(store, then, monkeypatch):
    server = socket.create_server(("127.0.0.1", 0))
    first = Incarnation("site")
    if then != "never had a port":
        first.publish(server.getsockname())
        assert json.loads(store.kept["site/1"]) == list(server.getsockname())
    if then == "has ended":
        server.close()
    waits, sleep = [], time.sleep
    monkeypatch.setattr(incarnation.time, "sleep", lambda seconds: waits.append(seconds) or sleep(seconds))
    second = Incarnation("site")
    assert second.number == 2
    assert (incarnation.TRUST in waits) == (then != "has ended")
    server.close()
