"""Values that are no key, or no batch of keys, and the errors that they raise."""

import datetime as dt
import enum
import fractions

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lately


def hashes(keys):
    return lately.hash_keys(keys).tolist()


class Shade(enum.Flag, boundary=enum.KEEP):
    DARK = 1
    WARM = 2


CANNOT = [
    (fractions.Fraction(1, 2), "fractions.Fraction"),
    ({5}, "set"),
    ({5: 5}, "dict"),
    (5j, "complex"),
    (np.complex64(5), "complex64"),
    (np.clongdouble(5), "complex"),
    (np.array([5]), "numpy.ndarray"),
    (np.timedelta64(5), "timedelta64 without a unit"),
    (dt.time(5, tzinfo=dt.UTC), "a datetime.time with a time zone"),
    (Shade(4), "Shade without a name"),
    (pd.Period("2026"), "Period"),
    (pa.scalar((1, 2, 3), pa.month_day_nano_interval()), "Interval"),
    (memoryview(np.array([5])), "memoryview"),
    (object(), "object"),
]


@pytest.mark.parametrize(("key", "name"), CANNOT, ids=lambda value: type(value).__name__)
def test_an_error_about_another_type_names_it_and_its_place(key, name):
    array = np.empty(2, dtype=object)
    array[:] = [5, key]
    for keys in ([5, key], (5, key), array, pd.Series(array), pl.Series([5, key], dtype=pl.Object)):
        with pytest.raises(TypeError, match=f"^key 1: .*{name}"):
            lately.hash_keys(keys)
    with pytest.raises(TypeError, match=f"^key 0: .*{name}"):
        lately.hash_keys([(5, key)])
    with pytest.raises(TypeError, match=f"^column 'b': key 1: .*{name}"):
        lately.hash_keys(pd.DataFrame({"a": [1, 2], "b": array}))


@pytest.mark.parametrize(
    ("column", "name"),
    [
        (np.array([5j]), "complex128"),
        (np.array([5], "m8"), "timedelta64"),
        (pd.Series([5j]), "complex128"),
        (pa.array([(1, 2, 3)], pa.month_day_nano_interval()), "Interval"),
        (pa.chunked_array([], pa.month_day_nano_interval()), "Interval"),
        (pa.array([[(1, 2, 3)]], pa.list_(pa.month_day_nano_interval())), "Interval"),
        (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], pa.int8())), "arrow.bool8"),
        (pd.Series([(1, 2, 3)], dtype=pd.ArrowDtype(pa.month_day_nano_interval())), "Interval"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_an_error_about_another_column_names_it(column, name):
    with pytest.raises(TypeError, match=name):
        lately.hash_keys(column)


def test_a_rejected_column_is_named():
    frame = pa.table({"a": [1], "b": pa.array([(1, 2, 3)], pa.month_day_nano_interval())})
    with pytest.raises(TypeError, match="column 'b': Arrow type"):
        lately.hash_keys(frame)


@pytest.mark.parametrize(
    "keys",
    ["abc", b"abc", bytearray(b"a"), memoryview(b"a"), {"a": 1}, 5, 0.5, None, np.int64(5), np.str_("a"), dt.date.max],
)
def test_one_key_is_no_batch(keys):
    with pytest.raises(TypeError, match=r"\[key\]"):
        lately.hash_keys(keys)


@pytest.mark.parametrize("shape", [(), (1, 1, 1)])
def test_arrays_of_other_dimensions(shape):
    with pytest.raises(ValueError, match=f"got {len(shape)}"):
        lately.hash_keys(np.zeros(shape))


def test_a_record_of_arrays_is_rejected():
    with pytest.raises(ValueError, match="dimensions"):
        lately.hash_keys(np.zeros(1, dtype=[("a", "i4", (2, 2))]))


def test_deep_tuples_are_an_error_not_a_crash():
    key = 5
    for _ in range(32):
        key = (key,)
    assert len(hashes([key])) == 1
    for _ in range(100_000):
        key = (key,)
    with pytest.raises(ValueError, match="nest"):
        lately.hash_keys([key])


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_has_64_bits(seed):
    with pytest.raises(ValueError, match="seed must lie in"):
        lately.hash_keys([5], seed=seed)
