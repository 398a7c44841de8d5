"""A filter with more keys than planned warns once, and keeps its promise."""

import copy
import pickle
import re
import warnings
from functools import partial

import numpy as np
import pytest

import lately
from support.planned import planned
from support.threads import together

pytestmark = pytest.mark.filterwarnings("error::lately.OverfullWarning")

START = 1_000_000_000


def timed(kind=lately.AgePartitionedBloomFilter, **more):
    return kind("100s", **{"fpr": 0.001, "capacity": 10_000} | more)


def steady(times, seconds=400, first=0):
    """Different keys at `times` times the planned rate: keys and their times."""
    n = int(100 * times * seconds)
    return np.arange(first, first + n), START + np.arange(n) / (100 * times)


KINDS = {
    "lines": timed,
    "blocks": lambda **more: timed(partial(planned, "age-partitioned-512"), **more),
    "slices": lambda **more: timed(partial(planned, "age-partitioned"), **more),
    "transposed": lambda **more: timed(lately.GuardedEpochBloomFilter, **more),
    "timers": lambda **more: timed(lately.TimingBloomFilter, **more),
    "fingerprints": lambda **more: timed(lately.AgedCuckooFilter, **{"fpr": None, "nbytes": 60_000} | more),
    "late": lambda **more: timed(lateness="50s", **more),
}


