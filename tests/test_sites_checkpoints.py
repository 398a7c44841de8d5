"""Checkpoints of sites: they are written whole or not at all, and bad ones are rejected."""

import os
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lately
from lately.distributed._contents.whole_filter import WholeFilter
from lately.distributed._sites.checkpoints import MAGIC, group, pack, unpack
from lately.distributed._sites.errors import CheckpointError
from lately.distributed._sites.interface import Message
from lately.distributed._sites.local import LocalSites
from lately.distributed._sites.results import RequestId
from lately.distributed._sites.site import Site
from lately.distributed._sites.store import Folder, store
from support.site import HASHES, Slow, bloom, duplicated, holding, names
from support.site import unsynced as unsynced


def test_a_change_is_saved_within_the_interval_and_only_a_change(tmp_path):
    site = Site(bloom(), name="site", store=Folder(tmp_path), interval=0.02)
    time.sleep(0.1)
    assert site.status()["checkpoints"] == 0
    duplicated(site, HASHES)
    until = time.monotonic() + 10
    while site.status()["changed"]:
        assert time.monotonic() < until
        time.sleep(0.01)
    time.sleep(0.1)
    assert site.status()["checkpoints"] == 1
    assert abs(site.status()["saved"] - time.time()) < 10
    site.close()
    assert site.status()["checkpoints"] == 1


def test_no_checkpoint_after_a_kill():
    kept = Slow()
    sites = LocalSites([partial(Site, bloom(), name="of this test", store=kept, interval=0.01)])
    sites.call([Message(0, "duplicated", (HASHES,), {"refresh": True})])
    sites.kill(0)
    assert not [thread for thread in threading.enumerate() if thread.name == "checkpoints of of this test"]
    kept.kept.clear()
    time.sleep(0.1)
    assert not kept.kept


@pytest.mark.parametrize("save", [True, False])
def test_a_closed_site_takes_nothing(save):
    site = Site(bloom(), name="site")
    site.close(save=save)
    for method in ("query", "insert"):
        with pytest.raises(RuntimeError, match="site is closed"):
            site.call(method, (HASHES,), {})


def test_a_checkpoint_is_not_replaced_by_an_earlier_one():
    kept = Slow()
    site = Site(bloom(), name="site", store=kept, interval=0.01)
    kept.free.clear()
    duplicated(site, HASHES[:500])
    # The thread has taken the state of now, and is writing.
    assert kept.started.wait(10)
    duplicated(site, HASHES[500:])
    last = threading.Thread(target=site.close)
    last.start()
    time.sleep(0.1)
    kept.free.set()
    last.join(10)
    again = Site(bloom(), name="site", store=kept)
    assert again.call("query", (HASHES,), {}).all()


def test_a_late_write_of_a_site_taken_for_dead_replaces_nothing():
    """A successor has started, and saved, while the site hung in the middle of a write."""
    kept = Slow()
    dead = Site(bloom(), name="site", store=kept, interval=0)
    duplicated(dead, HASHES[:100])
    write = kept.write

    def hangs(name, data):
        kept.write = write
        successor = Site(bloom(), name="site", store=kept, interval=0)
        assert successor.call("query", (HASHES[:100],), {}).all()
        assert not duplicated(successor, HASHES[200:300]).any()
        write(name, data)

    kept.write = hangs
    with pytest.raises(CheckpointError, match="another site of this name has started since"):
        duplicated(dead, HASHES[100:200])
    last = Site(bloom(), name="site", store=kept, interval=0)
    assert last.call("query", (HASHES[:300],), {}).tolist() == [True] * 100 + [False] * 100 + [True] * 100


@pytest.mark.parametrize("interval", [0, 0.02])
def test_a_site_that_cannot_be_saved_raises_an_error_and_recovers(interval):
    kept = Slow()
    site = Site(bloom(), name="site", store=kept, interval=interval)
    kept.fails = True
    with suppress(CheckpointError):
        duplicated(site, HASHES[:10], request=RequestId("a", 1, np.arange(10)))
    until = time.monotonic() + 10
    while site.status()["failure"] is None:
        assert time.monotonic() < until
        time.sleep(0.01)
    for _ in range(2):
        with pytest.raises(CheckpointError, match="site cannot be saved: no space left"):
            duplicated(site, HASHES[10:20], request=RequestId("a", 2, np.arange(10)))
    assert site.call("query", (HASHES[:20],), {}).tolist() == [True] * 10 + [False] * 10
    kept.fails = False
    while interval and site.status()["failure"] is not None:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert not duplicated(site, HASHES[:10], request=RequestId("a", 1, np.arange(10))).any()
    assert not duplicated(site, HASHES[10:20], request=RequestId("a", 2, np.arange(10))).any()
    site.close()
    assert Site(bloom(), name="site", store=kept).call("query", (HASHES[:20],), {}).all()


