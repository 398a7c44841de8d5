"""The planner's choices: what is built of them, which is the best, and why others are rejected.

`benchmarks/plan.py` runs them, and compares what they do with what the plan states.
"""

import html
import math

import numpy as np
import pandas as pd
import pytest

import lately
from lately._families import EVERY, FAMILIES
from support.exact import repeats

REQUESTS = {
    "1 %": {"window": 20_000, "fpr": 0.01},
    "0.1 %, slack of 7 %": {"window": 20_000, "fpr": 0.001, "slack": 1400},
    "exact": {"window": 2000, "fpr": 0.01, "slack": 0},
    "an hour": {"window": "1h", "fpr": 0.001, "capacity": 20_000},
    "an hour, late": {"window": "1h", "fpr": 0.01, "capacity": 20_000, "lateness": "5min"},
    "an hour, unknown": {"window": "1h", "fpr": 0.001},
    "16 KiB": {"window": 20_000, "nbytes": 1 << 14},
}
CASES = [
    pytest.param(request, choice, id=f"{name}: {choice.name}")
    for name, request in REQUESTS.items()
    for choice in lately.plan(**request).choices
]


@pytest.mark.parametrize(("request_", "choice"), CASES)
def test_a_choice_has_the_figures_of_the_filter_it_builds_and_meets_the_request(request_, choice):
    """The tests of its family show that a filter does what it states."""
    f = choice.build()
    assert (f.nbytes, f.fpr, f.slack, f.npws) == (choice.nbytes, choice.fpr, choice.slack, choice.npws)
    assert choice.nbytes <= request_.get("nbytes", math.inf)
    assert choice.fpr <= request_.get("fpr", 1)
    assert choice.slack <= request_.get("slack", math.inf)


def test_the_one_to_take_is_among_the_choices_and_is_built():
    plan = lately.plan(window=1000, fpr=0.01)
    assert plan.best in plan.choices
    assert plan.build().parameters == plan.best.parameters
    assert [c.nbytes for c in plan.choices] == sorted(c.nbytes for c in plan.choices)


def test_a_growing_family_is_not_planned_for_a_number_of_bytes():
    plan = lately.plan("1h", nbytes=1 << 20, capacity=100_000)
    assert plan.refused["timing-growing"] == "its memory follows bursts: give fpr instead of nbytes"


def dropped(f, keys, at):
    """Count the keys that a filter reports beyond those that came within the window, and all that did not."""
    within = np.array(repeats(keys.tolist(), f.window, at))
    reported = f.duplicated(keys, **({} if at is None else {"at": at}))
    assert reported[within].all()
    return int((reported & ~within).sum()), int((~within).sum())


@pytest.mark.parametrize("timed", [False, True])
def test_the_share_that_slack_may_drop_of_a_sample_is_a_bound_on_what_it_drops(timed):
    rng = np.random.default_rng(0)
    keys, at = rng.zipf(1.2, 60_000) % 40_000, None
    request = {"window": 1000}
    if timed:
        at = 1e9 + np.arange(60_000) * 0.06
        request = {"window": "1min", "capacity": 1000}
    plan = lately.plan(**request, fpr=1e-5, sample=keys, at=at)
    shares = {c.name: c.dropped_in_slack for c in plan.choices}
    assert shares["age-partitioned-line"] > 10 * shares[plan.best.name] > 0
    for choice in plan.choices:
        if FAMILIES[choice.name].promise and choice.name != "fingerprint-buffer":
            more, older = dropped(choice.build(), keys, at)
            assert more <= choice.dropped_in_slack * older + 6, choice.name
    assert "dropped in slack" in repr(plan)
    assert "dropped in slack" in plan.to_pandas()
    assert "dropped in slack" not in repr(lately.plan(**request, fpr=0.01))


def test_tables_agree():
    plan = lately.plan(window=1_000_000, fpr=0.01)
    frame = plan.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame["filter"]) == [c.name for c in plan.choices]
    assert list(frame["bytes"]) == [c.nbytes for c in plan.choices]
    for text in (repr(plan), plan._repr_html_()):
        assert all(f"{c.nbytes:,}" in text and c.name in text for c in plan.choices)
        assert plan.reason in html.unescape(text)


def test_every_family_is_a_choice_or_rejected():
    for request in REQUESTS.values():
        plan = lately.plan(**request)
        assert {choice.name for choice in plan.choices} | set(plan.refused) == set(FAMILIES)
    assert set(lately.plan(1000, 0.01).refused) == {"time-limited", "timing-growing"}


def test_a_baseline_is_listed_and_not_taken():
    plan = lately.plan(1_000_000, 0.01, slack=0)
    assert plan.choices[0].name == "fingerprint-buffer"
    assert plan.best.name == "swamp"
    plan = lately.plan(1_000_000, nbytes=8 << 20, prefer="memory")
    assert plan.choices[0].name == "fingerprint-buffer"
    assert plan.best.name == plan.choices[1].name == "guarded-epoch-transposed"
    assert "may miss" in next(choice for choice in plan.choices if choice.name == "stable").guarantees
    may_miss = {choice.name for choice in plan.choices if not choice.guarantees.startswith("no miss")}
    assert may_miss == {"stable", "generalized"} & {choice.name for choice in plan.choices}


def test_a_filter_without_bound_on_its_slack_accepts_none():
    assert lately.plan(1000, 0.01, slack=500).refused["stable"] == "its slack cannot be bounded"
    assert "no bound" in repr(lately.plan(1000, 0.01))


def test_a_plan_is_a_sequence_of_its_choices_by_place_and_by_name():
    plan = lately.plan(1000, 0.01)
    assert list(plan) == [plan[i] for i in range(len(plan))] == list(plan.choices)
    assert plan[plan.best.name] is plan.best
    assert plan[-1] is plan.choices[-1]
    with pytest.raises(KeyError, match="time-limited: windows of time only"):
        plan["time-limited"]
    with pytest.raises(KeyError, match="bloom: no such family"):
        plan["bloom"]


def test_too_much_memory_is_planned_and_fails_only_where_it_is_made():
    family, plan = EVERY["guarded-epoch-512"], lately.plan(1_000_000, 1e-12)
    assert lately.plan(10**13, fpr=0.01).best.nbytes > 1e12
    with pytest.raises(MemoryError, match="cannot allocate"):
        family.make(10**13, fpr=0.01)
    assert plan.best.fpr <= 1e-12
    assert plan.best.nbytes < 1e8
    assert plan.build().nbytes == plan.best.nbytes


@pytest.mark.parametrize("request_", [{"window": 10**15}, {"window": "1h", "capacity": 10**15}])
def test_a_plan_takes_no_memory(request_):
    # No machine can address the petabytes of any of them.
    plan = lately.plan(**request_, fpr=0.01)
    assert plan.best in plan.choices
    assert all(choice.nbytes > 10**15 and choice.fpr <= 0.01 for choice in plan.choices)
    assert not any("allocate" in why for why in plan.refused.values())
    with pytest.raises(MemoryError):
        plan.build()


def test_an_unsuited_filter_is_named_with_its_reason():
    plan = lately.plan(window=1000, nbytes=100)
    reasons = [line for line in repr(plan).splitlines() if line.startswith("not ")]
    assert plan.refused
    assert all(any(name in line and line.endswith(why) for line in reasons) for name, why in plan.refused.items())


def test_memory_follows_an_unknown_rate():
    plan = lately.plan("1h", 0.001)
    assert {choice.name for choice in plan.choices} == {"aged-cuckoo", "time-limited"}
    assert "its memory follows the keys" in plan.reason
    assert isinstance(plan.build(), lately.AgedCuckooFilter)
