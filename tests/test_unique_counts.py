"""`unique` with counts: how often a key came, and when first and last, each event accounted for once."""

import itertools

import numpy as np
import pytest

import lately


def by_definition(keys, times, window, refresh):
    """Go through all keys with a dict; return the events that are kept, with what is held back for each."""
    kept, last, number = {}, {}, 0
    for n, (key, now) in enumerate(zip(keys, times, strict=True)):
        now = number + 1 if now is None else now
        repeat = key in last and now - last[key][0] <= window
        if not (repeat and refresh == "delivered" and times[n] is None):
            number += 1
        shown = n if times[n] is None else now
        if repeat:
            began, event = last[key]
            kept[event][1] += 1
            kept[event][2:] = [min(kept[event][2], shown), max(kept[event][3], shown)]
            last[key] = (max(began, now) if refresh is True else began, event)
        else:
            kept[n] = [(key, n), 1, shown, shown]
            last[key] = (now, n)
    return sorted(tuple(event) for event in kept.values())


@pytest.mark.parametrize("refresh", [True, False, "delivered"])
@pytest.mark.parametrize("timed", [False, True])
def test_counts_and_times_are_those_of_their_definition(refresh, timed):
    """Every event is counted once, in a window of events and of time, with times that step back."""
    for trial in range(20):
        chance = np.random.default_rng(trial)
        keys = chance.integers(0, 15, 300).tolist()
        times = (np.sort(chance.integers(0, 400, 300)) - chance.integers(0, 4, 300)).tolist() if timed else [None] * 300
        events = list(zip(keys, range(300), times, strict=True))
        given = {"window": "9s", "at": 2, "lateness": "4s"} if timed else {"window": 9}
        kept = list(lately.unique(events, key=0, refresh=refresh, counts=True, **given))
        assert sum(event.count for event in kept) == 300
        found = sorted((event[:2], count, first, last) for event, count, first, last in kept)
        assert found == by_definition(keys, times, 9, refresh)
        plain = list(lately.unique(events, key=0, refresh=refresh, **given))
        assert sorted(event for event, *_ in kept) == sorted(plain)


def test_an_event_is_yielded_when_its_window_is_over():
    """An endless stream keeps the events of its window only."""
    taken = itertools.count()
    kept = lately.unique(((n // 3, next(taken)) for n in itertools.count()), 100, key=0, counts=True)
    for n in range(2000):
        event, count, first, last = next(kept)
        assert (event[0], count, first, last) == (n, 3, 3 * n, 3 * n + 2)
    assert next(taken) <= 3 * 2000 + 110


def test_without_times_they_are_those_of_the_system():
    (kept,) = lately.unique(["a", "a", "a"], "1h", counts=True)
    assert kept.count == 3
    assert 1.7e9 < kept.first <= kept.last


def test_times_come_back_as_they_were_given():
    times = np.array(["2026-01-01T00:00", "2026-01-01T00:05"], "datetime64[s]")
    (kept,) = lately.unique([("a", times[0]), ("a", times[1])], "10min", key=0, at=1, counts=True)
    assert (kept.first, kept.last) == tuple(times)
    assert kept.first.dtype == times.dtype


def test_missing_keys_are_counted_as_requested():
    keys = [None, "a", None, "a", None]
    assert [kept.count for kept in lately.unique(keys, 9, counts=True)] == [3, 2]
    assert [kept.count for kept in lately.unique(keys, 9, counts=True, missing="distinct")] == [1, 2, 1, 1]
    rows = [["a", None], ["a"], ["a", None]]
    assert [kept.count for kept in lately.unique(rows, 9, counts=True)] == [2, 1]
