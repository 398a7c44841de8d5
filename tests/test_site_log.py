"""A site that saves every answer appends it to a log, and is the same site again after any crash."""

import threading
import time
from contextlib import suppress

import numpy as np
import pytest

import lately
from lately.distributed._contents.cells import Part, TreeNode
from lately.distributed._contents.empty_filter import EmptyFilter
from lately.distributed._contents.whole_filter import WholeFilter
from lately.distributed._sites import checkpoints as _log
from lately.distributed._sites import site as _site
from lately.distributed._sites.errors import CheckpointError
from lately.distributed._sites.results import RequestId
from lately.distributed._sites.site import Site
from lately.distributed._sites.store import Folder
from support.site import unsynced as unsynced
from support.sliced import generations_of

TIMED = lately.AgePartitionedBloomFilter("10min", 1e-6, capacity=20_000, lateness="1min")
BLOOM = lately.BloomFilter(20_000, 1e-6)
TIMERS = lately.TimingBloomFilter("10min", 1e-4, capacity=2000, lateness="1min")

CONTENTS = {
    "whole, with times": lambda: WholeFilter(TIMED.copy()),
    "whole, by the clock": lambda: WholeFilter(TIMED.copy()),
    "whole, endless": lambda: WholeFilter(BLOOM.copy()),
    "part": lambda: Part(EmptyFilter.of(TIMERS), 1, 3),
    "node": lambda: TreeNode(EmptyFilter.of(TIMERS)),
}
every_kind = pytest.mark.parametrize("kind", CONTENTS)


class Counting(Folder):
    """A folder that counts what is written to it."""

    def __init__(self, path):
        super().__init__(path)
        self.wrote, self.appended = [], []

    def write(self, name, data):
        super().write(name, data)
        self.wrote.append(len(data))

    def append(self, name, data):
        self.appended.append(len(data))
        return super().append(name, data)


def opened(kind, folder, store=Folder):
    return Site(CONTENTS[kind](), name="site", store=store(folder), interval=0)


def messages(kind, batches=12, size=200):
    """Calls of two producers, of which some come twice, some in parts, and some twice with more keys."""
    rng = np.random.default_rng(5)
    cells = Part(EmptyFilter.of(TIMERS), 1, 3)._slice
    for i in range(batches):
        keys = lately.hash_keys(rng.integers(0, 1500, size))
        # Times step back by less than the lateness.
        times = i * 10**11 + rng.integers(0, 5 * 10**10, size)
        generations = generations_of(TIMERS, times.view("M8[ns]"), size)
        method, columns, options = {
            "whole, with times": ("duplicated", (keys, times), {"refresh": i % 3 > 0}),
            "whole, by the clock": ("duplicated", (keys,), {"refresh": i % 3 > 0}),
            "whole, endless": (
                "insert" if i % 4 == 3 else "duplicated",
                (keys,),
                {} if i % 4 == 3 else {"refresh": True},
            ),
            "part": (
                "set",
                (
                    rng.integers(0, cells.stop - cells.start, size, np.uint32),
                    rng.random(size) < 0.3,
                    (generations.max() - generations).astype(np.uint8),
                ),
                {"refresh": i % 2 == 0, "newest": int(generations.max()), "latest": int(times.max())},
            ),
            "node": ("duplicated", (keys, generations), {}),
        }[kind]
        whose, number = f"producer {i % 2}", i + 1
        places = np.arange(size)
        for chosen in [slice(0, 120), slice(60, 200), slice(0, 200)][: 1 + i % 3]:
            request = None if i % 5 == 4 else RequestId(whose, number, places[chosen], lasting=i % 2 == 1)
            yield method, tuple(column[chosen] for column in columns), options, request


def everything(site):
    """Everything that a site is, but for when it was written."""
    state = site._contents.state() | {f"results {name}": value for name, value in site._results.state().items()}
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in state.items()}


