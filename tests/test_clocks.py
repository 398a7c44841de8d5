"""Windows of time while the clocks of the machine are moved."""

import io
import logging
import time
import warnings
from functools import partial

import pytest

import lately
from lately._families import EVERY
from lately.integrations.logging import OncePerWindow
from support.clocks import Clocks, run_with_clocks

HOUR, DAY = 3600, 86_400
WINDOW = "5min"
# The window, its slack and then some.
GONE = 600


def filters(capacity=1000, fpr=1e-6):
    """A filter of each family and of each kind of window of time."""
    given = {"fpr": fpr, "capacity": capacity}
    for name, family in EVERY.items():
        if family.promise and family.windows != "insertions":
            made = given if family.windows != "unknown rate" else {"fpr": fpr}
            yield name, partial(family.make, WINDOW, **made)
            yield f"{name}, late", partial(family.make, WINDOW, lateness="30s", **made)
    yield "chosen", partial(lately.Filter, WINDOW, fpr, capacity=capacity)
    yield "growing", partial(lately.Filter, WINDOW, fpr)
    yield "exact", partial(lately.ExactFilter, WINDOW)


def asleep():
    clocks = Clocks()
    written = io.StringIO()
    log = logging.Logger("shop")
    log.addHandler(logging.StreamHandler(written))
    log.handlers[0].addFilter(OncePerWindow("1min"))
    log.warning("a")
    for name, make in filters():
        f = make()
        assert not f.seen("evening")
        f.add("event", at=time.time())
        clocks.pass_time(9 * HOUR)
        f.add("morning", at=time.time())  # nor is the time of the morning refused
        assert not f.seen("evening"), name
    log.warning("a")
    print(written.getvalue().split())


def test_the_night_counts_where_a_machine_sleeps(tmp_path):
    assert run_with_clocks("test_clocks", "asleep", tmp_path) == "['a', 'a']\n"


def reported():
    clocks = Clocks()
    f = lately.Filter(WINDOW, 1e-6, capacity=1000)
    f.seen("a")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for step in (-HOUR, 0, 7200, 0):
            clocks.set_wall(step)
            for _ in range(3):
                clocks.pass_time(5)
                assert f.seen("a")
    print(*[str(one.message).split(";")[0] for one in caught], sep="\n")


def test_a_step_of_the_wall_clock_is_reported_once(tmp_path):
    assert run_with_clocks("test_clocks", "reported", tmp_path).splitlines() == [
        "the wall clock was set back by 3600 s",
        "the wall clock was set ahead by 7200 s",
    ]


def one_call(path, wall):
    """A worker whose wall clock is wrong, in one call."""
    warnings.simplefilter("ignore")
    Clocks().set_wall(float(wall))
    lately.open(path, shared=True).seen("other")


@pytest.mark.parametrize("wall", [-HOUR, 400, 4 * 365 * DAY])
def test_one_worker_with_a_wrong_clock_moves_no_time_of_the_others(tmp_path, wall):
    """A container whose wall clock is ahead, or behind."""
    path = tmp_path / "seen.lately"
    lately.AgePartitionedBloomFilter(WINDOW, 1e-6, capacity=1000).save(path)
    seen = lately.open(path, shared=True)
    assert not seen.seen("a")
    before = time.time()
    run_with_clocks("test_clocks", "one_call", tmp_path, str(path), str(wall))
    assert seen.latest.astype("int64") / 1e9 < before + 60
    assert "a" in seen
    assert "other" in seen
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert seen.seen("a")


def write(path, wall):
    """A machine whose clock is wrong saves its filter."""
    warnings.simplefilter("ignore")
    clocks = Clocks()
    clocks.set_wall(float(wall))
    f = lately.AgePartitionedBloomFilter(WINDOW, 1e-6, capacity=1000)
    f.add("a")
    f.save(path)


def read(path):
    clocks = Clocks()
    f = lately.open(path, shared=True)
    assert "a" in f
    f.add("b")
    clocks.pass_time(60)
    assert "b" in f
    clocks.pass_time(GONE)
    assert "a" not in f
    assert "b" not in f
    print("right")


def test_a_file_of_a_clock_that_began_in_2030_continues(tmp_path):
    path = tmp_path / "seen.lately"
    run_with_clocks("test_clocks", "write", tmp_path, str(path), str(4 * 365 * DAY))
    assert run_with_clocks("test_clocks", "read", tmp_path, str(path)) == "right\n"


def kept(path):
    for name, f in (("exact", lately.ExactFilter(WINDOW)), ("chosen", lately.Filter(WINDOW, 1e-6))):
        f.add("a")
        f.save(f"{path}/{name}")


def opened_twice(path):
    clocks = Clocks()
    for name in ("exact", "chosen"):
        one, other = lately.open(f"{path}/{name}"), lately.open(f"{path}/{name}")
        clocks.pass_time(3)
        assert one == other == lately.open(f"{path}/{name}"), name
        assert "a" in one
        other.add("b")
        assert one != other, name
    print("right")


def test_filters_of_one_file_are_equal_after_another_start_of_the_machine(tmp_path):
    run_with_clocks("test_clocks", "kept", tmp_path, str(tmp_path))
    (tmp_path / "boot").write_text("second")
    assert run_with_clocks("test_clocks", "opened_twice", tmp_path, str(tmp_path)) == "right\n"


def test_max_ahead_is_one_window_and_at_least_a_minute():
    for window, seconds in (("1s", 60), ("10min", 600), ("1d", DAY)):
        for make in (lately.ExactFilter, partial(lately.Filter, fpr=1e-3)):
            f = make(window)
            assert f.max_ahead == seconds
            f.add("a", at=time.time() + 0.9 * seconds)
            with pytest.raises(ValueError, match=f"but max_ahead is {seconds} s"):
                f.add("a", at=time.time() + 1.1 * seconds)
