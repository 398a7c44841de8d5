"""Queries with `at` before the latest time: they answer as of that time.

That they miss no key is in `test_live_keys.py`.
"""

from functools import partial

import numpy as np
import pytest

import lately
from lately._families import FAMILIES

WINDOW, LATENESS, CAPACITY, FPR = 100, 100, 1000, 1e-4
GIVEN = {"capacity": CAPACITY, "lateness": f"{LATENESS}s", "max_ahead": None}
LAYOUTS = ["age-partitioned-line", "age-partitioned", "age-partitioned-512", "guarded-epoch-transposed"]
LAYOUTS += ["guarded-epoch-512", "timing", "timing-growing", "aged-cuckoo", "time-limited"]
MAKE = {name: partial(FAMILIES[name].make, f"{WINDOW}s", fpr=FPR, **GIVEN) for name in LAYOUTS} | {
    "aged-cuckoo, little slack": lambda: lately.AgedCuckooFilter(f"{WINDOW}s", FPR, slack="102s", **GIVEN),
    "chosen": lambda: lately.Filter(f"{WINDOW}s", FPR, **GIVEN),
}
EVERY = pytest.mark.parametrize("name", MAKE)
# Each key once in the 1000 s of the stream.
PRIOR = 1e-3


def stream(f):
    """Insert 10 keys a second for 1000 s; return the times of the keys, which are their numbers."""
    at = np.arange(10_000) / 10
    f.insert(np.arange(len(at)), at=at)
    return at


@EVERY
def test_a_late_repeat_is_probably_one(name):
    f = MAKE[name]()
    f.insert(["a"], at=1000)
    f.insert(["b"], at=1180)
    for at in (1085, [1085]):
        assert f.query(["a"], at=at).all()
        # Its generation may have opened before the window; then the filter cannot be sure.
        assert f.posterior(["a"], PRIOR, at=at)[0] > 0.5
        assert f.decide(["a"], PRIOR, at=at).all()
        assert f.age_probability(["a"], PRIOR, [0, WINDOW], at=at)[0, 0] > 0.5
        for kind in ("most_likely", "expected"):
            assert 0 <= f.age(["a"], PRIOR, kind, at=at)[0] < 185


@EVERY
def test_a_query_at_an_earlier_time_equals_one_of_a_longer_window_now(name):
    f = MAKE[name]()
    times = stream(f)
    keys = np.concatenate([np.arange(len(times) - 3000, len(times)), np.arange(10**6, 10**6 + 2000)])
    for late in (0.1, 20, 70, 100):
        at = round(times[-1] - late, 6)
        for window in (10, 60, WINDOW):
            late_one = f.posterior(keys, PRIOR, window=f"{window}s", at=at)
            longer = f.posterior(keys, PRIOR, window=f"{window + late}s", at=times[-1])
            assert np.allclose(late_one, longer, atol=1e-9)
        edges = np.array([0, 5, 40, 100, 150])
        shares = f.age_probability(keys, PRIOR, edges, at=at)
        shifted = f.age_probability(keys, PRIOR, [0, *(edges[1:] + late)], at=times[-1])
        assert np.allclose(shares, shifted, atol=1e-9)
        # A key that came after the moment has the age 0 there.
        for kind, slack in (("most_likely", 1e-6), ("expected", np.inf)):
            before, now = f.age(keys, PRIOR, kind, at=at), f.age(keys, PRIOR, kind)
            assert (before >= 0).all()
            assert (np.maximum(now - late, 0) <= before + 1e-6).all()
            assert (before <= np.maximum(now - late, 0) + slack).all()


@EVERY
def test_late_posteriors_are_calibrated(name):
    """Keys come as often as their prior states. Of keys with a posterior of p, p came since the window opened."""
    rng = np.random.default_rng(1)
    keys, seconds = 4000, 600
    rate = 10 / keys
    f = MAKE[name]()
    stream, times = rng.integers(0, keys, 10 * seconds), np.sort(rng.uniform(0, seconds, 10 * seconds))
    f.insert(stream, at=times)
    last = np.full(keys, -np.inf)
    np.maximum.at(last, stream, times)
    for late in (0, 40, 90):
        at = round(times[-1] - late, 6)
        posterior = f.posterior(np.arange(keys), rate, at=at)
        truth = last >= at - WINDOW
        # Sums of independent trials: within five standard deviations, and a little for what is approximated.
        spread = np.sqrt((posterior * (1 - posterior)).sum())
        assert abs(posterior.sum() - truth.sum()) <= 5 * spread + 0.01 * keys, (late, posterior.sum(), truth.sum())
        assert posterior[truth].mean() > 0.8
        assert posterior[~truth].mean() < 0.2


@pytest.mark.parametrize("make", [MAKE["aged-cuckoo"], MAKE["aged-cuckoo, little slack"], MAKE["timing"]])
def test_a_query_of_a_shorter_window_at_an_earlier_time_reports_few_keys_that_are_older(make):
    f = make()
    times = stream(f)
    for late in (0.1, 42, 100):
        at = round(times[-1] - late, 6)
        for window in (1, 20, 77, 100):
            gone = np.flatnonzero((times < at - window - 100) & (times > at - 600))
            assert f.query(gone, at=at, window=f"{window}s").mean() < 0.05


def test_an_exact_filter_answers_as_of_each_time():
    f = lately.ExactFilter("100s", lateness="100s", max_ahead=None)
    rng = np.random.default_rng(4)
    times, keys = np.sort(rng.uniform(0, 1000, 5000)), rng.integers(0, 2000, 5000)
    f.insert(keys, at=times)
    last = np.full(2000, -np.inf)
    np.maximum.at(last, keys, times)
    for late in (0, 10, 99.5):
        at = round(times[-1] - late, 6)
        # A key that came since then is reported too.
        assert (f.query(np.arange(2000), at=at) == (last >= at - WINDOW)).all()
        assert (f.query(np.arange(2000), at=np.full(2000, at)) == (last >= at - WINDOW)).all()
    assert all((key in f) == (last[key] >= times[-1] - WINDOW) for key in range(200))


@pytest.mark.parametrize("make", [MAKE["chosen"], lambda: lately.ExactFilter("100s", lateness="100s", max_ahead=None)])
def test_work_on_a_late_event_is_done_once(make):
    f = make()
    with f.once("a", at=1000) as claim:
        assert claim
    f.add("b", at=1180)
    for _ in range(2):
        with f.once("a", at=1085) as claim:
            assert claim.done
    with f.once("c", at=1085) as claim:
        assert claim
    with f.once("c", at=1085) as claim:
        assert claim.done
    assert f.seen("a", at=1085)