@every_kind
def test_a_site_is_the_same_after_every_crash(kind, tmp_path):
    site = opened(kind, tmp_path)
    for method, columns, options, request in messages(kind):
        answer = site.call(method, columns, options, request=request)
        before = everything(site)
        site.close(save=False)
        site = opened(kind, tmp_path)
        assert everything(site) == before
        if request is not None:
            assert (site.call(method, columns, options, request=request) == answer).all()
            assert everything(site) == before


@every_kind
def test_one_crash_at_the_end_loses_nothing(kind, tmp_path):
    site = opened(kind, tmp_path, Counting)
    for method, columns, options, request in messages(kind):
        site.call(method, columns, options, request=request)
    # One snapshot as it began, one more when it learnt to go by the clock; all else is in the log.
    assert site.status()["checkpoints"] == 1
    assert len(site._kept._store.appended) > 12
    before = everything(site)
    site.close(save=False)
    assert everything(opened(kind, tmp_path)) == before


def written(folder, kind="whole, with times"):
    """A folder with a log, its last group, and what the site was before and after that."""
    site = opened(kind, folder)
    *most, last = (message for message in messages(kind) if message[3] is None or len(message[3].index) == 120)
    for method, columns, options, request in most:
        site.call(method, columns, options, request=request)
    (path,) = folder.glob("site.*.*")
    size, before = path.stat().st_size, everything(site)
    site.call(last[0], last[1], last[2], request=last[3])
    after = everything(site)
    site.close(save=False)
    return path, size, before, after


def test_a_torn_tail_is_cut_off_wherever_it_is_torn(tmp_path):
    path, size, before, after = written(tmp_path)
    whole = path.read_bytes()
    assert len(whole) > size
    for length in [*range(size, size + 60), *np.linspace(size + 60, len(whole) - 1, 20).astype(int)]:
        for torn in (whole[:length], whole[:length] + bytes(len(whole) - length)):
            if torn == whole:
                # What was cut off were zeros.
                continue
            path.write_bytes(torn)
            assert everything(restored(tmp_path)) == before, length
    path.write_bytes(whole)
    assert everything(restored(tmp_path)) == after


def restored(folder):
    """The site of a folder, which is left as it is."""
    claim = (folder / "site").read_bytes()
    site = opened("whole, with times", folder)
    site.close(save=False)
    (folder / "site").write_bytes(claim)
    return site


def test_a_log_that_is_damaged_in_the_middle_is_rejected(tmp_path):
    path, size, *_ = written(tmp_path)
    whole = path.read_bytes()
    for place in np.linspace(0, size - 1, 30).astype(int):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(ValueError, match="site cannot be restored: the log is damaged"):
            opened("whole, with times", tmp_path)


@pytest.mark.parametrize("cut", [0, 1, 17, 200, None])
def test_a_write_that_fails_half_way_is_an_error_and_the_next_is_whole(cut, tmp_path):
    class Full(Folder):
        full = False

        def append(self, name, data):
            if not self.full:
                return super().append(name, data)
            Folder.append(self, name, data[:cut])
            raise OSError("no space left")

    site = opened("whole, endless", tmp_path, Full)

    def send(keys):
        return site.call("duplicated", (lately.hash_keys(keys),), {"refresh": True})

    send(np.arange(10))
    send(np.arange(10, 20))
    Full.full = True
    with pytest.raises(CheckpointError, match="no space left"):
        send(np.arange(20, 30))
    Full.full = False
    # A checkpoint has what the log lacks.
    assert not send(np.arange(30, 50)).any()
    before = everything(site)
    site.close(save=False)
    again = opened("whole, endless", tmp_path)
    assert everything(again) == before
    assert again.call("query", (lately.hash_keys(np.arange(50)),), {}).all()


def test_a_crash_between_a_checkpoint_and_the_end_of_its_log(tmp_path, monkeypatch):
    """What was logged before the checkpoint is in it, and is not written twice."""
    monkeypatch.setattr(_site, "LOG", 4000)

    class Crashes(Folder):
        def remove(self, name):
            raise InterruptedError("crash")

    kind = "whole, with times"
    site = opened(kind, tmp_path, Crashes)
    crashed = 0
    for method, columns, options, request in messages(kind, batches=100):
        with suppress(CheckpointError):
            site.call(method, columns, options, request=request)
        before = everything(site)
        if site._failure is not None:
            crashed += 1
            site.close(save=False)
            site = opened(kind, tmp_path, Crashes)
            assert everything(site) == before
    assert crashed


