"""A process that has the lock of a shared filter is stopped, or the file is moved: calls return, or name the cause."""

import errno
import os
import pickle
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

import lately
from own_process import run

# Seconds after which a handle looks again where its path leads.
CHECKED = 0.12
# Calls wait 10 ms here; a test allows many times more, since it does not measure time.
STOPPED = """
    import fcntl
    from support.stopped import stop_with_the_lock
    path = sys.argv[1]
    f = lately.open(path, shared=True, timeout="10ms")
    keys = np.arange(400_000)
    writer = os.fork()
    if writer == 0:
        while True:
            f.insert(keys)
            f.duplicated(keys[:100])
            f.seen(1)

    def waits_in_vain(call):
        try:
            call()
        except TimeoutError as error:
            assert f"process {writer} has held the lock" in str(error) and path in str(error), error
        else:
            raise AssertionError("the lock is held")
"""


def stopped(code, path, seconds=120):
    """Run `code` after `STOPPED`, in a process of its own; the writer ends with it."""
    end = "\n    os.kill(writer, signal.SIGKILL)\n    os.waitpid(writer, 0)\n"
    return run(STOPPED + code + end, path, seconds=seconds)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "f.lately"
    lately.GuardedEpochBloomFilter(100_000, 0.001).save(path)
    return path


def test_a_call_names_the_stopped_process_that_has_the_lock(path):
    stopped(
        """
    for _ in range(5):
        stop_with_the_lock(writer, path)
        for call in (lambda: f.add("a"), lambda: f.seen("a"), lambda: f.insert(keys), lambda: f.duplicated(keys),
                     lambda: f.insert(keys, threads=2), lambda: f.duplicated(keys, threads=2)):
            waits_in_vain(call)
        # These need no lock.
        assert not f.query(["a"]).any() and "a" not in f
        copies = [f.copy(), lately.open(path), lately.open(path, shared=True), lately.from_bytes(f.to_bytes())]
        f.save(path + ".copy")
        assert all(copy.inserted == f.inserted for copy in (*copies, lately.open(path + ".copy")))
        os.kill(writer, signal.SIGCONT)
    """,
        path,
    )


def test_the_holder_is_named_while_other_processes_take_and_release_locks(path):
    """The system lists locks in pieces, and each that is released moves the others up."""
    stopped(
        """
    stop_with_the_lock(writer, path)
    def lock_and_unlock():
        files = [open(f"{path}.{os.getpid()}.{i}", "w") for i in range(30)]
        while True:
            for how in (fcntl.LOCK_EX, fcntl.LOCK_UN):
                for file in files:
                    fcntl.flock(file, how)
    others = []
    for _ in range(3):
        others.append(os.fork())
        if others[-1] == 0:
            lock_and_unlock()
    f = lately.open(path, shared=True, timeout="1ms")
    for i in range(500):
        waits_in_vain(lambda: f.add(i))
    for other in others:
        os.kill(other, signal.SIGKILL)
        os.waitpid(other, 0)
    """,
        path,
    )


def test_threads_query_and_fork_while_another_thread_waits_for_a_stopped_process(path):
    stopped(
        """
    f = lately.open(path, shared=True, timeout="1h")
    private = f.copy()
    stop_with_the_lock(writer, path)
    waiting = threading.Thread(target=f.insert, args=(np.arange(100),))
    waiting.start()
    time.sleep(0.05)
    for _ in range(20):
        f.query(keys[:10_000])
        private.insert(keys[:10_000])
        private.query(keys[:10_000])
        child = os.fork()
        if child == 0:
            os._exit(int(0 not in f and 100 in private))
        assert os.waitpid(child, 0)[1] in (0, 256)
    assert waiting.is_alive()
    os.kill(writer, signal.SIGCONT)
    waiting.join()
    """,
        path,
    )


