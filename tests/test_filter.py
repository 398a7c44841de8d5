"""The filter's promise for its users: against an exact window, one by one and in batches, and with bad input."""

import copy
import itertools
import math
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time
from datetime import timedelta
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lately
from lately._families import EVERY
from support.planned import planned

plan = lately.AgePartitionedBloomFilter.from_parameters
plan_epochs = lately.GuardedEpochBloomFilter.from_parameters
FAMILIES = [lately.AgePartitionedBloomFilter, lately.GuardedEpochBloomFilter]
SLICED, TRANSPOSED = {"layout": "sliced"}, {"layout": "transposed"}
EVERY_LAYOUT = [
    *itertools.product(FAMILIES, [{}, {"block_bits": 64}, {"block_bits": 512}, {"layout": "line"}]),
    (lately.GuardedEpochBloomFilter, TRANSPOSED),
]
LAYOUTS = {
    "plain": {"slice_bits": 1500},
    "blocks of 512": {"blocks": 5, "block_bits": 512, "parts": 4},
    "blocks of 64": {"blocks": 25, "block_bits": 64, "parts": 2},
}
EPOCHS = {
    "epochs": {"k": 7, "segment_bits": 1500},
    "epochs in blocks of 512": {"blocks": 5, "block_bits": 512, "parts": 4},
    "epochs in blocks of 64": {"blocks": 25, "block_bits": 64, "parts": 2},
}


def epochs(window, _, r, layout, **others):
    """A guarded-epoch filter of r epochs."""
    return plan_epochs(window, r, **layout, **others)


def lines(window, k, l, **others):  # noqa: E741
    """A filter in lines of 8, 16 or 32 lanes, of as many pages as l, and one to four lines per key."""
    k = min(k, 4)
    lanes = 8 << l % 3
    return plan(window, k, lanes - k, pages=l, lines=1 + (k + l) % 4, **others)


def epochs_in_lines(window, k, l, **others):  # noqa: E741
    return plan_epochs(window, [7, 15, 31][k % 3], pages=l, lines=1 + l % 4, **others)


def transposed(window, k, l, **others):  # noqa: E741
    return plan_epochs(window, [7, 15, 31, 63][k % 4], k=7, positions=1500 + l, **others)


def timers(window, k, l, **others):  # noqa: E741
    """A timing filter of l blocks, with timers as narrow as these allow."""
    bpt = (l + 1).bit_length()
    return lately.TimingBloomFilter.from_parameters(window, k, bpt, blocks=l, slice_timers=1500, **others)


def timers_in_lines(window, k, l, **others):  # noqa: E741
    """The same in one line or two of a few pages."""
    lines, bpt = 1 + l % 2, (l + 1).bit_length()
    k = max(lines, min(k, 8 * lines))
    return lately.TimingBloomFilter.from_parameters(window, k, bpt, blocks=l, pages=1 + l % 3, lines=lines, **others)


def aged(window, k, l, **others):  # noqa: E741
    """Fingerprints with tags of three bits or more, in a small page or two whole ones."""
    size = {"pages": 2} if l % 2 else {"pages": 1, "lines": 9 + l}
    return lately.AgedQuotientFilter.from_parameters(window, 5 + k, 3 + l % 4, **size, **others)


# From a window, with k and l (or r, or blocks) from a pair of small numbers.
PLANS = {name: partial(plan, **layout) for name, layout in LAYOUTS.items()}
PLANS |= {name: partial(epochs, layout=layout) for name, layout in EPOCHS.items()}
PLANS |= {"lines": lines, "epochs in lines": epochs_in_lines, "transposed": transposed}
PLANS |= {"timers": timers, "timers in lines": timers_in_lines, "aged": aged}
COUNTED = {name: lambda make=make: make(300, 4, 6) for name, make in PLANS.items()}
COUNTED["timers of one insertion"] = lambda: timers(300, 4, 299)
COUNTED["timers of one insertion in lines"] = lambda: timers_in_lines(300, 10, 299)
COUNTED["fingerprints"] = lambda: lately.baselines.FingerprintBuffer.from_parameters(300, fingerprint_bits=13)
COUNTED["counting"] = lambda: lately.baselines.CountingBloomFilter.from_parameters(300, k=3, slice_cells=700)
COUNTED["stable"] = lambda: lately.baselines.StableBloomFilter.from_parameters(
    300, k=2, slice_cells=1500, bits=2, decrements=20
)
COUNTED["bloom"] = lambda: lately.BloomFilter.from_parameters(5000, k=4, bits=30_000)
COUNTED["bloom in slices"] = lambda: lately.BloomFilter.from_parameters(5000, k=4, slice_bits=7500)
COUNTED["generalized"] = lambda: lately.baselines.GeneralizedBloomFilter.from_parameters(300, bits=2000, k1=2, k0=3)
COUNTED["swamp"] = lambda: lately.Swamp.from_parameters(300, slots=320, remainder_bits=4)
TIMED = {name: lambda make=make: make("60s", 3, 5, capacity=300, lateness="7s") for name, make in PLANS.items()}
limited_plan = partial(lately.TimeLimitedBloomFilter.from_parameters, slice_bits=512)
TIMED["timers growing by keys"] = lambda: timers("60s", 3, 5, capacity=300, lateness="7s", part_keys=100)
TIMED["timers growing by density"] = lambda: timers("60s", 3, 5, capacity=300, lateness="7s", part_timers=600)
TIMED["time-limited"] = lambda: limited_plan("60s", 3, 5, lateness="7s")


