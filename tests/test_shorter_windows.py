"""A query with a shorter window than the filter's own reports every key of it, and no older ones."""

import numpy as np
import pytest

import lately

MAKERS = {
    "cuckoo": lambda window, **more: lately.AgedCuckooFilter(window, 1e-4, **more),
    "cuckoo, many epochs": lambda window, **more: lately.AgedCuckooFilter.from_parameters(
        window, fingerprint_bits=20, epochs=200, pages=2, lines=200, **more
    ),
    "cuckoo, overfull": lambda window, **more: lately.AgedCuckooFilter.from_parameters(
        window, fingerprint_bits=13, epochs=7, pages=1, lines=64, **more
    ),
    "timing": lambda window, **more: lately.TimingBloomFilter(window, 1e-4, **more),
}
makers = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@makers
def test_a_velocity_check_sees_all_of_the_last_insertions(make):
    """A card is checked against the last 100, 1000 and 5000 payments of one filter, while they go on."""
    window, rng = 5000, np.random.default_rng(1)
    f = make(window)
    cards = rng.zipf(1.3, 40_000) % 20_000
    for end in np.cumsum(rng.integers(1, 900, size=80)):
        f.insert(cards[f.inserted : end])
        for shorter in (1, 2, 100, 1000, int(rng.integers(1, window)), window):
            assert f.query(cards[max(0, end - shorter) : end], window=shorter).all(), (end, shorter)


@makers
def test_a_shorter_window_of_time_ends_at_the_time_of_the_query(make):
    """Logins of the last minutes out of an hour: gaps, bursts, late ones, and queries that step back or lie ahead."""
    rng = np.random.default_rng(2)
    f = make("1h", capacity=5000, lateness="20s")
    at = np.cumsum(rng.choice([0.0, 0.1, 1.0, 60.0], p=[0.5, 0.3, 0.19, 0.01], size=30_000))
    users = rng.integers(0, 3000, size=len(at))
    event_times = at - rng.choice([0.0, 19.0], p=[0.9, 0.1], size=len(at))
    for part in np.array_split(np.arange(len(at)), 60):
        f.insert(users[part], at=event_times[part])
        latest = event_times[: part[-1] + 1].max()
        for now in (latest - 20, latest, latest + 0.5, latest + 900):
            for minutes in (1, 7, 31, 60):
                seen = np.flatnonzero(event_times[: part[-1] + 1] >= now - 60 * minutes)
                assert f.query(users[seen], at=now, window=f"{minutes}min").all(), (latest, now, minutes)
        # Each key at a time of its own, as in a replay.
        queried_at = np.maximum(event_times[part] + 59, latest - 20)
        seen = queried_at - event_times[part] <= 80
        assert f.query(users[part][seen], at=queried_at[seen], window="80s").all()


@pytest.mark.parametrize("make", [MAKERS["cuckoo"], MAKERS["timing"]])
def test_keys_that_left_a_shorter_window_an_epoch_ago_are_gone(make):
    f = make(70_000)
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
