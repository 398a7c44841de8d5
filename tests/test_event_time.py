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
    compare,
    left_after_gap,
    new_filter,
    refusal,
)
from support.real_streams import EXAMPLES

# So short that the lateness is nearly as long: a filter that forgets about it misses clicks.
SHORT = Window("10 s", 10, busiest=1)


@pytest.fixture(scope="module")
def clicks():
    return Stream.load(EXAMPLES)


@pytest.mark.parametrize("window", [SHORT, *WINDOWS], ids=lambda window: window.name)
@pytest.mark.parametrize("family", FAMILIES)
def test_equals_the_exact_answer_but_for_slack_and_false_positives(clicks, family, window):
    f = new_filter(family, window, window.at_peak_rate(clicks))

    found = compare(f, clicks)

    assert found.within.sum() > 1000
    assert found.missed == 0
    assert found.false_positives <= found.bound(f.fpr)
    assert f.fpr <= FPR
    assert left_after_gap(f, clicks) == 0
    assert f.query(clicks.hashes[-1:], at=clicks.latest[-1]).all()


@pytest.mark.parametrize(
    "window", [WINDOWS[0], pytest.param(WINDOWS[1], marks=pytest.mark.campaign)], ids=lambda window: window.name
)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_burst_of_a_hundred_times_the_plan_costs_memory_or_the_rate_and_no_click(clicks, family, window):
    capacity = window.at_peak_rate(clicks)
    stream, burst = clicks.squeezed(BURST * capacity * 60 // window.seconds)
    f = new_filter(family, window, capacity)
    planned = f.nbytes

    found = compare(f, stream)

    assert found.missed == 0
    # It is ten times what ten minutes hold; a filter for a day has the room.
    beyond = window is WINDOWS[0]
    if family == "time-limited":
        before = found.nbytes[: burst.start // event_time.BATCH].max()
        assert found.nbytes.max() > (10 if beyond else 1) * before
        assert found.nbytes[-1] < 2 * before or not beyond
    elif family == "timing, growing":
        parts = found.nbytes.max() // planned
        assert (parts > 1) == beyond
        assert found.nbytes[-1] == planned
        assert found.false_positives <= found.bound(1 - (1 - f.fpr) ** parts)
    else:
        assert np.ptp(found.nbytes) == 0
        assert found.rate(burst) > 100 * FPR or not beyond


@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: window.name)
def test_the_burst_of_the_benchmark_is_one_minute_of_a_hundred_times_the_plan(clicks, window):
    capacity = window.at_peak_rate(clicks)
    stream, burst = clicks.squeezed(BURST * capacity * 60 // window.seconds)
    minute = stream.latest[burst]
    assert minute[-1] - minute[0] < 60
    assert len(minute) == BURST * capacity * 60 // window.seconds
    assert (np.diff(stream.times[burst]) < 0).any()
    assert (stream.latest - stream.times).max() <= LATENESS


@pytest.mark.parametrize("family", FAMILIES)
def test_a_click_older_than_the_lateness_is_rejected_and_no_key_is_lost(clicks, family):
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