def stream(n):
    """Keys with repeats near and far, within batches and across them."""
    rng = np.random.default_rng(n)
    keys = rng.integers(0, 2 * n, n)
    repeats = rng.random(n) < 0.5
    back = np.minimum(rng.geometric(0.01, n), np.arange(n))
    keys[repeats] = keys[np.arange(n) - back][repeats]
    return keys


def times(n):
    """Steps within a generation, over several, and beyond all that a filter remembers; some keys late."""
    rng = np.random.default_rng(n)
    steps = rng.choice([0, 0.05, 0.2, 13, 30, 55, 500, 1e5], n, p=[0.3, 0.5, 0.19, 0.004, 0.003, 0.002, 0.0007, 0.0003])
    return 1_700_000_000 + np.cumsum(steps) - rng.choice([0, 1, 7], n, p=[0.8, 0.1, 0.1])


def bound(n, rate):
    """Most successes of n trials: exceeded with a chance below 1e-6 where n * rate is 1 or more."""
    return n * rate + 6 * math.sqrt(n * rate) + 6


# ------------------------------------------------------------------------------------------------ batches and loops

N = 9001
SIZES = [1, 2, 3, 15, 16, 17, 4095, 4096, 4097, N]


@pytest.mark.parametrize("refresh", [True, False, "delivered"])
@pytest.mark.parametrize("name", COUNTED)
def test_a_batch_is_its_keys_one_by_one(name, refresh):
    keys = stream(N)
    one_by_one = COUNTED[name]()
    seen = []
    for key in keys.tolist():
        seen.append(key in one_by_one)
        if refresh is True or not seen[-1]:
            one_by_one.add(key)
        elif not refresh:
            one_by_one.duplicated([key], refresh=False)  # the window goes on without an insertion
    assert 0.2 < np.mean(seen) < 0.8
    for size in SIZES:
        f, inserting = COUNTED[name](), COUNTED[name]()
        got = []
        for start in range(0, N, size):
            got.append(f.duplicated(keys[start : start + size], refresh=refresh))
            inserting.insert(keys[start : start + size])
        assert np.concatenate(got).tolist() == seen, size
        assert f.to_bytes() == one_by_one.to_bytes(), size
        assert inserting.inserted == N
        if refresh is True:
            assert inserting.to_bytes() == f.to_bytes(), size


@pytest.mark.parametrize("refresh", [True, False])
@pytest.mark.parametrize("name", TIMED)
def test_a_batch_is_its_keys_one_by_one_in_time(name, refresh):
    keys, at = stream(N), times(N)
    one_by_one = TIMED[name]()
    seen = []
    for key, moment in zip(keys.tolist(), at.tolist(), strict=True):
        present = bool(one_by_one.query([key], at=moment)[0])
        seen.append(present)
        if refresh or not present:
            one_by_one.insert([key], at=[moment])
        else:
            one_by_one.duplicated([key], at=moment, refresh=False)  # time goes on without an insertion
    assert 0.2 < np.mean(seen) < 0.8
    for size in SIZES:
        f, inserting = TIMED[name](), TIMED[name]()
        got = []
        for start in range(0, N, size):
            part = slice(start, start + size)
            got.append(f.duplicated(keys[part], at=at[part], refresh=refresh))
            inserting.insert(keys[part], at=at[part])
        assert np.concatenate(got).tolist() == seen, size
        assert f.to_bytes() == one_by_one.to_bytes(), size
        if refresh:
            assert inserting.to_bytes() == f.to_bytes(), size


@pytest.mark.parametrize("name", TIMED)
def test_a_batch_of_queries_is_its_keys_one_by_one_at_any_times(name):
    f = TIMED[name]()
    at = np.arange(400) / 5
    f.insert(np.arange(400), at=at)
    keys = np.tile(np.arange(500), 20)
    asked = 73 + np.random.default_rng(1).choice([0, 3, 20, 70, 150, 1e6, 9e9], len(keys))
    before = f.to_bytes()
    one_by_one = [bool(f.query([key], at=moment)[0]) for key, moment in zip(keys.tolist(), asked.tolist(), strict=True)]
    for size in SIZES:
        parts = [f.query(keys[i : i + size], at=asked[i : i + size]) for i in range(0, len(keys), size)]
        assert np.concatenate(parts).tolist() == one_by_one
    assert f.to_bytes() == before
    assert 0.1 < np.mean(one_by_one) < 0.9


