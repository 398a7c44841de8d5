"""The events of a stream that were not seen lately, also of a stream without an end."""

import csv
import inspect
import itertools
import re
from datetime import datetime, timedelta

import numpy as np
import pytest

import lately
from support import real_streams


def test_an_event_is_yielded_before_the_next_is_taken():
    taken = []

    def events():
        for n in itertools.count():
            taken.append(n)
            yield n // 2

    fresh = lately.unique(events(), 10)
    assert taken == []
    assert [next(fresh) for _ in range(3)] == [0, 1, 2]
    assert taken == [0, 1, 2, 3, 4]
    assert next(fresh) == 3
    assert taken == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("refresh", [True, False, "delivered"])
def test_a_stream_is_what_its_column_is(refresh):
    keys, times = real_streams.CASES[2].load(real_streams.EXAMPLES)
    events = list(zip(keys, times, strict=True))[:4000]
    keys, times = zip(*events, strict=True)
    for window in (1, 500, 10**6):
        mask = lately.duplicated(keys, window, refresh=refresh)
        fresh = list(lately.unique(events, window, key=0, refresh=refresh))
        assert fresh == [event for event, seen in zip(events, mask, strict=True) if not seen]
    mask = lately.duplicated(keys, "10min", at=times, refresh=refresh)
    fresh = list(lately.unique(events, "10min", key=0, at=1, lateness="9s", refresh=refresh))
    assert fresh == [event for event, seen in zip(events, mask, strict=True) if not seen]


def test_a_key_is_read_by_field_names_or_a_function():
    clicks = [{"ip": "a", "url": "/", "t": 0}, {"ip": "a", "url": "/x", "t": 5}, {"ip": "a", "url": "/", "t": 9}]

    def kept(**options):
        return [click["t"] for click in lately.unique(clicks, 10, **options)]

    assert kept(key="ip") == [0]
    assert kept(key=["ip", "url"]) == kept(key=lambda click: (click["ip"], click["url"])) == [0, 5]
    assert kept(key=["ip", lambda click: len(click["url"])]) == [0, 5]
    assert list(lately.unique([("a", 1), ("a", 2)], 10, key=0)) == [("a", 1)]
    assert list(lately.unique([("a", 1), ("a", 2)], 10)) == [("a", 1), ("a", 2)]
    assert list(lately.unique(b"abca", 10)) == [97, 98, 99]


@pytest.mark.parametrize("arguments", [{}, {"fpr": 1e-9}])
def test_rows_of_a_reader_are_events(arguments):
    rows = csv.reader(["a,1", "b,1", "a,1", "a,2"])
    assert list(lately.unique(rows, 10, **arguments)) == [["a", "1"], ["b", "1"], ["a", "2"]]
    rows = [["a", None], ["a"], ["a", None]]
    assert list(lately.unique(rows, 10, **arguments)) == rows[:2]


@pytest.mark.parametrize("refresh", [True, False, "delivered"])
@pytest.mark.parametrize("filter", ["age-partitioned", "timing", "swamp", lately.GuardedEpochBloomFilter, None])
def test_a_stream_through_a_filter_is_what_its_batch_is(filter, refresh):
    keys = [None if key % 10 == 0 else f"/{key}" for key in np.random.default_rng(5).integers(0, 300, 3000).tolist()]
    arguments = {"fpr": 0.01, "seed": 7, "refresh": refresh} | ({"filter": filter} if filter else {})
    mask = lately.duplicated(keys, 100, **arguments)
    kept = list(lately.unique(enumerate(keys), 100, key=1, **arguments))
    assert kept == [(n, key) for n, key in enumerate(keys) if not mask[n]]
    # One that is missing is then like no other, to a filter too; by chance one of 300 is taken for one with 3e-7.
    arguments |= {"fpr": 1e-9, "missing": "distinct"}
    kept = [key for _, key in lately.unique(enumerate(keys), 100, key=1, **arguments)]
    assert kept.count(None) == keys.count(None)


def test_times():
    start = datetime(2024, 5, 1)
    events = [("a", start), ("a", start + timedelta(minutes=9)), ("a", start + timedelta(minutes=30))]
    assert list(lately.unique(events, "10min", key=0, at=1)) == [events[0], events[2]]
    assert list(lately.unique(events, timedelta(minutes=10), key=0, at=lambda event: event[1])) == events[::2]
    # By the clock of the machine.
    assert list(lately.unique("aab", "1h")) == ["a", "b"]
    assert list(lately.unique("aa", "1h", fpr=1e-6)) == ["a"]