def warned(call):
    """The messages of a call, and what it gave."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        given = call()
    assert all(warning.category is lately.OverfullWarning for warning in caught)
    assert all(warning.filename == __file__ for warning in caught), "where the user called"
    return [str(warning.message) for warning in caught], given


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_the_planned_rate_raises_no_warning(make):
    """In one batch, in batches of any size, and key by key; with repeats that take no room, however many they are."""
    keys, at = steady(1)
    for size in (len(keys), 7001, 300):
        f = make()
        for start in range(0, len(keys), size):
            f.insert(keys[start : start + size], at=at[start : start + size])
    f = make()
    for key, when in zip(keys[:15_000].tolist(), at.tolist(), strict=False):
        f.add(key, at=when)
    f = make()
    for second in range(300):
        f.duplicated(np.arange(1000), at=START + second)


@pytest.mark.parametrize("size", [10**9, 7001, 300])
@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_three_times_the_rate_raises_one_warning(make, size):
    f = make()
    keys, at = steady(3)

    def stream():
        for start in range(0, len(keys), size):
            f.insert(keys[start : start + size], at=at[start : start + size])

    (message,), _ = warned(stream)
    match = re.match(
        r"this filter is overfull: it was planned for (\d+) keys "
        r"(?:within its window and has|in 1/(\d+) of its window, where) at least (\d+)",
        message,
    )
    planned, parts, has = (int(number or 1) for number in match.groups())
    if parts == 1:
        assert (planned, 10_000 < has <= 51_000) == (10_000, True), "up to the keys of window, slack and lateness"
    else:
        assert 10_000 <= planned * parts <= 15_000 + parts, "with the lateness"
        assert 1.5 * planned < has <= 3 * (planned + 1), "those of a generation"
    assert float(message.split("rate of false positives is ")[1].split(",")[0]) > 1.25 * f.fpr
    last = slice(-100 * 3 * 100 + 1, None)
    assert f.query(keys[last], at=at[-1]).all(), "the window is kept"


def test_single_calls_warn_too():
    f = timed()
    keys, at = steady(4, 200)

    def stream():
        for key, when in zip(keys.tolist(), at.tolist(), strict=True):
            f.add(key, at=when) if key % 2 else f.seen(key, at=when)

    (message,), _ = warned(stream)
    assert "is overfull" in message


def test_a_burst_after_a_long_silence_is_noticed():
    f = timed(max_ahead=None)
    f.insert(np.arange(100), at=START)
    (message,), _ = warned(lambda: f.insert(np.arange(100, 60_000), at=START + 10**6))
    assert "has at least 59900," in message


def test_a_burst_within_the_capacity_is_noticed_where_it_does_harm():
    keys = np.arange(1000)
    for insert in (
        lambda f: f.insert(keys, at=START),
        lambda f: [f.add(key, at=START) for key in keys.tolist()],
        lambda f: [f.duplicated(part, at=START) for part in np.split(keys, 10)],
    ):
        f = lately.GuardedEpochBloomFilter("1d", 1e-9, capacity=10_000, slack="30min")
        f.insert(np.arange(1000, 1100), at=START - 86_400)
        (message,), _ = warned(partial(insert, f))
        assert "planned for 159 keys in 1/63 of its window, where at least " in message
        assert f.query(np.arange(2000, 3000), at=START).mean() > 0.1, "harm"
    f = lately.Filter("1d", 1e-9, capacity=10_000)
    f.insert(np.zeros(5000, int), at=START)
    for kind in (lately.AgedCuckooFilter, lately.TimingBloomFilter):
        f = timed(kind)
        f.insert(np.arange(9000), at=START)
        assert f.query(np.arange(10_000, 60_000), at=START).mean() < 0.002


def test_a_filter_that_cannot_be_overfull_never_warns():
    keys, at = steady(20, 100)
    for f in (
        lately.Filter(1000, 0.01),
        lately.Filter(1000, 0.01, prefer="memory"),
        lately.Swamp(1000, 0.01),
        lately.baselines.StableBloomFilter(1000, 0.01),
    ):
        f.insert(keys)
    for f in (lately.Filter("100s", 0.001), lately.TimingBloomFilter("100s", 0.01, capacity=9000, grow="density")):
        f.insert(keys, at=at)


def test_a_filter_planned_by_different_keys():
    f = lately.Filter(100_000, 0.001, distinct=1000)
    f.insert(np.arange(100_000) % 1000)
    (message,), _ = warned(lambda: f.insert(np.arange(100_000) % 3000))
    assert "planned for 1000 different keys within its window and has at least " in message
    assert 1000 < int(message.split("has at least ")[1].split(",")[0]) < 3300


def test_a_filter_that_forgets_nothing():
    f = lately.BloomFilter(1000, 0.001)
    f.insert(np.arange(50_000) % 1000)
    (message,), _ = warned(lambda: f.insert(np.arange(5000)))
    assert "planned for 1000 keys and has at least 55000, so its" in message


def test_clear_and_a_copy_allow_a_second_warning():
    f = timed()
    keys, at = steady(3)
    assert len(warned(lambda: f.insert(keys, at=at))[0]) == 1
    more = np.arange(10**6, 10**6 + 90_000)
    assert not warned(lambda: f.insert(more, at=at[-1]))[0]
    for other in (f.copy(), copy.deepcopy(f), pickle.loads(pickle.dumps(f)), lately.from_bytes(f.to_bytes())):
        assert len(warned(lambda other=other: other.insert(more, at=at[-1]))[0]) == 1
    f.clear()
    evenly = steady(1, 50)[1]
    assert not warned(lambda: f.insert(keys[:5000], at=evenly))[0]
    assert len(warned(lambda: f.insert(more, at=evenly[-1]))[0]) == 1


def test_merged_filters_count_from_the_merge():
    a, b = timed(), timed()
    evenly = steady(1, 90)[1]
    a.insert(np.arange(9000), at=evenly)
    b.insert(np.arange(9000, 18_000), at=evenly)
    a |= b
    (message,), _ = warned(lambda: a.insert(np.arange(20_000, 35_000), at=evenly[-1]))
    assert "has at least 15000," in message


@pytest.mark.parametrize("threads", [1, 2])
def test_the_warning_as_an_error_loses_no_answers(threads):
    f, quiet = timed(), timed()
    keys, at = steady(3)
    keys = keys % 40_000
    _, answers = warned(lambda: quiet.duplicated(keys, at=at))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(lately.OverfullWarning) as caught:
            f.duplicated(keys, at=at, threads=threads)
        np.testing.assert_array_equal(caught.value.answers, answers)
        assert f == quiet, "the call has done its work"
        f.duplicated(keys, at=at[-1])  # once


def test_the_warning_as_an_error_loses_no_answer_of_one_key():
    f = timed(capacity=100)
    answers = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for key in np.tile(np.arange(500), 2).tolist():
            try:
                answers.append(f.seen(key, at=START))
            except lately.OverfullWarning as error:
                answers.extend(error.answers.tolist())
    assert len(answers) == f.inserted == 1000
    assert all(answers[500:])


def test_a_handler_of_the_warning_may_use_the_filter():
    f = timed()
    keys, at = steady(3)
    states = []

    def show(message, *_):
        states.append((f.inserted, f.fill.max(), "a" in f))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        f.insert(keys, at=at)
    assert [inserted for inserted, *_ in states] == [len(keys)]


def test_threads_get_the_warning_once_or_each():
    f = timed()
    keys, _ = steady(3)

    def insert(part):
        for start in range(0, len(part), 100):
            f.insert(part[start : start + 100], at=START)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        together(*(partial(insert, keys[i::4]) for i in range(4)))
    assert 1 <= len(caught) <= 4
