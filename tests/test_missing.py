"""Missing keys: one key, or each its own."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lately

COLUMNS = {
    "list": [1, None, math.nan, 1, None],
    "float64": np.array([1, math.nan, math.nan, 1, math.nan]),
    "datetime64": np.array([1, "NaT", "NaT", 1, "NaT"], "datetime64[s]"),
    "masked": np.ma.array([1, 2, 3, 1, 2], mask=[0, 1, 1, 0, 1]),
    "pandas Int64": pd.Series([1, None, pd.NA, 1, None], dtype="Int64"),
    "pandas text": pd.Series(["a", None, None, "a", None]),
    "pandas category": pd.Series(["a", None, None, "a", None], dtype="category"),
    "polars": pl.Series([1, None, None, 1, None]),
    "arrow text": pa.array(["a", None, None, "a", None]),
    "arrow dictionary": pa.array(["a", None, None, "a", None]).dictionary_encode(),
    "stream": pa.chunked_array([["a", None], [None, "a", None]]),
}
ROWS = [("a", 1), ("a", None), ("a", None), (None, None), ("a", 1), (None, None)]
FRAMES = {
    "tuples": ROWS,
    "objects": np.array(ROWS, dtype=object),
    "pandas": pd.DataFrame(ROWS),
    "polars": pl.DataFrame({"x": [row[0] for row in ROWS], "y": [row[1] for row in ROWS]}),
    "arrow": pa.table({"x": [row[0] for row in ROWS], "y": [row[1] for row in ROWS]}),
    "structs": pa.array([{"x": x, "y": y} for x, y in ROWS]),
}
WAYS = [{}, {"fpr": 1e-9}, {"refresh": False}, {"threads": 2}]


@pytest.mark.parametrize("options", WAYS)
@pytest.mark.parametrize("name", COLUMNS)
def test_columns(name, options):
    keys = COLUMNS[name]
    assert lately.duplicated(keys, 10, **options).tolist() == [False, False, True, True, True]
    mask = lately.duplicated(keys, 10, missing="distinct", **options)
    assert mask.tolist() == [False, False, False, True, False]


@pytest.mark.parametrize("options", WAYS)
@pytest.mark.parametrize("name", FRAMES)
def test_a_row_is_missing_if_a_field_is(name, options):
    keys = FRAMES[name]
    assert lately.duplicated(keys, 10, **options).tolist() == [False, False, True, False, True, True]
    mask = lately.duplicated(keys, 10, missing="distinct", **options)
    assert mask.tolist() == [False, False, False, False, True, False]


def test_the_window_goes_on_with_them():
    keys = ["a", None, None, "a"]
    assert lately.duplicated(keys, 2, missing="distinct").tolist() == [False] * 4
    assert lately.duplicated(keys, 3, missing="distinct").tolist() == [False, False, False, True]


def test_hashes_of_missing_keys():
    keys = [None, "a", None, ("a", None), ("a", None), ("a", "b")]
    same, apart = lately.hash_keys(keys), lately.hash_keys(keys, missing="distinct")
    assert len(set(same.tolist())) == 4
    assert len(set(apart.tolist())) == 6
    assert (same == apart).tolist() == [False, True, False, False, False, True]
    # Each call draws its own.
    assert not set(apart[[0, 2, 3, 4]].tolist()) & set(
        lately.hash_keys(keys, missing="distinct")[[0, 2, 3, 4]].tolist()
    )
    f = lately.AgePartitionedBloomFilter(100, 1e-9)
    f.insert(lately.Hashes(apart))
    assert f.query(keys).tolist() == [False, True, False, False, False, True]
    for options in ({}, {"fpr": 0.01}, {"keep": "last"}):
        with pytest.raises(ValueError, match="Hashes do not store which of them are missing"):
            lately.duplicated(lately.Hashes(same), 5, missing="distinct", **options)
    with pytest.raises(ValueError, match="Hashes do not store"):
        lately.hash_keys(lately.Hashes(same), missing="distinct")
