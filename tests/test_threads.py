"""Threads and signals in the middle of a batch: no key is lost, and the filter is that of one thread."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import lately
from own_process import run
from support.threads import together


@pytest.mark.parametrize("timed", [False, True])
def test_threads_lose_no_key(timed):
    each, batch = 40_000, 1000
    if timed:
        f = lately.AgePartitionedBloomFilter("1h", 0.01, capacity=4 * each)
    else:
        f = lately.AgePartitionedBloomFilter(4 * each, 0.01)

    def insert(start):
        for i in range(start, start + each, batch):
            f.insert(np.arange(i, i + batch))
            assert f.query(np.arange(start, i + batch)).all()
            f.fill, f.false_positive_rate(), f.copy(), repr(f)

    def add(start):
        for i in range(start, start + each // 4):
            f.add(i)
            assert i in f
        f.duplicated(np.arange(start + each // 4, start + each))

    together(*(lambda job=job, n=n: job(n * each) for n, job in enumerate((insert, add, insert, add))))
    assert f.inserted == 4 * each
    assert f.query(np.arange(4 * each)).all()


def one_by_one(f, keys):
    return [f.seen(key) for key in keys.tolist()]


def in_short_batches(f, keys):
    return np.concatenate([f.duplicated(part) for part in np.split(keys, len(keys) // 10)])


RACES = {
    "a small filter": (partial(lately.Filter, 10_000, 1e-6), one_by_one, 1, 1000),
    "a large filter": (partial(lately.Filter, 10_000_000, 1e-6), one_by_one, 1, 50),
    "an exact filter": (partial(lately.ExactFilter, 10**6), one_by_one, 300, 8),
    "short batches": (partial(lately.AgePartitionedBloomFilter, 1_000_000, 1e-9), in_short_batches, 2000, 8),
}


@pytest.mark.parametrize("name", RACES)
def test_of_threads_that_bring_the_same_keys_exactly_one_sees_each_as_new(name):
    make, bring, keys, threads = RACES[name]
    f, busy, others = make(), lately.AgePartitionedBloomFilter(100_000, 1e-9), np.arange(10**6, 10**6 + 20_000)

    def long():
        """Hold the lock, detached from the interpreter, for most of the time."""
        for _ in range(20):
            f.insert(others)
            busy.insert(others)

    beside = [long] if bring is in_short_batches else []
    answers = together(*[lambda: bring(f, np.arange(keys))] * threads, *beside)[:threads]
    assert np.sum(answers, axis=0).tolist() == [threads - 1] * keys
    assert f.inserted == keys * threads + len(beside) * 20 * len(others)
    # Keys of large filters are queried detached from the interpreter.
    assert name != "a large filter" or f.nbytes > 8 << 20


@pytest.mark.parametrize("n", [0, 1, 4096, 4097, 10 * 4096 + 1, (1 << 20) + 5000])
def test_threads_share_a_batch_and_answer_as_one(n):
    f = lately.AgePartitionedBloomFilter(100_000, 0.01)
    keys = np.random.default_rng(0).integers(0, 250_000, n)
    f.insert(np.arange(150_000))
    alone = f.query(keys)
    assert (n < 4096) or 0.3 < alone.mean() < 0.7, "an answer in the wrong place would be wrong"
    for threads in (1, 2, 3, 2**40):
        np.testing.assert_array_equal(f.query(keys, threads=threads), alone)
    with pytest.raises(TypeError, match="complex"):
        f.query([*range(n), 1j], threads=2)


def test_threads_share_moments_too():
    f = lately.AgePartitionedBloomFilter("1h", 0.01, capacity=1000)
    f.insert(range(1000), at=np.arange(1000))
    queried = np.random.default_rng(1).integers(0, 20_000, 50_001)
    alone = f.query(queried % 1000, at=queried + 1000)
    assert 0.1 < alone.mean() < 0.9
    np.testing.assert_array_equal(f.query(queried % 1000, at=queried + 1000, threads=2), alone)


def test_threads_go_on_from_chunk_to_chunk():
    """The core compares threads with one thread in every family."""
    keys = np.random.default_rng(4).integers(0, 200_000, (1 << 20) + 20_000)
    alone, shared = (lately.AgePartitionedBloomFilter(100_000, 0.01) for _ in range(2))
    for call, options in (("insert", {}), ("duplicated", {}), ("duplicated", {"refresh": False})):
        expected = getattr(alone, call)(keys, **options)
        np.testing.assert_array_equal(getattr(shared, call)(keys, **options, threads=2), expected)
        assert shared == alone
    with pytest.raises(TypeError, match="complex"):
        shared.insert([*range(20_000), 1j], threads=2)


def test_an_error_comes_before_threads_insert():
    f = lately.AgePartitionedBloomFilter("1h", 0.01, capacity=1000)
    at = np.arange((1 << 20) + 20_000)
    at[-1] = 0
    for call in (f.insert, f.duplicated):
        with pytest.raises(ValueError, match="before the latest time seen"):
            call(at, at=at, threads=2)
    assert f.inserted == 0
    assert f.fill.max() == 0


def test_a_signal_handler_may_use_the_filter_in_the_middle_of_its_batch():
    run(
        """
        import functools
        f = lately._families.EVERY["age-partitioned-512"].make(100_000, fpr=0.01)
        called = 0
        def handle(*_):
            global called
            called += 1
            f.add("handled")
            assert "handled" in f
            f.duplicated([1, 2]), f.to_bytes(), f.copy(), repr(f)
        many = np.broadcast_to(np.int64(7), 1 << 23)
        signal.signal(signal.SIGPROF, handle)
        # Time of the processor: a busy machine would have nothing but handlers run.
        signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
        shared = functools.partial
        for call in (f.insert, f.query, shared(f.query, threads=2), f.duplicated, shared(f.duplicated, threads=2)):
            before = called
            call(many)
            assert called - before >= 3, "once may be after the call"
        signal.setitimer(signal.ITIMER_PROF, 0)
        assert f.inserted == 3 * len(many) + 3 * called
        """
    )


FIRST_ARRAYS = """
import datetime, sys, lately

