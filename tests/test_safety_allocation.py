"""Answers for which there is no memory: a MemoryError, and the process and the filter go on."""

import numpy as np
import pytest

import lately
from own_process import IMPORTS, run


def test_a_table_of_answers_as_wide_as_it_is_long_is_a_memory_error():
    # 8 TB. Machines that promise more than they have are not made to keep it: nothing is written.
    lines = run(
        """
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        f = lately.AgePartitionedBloomFilter(1000, 0.01)
        try:
            f.age_probability(np.arange(10**6), .01, np.arange(10**6.))
        except MemoryError as error:
            print(error)
        f.add("a")
        print("a" in f)
        """
    )
    assert lines == ["cannot allocate 7999992000000 bytes for the filter", "True"]


# Each call in a child of its own, which has as much memory as the others had.
STARVED = """
import pickle

n = 5_000_000
keys, times = np.zeros(n, "u1"), np.zeros(n, "i8")
objects = [None] * n
back = np.zeros(n)
back[5] = -1
count = lately.AgePartitionedBloomFilter(1000, 0.01)
line = lately.AgePartitionedBloomFilter(1000, 0.01)
time_ = lately.AgePartitionedBloomFilter("1h", 0.01, capacity=1000, lateness="1h")
spec = lately._core.FilterSpec("TimingBloomFilter", window="1h", fpr=0.01, capacity=1000)
slice_ = lately._core.Slice(lately.BloomFilter(1000, 0.01))
buffer = memoryview(bytearray(n))
CALLS = {
    "query": lambda: count.query(keys),
    "query by threads": lambda: line.query(keys, threads=2),
    "insert by threads": lambda: line.insert(keys, threads=2),
    "duplicated": lambda: count.duplicated(keys),
    "duplicated by threads": lambda: line.duplicated(keys, threads=2),
    "insert by threads at times": lambda: time_.insert(keys, at=back + np.arange(n), threads=2),
    "posterior": lambda: count.posterior(keys, 0.1),
    "decide": lambda: count.decide(keys, 0.1),
    "age": lambda: count.age(keys, 0.1),
    "age_probability": lambda: count.age_probability(keys, 0.1, np.arange(20.0)),
    "hash_keys": lambda: lately.hash_keys(keys),
    "hash_keys of a list": lambda: lately.hash_keys(objects),
    "query of a list": lambda: count.query(objects),
    "query at times out of order": lambda: time_.query(keys, at=back),
    "read_moments": lambda: lately._core.read_moments(back),
    "cells": lambda: lately._core.cells(lately.BloomFilter(1000, 0.01), keys),
    "generations": lambda: spec.generations(None, n),
    "generations of times": lambda: spec.generations(times, n),
    "ages": lambda: slice_.ages(np.zeros(n, "u8")),
    "touch": lambda: slice_.touch(np.zeros(n, "u4"), 0),
    "scatter": lambda: lately._core.Ranges(lately.BloomFilter(1000, 0.01), 1).scatter(np.zeros(n, "u8")),
    "from_bytes": lambda: lately.from_bytes(buffer),
    "save": lambda: lately.AgePartitionedBloomFilter(5_000_000, 0.01).to_bytes(),
    "pickle of an exact window": lambda: pickle.dumps(exact),
    "comparison of an exact window": lambda: exact == exact,
    "new": lambda: lately.AgePartitionedBloomFilter(300_000_000, 0.01),
}

def starved(call):
    used = 4096 * int(open("/proc/self/statm").read().split()[0])
    refused = 0
    for room in (1 << 16, 1 << 20, 5 << 20, 20 << 20):
        resource.setrlimit(resource.RLIMIT_AS, (used + room, resource.RLIM_INFINITY))
        try:
            call()
        except MemoryError:
            refused += 1
        except lately.FormatError:
            pass
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
    count.add("a")
    return 0 if refused > 0 and "a" in count else 1

for name, call in CALLS.items():
    child = os.fork()
    if child == 0:
        try:
            if "exact" in name:
                # Not before the fork: it frees memory as it grows, which the other calls would take.
                exact = lately.ExactFilter(2_000_000)
                exact.insert(np.arange(2_000_000))
            os._exit(starved(call))
        finally:
            os._exit(2)
    print(name, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_no_call_ends_the_process_for_want_of_memory():
    # In a new interpreter: one that was forked has memory that it freed before.
    lines = run('os.execv(sys.executable, [sys.executable, "-W", "ignore", "-c", sys.argv[1]])', IMPORTS + STARVED)
    assert len(lines) == STARVED.count("lambda")
    assert [line for line in lines if not line.endswith(" 0")] == []


def test_no_family_is_made_in_less_memory_than_it_takes():
    lines = run(
        """
        from lately._families import EVERY
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        makers = {name: family.make for name, family in EVERY.items() if family.windows in ("any", "insertions")}
        # As many keys as each takes at 1 % in more than that; windows of time in which bursts come grow as they do.
        for name, make in {**makers, "bloom": lambda n, fpr: lately.BloomFilter(n, fpr)}.items():
            try:
                make(2**32, fpr=0.01)
            except MemoryError:
                continue
            except ValueError as error:
                assert "2**" in str(error) or "bytes" in str(error), error
                continue
            print(name)
        f = lately.TimingBloomFilter("1h", 0.01, capacity=1000, grow="density")
        f.insert([1, 2, 3], at=5)
        print(f.query([1, 2, 3], at=5).all())
        """
    )
    assert lines == ["True"]


def test_lengths_that_no_memory_has_are_memory_errors():
    f = lately.AgePartitionedBloomFilter(1000, 0.01)
    keys = np.broadcast_to(np.uint8(1), (2**55,))
    for call in (f.query, f.duplicated, lately.hash_keys, lambda keys: f.posterior(keys, 0.1)):
        with pytest.raises(MemoryError):
            call(keys)
    with pytest.raises(MemoryError):
        f.age_probability(keys, 0.1, np.arange(2.0**20))
    assert f.inserted == 0
