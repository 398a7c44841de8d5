"""The timing filter for its users: an exact window, equal timers, growth."""

import math
from datetime import timedelta

import numpy as np
import pytest

import lately
from support.plans import bound

timers = lately.TimingBloomFilter.from_parameters


def test_without_slack_the_window_is_exact():
    """With hardly a timer set nothing is reported by chance: what is reported is what the filter holds."""
    f = lately.TimingBloomFilter(100, 1e-9, slack=0)
    assert (f.slack, f.npws, f.parameters["blocks"]) == (0, 0.0, 99)
    for n in range(1000):
        f.add(n)
        assert f.query(np.arange(n + 1)).nonzero()[0].tolist() == list(range(max(0, n - 99), n + 1))


def test_equal_timers_miss_keys_and_report_fewer_fresh_ones():
    given = {"window": 1001, "k": 8, "bpt": 10, "blocks": 1000, "slice_timers": 1600}
    plain, equal = timers(**given), timers(**given, equal_timers=3)
    assert equal.fpr < plain.fpr / 50
    for f in (plain, equal):
        f.insert(np.arange(20_000))
    window = np.arange(20_000 - 1001, 20_000)
    assert plain.query(window).all()
    present = equal.query(window)
    expected = equal.false_negative_rates.sum()
    assert equal.false_negative_rates.shape == (1001,)
    assert abs((~present).sum() - expected) <= 5 * math.sqrt(expected) + 1
    assert (~present).any()
    assert present[-100:].all()
    fresh = np.arange(10**6, 10**6 + 300_000)
    assert equal.query(fresh).sum() <= bound(len(fresh), equal.fpr)
    assert equal.false_positive_rate() == plain.false_positive_rate(), "documented as an upper bound"


GROWING = [
    {"window": "10min", "fpr": 0.01, "capacity": 3000},
    {"window": timedelta(minutes=10), "fpr": 1e-4, "capacity": 7, "lateness": "90s", "slack": "2min", "seed": 9},
]


@pytest.mark.parametrize("grow", ["cardinality", "density"])
@pytest.mark.parametrize("given_", GROWING, ids=["plain", "late"])
def test_attributes_of_a_growing_filter_agree(given_, grow):
    f, fixed = (lately.TimingBloomFilter(**given_, grow=choice) for choice in (grow, None))
    p = f.parameters
    limit = {"cardinality": "part_keys", "density": "part_timers"}[grow]
    assert {name: value for name, value in p.items() if name != limit} == fixed.parameters
    assert 0.8 * fixed.fpr < f.fpr <= fixed.fpr
    assert (f.slack, f.npws, f.capacity, f.lateness) == (fixed.slack, fixed.npws, fixed.capacity, fixed.lateness)
    assert (f.parts, fixed.parts, f.nbytes) == (1, 1, fixed.nbytes + 24)
    again = timers(**{k: v for k, v in given_.items() if k not in ("fpr", "slack")}, **p)
    assert (again.to_bytes(), repr(again), again.fpr) == (f.to_bytes(), repr(f), f.fpr)

    n = 30 * f.capacity
    f.insert(np.arange(n), at=5.0)
    assert 15 < f.parts < 40
    assert f.nbytes == 16 + f.parts * (fixed.nbytes + 8) == len(f.to_bytes()) - len(f.__reduce_ex__(5)[1][0])
    assert f.fill.shape == (f.parts * p["k"],)
    assert f.query(np.arange(n), at=605.0).all()
    copy, big = f.copy(), f.parts
    f.add("later", at=10_000.0)
    assert (f.parts, f.nbytes, copy.parts) == (1, fixed.nbytes + 24, big)
    assert copy.query(np.arange(n), at=605.0).all()
    with pytest.raises(ValueError, match="cannot merge these filters: timing filters that grow"):
        copy.union(copy)


@pytest.mark.parametrize("grow", ["cardinality", "density"])
def test_a_hundred_times_the_plan_costs_memory_for_a_while_and_no_key(grow):
    f = lately.TimingBloomFilter("60s", 0.01, capacity=150, grow=grow)
    rates = np.repeat([2.5, 250.0, 2.5], [750, 15_000, 750])
    at, parts = np.cumsum(1 / rates), []
    for start in range(0, len(at), 125):
        now = at[start : start + 125][-1]
        f.insert(np.arange(start, min(start + 125, len(at))), at=at[start : start + 125])
        assert f.query(np.nonzero((at >= now - 60) & (at <= now))[0], at=now).all()
        assert f.false_positive_rate() <= 1.3 * (1 - (1 - f.fpr) ** f.parts)
        parts.append(f.parts)
    assert max(parts[:6]) <= 2
    assert 60 < max(parts) < 110
    assert parts[-1] <= 2