f, lines, done, errors = lately.AgePartitionedBloomFilter(1000, 0.01), 0, 0, set()

def trace(frame, event, argument):
    # At any line of Python code, as a signal handler runs. Python's own import waits for itself if it is interrupted.
    global lines, done
    if frame.f_code.co_filename.startswith("<frozen importlib"):
        return trace
    lines += 1
    if lines % EVERY == 0:
        sys.settrace(None)
        try:
            f.duplicated(["handled", datetime.date(2026, 11, 25)])
            done += 1
        except ImportError as error:
            errors.add(str(error))
        sys.settrace(trace)
    return trace

BEFORE
sys.settrace(trace)
f.duplicated([datetime.date(2026, 11, 24), "first"])
f.query(["first"])
sys.settrace(None)
assert f.query([datetime.date(2026, 11, 24), "first"]).all()
assert f.query(["handled"]).all() == (done > 0)
print(*errors)
"""


@pytest.mark.parametrize(
    ("before", "every", "error"),
    [
        ("import numpy", 1, ""),
        ("import numpy", 2, ""),
        ("", 1000, "NumPy is being imported, in a call that this one interrupted"),
    ],
)
def test_a_signal_handler_may_use_the_first_arrays_of_the_process(before, every, error):
    code = FIRST_ARRAYS.replace("EVERY", str(every)).replace("BEFORE", before)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.stderr == ""
    assert ended.stdout.startswith(error)


def test_ctrl_c_stops_a_long_batch_and_leaves_a_filter():
    (took,) = run(
        """
        f = lately._families.EVERY["age-partitioned-512"].make(100_000, fpr=0.01)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGPROF, lambda *_: os.kill(os.getpid(), signal.SIGINT))
        # Seconds of the processor: some keys have gone in, however busy the machine is.
        start = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, 0.1)
        try:
            f.insert(np.broadcast_to(np.int64(7), 1 << 40))
        except KeyboardInterrupt:
            took = time.process_time() - start
        assert 0 < f.inserted < 1 << 40 and f.inserted % 4096 == 0
        assert 7 in f and "new" not in f
        f.add("new")
        assert "new" in f and lately.from_bytes(f.to_bytes()).to_bytes() == f.to_bytes()
        print(took)
        """
    )
    assert float(took) < 2, "120 ms of the processor"
