"""Bugs of our own, forks and signals: each raises an error that states what happened, and none hangs."""

import numpy as np
import pytest

import lately
from own_process import run

# -------------------------------------------------------------------------------------------------------- the last net


def test_a_panic_is_an_internal_error():
    with pytest.raises(lately.InternalError, match=r"requested by a test .* please report it") as caught:
        lately._core._fail()
    assert isinstance(caught.value, RuntimeError)


def test_a_filter_interrupted_while_written_rejects_later_calls(tmp_path):
    f = lately.AgePartitionedBloomFilter(1000, 0.01)
    f.add(1)
    copy = f.copy()
    with pytest.raises(lately.InternalError, match="requested by a test"):
        lately._core._fail(f)
    for call in (
        lambda: f.insert([1]),
        lambda: f.query([1]),
        lambda: f.add(1),
        lambda: 1 in f,
        lambda: f.posterior([1], 0.1),
        lambda: f.save(tmp_path / "f.lately"),
        f.to_bytes,
        f.copy,
        lambda: f.union(copy),
        lambda: copy.union(f),
        lambda: f.inserted,
        lambda: repr(f),
    ):
        with pytest.raises(lately.InternalError, match="failed while it wrote to this object"):
            call()
    assert list(tmp_path.iterdir()) == []
    assert 1 in copy


# ---------------------------------------------------------------------------------------------------------------- fork


def test_a_fork_while_another_thread_is_inside_does_not_hang():
    lines = run(
        """
        f = lately.AgePartitionedBloomFilter(1_000_000, 0.01)
        keys = np.arange(200_000)
        going = True
        def work(call):
            while going:
                call()
        calls = [lambda: f.duplicated(keys), lambda: f.insert(keys, threads=2)]
        threads = [threading.Thread(target=work, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        hung = 0
        for _ in range(10):
            time.sleep(0.003)
            child = os.fork()
            if child == 0:
                f.query(keys[:10]); f.add("x"); f.nbytes
                grandchild = os.fork()
                if grandchild == 0:
                    os._exit(0 if "x" in f else 1)
                os._exit(os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]))
            end = time.monotonic() + 5
            while (done := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < end:
                time.sleep(0.001)
            if done == (0, 0):
                hung += 1
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                break
            assert done[1] == 0
        going = False
        for thread in threads:
            thread.join()
        print(hung, "x" in f)
        """
    )
    assert lines == ["0 False"]


# ------------------------------------------------------------------------------------------------------------- signals

STOP = """
class Enough(Exception):
    pass

def enough(*_):
    raise Enough

# Seconds of the processor, so that a call has done some of its work, however busy the machine is.
def stop(call, after=0.05):
    signal.signal(signal.SIGPROF, enough)
    signal.setitimer(signal.ITIMER_PROF, after)
    try:
        call()
        signal.setitimer(signal.ITIMER_PROF, 0)
        return None
    except Enough as error:
        return error
"""


def test_answers_of_an_interrupted_batch_come_with_the_exception():
    lines = run(
        STOP
        + """
keys = np.arange(20_000_000) // 2
from lately._families import EVERY
for name in ("age-partitioned-line", "age-partitioned"):
    for threads in (1, 2):
        f = EVERY[name].make(5_000_000, fpr=0.001)
        whole = f.copy()
        error = stop(lambda: f.duplicated(keys, threads=threads))
        answers = error.answers
        print(0 < len(answers) < len(keys), len(answers) == f.inserted, "were inserted" in error.__notes__[0])
        print((answers == whole.duplicated(keys[:len(answers)])).all(), f.to_bytes() == whole.to_bytes())
"""
    )
    assert lines == ["True True True", "True True"] * 4


def test_a_long_call_of_hashing_handles_signals():
    lines = run(
        STOP
        + """
keys = np.broadcast_to(np.int64(1), 100_000_000)
started = time.process_time()
error = stop(lambda: lately.hash_keys(keys))
print(error is not None, time.process_time() - started < 2)
"""
    )
    assert lines == ["True True"]


def test_text_that_is_not_valid_unicode_is_an_error_wherever_it_is_passed():
    """NumPy makes strings of any memory, with numbers that are no characters."""
    text = np.frombuffer(b"\xff" * 8, "U2")[0]
    f = lately.Filter(100, 0.01)
    for call in (
        lambda: lately.Filter(text, 0.01),
        lambda: lately.Filter(100, 0.01, prefer=text),
        lambda: lately.hash_keys(["a"], missing=text),
        lambda: f.duplicated(["a"], refresh=text),
        lambda: f.posterior(["a"], text),
    ):
        with pytest.raises((TypeError, ValueError), match="must be"):
            call()
    f.add(text)
    assert text in f
