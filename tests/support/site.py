"""A site's contents, stores that fail or wait, and what they hold."""

import json
import os
import threading
from collections import Counter

import numpy as np
import pytest

import lately
from lately.distributed._contents.whole_filter import WholeFilter

HASHES = lately.hash_keys(np.arange(1000))


def bloom():
    return WholeFilter(lately.BloomFilter(1000, fpr=1e-9))


class Counted:
    """Contents that count how often each key was written, and answer by chance, so that no answer comes twice alike."""

    writes = frozenset({"duplicated"})
    nbytes = 0

    def __init__(self):
        self.written = Counter()
        self.chance = np.random.default_rng(1)

    def duplicated(self, keys):
        self.written.update(keys.tolist())
        return self.chance.random(len(keys)) < 0.5

    def state(self):
        return {"keys": np.array(list(self.written)), "counts": np.array(list(self.written.values()))}

    def lost(self):
        self.chance = None

    def overfull(self):
        return None

    def repeatable(self, columns):
        return columns

    def load(self, state):
        self.written = Counter(dict(zip(state["keys"].tolist(), state["counts"].tolist(), strict=True)))


class Slow:
    """A store in memory whose writes fail or wait at the wish of a test."""

    def __init__(self):
        self.kept = {}
        self.fails = False
        self.free = threading.Event()
        self.free.set()
        self.started = threading.Event()

    def write(self, name, data):
        self.started.set()
        assert self.free.wait(20)
        if self.fails:
            raise OSError("no space left")
        self.kept[name] = data

    def append(self, name, data):
        self.write(name, self.kept.get(name, b"") + data)
        return True

    def read(self, name):
        return self.kept.get(name)

    def remove(self, name):
        self.kept.pop(name, None)

    def checkpoint(self):
        """The bytes of the latest checkpoint of the one site."""
        return self.kept[max(name for name in self.kept if name != "site")]


def holding(data):
    """A store that has this checkpoint of a site."""
    kept = Slow()
    kept.kept["site.1"] = data
    kept.kept["site"] = json.dumps({"name": "site", "run": 1, "older": [], "incarnation": 1, "whole": True}).encode()
    return kept


@pytest.fixture(autouse=True)
def unsynced(monkeypatch):
    """Write without waiting for the disk: what is not synced is lost by a machine that fails, not by a process."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


def names(folder):
    return [path.name for path in folder.iterdir()]


def duplicated(site, hashes, **options):
    return site.call("duplicated", (hashes,), {"refresh": True}, **options)
