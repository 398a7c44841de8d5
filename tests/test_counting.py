"""The counting filter for its users: an exact window, its counts."""

from collections import Counter, deque

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import lately


@settings(max_examples=100)
@given(
    window=st.integers(1, 40),
    refresh=st.sampled_from([True, False, "delivered"]),
    batches=st.lists(st.lists(st.integers(0, 40)), max_size=10),
)
def test_it_is_an_exact_window(window, refresh, batches):
    """With hardly a counter taken, and no key that comes 15 times, nothing but the window is reported."""
    f = lately.baselines.CountingBloomFilter.from_parameters(window, k=4, slice_cells=10**5)
    last, total = deque(maxlen=window), {}
    for batch in batches:
        kept = [key for key in batch if total.setdefault(key, 0) < 14 and not total.update({key: total[key] + 1})]
        expected = []
        for key in kept:
            expected.append(key in last)
            if refresh is True or not expected[-1]:
                last.append(key)
            elif refresh is False:
                last.append(None)
        assert f.duplicated(kept, refresh=refresh).tolist() == expected
        assert f.query(np.arange(41)).tolist() == [key in last for key in range(41)]


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