def test_a_wait_ends_by_a_signal(path):
    stopped(
        """
    f = lately.open(path, shared=True, timeout="1h")
    stop_with_the_lock(writer, path)

    def wake(*_):
        raise InterruptedError("woken")

    signal.signal(signal.SIGALRM, wake)
    for call in (lambda: f.add("a"), lambda: f.insert(keys)):
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            call()
        except InterruptedError:
            continue
        raise AssertionError("the lock is held")
    """,
        path,
    )


def test_answers_before_a_deadline_are_with_its_error(path):
    lines = stopped(
        """
    f = lately.open(path, shared=True, timeout="200ms")
    os.kill(writer, signal.SIGKILL)
    os.waitpid(writer, 0)
    started, held = os.pipe()
    keys = np.arange(1 << 40, (1 << 40) + 16_000_000)
    thread_error = []

    def work():
        try:
            f.duplicated(keys)
        except TimeoutError as error:
            thread_error.append(error)

    before = f.inserted
    thread = threading.Thread(target=work)
    thread.start()
    while f.inserted < before + 100_000:
        time.sleep(0.001)
    import fcntl
    with open(path, "rb") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                pass
        thread.join()
        done = len(thread_error[0].answers)
        print(done == f.inserted - before, 0 < done < len(keys), f"process {os.getpid()} has" in str(thread_error[0]))
    writer = os.fork()
    if writer == 0:
        time.sleep(100)
    """,
        path,
    )
    assert lines == ["True True True"]


def test_a_process_that_opens_the_file_all_the_while_delays_no_writer(path):
    code = "import sys, lately\nwhile True: lately.open(sys.argv[1]); lately.open(sys.argv[1], shared=True)"
    lately.open(path, shared=True)
    opening = [subprocess.Popen([sys.executable, "-c", code, path]) for _ in range(3)]
    try:
        f = lately.open(path, shared=True, timeout="20s")
        for i in range(300):
            f.insert(range(1000 * i, 1000 * i + 1000))
            assert f.seen(1000 * i)
    finally:
        for one in opening:
            one.kill()
            one.wait()


def test_a_user_who_may_not_write_a_shared_file_may_not_read_it(tmp_path):
    for mode, expected in ((0o644, 0o600), (0o664, 0o660), (0o600, 0o600), (0o666, 0o666)):
        path = tmp_path / f"{mode:o}.lately"
        lately.AgePartitionedBloomFilter(1000, 0.01).save(path)
        path.chmod(mode)
        lately.open(path, shared=True)
        assert path.stat().st_mode & 0o777 == expected


def test_a_deadline_is_a_span_and_travels_with_a_pickle(path):
    for wrong in (5, "5", "-1s", None.__class__):
        with pytest.raises((TypeError, ValueError), match="timeout"):
            lately.open(path, shared=True, timeout=wrong)
    f = lately.open(path, shared=True, timeout="200ms")
    assert b"lately" in pickle.dumps(f)
    assert f.__reduce_ex__(5)[1][1] == 200_000_000


MOVES = {
    "saved over": lambda path: lately.GuardedEpochBloomFilter(1000, 0.01).save(path),
    "replaced where a backup has a hard link": lambda path: (
        os.link(path, f"{path}.backup"),
        lately.GuardedEpochBloomFilter(1000, 0.01).save(path),
    ),
    "moved, and made anew": lambda path: (
        path.rename(f"{path}.1"),
        lately.GuardedEpochBloomFilter(1000, 0.01).save(path),
    ),
    "replaced by a copy of itself": lambda path: shutil.copy2(path, path.with_name("copy")).replace(path),
    "moved": lambda path: path.rename(f"{path}.1"),
    "removed": lambda path: path.unlink(),
    "in a folder that was moved": lambda path: path.parent.rename(f"{path.parent}.1"),
    "in a folder that was moved, and made anew": lambda path: (
        path.parent.rename(f"{path.parent}.1"),
        path.parent.mkdir(),
        lately.GuardedEpochBloomFilter(1000, 0.01).save(path),
    ),
    "behind a link that leads elsewhere now": lambda path: path.symlink_to(f"{path}.other"),
}


