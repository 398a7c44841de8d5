"""ExactFilter: an object with the calls of a filter, and right answers."""

import numpy as np
import pytest

import lately
from support.round_trips import ROUND_TRIPS

KEYS = np.random.default_rng(4).integers(0, 700, 20_000)
TIMES = np.sort(np.random.default_rng(5).integers(0, 10**5, 20_000))
LATE = TIMES - np.random.default_rng(6).integers(0, 50, 20_000)


@pytest.mark.parametrize("refresh", [True, False, "delivered"])
@pytest.mark.parametrize("window", [1, 100, 1000, 10**6])
def test_batches_and_single_keys_give_the_mask_of_the_one_liner(window, refresh):
    expected = lately.duplicated(KEYS, window, refresh=refresh)
    whole, parts, single = (lately.ExactFilter(window) for _ in range(3))
    assert np.array_equal(whole.duplicated(KEYS, refresh=refresh), expected)
    marks = [parts.duplicated(part, refresh=refresh, threads=2) for part in np.array_split(KEYS, 13)]
    assert np.array_equal(np.concatenate(marks), expected)
    assert [single.seen(key, refresh=refresh) for key in KEYS[:3000].tolist()] == expected[:3000].tolist()


@pytest.mark.parametrize("refresh", [True, False])
def test_event_times_give_the_mask_of_the_one_liner(refresh):
    """The one-liner has all rows and sorts them, so that only rows in order are compared with it."""
    for times, lateness in ((TIMES + 1_700_000_000, None), (LATE + 1_700_000_000, "50s")):
        expected = lately.duplicated(KEYS, "1h", at=times, refresh=refresh)
        whole, single = (lately.ExactFilter("1h", lateness=lateness) for _ in range(2))
        found = whole.duplicated(KEYS, at=times, refresh=refresh)
        if lateness is None:
            assert np.array_equal(found, expected)
        pairs = list(zip(KEYS.tolist(), times.tolist(), strict=True))[:2000]
        assert [single.seen(key, at=at, refresh=refresh) for key, at in pairs] == found[:2000].tolist()


@pytest.mark.parametrize("window", [1, 7, 300, 5000])
def test_a_query_answers_what_the_next_key_would_be_and_changes_nothing(window):
    seen = lately.ExactFilter(window, seed=1)
    seen.insert(KEYS[:4000])
    lately_seen = set(KEYS[:4000][-window:].tolist())
    before = seen.to_bytes()
    assert seen.query(range(700)).tolist() == [key in lately_seen for key in range(700)]
    assert [key in seen for key in range(700)] == [key in lately_seen for key in range(700)]
    assert seen.to_bytes() == before
    assert len(seen) == len(lately_seen)
    assert seen.inserted == 4000


def test_a_query_has_a_time():
    seen = lately.ExactFilter("10min")
    seen.insert(["a", "b"], at=[0, 300])
    assert [seen.query(["a", "b", "c"], at=at).tolist() for at in (300, 600, 601, 900, 901)] == [
        [True, True, False],
        [True, True, False],
        [False, True, False],
        [False, True, False],
        [False, False, False],
    ]
    # Every key came with a time of its own: without one, as of the latest.
    assert seen.query(["a", "b"]).tolist() == [True, True]
    assert "a" in seen
    assert len(seen) == 2
    seen.add("now")
    assert seen.query(["a", "now"]).tolist() == [False, True]
    assert len(seen) == 1


@pytest.mark.parametrize("window", [50, 10**6, "1h"])
def test_a_saved_filter_goes_on_where_it_stopped(window, tmp_path):
    timed = window == "1h"
    for missing in ("same", "distinct"):
        one = lately.ExactFilter(window, missing=missing, **({"lateness": "50s", "max_ahead": "2d"} if timed else {}))
        at = {"at": LATE[:10_000]} if timed else {}
        one.insert(KEYS[:10_000], **at)
        others = [way(one, tmp_path / "seen.lately") for way in ROUND_TRIPS.values()]
        at = {"at": LATE[10_000:]} if timed else {}
        for other in others:
            assert type(other) is lately.ExactFilter
            assert other == one
            facts = ("window", "lateness", "max_ahead", "latest", "inserted", "missing", "seed")
            assert [getattr(other, fact) for fact in facts] == [getattr(one, fact) for fact in facts]
            assert len(other) == len(one)
        marks = one.duplicated(KEYS[10_000:], **at)
        for other in others:
            assert np.array_equal(other.duplicated(KEYS[10_000:], **at), marks)


def test_times_that_a_thread_has_left_behind_are_an_error():
    """A late key raises an error; it is not silently taken for new."""
    seen = lately.ExactFilter("10s")
    seen.insert(["a"], at=1000)
    for call in (
        lambda: seen.add("a", at=999),
        lambda: seen.duplicated(["a"], at=[999]),
        lambda: seen.query(["a"], at=9),
    ):
        with pytest.raises(ValueError, match="before the latest time seen, but lateness is 0 s"):
            call()
    with pytest.raises(ValueError, match="ahead of the system's clock"):
        lately.ExactFilter("10s", max_ahead="1s").insert(["a", "b"], at=[0, 9 * 10**9])
    assert seen.inserted == 1


def test_a_system_clock_that_steps_back_shortens_no_window(monkeypatch):
    """Without times of their own, keys come as of the latest time at the earliest."""
    seen = lately.ExactFilter("1h", max_ahead="1d")
    future = np.datetime64("now") + np.timedelta64(20, "h")
    seen.add("far", at=future)
    seen.add("near")
    assert seen.latest == future
    assert seen.seen("near")
    assert seen.query(["far", "near"]).tolist() == [True, True]


def test_missing_keys_are_one_or_each_its_own():
    assert lately.ExactFilter(9).duplicated([None, None, float("nan")]).tolist() == [False, True, True]
    distinct = lately.ExactFilter(9, missing="distinct")
    assert distinct.duplicated([None, None, "a", "a"]).tolist() == [False, False, False, True]
    assert None not in distinct
    assert len(distinct) == 1


def test_calls_that_do_not_fit_are_named():
    counts, timed = lately.ExactFilter(9), lately.ExactFilter("1s")
    for call, error, message in [
        (lambda: counts.seen("a", at=5), ValueError, "at is for windows of time"),
        (lambda: counts.seen(["a"]), TypeError, "a list is taken for several keys"),
        (lambda: counts.seen(object()), TypeError, "cannot be a key"),
        (lambda: timed.insert(["a", "b"], at=[0]), ValueError, "1 times for 2 keys"),
        (lambda: timed.insert(["a"], at=[None]), ValueError, "missing"),
        (lambda: counts.duplicated(["a"], refresh="never"), ValueError, "refresh must be"),
        (lambda: counts.save(5), TypeError, "file must be a path"),
    ]:
        with pytest.raises(error, match=message):
            call()