def test_logs_are_replaced_by_checkpoints_and_leave_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(_site, "LOG", 1)
    kind = "whole, with times"
    site = opened(kind, tmp_path, Counting)
    for _ in range(40):
        for method, columns, options, _ticket in messages(kind, batches=4):
            site.call(method, (columns[0], columns[1] + 2 * 10**12 * (_ + 1)), options)
    store = site._kept._store
    assert 1 < len(store.wrote) - 1 < len(store.appended)
    # A log is as large as its checkpoint at most, and a group more.
    assert len(list(tmp_path.iterdir())) <= 3
    site.close()
    assert sorted(path.name.count(".") for path in tmp_path.iterdir()) == [0, 1]


def test_the_cost_of_a_batch_does_not_depend_on_the_filter(tmp_path):
    for capacity, folder in ((10**3, tmp_path / "small"), (10**6, tmp_path / "large")):
        site = Site(WholeFilter(lately.BloomFilter(capacity, 1e-6)), name="site", store=Counting(folder), interval=0)
        for i in range(20):
            site.call("duplicated", (lately.hash_keys(np.arange(i, i + 100)),), {"refresh": True})
        store = site._kept._store
        assert len(store.appended) == 19
        assert max(store.appended) < 100 * 16 + 500
        # The claim, and the checkpoint that it began with.
        assert len(store.wrote) == 2


def test_producers_that_wait_are_saved_together(tmp_path):
    go_on = threading.Event()

    class Slow(Counting):
        def append(self, name, data):
            assert go_on.wait(60)
            return super().append(name, data)

    site = opened("whole, endless", tmp_path, Slow)
    site.call("insert", (lately.hash_keys([0]),), {})
    callers = [
        threading.Thread(target=site.call, args=("insert", (lately.hash_keys(np.arange(i, i + 10)),), {}))
        for i in range(16)
    ]
    for caller in callers:
        caller.start()
    until = time.monotonic() + 60
    while site._written < 17:
        assert time.monotonic() < until
    go_on.set()
    for caller in callers:
        caller.join()
    # One that was under way, and one for all others.
    assert len(site._kept._store.appended) <= 2
    before = everything(site)
    site.close(save=False)
    assert everything(opened("whole, endless", tmp_path)) == before


def test_a_site_that_was_replaced_answers_no_question_and_adds_nothing_to_a_log(tmp_path):
    """A producer would miss keys that only its successor has."""
    kind = "whole, endless"
    dead = opened(kind, tmp_path)
    for i in range(3):
        dead.call("insert", (lately.hash_keys([i]),), {})
    successor = opened(kind, tmp_path)
    with pytest.raises(CheckpointError, match="another site of this name has started since"):
        dead.call("insert", (lately.hash_keys(["late"]),), {})
    successor.call("insert", (lately.hash_keys([3]),), {})
    with pytest.raises(CheckpointError, match="another site of this name has started since"):
        dead.call("insert", (lately.hash_keys(["later"]),), {})
    with pytest.raises(RuntimeError, match="another site of this name has started since"):
        dead.call("query", (lately.hash_keys([3]),), {})
    before = everything(successor)
    successor.close(save=False)
    assert everything(opened(kind, tmp_path)) == before


def test_records_are_read_as_they_were_written():
    record = _log.saved("set", (np.arange(3),), {"refresh": True}, ("p", 7, np.arange(3, dtype=np.int32), False), 1.5)
    method, columns, options, request, heard = next(_log.records(_log.group([record, record])))
    assert (method, options, request[:2], heard) == ("set", {"refresh": True}, ["p", 7], 1.5)
    assert columns[0].tolist() == request[2].tolist() == [0, 1, 2]
    assert len(list(_log.records(_log.group([record, record]) + _log.group([record])))) == 3