@pytest.mark.parametrize("move", MOVES)
def test_a_handle_of_a_moved_file_raises_an_error(move, tmp_path):
    path = tmp_path / "folder" / "f.lately"
    path.parent.mkdir()
    if "link" in move and "hard" not in move:
        lately.AgePartitionedBloomFilter(1000, 0.01).save(f"{path}.one")
        lately.AgePartitionedBloomFilter(1000, 0.01).save(f"{path}.other")
        path.symlink_to(f"{path}.one")
    else:
        lately.AgePartitionedBloomFilter(1000, 0.01).save(path)
    f = lately.open(path, shared=True)
    f.insert(range(10))
    if path.is_symlink():
        path.unlink()
    MOVES[move](path)
    time.sleep(CHECKED)
    calls = (f.add, f.seen, lambda key: f.insert([key]), lambda key: f.duplicated(range(1000)), lambda key: f.copy())
    queries = (lambda key: f.query([key]), lambda key: f.query(range(1000)), lambda key: key in f)
    for call in (*calls, *queries):
        with pytest.raises(OSError, match="replaced, moved or removed: open it again") as caught:
            call(1)
        assert (caught.value.errno, caught.value.filename) == (errno.ESTALE, str(path))


def test_a_file_with_a_hard_link_stays_one(path):
    f = lately.open(path, shared=True)
    os.link(path, f"{path}.backup")
    f.add("a")
    assert "a" in lately.open(f"{path}.backup", shared=True)
    time.sleep(CHECKED)
    assert "a" in f


def test_a_file_that_is_moved_and_put_back_stays_one(path):
    f = lately.open(path, shared=True)
    path.rename(f"{path}.1")
    with pytest.raises(OSError, match="replaced, moved or removed"):
        f.add("a")
    path.with_name(f"{path.name}.1").rename(path)
    time.sleep(CHECKED)
    assert not f.seen("a")
    assert "a" in lately.open(path, shared=True)


@pytest.mark.parametrize("copies", [20, pytest.param(400, marks=pytest.mark.campaign)])
def test_a_copy_by_cp_while_the_file_is_written_misses_no_key_or_is_rejected(copies, tmp_path):
    window = 200_000
    path, copy = tmp_path / "f.lately", tmp_path / "copy.lately"
    lately.GuardedEpochBloomFilter(window, 0.001).save(path)
    reader = lately.open(path, shared=True)
    code = """if True:
        import sys, lately, numpy as np
        f, i = lately.open(sys.argv[1], shared=True), 0
        while True:
            f.insert(np.arange(i, i + 5000))
            i += 5000
    """

    def slowly(path, copy):
        with path.open("rb") as old, copy.open("wb") as new:
            new.write(old.read(100_000))
            before = reader.inserted
            while reader.inserted == before:
                time.sleep(0.001)
            new.write(old.read())

    writer = subprocess.Popen([sys.executable, "-c", code, path])
    try:
        refused = 0
        while reader.inserted < 2 * window:
            time.sleep(0.01)
        for _ in range(copies):
            for copied in (shutil.copyfile, slowly):
                copied(path, copy)
                for shared in (False, True):
                    try:
                        f = lately.open(copy, shared=shared)
                    except lately.FormatError:
                        refused += 1
                    else:
                        assert f.query(np.arange(f.inserted - window, f.inserted - 1)).all()
            # The documented way needs no luck. The last counted key may be the one that the writer is inserting.
            lately.open(path).save(copy)
            f = lately.open(copy)
            assert f.query(np.arange(f.inserted - window, f.inserted - 1)).all()
    finally:
        writer.kill()
        writer.wait()
    assert refused >= 2 * copies, "a copy is older in front than at its end"
    # The file itself is whole.
    for shared in (False, True):
        assert lately.open(path, shared=shared).inserted == reader.inserted
