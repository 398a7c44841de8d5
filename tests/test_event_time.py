"""Clicks by visitor in event time: every family with a clock against the exact answer of pandas."""

import numpy as np
import pandas as pd
import pytest

from support import event_time
from support.event_time import (
    BURST,
    FAMILIES,
    FPR,
    LATENESS,
    WINDOWS,
    Stream,
    Window,
    judge,
    left_after_gap,
    new_filter,
    refusal,
)
from support.real_streams import EXAMPLES

GROWING = ["timing, growing", "time-limited"]
FIXED = [family for family in FAMILIES if family not in GROWING]
# So short that the lateness is nearly as long: a filter that forgets about it misses clicks.
SHORT = Window("10 s", 10, busiest=1)


@pytest.fixture(scope="module")
def clicks():
    return Stream.load(EXAMPLES)


@pytest.fixture(scope="module", params=WINDOWS, ids=lambda window: window.name)
def squeezed(request, clicks):
    capacity = request.param.at_peak_rate(clicks)
    return request.param, capacity, *clicks.squeezed(BURST * capacity * 60 // request.param.seconds)


@pytest.mark.parametrize("window", [SHORT, *WINDOWS], ids=lambda window: window.name)
@pytest.mark.parametrize("family", FAMILIES)
def test_equals_the_exact_answer_but_for_slack_and_false_positives(clicks, family, window):
    f = new_filter(family, window, window.at_peak_rate(clicks))

    found = judge(f, clicks)

    assert found.within.sum() > 1000
    assert found.missed == 0
    assert found.false_positives <= found.bound(f.fpr)
    assert f.fpr <= FPR
    assert left_after_gap(f, clicks) == 0
    assert f.query(clicks.hashes[-1:], at=clicks.latest[-1]).all()


@pytest.mark.parametrize("family", FIXED)
def test_a_burst_costs_a_filter_of_fixed_memory_its_rate(squeezed, family):
    window, capacity, stream, burst = squeezed
    f = new_filter(family, window, capacity)

    found = judge(f, stream)

    assert found.missed == 0
    assert np.ptp(found.nbytes) == 0
    if window.name == "10 min":  # Ten times what the window holds; a day's filter has the room.
        assert found.rate(burst) > 100 * FPR


def test_a_burst_costs_the_time_limited_filter_memory_and_gives_it_back(squeezed):
    window, capacity, stream, burst = squeezed
    f = new_filter("time-limited", window, capacity)

    found = judge(f, stream)

    assert found.missed == 0
    before = found.nbytes[: burst.start // event_time.BATCH].max()
    assert found.nbytes.max() > before
    if window.name == "10 min":
        assert found.nbytes.max() > 10 * before
        assert found.nbytes[-1] < 2 * before


def test_a_burst_costs_growing_timers_parts_with_the_rate_in_each(squeezed):
    window, capacity, stream, _ = squeezed
    f = new_filter("timing, growing", window, capacity)
    planned = f.nbytes

    found = judge(f, stream)

    assert found.missed == 0
    parts = found.nbytes.max() // planned
    assert parts > 1 if window.name == "10 min" else parts == 1  # A day's first part has the room.
    assert found.nbytes[-1] == planned
    assert found.false_positives <= found.bound(1 - (1 - f.fpr) ** parts)


def test_the_burst_is_one_minute_of_a_hundred_times_the_plan(squeezed):
    window, capacity, stream, burst = squeezed
    minute = stream.latest[burst]
    assert minute[-1] - minute[0] < 60
    assert len(minute) == BURST * capacity * 60 // window.seconds
    assert (np.diff(stream.times[burst]) < 0).any()
    assert (stream.latest - stream.times).max() <= LATENESS


@pytest.mark.parametrize("family", FAMILIES)
def test_a_click_older_than_the_lateness_is_refused_and_nothing_is_lost(clicks, family):
    f = new_filter(family, WINDOWS[0], 1000)
    recent = slice(-200, None)
    f.insert(clicks.hashes[recent], at=clicks.times[recent])

    message, unchanged = refusal(f, clicks)

    assert message.startswith(f"at[1] lies {LATENESS + 1} s before the latest time seen, but lateness is {LATENESS} s")
    assert unchanged
    latest = clicks.latest[-1]
    held = clicks.latest[recent] >= latest - WINDOWS[0].seconds
    assert f.query(clicks.hashes[recent][held], at=latest).all()
    f.insert(["as late as allowed"], at=latest - LATENESS)
    assert f.query(["as late as allowed"], at=latest).all()


def test_ages_are_those_of_a_dictionary():
    keys = pd.DataFrame([["x", "", "", "", None]] * 3 + [["y", "", "", "", ""]] + [["x", "", "", "", None]])
    keys.columns = list(event_time.VISITOR)
    stream = Stream(keys, np.array([10, 8, 30, 31, 29]))
    assert stream.ages.tolist() == [np.inf, -2, 20, np.inf, -1]
    assert stream.held.tolist() == [np.inf, 0, 20, np.inf, 1]
