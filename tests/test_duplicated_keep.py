"""`keep`: which of the occurrences of a key are left, as in pandas and polars, within a window."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lately

KEEP = ["first", "last", False]
CHANCE = np.random.default_rng(35)


def columns():
    """Keys that come once, a few times and often; some are missing."""
    some = CHANCE.integers(0, 400, 3000)
    yield "integers", pd.Series(some)
    yield "texts", pd.Series([None if key % 9 == 0 else f"/{key}" for key in some], dtype=object)
    yield "floats", pd.Series(np.where(some % 7 == 0, np.nan, some / 3))
    yield "rows", pd.DataFrame({"ip": some % 40, "url": [f"/{key % 11}" for key in some]})
    yield "none", pd.Series([], dtype="int64")
    yield "one", pd.Series(["a"])


COLUMNS = dict(columns())


@pytest.mark.parametrize("keep", KEEP)
@pytest.mark.parametrize("name", COLUMNS)
def test_in_an_endless_window_the_mask_is_that_of_pandas(name, keep):
    keys = COLUMNS[name]
    expected = keys.duplicated(keep=keep).to_numpy()
    for window in (max(len(keys), 1), 10**12):
        assert lately.duplicated(keys, window, keep=keep).tolist() == expected.tolist()
    pd.testing.assert_frame_equal(
        pd.DataFrame(lately.drop_duplicates(keys, 10**9, keep=keep)), pd.DataFrame(keys.drop_duplicates(keep=keep))
    )


@pytest.mark.parametrize(("keep", "polars"), [("first", "first"), ("last", "last"), (False, "none")])
@pytest.mark.parametrize("name", ["integers", "texts", "rows"])
def test_in_an_endless_window_the_rows_are_those_of_polars(name, keep, polars):
    frame = pl.DataFrame(pd.DataFrame(COLUMNS[name]).rename(columns=str))
    expected = frame.unique(keep=polars, maintain_order=True)
    assert lately.drop_duplicates(frame, 10**9, keep=keep).equals(expected)
    assert lately.drop_duplicates(frame.lazy(), 10**9, keep=keep).collect().equals(expected)
    series = frame.to_series(0)
    one = {"first": ~series.is_first_distinct(), "last": ~series.is_last_distinct(), False: series.is_duplicated()}
    assert lately.duplicated(series, 10**9, keep=keep).tolist() == one[keep].to_list()


def test_hashes_scalars_and_missing_keys_are_taken_as_ever():
    hashes = lately.Hashes(lately.hash_keys(["a", "b", "a"]))
    assert lately.duplicated(hashes, 9, keep="last").tolist() == [True, False, False]
    assert lately.duplicated(["a", "b", "a"], "1s", at=5, keep=False).tolist() == [True, False, True]
    keys = [None, "a", None, "a"]
    assert lately.duplicated(keys, 9, keep="last", missing="distinct").tolist() == [False, True, False, False]
    assert lately.duplicated(keys, 9, keep=False, missing="same").tolist() == [True] * 4
    with pytest.raises(ValueError, match="distinct"):
        lately.duplicated(hashes, 9, keep="last", missing="distinct")


def test_of_a_frame_the_column_of_times_is_no_part_of_the_key():
    clicks = pd.DataFrame({"ip": ["a", "a", "b", "a"], "time": [0, 599, 600, 2000]})
    left = lately.drop_duplicates(clicks, "10min", subset="ip", at="time", keep="last")
    assert left["time"].tolist() == [599, 600, 2000]
    assert lately.drop_duplicates(clicks, "10min", at="time", keep=False)["time"].tolist() == [600, 2000]


def test_a_reader_keeps_the_first_only():
    table = pa.table({"key": ["a", "b", "a"]})
    with pytest.raises(ValueError, match="needs later rows"):
        lately.drop_duplicates(table.to_reader(), 9, keep="last")
    assert lately.drop_duplicates(table, 9, keep="last")["key"].to_pylist() == ["b", "a"]