# ------------------------------------------------------------------------------------------------ an exact window


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
    f = make(timedelta(seconds=window), *shape, capacity=50, lateness=timedelta(seconds=lateness), ahead=None)
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
        for asked in (latest - lateness, latest, latest + window // 2, latest + window):
            if last:
                kept = [key for key, moment in last.items() if asked - moment <= window]
                assert f.query(kept, at=asked).all()


@pytest.mark.parametrize(("family", "layout"), EVERY_LAYOUT)
def test_keys_beyond_window_and_slack_are_reported_at_most_at_the_rate(family, layout):
    for window, fpr in [(1000, 0.05), (20_000, 0.01)]:
        f = planned(family, window, fpr, **layout)
        n = 10 * window
        for start in range(0, n, window // 3):
            f.insert(np.arange(start, min(start + window // 3, n)))
        gone = np.arange(n - f.window - f.slack)
        assert f.query(np.arange(n - window, n)).all()
        assert f.query(gone).sum() <= bound(len(gone), fpr)
        never = np.arange(n, 2 * n)
        assert f.query(never).sum() <= bound(n, fpr)


@pytest.mark.parametrize("layout", [{"slice_bits": 10**6}, {"blocks": 20_000}])
def test_the_window_and_the_slack_are_exact(layout):
    """With hardly a bit set nothing is reported by chance: what is reported is what the filter holds."""
    for k, l in [(1, 1), (1, 6), (4, 6), (5, 2)]:  # noqa: E741
        f = plan(100, k, l, **layout)
        reported = set()
        for n in range(700):
            f.add(n)
            present = f.query(np.arange(n, -1, -1))
            assert present[:100].all()
            reported.add(int(present.sum()))
        ages = max(reported)
        generation = -(-99 // l)
        assert ages == generation * (l + 1) <= f.window + f.slack == generation * (k + l)


# ------------------------------------------------------------------------------------------------ time


@pytest.mark.parametrize("name", TIMED)
def test_keys_expire_while_nothing_is_inserted(name):
    f = TIMED[name]()
    keys = np.arange(50)
    f.insert(keys, at=1000)
    before = f.to_bytes()
    assert f.query(keys, at=1000 + f.window).all()
    end = 1000 + f.window + f.slack
    assert not f.query(keys, at=math.nextafter(end, math.inf) + 1e-6).any()
    assert not f.query(keys, at=9e9).any()
    assert f.to_bytes() == before
    again = f.query(keys, at=[1000 + f.window] * 25 + [9e9] * 25)
    assert again.tolist() == [True] * 25 + [False] * 25


def test_the_moment_is_now_when_nobody_says():
    f = lately.AgePartitionedBloomFilter("1h", 0.001, capacity=100)
    start = time.time()
    f.add("a")
    f.insert(["b"])
    assert "a" in f
    assert f.duplicated(["b", "c"]).tolist() == [True, False]
    assert f.query(["a"], at=start + 3600).all()
    assert not f.query(["a"], at=start + 3600 + f.slack + 60).any()
    short = lately.AgePartitionedBloomFilter("20ms", 0.001, capacity=100, slack="20ms")
    short.add("a")
    time.sleep(0.05)
    assert "a" not in short


def test_now_is_never_late_even_when_time_ran_ahead():
    f = lately.AgePartitionedBloomFilter("1h", 0.001, capacity=100, ahead=None)
    ahead = time.time() + 1e6
    f.add("a", at=ahead)
    f.add("b")
    assert "a" in f
    assert "b" in f
    assert f.query(["b"], at=ahead + 3600).all(), "taken as of the latest time seen"


def test_the_ends_of_time():
    for window in ("1ns", "3ns", "1s", "40000d"):
        f = plan(window, k=2, l=3, slice_bits=500, capacity=10, ahead=None)
        for at in (np.datetime64(-(2**63) + 1, "ns"), 0, np.datetime64(2**63 - 1, "ns")):
            f.insert(["a"], at=at)
            assert f.query(["a"], at=at).all()
            assert f.duplicated(["a", "a"], at=at).all()
        assert lately.from_bytes(f.to_bytes()).to_bytes() == f.to_bytes()


NAT = np.array(["2026-01-01", "NaT"], "M8[ns]")


@pytest.mark.parametrize("call", ["insert", "query", "duplicated"])
@pytest.mark.parametrize(
    ("at", "kind", "words"),
    [
        ([1000.0, math.nan], ValueError, r"at\[1\] is missing"),
        (NAT, ValueError, r"at\[1\] is missing"),
        ([1000, None], ValueError, r"at\[1\] is missing"),
        (math.nan, ValueError, "at is missing"),
        ([1000, 1e12], ValueError, r"at\[1\] is 1e12, outside|at\[1\] is 1000000000000.0, outside"),
        ([1000.0], ValueError, "at has 1 times for 2 keys"),
        ([1000, 1001, 1002], ValueError, "at has 3 times for 2 keys"),
        ([[1000, 1001]], ValueError, "at must have one dimension"),
        (["yesterday", "today"], ValueError, r"at\[0\] is 'yesterday'"),
        ([1000, 992.5], ValueError, r"at\[1\] lies 7.5 s before the latest time seen, but lateness is 7 s"),
        (992.0, ValueError, r"at\[0\] lies 8 s before"),
        (True, TypeError, "at is of type bool"),
    ],
)
def test_times_that_cannot_be_are_refused_and_change_nothing(call, at, kind, words):
    f = TIMED["plain"]()
    f.insert(["x"], at=1000)
    before = f.to_bytes()
    if call == "query" and "lies 7.5" in words:
        at, words = [1000, 992.5], r"at\[1\] lies 7.5 s before"
    with pytest.raises(kind, match=words):
        getattr(f, call)(["a", "b"], at=at)
    assert f.to_bytes() == before


def test_a_late_key_deep_in_a_batch_refuses_the_whole_batch():
    f = TIMED["plain"]()
    at = np.arange(10_000.0)
    at[9000] -= 8.5
    before = f.to_bytes()
    for call in (f.insert, f.duplicated):
        with pytest.raises(ValueError, match=r"at\[9000\] lies 7.5 s before"):
            call(np.arange(10_000), at=at)
        assert f.to_bytes() == before
    at[9000] = at[8999] - 7
    f.insert(np.arange(10_000), at=at)


def test_a_bad_key_deep_in_a_batch_changes_nothing():
    f = COUNTED["plain"]()
    before = f.to_bytes()
    for call in (f.insert, f.duplicated, f.query):
        with pytest.raises(TypeError, match="complex"):
            call([*range(5000), 1j])
    with pytest.raises(TypeError, match="complex"):
        f.add(1j)
    with pytest.raises(TypeError, match="complex"):
        1j in f  # noqa: B015
    assert f.to_bytes() == before


def test_at_is_for_windows_of_time():
    f = COUNTED["plain"]()
    for call in (f.insert, f.query, f.duplicated):
        with pytest.raises(ValueError, match="at is for windows of time"):
            call(["a"], at=5)
    with pytest.raises(ValueError, match="at is for windows of time"):
        f.add("a", at=5)
    assert f.inserted == 0


def test_empty_batches_are_nothing():
    for f, at in ((COUNTED["plain"](), {}), (TIMED["plain"](), {"at": []})):
        before = f.to_bytes()
        f.insert([], **at)
        assert f.query([], **at).shape == f.duplicated([], **at).shape == (0,)
        assert f.query([], **at).dtype == bool
        assert f.to_bytes() == before


# ------------------------------------------------------------------------------------------------ construction

COUNT, TIME = {"window": 1000, "fpr": 0.01}, {"window": "1min", "fpr": 0.01, "capacity": 100}


@pytest.mark.parametrize(
    ("base", "change", "kind", "name"),
    [
        *((COUNT, {"window": w}, ValueError, "window") for w in (0, -1, 2**62 + 1, 2**64, 2**200, "x", "", "-1s")),
        *(
            (COUNT, {"window": w}, TypeError, "window")
            for w in (1000.5, math.nan, math.inf, True, None, [5], b"10", 1j)
        ),
        (COUNT, {"window": np.timedelta64("NaT", "s")}, ValueError, "window"),
        (COUNT, {"window": timedelta(seconds=-1)}, ValueError, "window"),
        *((COUNT, {"fpr": p}, ValueError, "fpr") for p in (0, 1, -0.1, 1.5, math.nan, math.inf, -math.inf, True)),
        *((COUNT, {"fpr": p}, TypeError, "fpr") for p in ("0.1", None, [0.1])),
        (COUNT, {"nbytes": 10_000}, TypeError, "nbytes"),
        *(({"window": 1000}, {"nbytes": b}, ValueError, "nbytes") for b in (-1, 0, 1, 23, 2**60 + 1, 2**64, 2**100)),
        *(({"window": 1000}, {"nbytes": b}, TypeError, "nbytes") for b in (10_000.5, "1 MiB", None)),
        *((COUNT, {"slack": s}, ValueError, "slack") for s in (-1, 0, 7, 2**64)),
        *((COUNT, {"slack": s}, TypeError, "slack") for s in (100.5, "1min", timedelta(1))),
        *((TIME, {"slack": s}, ValueError, "slack") for s in ("0s", "1ns", "x", np.timedelta64("NaT", "s"))),
        *((TIME, {"slack": s}, TypeError, "slack") for s in (100, 1.5)),
        *(
            (COUNT, SLICED | {"block_bits": b}, ValueError, "block_bits")
            for b in (0, -1, 1, 63, 128, 513, 2**32, 2**100)
        ),
        *((COUNT, SLICED | {"block_bits": b}, TypeError, "block_bits") for b in ("512", 512.5)),
        (COUNT, SLICED | {"block_bits": 64}, ValueError, "made by from_parameters"),
        *((COUNT, {"layout": x}, ValueError, "layout") for x in ("lines", "", "Line")),
        *((COUNT, {"layout": x}, TypeError, "layout") for x in (1, b"line")),
        (COUNT, {"layout": "line", "block_bits": 512}, ValueError, "block_bits"),
        ({"window": 1000}, {"nbytes": 4095, "layout": "line"}, ValueError, "nbytes"),
        (COUNT, {"layout": "line", "slack": 1}, ValueError, "slack"),
        (COUNT, {"layout": "line", "window": 2**45}, ValueError, "fpr"),
        (COUNT, TRANSPOSED | {"block_bits": 512}, ValueError, "block_bits"),
        ({"window": 1000}, TRANSPOSED | {"nbytes": 63}, ValueError, "nbytes|layout"),
        (COUNT, TRANSPOSED | {"slack": 1}, ValueError, "slack|layout"),
        *((COUNT, {"seed": s}, ValueError, "seed") for s in (-1, 2**64, 2**100)),
        *((COUNT, {"seed": s}, TypeError, "seed") for s in ("0", 0.0, None)),
        (COUNT, {"capacity": 5}, ValueError, "capacity"),
        (COUNT, {"lateness": "5s"}, ValueError, "lateness"),
        *((TIME, {"capacity": c}, ValueError, "capacity") for c in (0, -1, 2**62 + 1, 2**64, 2**100)),
        *((TIME, {"capacity": c}, TypeError, "capacity") for c in (None, 1000.5, "many")),
        *((TIME, {"lateness": x}, ValueError, "lateness") for x in ("x", "-1s", timedelta(-1), "60000d")),
        *((TIME, {"lateness": x}, TypeError, "lateness") for x in (5, 0.5, True)),
        *((TIME, {"window": w}, ValueError, "window") for w in ("0s", "60000d", "200000d", "0.1ns")),
        (COUNT, {"window": 2**50}, MemoryError, "bytes"),
        (COUNT, {"window": 2**62}, ValueError, "fpr"),
        (TIME, {"capacity": 2**50}, MemoryError, "bytes"),
    ],
)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_parameter_that_cannot_be_is_named(family, base, change, kind, name):
    with pytest.raises(kind) as caught:
        family(**base | change)
    said = " ".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert caught.type is kind
    assert any(word in said for word in name.split("|")), said


GIVEN = {"window": 100, "k": 3, "l": 5, "slice_bits": 500}
GIVEN_EPOCHS = {"window": 100, "r": 5, "k": 3, "segment_bits": 500}


@pytest.mark.parametrize(
    ("change", "kind", "name"),
    [
        *(({name: x}, ValueError, name) for name in ("k", "l", "slice_bits") for x in (0, -1, 2**64, 2**100)),
        *(({name: x}, TypeError, name) for name in ("k", "l", "slice_bits") for x in (1.5, "1")),
        ({"k": 100, "l": 29}, ValueError, "k + l"),
        ({"slice_bits": None}, ValueError, "slice_bits, blocks and pages"),
        ({"blocks": 5}, ValueError, "slice_bits, blocks and pages"),
        ({"slice_bits": None, "blocks": 0}, ValueError, "blocks"),
        ({"slice_bits": None, "blocks": 5, "block_bits": 100}, ValueError, "block_bits"),
        ({"slice_bits": None, "blocks": 5, "parts": 3}, ValueError, "parts"),
        ({"slice_bits": None, "blocks": 5, "parts": 16}, ValueError, "parts"),
        ({"slice_bits": None, "pages": 0}, ValueError, "pages"),
        ({"slice_bits": None, "pages": 2**27}, ValueError, "pages must lie in 1..=134217727"),
        ({"slice_bits": None, "pages": 5, "l": 4}, ValueError, "k + l must be 8, 16 or 32"),
        ({"slice_bits": None, "pages": 5, "k": 5, "l": 11}, ValueError, "k must lie in 1..=4"),
        ({"slice_bits": None, "pages": 5, "lines": 5}, ValueError, "lines must lie in 1..=4"),
        ({"slice_bits": None, "pages": 5, "lines": "1"}, TypeError, "lines"),
        ({"pages": 5}, ValueError, "slice_bits, blocks and pages"),
        ({"slice_bits": 2**63}, ValueError, "slice_bits|2**60 bytes"),
        ({"slice_bits": 2**50}, MemoryError, "bytes"),
        ({"window": 0}, ValueError, "window"),
        ({"window": 5.5}, TypeError, "window"),
        ({"seed": -1}, ValueError, "seed"),
    ],
)
def test_a_parameter_of_the_paper_that_cannot_be_is_named(change, kind, name):
    with pytest.raises(kind) as caught:
        plan(**GIVEN | change)
    said = " ".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert any(word in said for word in name.split("|")), said


@pytest.mark.parametrize(
    ("change", "kind", "name"),
    [
        *(({name: x}, ValueError, name) for name in ("r", "k", "segment_bits") for x in (0, -1, 2**64, 2**100)),
        *(({name: x}, TypeError, name) for name in ("r", "k", "segment_bits") for x in (1.5, "1")),
        ({"r": 128}, ValueError, "r must lie in 1..=127"),
        ({"k": 65}, ValueError, "k must lie in 1..=64"),
        ({"segment_bits": 2}, ValueError, "segment_bits must be at least k=3"),
        ({"k": None}, ValueError, "k and segment_bits, blocks, pages, and k and positions"),
        ({"segment_bits": None}, ValueError, "k and segment_bits, blocks, pages, and k and positions"),
        ({"blocks": 5}, ValueError, "k and segment_bits, blocks, pages, and k and positions"),
        ({"k": None, "segment_bits": None, "blocks": 0}, ValueError, "blocks"),
        ({"k": None, "segment_bits": None, "blocks": 5, "block_bits": 100}, ValueError, "block_bits"),
        ({"k": None, "segment_bits": None, "blocks": 5, "parts": 3}, ValueError, "parts"),
        ({"k": None, "segment_bits": None, "pages": 5}, ValueError, "r must be 7, 15 or 31"),
        ({"k": None, "segment_bits": None, "pages": 0, "r": 7}, ValueError, "pages"),
        ({"k": None, "segment_bits": None, "pages": 5, "r": 7, "lines": 0}, ValueError, "lines"),
        ({"pages": 5}, ValueError, "k and segment_bits, blocks, pages, and k and positions"),
        ({"positions": 500}, ValueError, "k and segment_bits, blocks, pages, and k and positions"),
        ({"segment_bits": None, "positions": 500}, ValueError, "r must be 7, 15, 31 or 63"),
        ({"segment_bits": None, "positions": 2, "r": 7}, ValueError, "positions must be at least k=3, got 2"),
        ({"segment_bits": None, "positions": 500, "r": 7, "k": None}, ValueError, "k and positions"),
        ({"segment_bits": None, "positions": -1, "r": 7}, ValueError, "positions"),
        ({"segment_bits": None, "positions": "500", "r": 7}, TypeError, "positions"),
        ({"segment_bits": None, "positions": 2**50, "r": 7}, MemoryError, "bytes"),
        ({"segment_bits": 2**63}, ValueError, "2**60 bytes"),
        ({"segment_bits": 2**50}, MemoryError, "bytes"),
        ({"window": 0}, ValueError, "window"),
        ({"seed": -1}, ValueError, "seed"),
    ],
)
def test_a_parameter_of_paper_2_that_cannot_be_is_named(change, kind, name):
    with pytest.raises(kind) as caught:
        plan_epochs(**GIVEN_EPOCHS | change)
    said = " ".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert name in said, said


def test_the_base_class_is_not_constructed():
    with pytest.raises(TypeError):
        lately.Filter()


def test_plain_guarded_epochs_are_made_by_from_parameters_alone():
    with pytest.raises(ValueError, match="made by from_parameters"):
        lately.GuardedEpochBloomFilter(1000, 0.01, layout="sliced")
    with pytest.raises(ValueError, match="block_bits does not apply"):
        lately.GuardedEpochBloomFilter(1000, 0.01, block_bits=512)
    assert "positions" in lately.GuardedEpochBloomFilter(1000, 0.01).parameters


class Named(lately.AgePartitionedBloomFilter):
    """A subclass as a user may write it."""


@pytest.mark.parametrize("protocol", range(6))
def test_a_class_of_the_user_stays_what_it_is(protocol):
    f = Named(1000, 0.01)
    f.name = "clicks"
    f.add("a")
    again = pickle.loads(pickle.dumps(f, protocol=protocol))
    for one in (again, f.copy(), copy.deepcopy(f)):
        assert type(one) is Named
        assert (one.name, one.to_bytes()) == ("clicks", f.to_bytes())
    assert type(f.union(again)) is type(Named.from_parameters(100, k=2, l=2, slice_bits=64)) is Named
    assert repr(again).startswith("<Named window=1000")


BUILT = [
    {"window": 1, "fpr": 0.1},
    {"window": 1000, "fpr": 0.001},
    {"window": 1000, "fpr": 0.001, "slack": 100},
    {"window": 5000, "fpr": 1e-6, "block_bits": 64, "seed": 5},
    {"window": np.int32(5000), "fpr": np.float32(0.01), "block_bits": np.int64(512), "seed": 2**64 - 1},
    {"window": 5000, "nbytes": 10_001},
    {"window": 5000, "nbytes": 60_000, "block_bits": 512, "slack": 5000},
    {"window": 20_000, "fpr": 0.01, "layout": "line", "seed": 3},
    {"window": 50_000, "nbytes": 131_071, "layout": "line", "slack": 9000},
    {"window": "10min", "fpr": 0.01, "capacity": 30_000, "lateness": "90s", "layout": "line"},
    {"window": "10min", "fpr": 0.01, "capacity": 3000},
    {"window": timedelta(minutes=10), "fpr": 0.01, "capacity": 3000, "lateness": "90s", "slack": "15min"},
    {"window": np.timedelta64(10, "m"), "nbytes": 5000, "capacity": 3000, "lateness": "1h", "block_bits": 64},
]


BUILT_TRANSPOSED = [
    TRANSPOSED | {"window": 1000, "fpr": 0.001, "slack": 100},
    TRANSPOSED | {"window": 5000, "nbytes": 10_001, "seed": 2**64 - 1},
    TRANSPOSED | {"window": "10min", "fpr": 0.01, "capacity": 3000, "lateness": "90s", "slack": "15min"},
]


@pytest.mark.parametrize(
    ("family", "given_"),
    [*itertools.product(FAMILIES, BUILT), *itertools.product([lately.GuardedEpochBloomFilter], BUILT_TRANSPOSED)],
    ids=lambda x: " ".join(f"{k}={v}" for k, v in x.items()) if isinstance(x, dict) else x.__name__,
)
def test_what_a_filter_says_of_itself_holds_together(family, given_):
    f = planned(family, **given_)
    p = f.parameters
    written, full = (p["k"], p["l"]) if "l" in p else (1, p["r"])
    timed = f.lateness is not None
    generation = f.slack + f.window
    kept = f.window + f.lateness if timed else f.window - 1
    assert generation / (written + full) >= kept / full * (1 - 1e-12)
    assert f.window == (600 if timed else given_["window"])
    assert f.capacity == given_.get("capacity", f.window)
    assert f.lateness == ({None: 0, "90s": 90, "1h": 3600}[given_.get("lateness")] if timed else None)
    assert f.seed == given_.get("seed", 0)
    assert f.fpr <= given_.get("fpr", 1)
    if timed:
        allowed = {None: f.lateness + (600 + f.lateness) / 2, "15min": 900}[given_.get("slack")]
    else:
        allowed = given_.get("slack", max(64, f.window / 2))
    assert f.slack <= allowed
    assert f.nbytes <= given_.get("nbytes", 2**60)
    assert f.bits_per_key == 8 * f.nbytes / f.capacity
    assert f.npws > 0
    assert set(f.cache_lines) == {"insert", "hit", "miss"}
    preamble, cells = f.__reduce_ex__(5)[1]
    assert f.nbytes == memoryview(cells).nbytes == len(f.to_bytes()) - len(preamble)
    assert f.fill.tolist() == [0.0] * (written + full)
    assert (f.inserted, f.false_positive_rate()) == (0, 0.0)
    assert repr(f).startswith(f"<{family.__name__} window={f.window}")
    assert f"nbytes={f.nbytes} inserted=0>" in repr(f)

    how = {k: v for k, v in given_.items() if k in ("window", "capacity", "lateness", "seed")}
    again = family.from_parameters(**how, **p)
    assert again.to_bytes() == f.to_bytes()
    assert (again.fpr, again.slack, repr(again)) == (f.fpr, f.slack, repr(f))

    at = {"at": 5.0} if timed else {}
    f.insert(np.arange(3), **at)
    assert f.inserted == 3
    assert f.fill[0] > 0
    assert (f.fill[written:] == 0).all() or f.window <= 3


@pytest.mark.parametrize(("family", "layout"), EVERY_LAYOUT)
def test_the_rate_by_the_bits_is_the_rate_that_is_measured(family, layout):
    f = planned(family, 5000, 0.02, **layout)
    for n in (100, 6000, 40_000):
        f.insert(np.arange(f.inserted, n))
        rate, trials = f.false_positive_rate(), 200_000
        measured = int(f.query(np.arange(10**6, 10**6 + trials)).sum())
        assert abs(measured - rate * trials) <= 5 * math.sqrt(rate * trials) + 5
        assert rate <= 1.2 * f.fpr


def test_memory_that_cannot_be_had_is_a_memory_error_that_says_how_much():
    for window in (2**50, 2**52):  # beyond the 2**47 bytes that a process can address, however generous the system is
        with pytest.raises(MemoryError, match=r"cannot allocate [0-9]{16,17} bytes"):
            lately.AgePartitionedBloomFilter(window, 0.01)


def test_seeds_make_filters_differ_and_processes_do_not():
    code = "import lately; f = {}; f.insert(range(500)); print(f.to_bytes().hex())"
    form = "lately.AgePartitionedBloomFilter(1000, 0.01, seed={})"
    here = {}
    for seed in (0, 1, 2**63):
        f = lately.AgePartitionedBloomFilter(1000, 0.01, seed=seed)
        f.insert(range(500))
        here[seed] = f.to_bytes()
    assert len({data[192:] for data in here.values()}) == 3, "the cells differ, not the header alone"
    for hash_seed, seed in (("1", 0), ("2", 2**63)):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        there = subprocess.run(
            [sys.executable, "-c", code.format(form.format(seed))], capture_output=True, text=True, env=environment
        )
        assert bytes.fromhex(there.stdout) == here[seed], there.stderr


# ------------------------------------------------------------------------------------------------ threads and signals


def together(*jobs):
    errors = []

    def guard(job):
        try:
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guard, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


@pytest.mark.parametrize("timed", [False, True])
def test_threads_lose_no_key(timed):
    each, batch = 40_000, 1000
    if timed:
        f = lately.AgePartitionedBloomFilter("1h", 0.01, capacity=4 * each)
    else:
        f = lately.AgePartitionedBloomFilter(4 * each, 0.01)

    def insert(start):
        for i in range(start, start + each, batch):
            f.insert(np.arange(i, i + batch))
            assert f.query(np.arange(start, i + batch)).all()
            f.fill, f.false_positive_rate(), f.copy(), repr(f)

    def add(start):
        for i in range(start, start + each // 4):
            f.add(i)
            assert i in f
        f.duplicated(np.arange(start + each // 4, start + each))

    together(*(lambda job=job, n=n: job(n * each) for n, job in enumerate((insert, add, insert, add))))
    assert f.inserted == 4 * each
    assert f.query(np.arange(4 * each)).all()


@pytest.mark.parametrize("n", [0, 1, 4096, 4097, 10 * 4096 + 1, (1 << 20) + 5000])
def test_threads_share_a_batch_and_answer_as_one(n):
    f = lately.AgePartitionedBloomFilter(100_000, 0.01)
    keys = np.random.default_rng(0).integers(0, 250_000, n)
    f.insert(np.arange(150_000))
    alone = f.query(keys)
    assert (n < 4096) or 0.3 < alone.mean() < 0.7, "an answer in the wrong place would be wrong"
    for threads in (1, 2, 3, 2**40):
        np.testing.assert_array_equal(f.query(keys, threads=threads), alone)
    with pytest.raises(TypeError, match="complex"):
        f.query([*range(n), 1j], threads=2)


def test_threads_share_moments_too():
    f = lately.AgePartitionedBloomFilter("1h", 0.01, capacity=1000)
    f.insert(range(1000), at=np.arange(1000))
    ask = np.random.default_rng(1).integers(0, 20_000, 50_001)
    alone = f.query(ask % 1000, at=ask + 1000)
    assert 0.1 < alone.mean() < 0.9
    np.testing.assert_array_equal(f.query(ask % 1000, at=ask + 1000, threads=2), alone)


EVERY_CLOCK = [
    pytest.param(partial(EVERY[name].make, window, **request), id=f"{name}, {window}")
    for name, family in EVERY.items()
    for window, request, takes in (
        (500, {}, ("any", "insertions")),
        ("1h", {"capacity": 500, "lateness": "30s"}, ("any", "time")),
        ("1h", {"lateness": "30s"}, ("unknown rate",)),
    )
    if family.windows in takes
]


def as_alone(make, calls, threads):
    """Send the same calls to two filters, one of which shares them among threads, and compare answers and bytes."""
    alone, shared = make(), make()
    for name, keys, options in calls:
        answers = getattr(alone, name)(keys, **options)
        np.testing.assert_array_equal(getattr(shared, name)(keys, **options, threads=threads), answers)
        assert shared.to_bytes() == alone.to_bytes()
    return alone


def calls(random, timed, sizes):
    """Batches whose keys repeat, within and across; in time some come late, after a gap, or all at once."""
    now = 0
    for n in sizes:
        for name, options in (("insert", {}), ("duplicated", {}), ("duplicated", {"refresh": False})):
            at = {}
            if timed:
                gaps = random.random(n) * 5
                gaps[random.integers(0, n, 3)] += random.choice([0, 100, 5000, 1e6])
                moments = now + np.cumsum(gaps)
                now = moments[-1]
                at = {"at": now if random.random() < 0.2 else moments - random.integers(0, 30, n) * (moments > 30)}
            yield name, random.integers(0, random.choice([200, 1000, n + 1]), n), options | at


@pytest.mark.parametrize("make", EVERY_CLOCK)
def test_threads_leave_the_filter_that_one_leaves(make):
    timed = make(fpr=0.01).lateness is not None
    filled = as_alone(partial(make, fpr=0.01), calls(np.random.default_rng(3), timed, [1, 5000, 17_000]), threads=3)
    assert filled.fill.max() > 0


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32),
    sizes=st.lists(st.integers(1, 60_000), min_size=1, max_size=3),
    window=st.sampled_from([1, 30, 1000, 20_000]),
    shape=st.tuples(st.integers(1, 4), st.integers(2, 90)),
    threads=st.integers(2, 6),
    timed=st.booleans(),
)
def test_threads_that_share_pages_leave_the_filter_that_one_leaves(seed, sizes, window, shape, threads, timed):
    # Steps of one insertion and of thousands, of milliseconds and of hours.
    spans = {"window": f"{window * 10}s", "capacity": window, "lateness": "30s"} if timed else {"window": window}
    make = partial(lines, k=shape[0], l=shape[1], **spans)
    as_alone(make, calls(np.random.default_rng(seed), timed, sizes), threads)


def test_threads_go_on_from_stretch_to_stretch():
    random = np.random.default_rng(4)
    sizes = [(1 << 18) + 5, (1 << 19) + 20_000]
    make = partial(lately.AgePartitionedBloomFilter, 100_000, 0.01, layout="line")
    as_alone(make, calls(random, False, sizes), threads=2)
    with pytest.raises(TypeError, match="complex"):
        make().insert([*range(20_000), 1j], threads=2)


def test_an_error_comes_before_threads_insert():
    f = lately.AgePartitionedBloomFilter("1h", 0.01, layout="line", capacity=1000)
    at = np.arange(1 << 19)
    at[-1] = 0
    for call in (f.insert, f.duplicated):
        with pytest.raises(ValueError, match="before the latest time seen"):
            call(at, at=at, threads=2)
    assert f.inserted == 0
    assert f.fill.max() == 0


@pytest.mark.parametrize(
    ("threads", "kind"),
    [(0, ValueError), (-1, ValueError), (2**64, ValueError), (2**200, ValueError), (1.5, TypeError), ("2", TypeError)],
)
def test_threads_that_cannot_be_are_refused(threads, kind):
    f = lately.AgePartitionedBloomFilter(1000, 0.01)
    for call in (f.query, f.insert, f.duplicated):
        with pytest.raises(kind, match="threads"):
            call([1], threads=threads)
    assert f.inserted == 0


def run(code):
    code = "import functools, lately, numpy as np, os, signal, sys, threading, time\n" + textwrap.dedent(code)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


def test_a_signal_handler_may_use_the_filter_in_the_middle_of_its_batch():
    done = run(
        """
        f = lately.AgePartitionedBloomFilter(100_000, 0.01, block_bits=512)
        called = 0
        def handle(*_):
            global called
            called += 1
            f.add("handled")
            assert "handled" in f
            f.duplicated([1, 2]), f.to_bytes(), f.copy(), repr(f)
        signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        many = np.broadcast_to(np.int64(7), 1 << 23)
        shared = functools.partial
        for call in (f.insert, f.query, shared(f.query, threads=2), f.duplicated, shared(f.duplicated, threads=2)):
            before = called
            call(many)
            assert called - before >= 3, "once may be after the call"
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert f.inserted == 3 * len(many) + 3 * called
        """
    )
    assert (done.stderr, done.returncode) == ("", 0)


def test_ctrl_c_stops_a_long_batch_and_leaves_a_filter():
    done = run(
        """
        f = lately.AgePartitionedBloomFilter(100_000, 0.01, block_bits=512)
        sent = []
        def interrupt():
            while f.inserted == 0:
                time.sleep(0.01)
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            f.insert(np.broadcast_to(np.int64(7), 1 << 40))
        except KeyboardInterrupt:
            took = time.monotonic() - sent[0]
        assert 0 < f.inserted < 1 << 40 and f.inserted % 4096 == 0
        assert 7 in f and "new" not in f
        f.add("new")
        assert "new" in f and lately.from_bytes(f.to_bytes()).to_bytes() == f.to_bytes()
        print(took)
        """
    )
    assert done.stderr == ""
    assert float(done.stdout) < 2, "20 ms on an idle machine"
