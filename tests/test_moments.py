"""A key comes at a time: it expires by itself, now is the default, and bad times change nothing."""

import math
import time

import numpy as np
import pytest

import lately
from support.plans import COUNTED, TIMED


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


def test_the_default_time_is_now():
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
    f = lately.AgePartitionedBloomFilter("1h", 0.001, capacity=100, max_ahead=None)
    ahead = time.time() + 1e6
    f.add("a", at=ahead)
    f.add("b")
    assert "a" in f
    assert "b" in f
    assert f.query(["b"], at=ahead + 3600).all(), "taken as of the latest time seen"


def test_the_ends_of_time():
    for window in ("1ns", "3ns", "1s", "40000d"):
        f = lately.AgePartitionedBloomFilter.from_parameters(
            window, k=2, l=3, slice_bits=500, capacity=10, max_ahead=None
        )
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
        (992.0, ValueError, "at lies 8 s before"),
        (True, TypeError, "at is of type bool"),
    ],
)
def test_impossible_times_are_rejected_and_change_nothing(call, at, kind, words):
    f = TIMED["plain"]()
    f.insert(["x"], at=1000)
    before = f.to_bytes()
    if call == "query" and "lies 7.5" in words:
        at, words = [1000, 992.5], r"at\[1\] lies 7.5 s before"
    with pytest.raises(kind, match=words):
        getattr(f, call)(["a", "b"], at=at)
    assert f.to_bytes() == before


@pytest.mark.parametrize("place", [0, 5000, 9000, 9999])
@pytest.mark.parametrize("bad", ["late", math.nan, math.inf, -math.inf, 1e10])
def test_a_bad_time_deep_in_a_batch_rejects_the_whole_batch(bad, place):
    f = TIMED["lines"]()
    at = np.arange(10_000.0)
    f.insert(["x"], at=0)
    at[place] = place - 8.5 if bad == "late" else bad
    before = f.to_bytes()
    words = (8.5 if place == 0 else 7.5, "s before") if bad == "late" else ("", "")
    for call in (f.insert, f.duplicated):
        with pytest.raises(ValueError, match=rf"at\[{place}\] (lies {words[0]} {words[1]}|is )"):
            call(np.arange(10_000), at=at)
        assert f.to_bytes() == before
    at[place] = max(place - 1, 0) - 7
    f.insert(np.arange(10_000), at=at)


@pytest.mark.parametrize("name", COUNTED)
def test_at_is_for_windows_of_time(name):
    f = COUNTED[name]()
    words = "at is for windows of time" + ("; this filter has no window" if f.window is None else "")
    for call in (f.insert, f.query, f.duplicated):
        with pytest.raises(ValueError, match=words):
            call(["a"], at=5)
    with pytest.raises(ValueError, match=words):
        f.add("a", at=5)
    assert f.inserted == 0


@pytest.mark.parametrize(
    "at",
    [
        np.array([b"\xfc"]),
        [b"\xfc"],
        b"\xfc",
        np.array(["\ud800"]),
        ["\ud800"],
        # NumPy makes strings of any memory: no code point is as large as these.
        np.frombuffer(b"\xff" * 8, "U2")[:1],
        np.frombuffer(b"\xff" * 8, "U2").astype(object),
    ],
    ids=range(7),
)
def test_a_time_of_bytes_or_letters_that_are_not_valid_is_an_error(at):
    f = lately.Filter("1h", 0.001, capacity=10)
    with pytest.raises((TypeError, ValueError), match=r"^at"):
        f.insert(["a"], at=at)
    assert f.inserted == 0
