"""Rows in any order: every one-liner gives what a dictionary gives for the rows sorted by time."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lately
import lately.integrations.pandas
import lately.integrations.polars
from support.exact import check, repeats_by_time

N, WINDOW = 600, 60
START = 1_792_886_400  # Hours before summer time ends in Europe in 2026.
SUMMER_TIME_ENDS = 1_792_890_000


def wall_clock(times):
    """Return the times of a clock on the wall, of rows in their true order: the hour after two comes twice."""
    return times + np.where(times < SUMMER_TIME_ENDS, 7200, 3600)


ORDERS = {
    "sorted": lambda times, keys, chance: np.arange(N),
    "newest first": lambda times, keys, chance: np.arange(N)[::-1],
    "shuffled": lambda times, keys, chance: chance.permutation(N),
    "files of months in the order of their names": lambda times, keys, chance: np.roll(np.arange(N), N // 3),
    "sorted by another column": lambda times, keys, chance: keys.argsort(kind="stable"),
    "a few late": lambda times, keys, chance: (times - chance.integers(0, 90, N)).argsort(kind="stable"),
    "the end of summer time": lambda times, keys, chance: np.arange(N),
}


def rows(order, seed=0):
    """Return keys, times and groups of rows in this order; many times are equal."""
    chance = np.random.default_rng(seed)
    times = np.sort(START + chance.integers(0, 7200, N) // 3 * 3)
    keys, groups = chance.integers(0, 40, N), chance.integers(0, 3, N)
    place = ORDERS[order](times, keys, chance)
    times = wall_clock(times) if "summer" in order else times
    return keys[place], times[place], groups[place]


def frames(keys, times, groups):
    """Return the rows as frames of each library, with times of several types."""
    columns = {"key": keys, "group": groups, "row": np.arange(N)}
    instants = pd.to_datetime(times, unit="s")
    yield pd.DataFrame(columns | {"time": instants.tz_localize("UTC")}, index=np.arange(N)[::-1])
    yield pl.DataFrame(columns | {"time": instants.to_numpy().astype("M8[us]")})
    yield pa.table(columns | {"time": pa.array(instants.to_numpy())})
    yield np.rec.fromarrays([keys, groups, np.arange(N), times], names="key,group,row,time")


@pytest.mark.parametrize("keep", ["first", "last", False])
@pytest.mark.parametrize("order", ORDERS)
def test_frames_are_those_of_a_dictionary_over_the_sorted_rows(order, keep):
    keys, times, groups = rows(order)
    expected = repeats_by_time(keys.tolist(), WINDOW, times.tolist(), keep)
    assert 0.1 < np.mean(expected) < 0.9
    options = {"subset": "key", "at": "time", "keep": keep}
    for frame in frames(keys, times, groups):
        assert lately.duplicated(frame, "1min", **options).tolist() == expected
        left = lately.drop_duplicates(frame, "1min", **options)
        assert np.asarray(left["row"]).tolist() == np.flatnonzero(~np.array(expected)).tolist()
    counted = repeats_by_time(keys.tolist(), 9, range(N), keep)
    assert lately.duplicated(keys, 9, keep=keep).tolist() == counted
    pandas, polars, *_ = frames(keys, times, groups)
    assert pandas.lately.duplicated("key", window="1min", at="time", keep=keep).tolist() == expected
    seen = pl.col("key").lately.duplicated(window="1min", at="time", keep=keep)
    assert polars.select(seen)["key"].to_list() == expected
    for engine in ("in-memory", "streaming"):
        left = lately.drop_duplicates(polars.lazy(), "1min", **options).collect(engine=engine)
        assert left["row"].to_list() == np.flatnonzero(~np.array(expected)).tolist()


@pytest.mark.parametrize("order", ORDERS)
def test_groups_are_streams_of_their_own(order):
    keys, times, groups = rows(order)
    expected = np.zeros(N, bool)
    for group in range(3):
        own = groups == group
        expected[own] = repeats_by_time(keys[own].tolist(), WINDOW, times[own].tolist())
    pandas, polars, *_ = frames(keys, times, groups)
    seen = pl.col("key").lately.duplicated(window="1min", at="time")
    assert polars.select(seen.over("group"))["key"].to_list() == expected.tolist()

    def own_window(keys):
        return lately.duplicated(keys, "1min", at=pandas["time"][keys.index])

    assert pandas.groupby("group")["key"].transform(own_window).tolist() == expected.tolist()


@pytest.mark.parametrize("order", ORDERS)
def test_options_and_containers(order):
    """Arrays, lists, iterators and hashes; secret seeds; missing keys; keys that only a pass restarts."""
    keys, times, _ = rows(order)
    for refresh in (True, False):
        expected = repeats_by_time(keys.tolist(), WINDOW, times.tolist(), refresh=refresh)
        hashes = lately.Hashes(lately.hash_keys(keys, seed=7), seed=7)
        for column in (keys, keys.tolist(), iter(keys.tolist()), hashes):
            at = times.astype(float) if column is keys else times.tolist()
            assert lately.duplicated(column, "1min", at=at, refresh=refresh, threads=2).tolist() == expected
    some = [None if key < 10 else key for key in keys.tolist()]
    alike = [row if key is None else key for row, key in enumerate(some, 1000)]
    expected = repeats_by_time(alike, WINDOW, times.tolist(), "last")
    assert lately.duplicated(some, "1min", at=times, keep="last", missing="distinct").tolist() == expected
    with pytest.raises(ValueError, match="seed=7, but here the seed is 8"):
        lately.duplicated(hashes, "1min", at=times, seed=8)


@pytest.mark.parametrize("filter", [None, "age-partitioned", "timing", "time-limited"])
@pytest.mark.parametrize("order", ORDERS)
def test_filters_miss_no_key_and_keep_their_rate(order, filter):
    keys, times, _ = rows(order)
    keys = np.where(np.random.default_rng(1).random(N) < 0.5, np.arange(1000, 1000 + N), keys)
    place = times.argsort(kind="stable")
    family = {} if filter is None else {"filter": filter}
    for refresh, missing in ((True, "same"), (False, "distinct")):
        marks = lately.duplicated(keys, "1min", at=times, fpr=0.01, seed=3, refresh=refresh, missing=missing, **family)
        fresh, _ = check(keys[place].tolist(), marks[place], WINDOW, WINDOW, refresh, 0.01, times[place].tolist())
        assert fresh > 250


@pytest.mark.parametrize("options", [{}, {"fpr": 0.01}, {"keep": "last"}])
def test_times_that_do_not_fit_the_keys_are_named_in_any_order(options):
    for at, words in (
        ([9, 5], "at has 2 times for 3 keys"),
        ([9, None, 5], r"at\[1\] is missing"),
        (np.array(["2026-01-02", "2026-01-01", "NaT"], "M8[s]"), r"at\[2\] is missing"),
        (np.ma.array([9, 5, 0], mask=[False, False, True]), r"at\[2\] is missing"),
        (pd.Series([9, 5, None], dtype="Int64"), r"at\[2\] is missing"),
        (pl.Series([9, None, 5]), r"at\[1\] is missing"),
    ):
        with pytest.raises(ValueError, match=words):
            lately.duplicated(["a", "b", "c"], "1min", at=at, **options)
