"""No key of the window is missed, whatever the calls; older ones are reported at most at the rate."""

import math
from datetime import timedelta
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.planned import planned
from support.plans import EVERY_LAYOUT, PLANS, A, assert_rate_is_measured, limited_plan


@settings(max_examples=150)
@given(
    window=st.integers(1, 40),
    shape=st.tuples(st.integers(1, 5), st.integers(1, 8)),
    make=st.sampled_from(list(PLANS.values())),
    refresh=st.sampled_from([True, False, "delivered"]),
    batches=st.lists(st.lists(st.integers(0, 60), max_size=60), max_size=12),
)
def test_no_key_of_the_last_insertions_is_missed(window, shape, make, refresh, batches):
    f = make(window, *shape)
    last, inserted = {}, 0
    for batch in batches:
        for key, seen in zip(batch, f.duplicated(batch, refresh=refresh), strict=True):
            assert seen or inserted - last.get(key, -math.inf) > window
            if refresh is True or not seen:
                last[key] = inserted
            inserted += refresh != "delivered" or not seen
        assert f.inserted == inserted
        kept = [key for key, when in last.items() if inserted - when <= window]
        assert f.query(kept).all()


@settings(max_examples=150)
@given(
    window=st.integers(1, 40),
    lateness=st.integers(0, 30),
    shape=st.tuples(st.integers(1, 5), st.integers(1, 8)),
    make=st.sampled_from([*PLANS.values(), limited_plan]),
    refresh=st.booleans(),
    start=st.sampled_from([-9_000_000_000, -17, 0, 1_700_000_000, 9_000_000_000]),
    data=st.data(),
)
def test_no_key_of_the_last_while_is_missed(window, lateness, shape, make, refresh, start, data):
    f = make(timedelta(seconds=window), *shape, capacity=50, lateness=timedelta(seconds=lateness), max_ahead=None)
    last, latest = {}, start
    event = st.tuples(st.integers(0, 60), st.sampled_from([0, 1, 1, 2, 5, 20, 41, 300]), st.integers(0, lateness))
    for batch in data.draw(st.lists(st.lists(event, max_size=60), max_size=8)):
        keys, at = [key for key, _, _ in batch], []
        for _, step, late in batch:
            at.append(latest + step - late)
            latest = max(latest, at[-1])
        answers = f.duplicated(keys, at=np.array(at, np.int64), refresh=refresh)
        for key, moment, seen in zip(keys, at, answers, strict=True):
            assert seen or moment - last.get(key, -math.inf) > window
            if refresh or not seen:
                last[key] = max(moment, last.get(key, moment))
        for moment_of_query in (latest - lateness, latest, latest + window // 2, latest + window):
            if last:
                kept = [key for key, moment in last.items() if moment_of_query - moment <= window]
                assert f.query(kept, at=moment_of_query).all()


MAKERS = [
    *(partial(planned, name) for name in EVERY_LAYOUT),
    *(partial(planned, "timing", slack=slack) for slack in (None, 100, 0)),
]


@pytest.mark.parametrize("size", [{"slice_bits": 10**6}, {"blocks": 20_000, "block_bits": 512, "parts": 8}])
def test_the_window_and_the_slack_are_exact(size):
    """With hardly a bit set nothing is reported by chance: what is reported is what the filter holds."""
    for k, l in [(1, 1), (1, 6), (4, 6), (5, 2)]:  # noqa: E741
        f = A.from_parameters(100, k=k, l=l, **size)
        reported = set()
        for n in range(700):
            f.add(n)
            present = f.query(np.arange(n, -1, -1))
            assert present[:100].all()
            reported.add(int(present.sum()))
        ages = max(reported)
        generation = -(-99 // l)
        assert ages == generation * (l + 1) <= f.window + f.slack == generation * (k + l)


@pytest.mark.parametrize("make", MAKERS)
def test_the_rate_by_the_cells_is_the_rate_that_is_measured(make):
    assert_rate_is_measured(make(5000, 0.02))
