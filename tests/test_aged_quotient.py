"""The aged quotient filter as its users meet it: what memory follows, distinct keys, bursts beyond plan, ages."""

import numpy as np
import pytest

import lately

WINDOW = 20_000


def test_small_windows_take_small_pages():
    for window in (1, 10, 100, 1000):
        f = lately.AgedQuotientFilter(window, 0.01)
        assert f.nbytes <= 256 + 4 * window
        keys = np.arange(5 * window)
        f.insert(keys)
        assert f.query(keys[-window:]).all()


@pytest.mark.parametrize("repeats", [1, 5])
def test_distinct_keys_are_counted_and_are_what_memory_follows(repeats):
    f = lately.AgedQuotientFilter(WINDOW, 0.001, distinct=WINDOW // repeats)
    assert f.bits_per_key < 25 / repeats  # whole pages, of which there are three
    # Each key comes `repeats` times, in places that lie a hundred apart.
    number = np.arange(3 * WINDOW)
    keys = (number // (100 * repeats)) * 100 + number % 100
    f.insert(keys)
    assert f.query(keys[-WINDOW:]).all()
    true = len(np.unique(keys[-WINDOW:]))
    # Keys that share an entry, and the oldest epoch taken as even.
    assert abs(f.distinct() / true - 1) < 0.01
    fresh = np.arange(1 << 40, (1 << 40) + 1_000_000)
    assert f.query(fresh).sum() < 1000 + 6 * np.sqrt(1000)


def test_a_tenth_more_keys_than_planned_hold_the_rate_and_more_never_shorten_the_window():
    fresh = np.arange(1 << 40, (1 << 40) + 200_000)
    for load in (1.0, 1.1, 1.5, 4.0):
        f = lately.AgedQuotientFilter("1s", 0.01, capacity=int(WINDOW / load))
        at = np.arange(3 * WINDOW) / WINDOW
        f.insert(np.arange(3 * WINDOW), at=at)
        now = at[-1]
        assert f.query(np.arange(2 * WINDOW, 3 * WINDOW), at=now).all()
        assert f.query(fresh, at=now).mean() < 0.0105 or load > 1.1
        assert not f.query(np.arange(WINDOW), at=now + 3).any() or load > 1.1


def test_a_query_in_the_future_sees_what_will_be_left():
    f = lately.AgedQuotientFilter("70s", 1e-5, capacity=1000)
    f.insert(["a"], at=0)
    later = f.copy()
    asked = [f.query(["a"], at=t)[0] for t in range(200)]
    last = max(t for t, seen in enumerate(asked) if seen)
    assert 70 <= last <= 70 + f.slack
    assert all(asked[:last])
    later.insert(["b"], at=last + 1)
    assert not later.query(["a"], at=last + 1)[0]


def test_ages_are_told_to_an_epoch():
    f = lately.AgedQuotientFilter(WINDOW, 1e-5)
    keys = np.arange(3 * WINDOW)
    f.insert(keys)
    ages = f.age(keys[-WINDOW:], 1e-5)
    true = np.arange(WINDOW)[::-1]
    assert np.abs(ages - true).max() <= 2 * WINDOW / 7 + 1
    assert (f.posterior(keys[-WINDOW:], 1e-3) > 0.9).mean() > 0.8
    assert f.posterior(np.arange(1 << 40, (1 << 40) + 1000), 1e-3).max() < 0.9


def test_what_is_out_of_range_is_named():
    for arguments, words in [
        ({"window": 100, "fpr": 0.1, "distinct": 101}, r"distinct must lie in 1..=100"),
        ({"window": "1s", "fpr": 0.1, "capacity": 9, "distinct": 5}, "distinct is for windows of insertions"),
        ({"window": 100, "nbytes": 255}, "nbytes must be at least 256"),
    ]:
        with pytest.raises(ValueError, match=words):
            lately.AgedQuotientFilter(**arguments)
    with pytest.raises(TypeError, match="fpr or nbytes"):
        lately.AgedQuotientFilter(100)
