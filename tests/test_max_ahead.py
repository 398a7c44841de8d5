"""Times ahead of the system's clock, and calls that come without a time."""

import pickle
import time
from datetime import timedelta
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import lately
from lately._families import FAMILIES
from lately.distributed import SlicedFilter

YEAR = 365 * 86_400.0
MAKE = {
    name: partial(FAMILIES[name].make, "1h", fpr=0.01, capacity=1000)
    for name in ("age-partitioned", "guarded-epoch-transposed", "timing", "timing-growing", "time-limited")
}
EVERY = pytest.mark.parametrize("name", MAKE)


def now():
    return time.time()


@EVERY
def test_one_time_of_a_wrong_clock_does_not_blind_the_filter(name):
    f = MAKE[name]()
    assert f.max_ahead == 3600.0
    f.insert(["before"], at=now())
    wrong = now() + 10 * YEAR
    for call in (
        lambda: f.insert(["x"], at=wrong),
        lambda: f.insert(["x"], at=[wrong]),
        lambda: f.duplicated(["x"], at=wrong),
        lambda: f.duplicated(["x"], at=wrong, threads=2),
        lambda: f.add("x", at=wrong),
    ):
        with pytest.raises(
            ValueError, match=r"at(\[0\])? lies 3153\d+.* s ahead of the system's clock, but max_ahead is 3600 s"
        ):
            call()
    for at, place in (([now(), now() + 5, wrong, wrong + 1], 2), ([now() + 9, wrong, now() + 5], 1)):
        with pytest.raises(ValueError, match=rf"at\[{place}\] lies 3153\d+.* ahead"):
            f.insert(range(len(at)), at=at)
    assert f.inserted == 1
    assert f.latest < np.datetime64("now") + np.timedelta64(1, "h")
    f.insert(["after"], at=now() + 1)
    assert f.query(["before", "after", "x"], at=now() + 1).tolist() == [True, True, False]
    # A question about the future changes nothing.
    assert not f.query(["before"], at=wrong)[0]


@EVERY
def test_max_ahead_sets_how_far_times_may_lie_ahead(name):
    MAKE[name]().insert(["x"], at=now() + 3590)
    MAKE[name](max_ahead="366 d").insert(["x"], at=now() + YEAR)
    with pytest.raises(ValueError, match="but max_ahead is 1 s"):
        MAKE[name](max_ahead=timedelta(seconds=1)).insert(["a", "x"], at=[now(), now() + 3])
    simulated = MAKE[name](max_ahead=None)
    assert simulated.max_ahead is None
    simulated.insert(range(100), at=np.linspace(0, 100, 100) + now() + 100 * YEAR)
    simulated.add("x", at=now() + 150 * YEAR)
    # A replay lies in the past, however long ago.
    MAKE[name]().insert(["x"], at=-1000.0)
    with pytest.raises(ValueError, match="max_ahead"):
        MAKE[name](max_ahead="soon")


@pytest.mark.parametrize("name", ["age-partitioned", "timing-growing"])
def test_times_that_creep_ahead_never_lie_more_than_max_ahead_after_the_clock(name):
    """Of a fresh filter too, and however small the steps: an hour of keys from an attacker, one a second."""
    for max_ahead in (0, 60, 86_400):
        f = MAKE[name](max_ahead=f"{max_ahead}s")
        for call in ("add", "seen", "insert", "duplicated"):
            one = call in ("add", "seen")
            step = max(max_ahead, 1) * 0.9
            for i in range(900):
                latest = now() if f.latest is None else max(now(), f.latest.astype(int) / 1e9)
                try:
                    getattr(f, call)(i if one else [i], at=latest + step)
                except ValueError:
                    step = max(step / 2, 0.001)
        reached = -np.inf if f.latest is None else f.latest.astype(int) / 1e9
        assert reached <= now() + max_ahead
        with pytest.raises(ValueError, match="ahead of the system's clock"):
            f.add("x", at=now() + max_ahead + 10)
        # Keys that are as far ahead go on being inserted.
        f.add("y", at=now() + max_ahead)


@pytest.mark.parametrize("name", ["age-partitioned", "guarded-epoch-transposed"])
def test_a_filter_ahead_of_the_clock_accepts_times_up_to_its_latest_alone(name):
    ahead, f = MAKE[name](max_ahead=None), MAKE[name](max_ahead="0s")
    latest = now() + YEAR
    ahead.add("a", at=latest)
    f |= ahead
    for _ in range(3):
        f.add("b", at=latest)
        f.insert(["c"], at=[latest])
        for call in (lambda: f.add("d", at=latest + 1), lambda: f.insert(["d"], at=[latest + 1])):
            with pytest.raises(ValueError, match="ahead of the system's clock"):
                call()


@EVERY
def test_a_query_without_a_time_is_of_the_latest_inserted_time(name, tmp_path):
    """The times of a replay are not the clock's: a call without `at` would miss every key."""
    f = MAKE[name]()
    assert f.latest is None
    f.insert(["old"], at=1_600_000_000 - 7200)
    f.insert(["a", "b"], at=[1_600_000_000, 1_600_000_001.5])
    assert f.latest == np.datetime64("2020-09-13T12:26:41.5", "ns")
    assert f.latest.dtype == "datetime64[ns]"
    for g in (f, pickle.loads(pickle.dumps(f))):
        assert g.query(["a", "b", "c"]).tolist() == [True, True, False]
        assert "a" in g
        assert "c" not in g
        assert g.posterior(["a"], 1e-6)[0] == g.posterior(["a"], 1e-6, at=g.latest)[0]
    f.insert(["later"], at=1_600_000_100)
    # A key that comes without a time comes now, and from then on the system's clock counts: the past is over.
    f.insert(["now"])
    assert f.query(["a", "now"]).tolist() == [False, True]
    f.save(tmp_path / "f")
    assert lately.open(tmp_path / "f").query(["a", "now"]).tolist() == [False, True]
    with pytest.raises(ValueError, match="before the latest time seen"):
        f.insert(["x"], at=1_600_000_200)


def test_the_one_liner_answers_the_same_at_any_time():
    at = np.array([0.0, 100.0, 5000.0]) + now() + 50 * YEAR
    assert lately.duplicated(["a", "a", "a"], "10min", at=at).tolist() == [False, True, False]


def test_a_sliced_filter_rejects_such_a_time_too():
    like = lately.TimingBloomFilter("1h", 0.01, capacity=1000)
    for kind in ("horizontal", "vertical"):
        f = SlicedFilter(kind, 2, like)
        with pytest.raises(ValueError, match=r"at\[1\] lies .* ahead of the system's clock"):
            f.insert(["a", "b"], at=[now(), now() + 10 * YEAR])
    simulated = SlicedFilter("horizontal", 2, lately.TimingBloomFilter("1h", 0.01, capacity=1000, max_ahead=None))
    simulated.insert(["a"], at=now() + 10 * YEAR)


@pytest.mark.parametrize("options", [{}, {"fpr": 0.01}, {"fpr": 0.01, "filter": "time-limited"}])
def test_one_liners_do_not_depend_on_the_systems_clock(options):
    rows = pa.table({"key": ["a", "a"], "time": [now() + YEAR, now() + YEAR]})
    assert lately.drop_duplicates(rows, "10s", at="time", **options).num_rows == 1
    assert lately.drop_duplicates(rows.to_reader(), "10s", at="time", **options).read_all().num_rows == 1
    assert len(list(lately.unique(rows.to_pylist(), "10s", key="key", at="time", **options))) == 1