def test_a_step_back_is_named_and_loses_nothing():
    events = [("a", 100), ("b", 60), ("c", 130), ("d", 50), ("e", 51)]
    words = "^at lies 40 s before the latest time seen, but lateness is 0 s: sort by time, or pass a larger lateness"
    for given, more in ((events, ", of 80 s for these events$"), (iter(events), "$")):
        fresh = lately.unique(given, "1min", key=0, at=1)
        assert next(fresh) == ("a", 100)
        with pytest.raises(ValueError, match=words + more):
            next(fresh)
    assert len(list(lately.unique(events, "1min", key=0, at=1, lateness="80s"))) == 5
    assert len(list(lately.unique([("a", 100), ("b", 60), ("a", 70)], "1min", key=0, at=1, lateness="40s"))) == 2
    for late, words in ((1_000_000.123456789, "1000000.123456789"), (1e-8, "0.00000001")):
        with pytest.raises(ValueError, match=f"of {words} s for these events"):
            list(lately.unique([("a", late), ("b", 0)], "1min", key=0, at=1))


def test_a_filter_of_time_needs_no_capacity():
    events = [(n % 7, n) for n in range(2000)]
    for capacity in (None, 100):
        assert len(list(lately.unique(events, "20s", key=0, at=1, fpr=1e-6, capacity=capacity))) == 7
    assert len(list(lately.unique(events, "3s", key=0, at=1, fpr=1e-6, filter="timing", capacity=10))) > 1500


def test_missing_keys():
    events = [None, float("nan"), 1, None, (1, None), (1, None), 1]
    assert list(lately.unique(events, 10)) == [None, 1, (1, None)]
    assert len(list(lately.unique(events, 10, missing="distinct"))) == 6


def test_a_key_that_is_none_is_named_when_it_comes():
    fresh = lately.unique([1, {"a": 1}], 5)
    assert next(fresh) == 1
    with pytest.raises(TypeError, match="dict cannot be a key"):
        next(fresh)


VALUES = {
    "window": [0, -1, 1.5, None, "x", "10s", "", 2**64, [1]],
    "key": ["k", 5, lambda event: object()],
    "at": ["t", lambda event: None, lambda event: "noon", lambda event: 9e15, lambda event: -event[1]],
    "fpr": [0.1, 0, 2, "x", 1e-30, 1e-12],
    "capacity": [10, 0, -1, "x", 2**63],
    "lateness": ["1s", "x", 5, "-1s"],
    "refresh": ["x", None],
    "missing": ["x", None],
    "seed": [-1, b"k", "x"],
    "filter": ["swamp", "timing", "timing-growing", "aged-cuckoo", "time-limited", "bloom", "stable", 5],
}


def messages(request):
    """Return the message of each error: with this request, and with one or two of its parameters changed."""
    changed = [{}, *({name: value} for name, values in VALUES.items() for value in values)]
    for one, other in itertools.combinations_with_replacement(changed, 2):
        try:
            list(lately.unique([("a", 0.0), ("b", 1.0), ("a", 5.0)], **{**request, **one, **other}))
        except (TypeError, ValueError, IndexError) as error:
            yield str(error)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "given", [{"window": 5}, {"window": 5, "fpr": 0.1}, {"window": "10s", "at": 1, "key": 0, "fpr": 0.1}]
)
def test_no_error_names_a_parameter_that_the_call_lacks(given):
    """Each has a subject, too: the time, not only what is wrong with it."""
    calls = [lately.Filter, lately.plan, lately.ExactFilter, lately.duplicated, lately.TimingBloomFilter]
    lacks = {name for call in calls for name in inspect.signature(call).parameters}
    # These are words as well.
    lacks -= {*inspect.signature(lately.unique).parameters, "keys", "distinct", "slack"}
    assert {"nbytes", "prefer", "max_ahead", "threads", "grow", "subset"} <= lacks
    found = set(messages(given))
    assert len(found) > 30
    for message in found:
        assert not lacks & set(re.findall(r"\w+", message)), message
        assert not message.startswith("is "), message


def test_an_event_without_a_time_is_an_error_and_not_one_of_now():
    events = [{"id": "a", "time": 0}, {"id": "b"}, {"id": "c", "time": 1}]
    kept = lately.unique(events, "10min", key="id", at=lambda event: event.get("time"))
    with pytest.raises(ValueError, match=r"^at (is missing|must give the time of each event, got None)"):
        list(kept)


@pytest.mark.parametrize("age", [100_000, 102_000])
def test_with_a_rate_the_one_liners_have_the_slack_of_the_default(age):
    keys = ["a", *range(age - 1), "a"]
    times = 1e9 + np.arange(len(keys)) / 1000
    events = list(zip(keys, times, strict=True))
    is_repeat = age <= 100_000
    assert lately.duplicated(keys, 100_000, fpr=1e-9)[-1] == is_repeat
    assert lately.duplicated(keys, "100s", fpr=1e-9, at=times)[-1] == is_repeat
    assert (list(lately.unique(keys, 100_000, fpr=1e-9))[-1] != "a") == is_repeat
    assert (list(lately.unique(events, "100s", key=0, at=1, fpr=1e-9))[-1][0] != "a") == is_repeat
