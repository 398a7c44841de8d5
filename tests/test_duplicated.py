"""The one-liner against an exact window, for columns, frames, iterators and times of every kind."""

import math
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest

import lately
from lately._families import FAMILIES
from support.exact import check

# The same mistakes in every run.
duplicated = partial(lately.duplicated, seed=0)


def stream(n, seed=0):
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, n * n, n)
    again = rng.random(n) < 0.5
    return np.where(again, keys[np.arange(n) - np.minimum(rng.geometric(3 / n, n), np.arange(n))], keys)


COUNTED = {name: family for name, family in FAMILIES.items() if family.windows in ("any", "insertions")}
TIMED = {name: family for name, family in FAMILIES.items() if family.windows != "insertions"}


@cache
def rows():
    """The planner's row of each family; its own window and rate do not matter."""
    plans = lately.plan("77s", 0.3, capacity=77), lately.plan(77, 0.3)
    return {row.name: row for plan in plans for row in plan.choices}


def choice(name):
    """The planner's row of a family, or else its name."""
    return rows().get(name, name)


@pytest.mark.parametrize("refresh", [True, False, "delivered"])
@pytest.mark.parametrize("name", COUNTED)
def test_insertions_in_every_family(name, refresh):
    keys, window, fpr = stream(8000), 500, 0.01
    answers = duplicated(keys, window, fpr=fpr, refresh=refresh, filter=name)
    made = COUNTED[name].make(window, fpr=fpr)
    assert answers.tolist() == made.duplicated(keys, refresh=refresh).tolist()
    assert answers.dtype == bool
    by_row = duplicated(keys, window, fpr=fpr, refresh=refresh, filter=choice(name))
    assert answers.tolist() == by_row.tolist()
    if COUNTED[name].promise:
        assert check(keys.tolist(), answers, window, made.slack, refresh, fpr)[0] > 2000


@pytest.mark.parametrize("kind", dict.fromkeys(family.kind for family in COUNTED.values()))
def test_a_class_is_planned_in_its_own_layout(kind):
    keys, window, fpr = stream(2000), 500, 0.01
    made = kind(window, fpr)
    assert duplicated(keys, window, fpr=fpr, filter=kind).tolist() == made.duplicated(keys).tolist()


BURST = 40_000
SPREADS = {
    "one moment": np.full(BURST, 1e9),
    "one second": 1e9 + np.sort(np.random.default_rng(2).random(BURST)),
    "a second after an hour of quiet": np.append(
        1e9 + np.arange(100) * 36, 1e9 + 3600 + np.linspace(0, 1, BURST - 100)
    ),
    "one time for all": 1e9,
}


@pytest.mark.parametrize(
    ("spread", "name"),
    [
        *((spread, None) for spread in SPREADS),
        *(("a second after an hour of quiet", name) for name in TIMED if name != "time-limited"),
    ],
)
def test_bursts_keep_the_rate(spread, name):
    keys, at, fpr = np.arange(BURST), SPREADS[spread], 0.01
    marked = int(duplicated(keys, "1h", fpr=fpr, at=at, **({"filter": choice(name)} if name else {})).sum())
    assert marked <= BURST * fpr + 6 * math.sqrt(BURST * fpr)
    assert duplicated(np.append(keys[:100], keys[:100]), "1h", at=at if np.isscalar(at) else at[:200])[100:].all()


def test_an_empty_column_has_an_empty_mask():
    for keys in ([], (), iter([]), np.array([], np.int64), pd.Series([], dtype=object)):
        for options in ({"window": 5}, {"window": "5s", "at": []}, {"window": "5s", "at": 0}):
            answers = duplicated(keys, **options)
            assert (answers.shape, answers.dtype) == ((0,), np.dtype(bool))


def test_a_window_larger_than_the_column_costs_no_more_than_the_column():
    keys = np.append(np.arange(1000), np.arange(1000))
    for window in (2000, 10**9, 2**62, 2**100):
        assert duplicated(keys, window)[1000:].all()


def test_seeds_choose_the_mistakes():
    keys = np.arange(20_000)
    first, again, other = (duplicated(keys, 5000, fpr=0.2, seed=seed) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_a_key_that_never_stops_comes_through_again_and_again():
    passed = np.flatnonzero(~lately.duplicated(["a"] * 100_000, window=10, refresh=False, filter=lately.Swamp))
    assert (np.diff(passed) == 11).all()
    assert len(passed) == math.ceil(100_000 / 11)
    passed = np.flatnonzero(~lately.duplicated(["a"] * 100_000, window=10, refresh=False))
    slack = lately.AgePartitionedBloomFilter(10, 0.001).slack
    assert ((np.diff(passed) > 10) & (np.diff(passed) <= 10 + slack + 1)).all()
    assert (~lately.duplicated(["a"] * 1000, window=10, refresh="delivered")).sum() == 1


def test_numpys_bools_are_bools():
    f = lately.BloomFilter(100, 0.01)
    for refresh in (np.True_, np.False_):
        f.duplicated(["a"], refresh=refresh)
