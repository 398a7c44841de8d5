"""How often keys came within the window, by SWAMP and the counting filter."""

import math
from collections import Counter

import numpy as np
import pytest

import lately


def stream(n):
    """Keys of which a few are frequent, some repeat near and many never."""
    rng = np.random.default_rng(n)
    return np.where(rng.random(n) < 0.3, rng.integers(0, 5, n), rng.geometric(0.002, n))


@pytest.mark.parametrize("size", [1, 4096, 4097, 30_000])
def test_counts_are_those_of_the_window(size):
    keys = stream(30_000)
    f = lately.Swamp(10_000, 1e-9)
    for start in range(0, len(keys), size):
        f.insert(keys[start : start + size])
    exact = Counter(keys[-10_000:].tolist())
    queried = np.arange(-4000, 6000)
    counts = f.count(queried)
    assert counts.dtype == np.uint64
    assert counts.tolist() == [exact[key] for key in queried.tolist()]
    assert max(exact.values()) > 500
    assert f.distinct() == pytest.approx(len(exact), rel=1e-9)
    assert lately.from_bytes(f.to_bytes()).count(queried).tolist() == counts.tolist()
    assert f.count([]).shape == (0,)
    with pytest.raises(TypeError, match="complex"):
        f.count([1j])


def test_counts_where_fingerprints_meet_are_never_too_low():
    keys = stream(5000)
    f = lately.Swamp(1000, 0.3)
    f.insert(keys)
    exact = Counter(keys[-1000:].tolist())
    counts = f.count(np.arange(20_000))
    assert all(count >= exact[key] for key, count in enumerate(counts.tolist()))
    wrong = sum(count != exact[key] for key, count in enumerate(counts.tolist()))
    assert 0 < wrong <= 20_000 * 0.3 + 6 * math.sqrt(20_000 * 0.3)


def test_one_key_fills_a_whole_window():
    f = lately.Swamp(100_000, 0.001)
    f.insert(np.broadcast_to(np.int64(7), 250_000))
    assert f.count([7, 8]).tolist() == [100_000, 0]
    f.insert(np.arange(1000, 1000 + 99_999))
    assert f.count([7])[0] == 1
    f.add("the last")
    assert 7 not in f or f.false_positive_rate() > 0


def test_a_velocity_check_never_counts_too_few():
    """How often has this card paid within the last 2000 payments? 15 stands for more."""
    f, rng = lately.baselines.CountingBloomFilter(2000, 0.05), np.random.default_rng(3)
    cards = rng.zipf(1.5, 9000) % 3000
    most = Counter()
    for end in range(300, 9001, 300):
        f.insert(cards[end - 300 : end])
        live = Counter(cards[max(0, end - 2000) : end].tolist())
        most |= live
        counts = f.count(np.arange(6000))
        assert all(counts[card] >= min(count, 15) for card, count in live.items())
        assert all(counts[card] == 15 for card, count in most.items() if count >= 15)
    more = sum(counts[card] != live[card] for card in range(6000) if most[card] < 15)
    assert 0 < more < 6000 * 0.05
    assert counts.dtype == np.uint64
