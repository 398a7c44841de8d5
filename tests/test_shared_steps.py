"""A writer to a shared filter is killed between any two instructions, or any process is stopped at any system call."""

import contextlib
import os
import signal
import sys
import threading

import numpy as np
import pytest

import lately
from own_process import small
from support import stepped
from support.layouts import CLAIMS, LAYOUTS

# In keys, or seconds: four windows after the start a generation ends. The pause opens several at once.
WINDOWS, PAUSE = (421, "420s"), 300


def full(window, fpr, capacity=0, max_ahead=None):
    """Make an aged cuckoo filter that is so full that entries move, for keys in order and a window of either kind."""
    options = {"capacity": capacity, "max_ahead": max_ahead} if capacity else {}
    shape = {"fingerprint_bits": 10, "epochs": 64, "pages": 1, "lines": 16}
    return lately.AgedCuckooFilter.from_parameters(window, **shape, **options)


FULL = "aged cuckoo, full"
STEPPED = LAYOUTS | {FULL: full}


pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes run step by step")


@pytest.mark.parametrize("call", ["insert", "seen"])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("layout", STEPPED)
def test_a_writer_is_killed_between_any_two_instructions(layout, window, call, tmp_path):
    path, copy = tmp_path / "f.lately", tmp_path / "copy.lately"
    timed = isinstance(window, str)
    length = int(window[:-1]) if timed else window
    more = {"capacity": length, "max_ahead": None} if timed else {}
    STEPPED[layout](window, 0.05, **more).save(path)
    f, keys = lately.open(path, shared=True), np.arange(10_000)
    retained = next(f.parameters[name] for name in ("l", "r", "epochs") if name in f.parameters)
    end = 4 * (length if timed else retained * -(-(length - 1) // retained))
    # The first key belongs to the old generation, one opens the next, and a pause opens several.
    before, count = (end - 1, 3) if call == "seen" else (end - 5, 8)
    f.insert(keys[:before], **{"at": keys[:before].astype(float)} if timed else {})
    batch = np.arange(before, before + count)
    at = np.where(batch > end, batch + PAUSE, batch).astype(float)
    alone = [(key, {"at": moment} if timed else {}) for key, moment in zip(batch.tolist(), at.tolist(), strict=True)]

    def work():
        if call == "seen":
            for key, options in alone:
                f.seen(key, **options)
        else:
            f.insert(batch, **{"at": at} if timed else {})

    size = path.stat().st_size

    def put(state):
        """No insertion writes to the claims."""
        copy.unlink(missing_ok=True)
        copy.write_bytes(state)
        os.truncate(copy, size)

    states, gone, fill = stepped.states(path, work, size - CLAIMS), [], f.fill
    assert len(states) > len(batch)
    put(states[0])
    written = f.parameters["k"] if "l" in f.parameters else 1
    assert np.count_nonzero(lately.open(copy).fill != fill) > written, "a generation was opened"
    for state in states:
        put(state)
        opened, ours = lately.open(copy), lately.open(copy, shared=True)
        # The writer may only stand still, and go on later: what a process does that opens the file would be a loss.
        assert copy.read_bytes() == state + bytes(CLAIMS)
        now = int(opened.latest.astype("datetime64[s]").astype(int)) if timed else opened.inserted
        # Of a window of time with both ends.
        first = max(0, now - length)
        assert before <= opened.inserted <= before + len(batch)
        for one in (opened, ours):
            assert one.query(keys[first:before]).all()
        # The next writer goes on, through a few generations.
        later = np.arange(before + len(batch), before + 200)
        ours.insert(later, **{"at": (later + PAUSE).astype(float)} if timed else {})
        now = int(ours.latest.astype("datetime64[s]").astype(int)) if timed else ours.inserted
        for one in (ours, lately.open(copy)):
            assert one.query(keys[max(0, now - length) : before]).all()
            assert one.query(later).all()
        gone += ours.query(keys[: now - length - int(f.slack)]).tolist()
    # At a rate of 5 %; a generation that was not cleared would stay whole. States have most of their bits in common.
    assert np.mean(gone) < 0.15
    assert f.query(batch).all()


def opened(path):
    return lately.open(path, shared=True, timeout="5ms")


SAVED = lately.GuardedEpochBloomFilter(20_000, 0.001).to_bytes()
# What a process does, and whether the file is shared before.
WORKS = {
    "opens a saved filter as shared": (False, opened),
    "opens a shared filter as shared": (True, opened),
    "opens a shared filter": (True, lambda path: lately.open(path)),
    "inserts many keys": (True, lambda path: opened(path).insert(np.arange(30_000))),
    "inserts few keys": (True, lambda path: [opened(path).seen(i) for i in range(3)]),
    "saves another filter over the shared one": (True, lambda path: lately.GuardedEpochBloomFilter(99, 0.1).save(path)),
    "saves the shared filter over itself": (True, lambda path: opened(path).save(path)),
    "saves the shared filter elsewhere": (True, lambda path: opened(path).save(f"{path}.copy")),
    "copies the shared filter": (True, lambda path: opened(path).copy()),
}


def forked(f):
    """Return once a child has queried and inserted."""
    child = os.fork()
    if child == 0:
        try:
            f.query([1])
            f.add(1)
        except OSError:
            pass
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def act(calls, errors):
    """Make these calls, and note their errors."""
    for call in calls:
        try:
            call()
        except OSError as error:
            errors.append(str(error))


@pytest.mark.parametrize("name", WORKS)
@small
def test_a_process_is_stopped_at_any_system_call_and_no_call_waits_longer_than_its_deadline(name, tmp_path):
    path, stops, named = tmp_path / "f.lately", 0, 0
    shared, work = WORKS[name]
    own = lately.GuardedEpochBloomFilter(1000, 0.01)
    while True:
        for file in tmp_path.iterdir():
            file.unlink()
        path.write_bytes(SAVED)  # a save would wait for the disk
        f = opened(path) if shared else own
        stops += 1
        child = stepped.stop_at(stops, lambda: work(path))
        if child is None:
            break
        calls = [
            lambda f=f: f.query(np.arange(1000)),
            lambda f=f: 5 in f,
            lambda f=f: f.insert(np.arange(100)),
            lambda f=f: f.seen(1),
            f.copy,
            f.to_bytes,
            lambda: lately.open(path, timeout="5ms"),
            lambda: opened(path).insert([1]),
            lambda f=f: f.save(tmp_path / "mine.lately"),
            lambda: own.insert([1]),
        ]
        errors: list[str] = []
        thread = threading.Thread(target=act, args=(calls, errors), daemon=True)
        thread.start()
        thread.join(60)
        assert not thread.is_alive(), stops
        forked(f)
        for error in errors:
            assert f"process {child} has held the lock" in error or "replaced, moved or removed" in error, error
            named += f"process {child} " in error
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert stops > 20
    assert (named > 0) == ("insert" in name or name == "opens a saved filter as shared")


@small
def test_a_key_that_is_acknowledged_stays_when_a_killed_process_left_the_file_half_converted(tmp_path):
    """A process was killed while it opened a saved file as shared. The next one is stopped anywhere in that step."""
    path, acknowledged, stops = tmp_path / "f.lately", 0, 0
    while True:
        for file in tmp_path.iterdir():
            file.unlink()
        path.write_bytes(SAVED)  # a save would wait for the disk
        with stepped.on_one_processor():
            killed = stepped.start(lambda: opened(path))
            while len(list(tmp_path.iterdir())) == 1:
                assert stepped.step(killed, stepped.SYSCALL)
        os.kill(killed, signal.SIGKILL)
        os.waitpid(killed, 0)
        stops, in_time = stops + 1, False
        child = stepped.stop_at(stops, lambda: opened(path))
        if child is None:
            break
        with contextlib.suppress(TimeoutError):  # the child has the lock
            opened(path).add("a")
            acknowledged += 1
            in_time = True
        while stepped.step(child, stepped.SYSCALL):
            pass
        assert [file.name for file in tmp_path.iterdir()] == ["f.lately"], stops
        assert ("a" in lately.open(path)) == in_time, stops
    assert acknowledged > 10
