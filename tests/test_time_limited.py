"""The time-limited filter for its users: an unknown rate, its memory.

What it has in common with other filters is tested with them: it is one of those in support/plans.py.
"""

import math

import numpy as np
import pytest

import lately


def steady(start, seconds, rate):
    return start + np.arange(round(seconds * rate)) / rate


def test_a_hundred_times_the_rate_costs_memory_for_a_while_and_no_key():
    f = lately.TimeLimitedBloomFilter("60s", 0.01, capacity=6000)
    at = np.concatenate([steady(0, 180, 100), steady(180, 60, 10_000), steady(240, 180, 100)])
    keys, sizes = np.arange(len(at)), []
    for start in range(0, len(at), 1000):
        part = slice(start, start + 1000)
        f.insert(keys[part], at=at[part])
        now = at[part][-1]
        # In the minute of the burst every tenth time, but at its ends: each query is of up to 600,000 keys.
        if len(at[at <= now]) % 10_000 == 0 or not 181 < now < 239:
            assert f.query(keys[(at >= now - 60) & (at <= now)], at=now).all()
        sizes.append(f.nbytes)
    before, most, after = sizes[17], max(sizes), sizes[-1]
    assert before < 6000 * 30 / 8
    assert 600_000 * 18 / 8 < most < 600_000 * 40 / 8
    assert after < 1.5 * before
    fresh = np.arange(10**7, 10**7 + 100_000)
    assert f.query(fresh, at=at[-1]).sum() <= 1000 + 6 * math.sqrt(1000)


@pytest.mark.parametrize("capacity", [10, 1000, 100_000])
def test_a_wrong_first_guess_is_made_good(capacity):
    f = lately.TimeLimitedBloomFilter("60s", 0.01, capacity=capacity)
    at = steady(0, 240, 50)
    f.insert(np.arange(len(at)), at=at)
    assert f.query(np.arange(len(at) - 3000, len(at)), at=at[-1]).all()
    assert f.nbytes < 3000 * 30 / 8
    assert f.false_positive_rate() < 0.011


def test_memory_is_what_is_saved():
    f = lately.TimeLimitedBloomFilter("60s", 0.01)
    for n in (0, 10, 1000, 100_000):
        f.insert(np.arange(n), at=steady(100 + n, 10, n / 10))
        preamble, cells = f.__reduce_ex__(5)[1]
        assert f.nbytes == memoryview(cells).nbytes == len(f.to_bytes()) - len(preamble)
