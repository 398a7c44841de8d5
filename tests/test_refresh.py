"""Keys that pass again without `refresh`, beside an exact model: in every family, by insertions and by times."""

import math

import numpy as np
import pytest

import lately
from lately._families import EVERY, FAMILIES
from support.exact import check

FPR = 0.001
COUNTED = [name for name, family in EVERY.items() if family.promise and family.windows in ("any", "insertions")]
TIMED = [name for name, family in FAMILIES.items() if family.promise and family.windows != "insertions"]
TIMES = {"capacity": 2000, "fpr": FPR}


def stream(n, seed=1):
    """Thirty keys that come all the time, some of them much more often than others, and others that come once."""
    rng = np.random.default_rng(seed)
    hot = np.minimum(rng.geometric(0.15, n) - 1, 29)
    return np.where(rng.random(n) < 0.9, hot, np.arange(n) + 1000)


def test_a_key_that_never_stops_comes_through_again_and_again():
    passed = np.flatnonzero(~lately.duplicated(["a"] * 100_000, window=10, refresh=False, filter=lately.Swamp))
    assert (np.diff(passed) == 11).all()
    assert len(passed) == math.ceil(100_000 / 11)
    passed = np.flatnonzero(~lately.duplicated(["a"] * 100_000, window=10, refresh=False))
    slack = lately.AgePartitionedBloomFilter(10, FPR).slack
    assert ((np.diff(passed) > 10) & (np.diff(passed) <= 10 + slack + 1)).all()
    assert (~lately.duplicated(["a"] * 1000, window=10, refresh="delivered")).sum() == 1


@pytest.mark.parametrize("refresh", [True, False, "delivered"])
@pytest.mark.parametrize("name", COUNTED)
def test_insertions_beside_an_exact_model(name, refresh):
    """With "delivered", the window is of the keys let through (paper 4, definition 4)."""
    for window, n in ((1, 2000), (2, 2000), (64, 2000), (65, 2000), (500, 20_000)):
        keys = stream(n)
        f = EVERY[name].make(window, fpr=FPR)
        reported = f.duplicated(keys, refresh=refresh, threads=2)
        _, again = check(keys.tolist(), reported, window, f.slack, refresh, FPR)
        if refresh is False and window > 65:
            assert again > 30 * n / (window + f.slack + 1) / 2
        assert f.inserted == ((~reported).sum() if refresh == "delivered" else n)
        assert again or refresh is True


@pytest.mark.parametrize("name", TIMED)
def test_times_beside_an_exact_model(name):
    keys, window = stream(40_000), 100.0
    at = 1_600_000_000 + np.cumsum(np.random.default_rng(2).exponential(0.05, len(keys)))
    for threads in (1, 2):
        f = FAMILIES[name].make("100s", **TIMES, lateness="0s")
        reported = f.duplicated(keys, at=at, refresh=False, threads=threads)
        # Of the time-limited filter the rate is that of a steady rate of keys.
        assert check(keys.tolist(), reported, window, f.slack + 1e-6, False, 10 * FPR, at.tolist())[1] > 30 * 2000 / 250
        assert f.inserted == len(keys)
        again = FAMILIES[name].make("100s", **TIMES, lateness="0s")
        assert again.duplicated(keys, at=at, refresh="delivered").tolist() == reported.tolist()


def test_numpys_bools_are_bools():
    f = lately.BloomFilter(100, 0.01)
    for refresh in (np.True_, np.False_):
        f.duplicated(["a"], refresh=refresh)
