"""Streams that come a few keys at a time: the answers are those of one long batch, beside other threads too."""

import threading
from itertools import pairwise

import numpy as np
import pytest

import lately

FILTERS = {
    "lines": lambda: lately.AgePartitionedBloomFilter(500, 0.01, layout="line"),
    "sliced": lambda: lately.AgePartitionedBloomFilter(500, 0.01, layout="sliced", block_bits=512),
    "timing": lambda: lately.TimingBloomFilter("500s", 0.01, capacity=500),
    "aged quotient": lambda: lately.AgedQuotientFilter("500s", 0.01, capacity=500),
    "swamp": lambda: lately.Swamp(500, 0.01),
}


@pytest.mark.parametrize("family", FILTERS)
def test_a_stream_in_small_pieces_is_answered_as_one_long_batch(family):
    rng = np.random.default_rng(11)
    keys = rng.integers(0, 900, 4000)
    sizes = rng.choice([0, 1, 2, 10, 63, 64, 65, 200], 400)
    ends = np.minimum(np.concatenate([[0], np.cumsum(sizes), [len(keys)]]), len(keys))
    whole, pieces = FILTERS[family](), FILTERS[family]()
    times = np.arange(len(keys)) if isinstance(whole.window, float) else None

    def at(part):
        return {} if times is None else {"at": times[part]}

    pieced = [pieces.duplicated(keys[start:end], **at(slice(start, end))) for start, end in pairwise(ends)]
    everything = whole.duplicated(keys, **at(slice(None)))
    np.testing.assert_array_equal(np.concatenate(pieced), everything)
    assert 0 < everything.sum() < len(keys)
    assert pieces == whole

    queried = np.arange(900)
    last = {} if times is None else {"at": len(keys)}
    present = [pieces.query(queried[start : start + 10], **last) for start in range(0, 900, 10)]
    np.testing.assert_array_equal(np.concatenate(present), whole.query(queried, **last))


def test_of_threads_that_bring_the_same_keys_exactly_one_sees_each_as_new():
    f = lately.AgePartitionedBloomFilter(1_000_000, 1e-9)
    busy = lately.AgePartitionedBloomFilter(100_000, 1e-9)
    start, new = threading.Barrier(9), []

    def bring():
        start.wait()
        for i in range(200):
            new.append((~f.duplicated(np.arange(10 * i, 10 * i + 10))).sum())

    def long():
        start.wait()
        for _ in range(20):
            # Holds the lock, detached from the interpreter, for most of the time.
            f.insert(np.arange(10**6, 10**6 + 20_000))
            busy.insert(np.arange(20_000))

    threads = [threading.Thread(target=bring) for _ in range(8)] + [threading.Thread(target=long)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(new) == 2000


def test_a_short_batch_that_cannot_be_changes_nothing():
    f = lately.TimingBloomFilter("10min", 0.01, capacity=1000)
    f.insert(["a"], at=1000)
    with pytest.raises(ValueError, match="before the latest"):
        f.duplicated(["b", "c"], at=[2000, 10])
    with pytest.raises(TypeError):
        f.insert(["b", 1j], at=2000)
    with pytest.raises(ValueError, match="window"):
        lately.AgePartitionedBloomFilter(10, 0.01).query([], window=5)
    assert not f.query(["b", "c"], at=1000).any()
    assert f.inserted == 1
    assert f.latest == np.datetime64(1000, "s")
