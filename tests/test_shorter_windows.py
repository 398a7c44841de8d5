"""A query with a shorter window than the filter's own reports no older keys. `test_live_keys.py` has the others."""

import numpy as np
import pytest

import lately


@pytest.mark.parametrize("make", [lately.AgedCuckooFilter, lately.TimingBloomFilter])
def test_keys_that_left_a_shorter_window_an_epoch_ago_are_gone(make):
    f = make(70_000, 1e-4)
    keys = np.arange(200_000)
    f.insert(keys)
    slack = f.slack  # of the whole window: an epoch, or a block
    for shorter in (1, 1000, 20_000):
        answers = f.query(keys[::-1], window=shorter)
        assert answers[:shorter].all()
        assert answers[shorter + slack :].sum() <= 70_000 * 1e-4 * 5
    assert np.array_equal(f.query(keys, window=20_000), f.query(keys, window=20_000, threads=2))
    own = f.query(keys)
    assert (own | ~f.query(keys, window=70_000)).all()  # no wider than without


def test_keys_that_left_a_shorter_window_of_time_are_gone():
    f = lately.AgedCuckooFilter("1h", 1e-4, capacity=1000)
    f.insert(["a"], at=0)
    for now in (0, 1, 599, 600):
        assert f.query(["a"], at=now, window="10min").all()
    assert not f.query(["a"], at=600 + f.slack + 1, window="10min").any()
    assert not f.query(["a"], at=10**9, window="10min").any()
    assert not lately.AgedCuckooFilter("1h", 1e-4, capacity=1000).query(["a"], at=5, window="10min").any()


def test_distinct_keys_of_shorter_windows():
    f = lately.AgedCuckooFilter(80_000, 0.001)
    f.insert(np.arange(200_000) // 2)
    for shorter in (20_000, 40_000, 80_000):
        assert abs(f.distinct(shorter) / (shorter / 2) - 1) < 0.03
    assert f.distinct() == f.distinct(80_000)
    f = lately.Filter("1h", 0.001, max_ahead=None)
    f.insert(np.arange(30_000) % 5_000, at=np.linspace(0, 3600, 30_000))
    assert abs(f.distinct() - 5_000) < 200
    assert abs(f.distinct("30min") - 5_000) < 200


def test_an_unsuited_filter_names_the_suited_ones():
    words = "this filter has no ages to answer for a shorter window: omit window, or use an AgedCuckooFilter"
    for f in (
        lately.AgePartitionedBloomFilter(1000, 0.01),
        lately.GuardedEpochBloomFilter(1000, 0.01),
        lately.Swamp(1000, 0.01),
        lately.TimeLimitedBloomFilter("1h", 0.01, capacity=1000),
        lately.BloomFilter(1000, 0.01),
    ):
        window = "1min" if f.family == "time-limited" else 10
        at = 5 if f.family == "time-limited" else None
        with pytest.raises(ValueError, match=words):
            f.query(["a"], window=window, at=at)
        with pytest.raises(ValueError, match=words):
            f.query([], window=window, at=at)


def test_bad_shorter_windows_are_named():
    f = lately.AgedCuckooFilter(1000, 0.01)
    for window, kind, words in [
        (0, ValueError, r"window must lie in 1\.\.=1000"),
        (1001, ValueError, r"window must lie in 1\.\.=1000, that of the filter, got 1001"),
        ("5min", TypeError, "window"),
        (-1, ValueError, "window"),
    ]:
        for call in (lambda window: f.query([1], window=window), f.distinct):
            with pytest.raises(kind, match=words):
                call(window)
    f = lately.AgedCuckooFilter("1h", 0.01, capacity=100)
    with pytest.raises(ValueError, match="window must be longer than 0 s and at most 3600 s"):
        f.query([1], window="2h", at=0)
    with pytest.raises(TypeError, match="window must be a span of time"):
        f.query([1], window=5, at=0)