@pytest.mark.parametrize("address", ["{folder}", "file://{folder}", "memory://{folder}"])
def test_stores(tmp_path, address):
    kept = store(address.format(folder=tmp_path / "a" / "b"))
    assert kept.read("site") is None
    for data in (b"one", b"two", b""):
        kept.write("site", data)
        assert kept.read("site") == data
    assert kept.read("sit") is None
    if not address.startswith("memory"):
        assert names(tmp_path / "a" / "b") == ["site"]


def test_a_write_that_fails_leaves_the_old_bytes_and_nothing_else(tmp_path, monkeypatch):
    kept = Folder(tmp_path)
    kept.write("site", b"old")
    monkeypatch.setattr(os, "fsync", lambda file: (_ for _ in ()).throw(OSError("no space left")))
    with pytest.raises(OSError, match="no space left"):
        kept.write("site", b"new")
    assert kept.read("site") == b"old"
    assert names(tmp_path) == ["site"]


def test_writes_and_appends_are_synced_and_so_is_the_folder_of_a_new_name(tmp_path, monkeypatch):
    folders = []
    monkeypatch.setattr(os, "fsync", lambda file: folders.append(stat.S_ISDIR(os.fstat(file).st_mode)))
    kept = Folder(tmp_path)
    for act, name in ((kept.write, "site"), (kept.write, "site"), (kept.append, "log"), (kept.append, "log")):
        act(name, b"data")
    assert folders == [False, True] * 3 + [False]


def test_a_crash_before_the_rename_leaves_the_old_checkpoint(tmp_path):
    address = str(tmp_path)
    site = Site(bloom(), name="site", store=store(address), interval=0)
    duplicated(site, HASHES[:10])
    crash = f"""
import os
from lately.distributed._sites.store import store
os.replace = os.rename = lambda *names: os._exit(7)
store({address!r}).write("site", b"half a checkpoint")
"""
    assert subprocess.run([sys.executable, "-c", crash], timeout=60).returncode == 7
    # Its claim, its checkpoint, and the half.
    assert len(names(tmp_path)) == 3
    again = Site(bloom(), name="site", store=store(address), interval=0)
    assert again.call("query", (HASHES[:20],), {}).tolist() == [True] * 10 + [False] * 10


def test_without_fsspec_the_error_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ImportError, match="pip install fsspec"):
        store("s3://bucket/path")


def checkpoint():
    kept = Slow()
    site = Site(WholeFilter(lately.BloomFilter(50, fpr=0.1)), name="site", store=kept, interval=0)
    duplicated(site, HASHES[:50], request=RequestId("producer", 3, np.arange(50)))
    return kept.checkpoint()


def refused(data):
    try:
        unpack(data)
    except ValueError:
        return True
    return False


def test_no_damaged_checkpoint_is_read():
    data = checkpoint()
    assert unpack(data)
    assert all(refused(data[:length]) for length in range(len(data)))
    assert all(refused(data + more) for more in (b"\0", b"x" * 100, data))
    for place in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[place] ^= 1 << bit
            assert refused(bytes(damaged)), (place, bit)


@given(st.binary(max_size=200))
def test_other_bytes_are_no_checkpoint(data):
    assert refused(data)
    assert refused(MAGIC + data)


@given(st.binary(max_size=200))
def test_bytes_with_the_right_hash_are_no_checkpoint_either(data):
    assert refused(group([data]))


def forged(change):
    state = unpack(checkpoint())
    change(state)
    return holding(pack(state))


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.pop("manifest"),
        lambda s: s.update(manifest="another"),
        lambda s: s["results"].pop("index"),
        lambda s: s["contents"].pop("filter"),
        lambda s: s["results"].update(index=s["results"]["index"][::-1]),
        lambda s: s["results"].update(marks=s["results"]["marks"][:-1]),
        lambda s: s["results"].update({"index lengths": s["results"]["index lengths"] + 1}),
        lambda s: s["results"].update({"index lengths": -s["results"]["index lengths"]}),
        lambda s: s["results"].update({"marks": s["results"]["marks"][:-1], "marks lengths": np.array([49])}),
        lambda s: s["results"].update(number=s["results"]["number"][:0]),
        lambda s: s["results"].update(producers=[[], []]),
        lambda s: s["contents"].update(filter=s["contents"]["filter"][:-1]),
        lambda s: s.update(log="first"),
        lambda s: s.update(contents=[]),
        lambda s: s.update(results=None),
        lambda s: s["results"].update(producers=7),
        lambda s: s["results"].update(index={}),
        lambda s: s["contents"].update(filter="cells"),
    ],
)
def test_an_error_about_a_checkpoint_that_does_not_fit_names_it(change):
    with pytest.raises(ValueError, match="site cannot be restored: "):
        Site(WholeFilter(lately.BloomFilter(50, fpr=0.1)), name="site", store=forged(change))
    unchanged = forged(lambda s: None)
    assert Site(WholeFilter(lately.BloomFilter(50, fpr=0.1)), name="site", store=unchanged).status()["restored"]
