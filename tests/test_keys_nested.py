"""Slices of nested Arrow, polars and pandas columns have the hashes of their values, whatever they are a slice of."""

import datetime as dt
import decimal
import random
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lately
from support.versions import decimal32, decimal64

SECOND = dt.timedelta(seconds=1)
WHEN = dt.datetime(2026, 1, 2, 3, 4, 5)
# A type, and a value of it by a number.
LEAVES = [
    (pa.null(), lambda i: None),
    (pa.bool_(), lambda i: i % 2 == 0),
    *((kind, lambda i: i - 5) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
    *((kind, lambda i: i) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())),
    (pa.float16(), lambda i: np.float16(i / 4)),
    *((kind, lambda i: i / 4) for kind in (pa.float32(), pa.float64())),
    *(
        (kind, lambda i: "xé語"[i % 3] * (i % 20) + str(i))
        for kind in (pa.string(), pa.large_string(), pa.string_view())
    ),
    *((kind, lambda i: b"y" * (i % 20) + bytes([i])) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())),
    (pa.binary(3), lambda i: bytes([i, i, 7])),
    *(
        (kind, lambda i: decimal.Decimal(i - 9) / 4)
        for kind in (decimal32(8, 2), decimal64(9, 2), pa.decimal128(20, 2), pa.decimal256(50, 2))
    ),
    (pa.date32(), lambda i: WHEN.date() + i * 86400 * SECOND),
    (pa.date64(), lambda i: WHEN.date() + i * 86400 * SECOND),
    *((kind, lambda i: (WHEN + i * SECOND).time()) for kind in (pa.time32("s"), pa.time32("ms"), pa.time64("us"))),
    *((pa.timestamp(unit), lambda i: WHEN + i * SECOND) for unit in ("s", "ms", "us", "ns")),
    (pa.timestamp("us", "UTC"), lambda i: (WHEN + i * SECOND).replace(tzinfo=dt.UTC)),
    *((pa.duration(unit), lambda i: i * SECOND) for unit in ("s", "ms", "us", "ns")),
    (pa.uuid(), lambda i: uuid.UUID(int=i)),
]


def leaf(chance, n):
    kind, value = chance.choice(LEAVES)
    return array_of([value(chance.randrange(60)) if chance.random() < 0.8 else None for _ in range(n)], kind)


def array_of(values, kind):
    if kind == pa.uuid():
        storage = [None if value is None else value.bytes for value in values]
        return pa.ExtensionArray.from_storage(kind, pa.array(storage, pa.binary(16)))
    return pa.array(values, kind)


def mask(chance, n):
    return pa.array([chance.random() < 0.2 for _ in range(n)], pa.bool_()) if chance.random() < 0.5 else None


def offsets(chance, n, most):
    return sorted(chance.randrange(most + 1) for _ in range(n + 1))


def whole(chance, n, depth):
    """An array of n elements, all of whose parts are slices of longer ones."""
    kind = chance.choice(["leaf", "struct", "struct", "list", "large", "views", "map", "fixed", "codes", "runs"])
    if depth == 0 or kind == "leaf":
        return leaf(chance, n)
    if kind == "struct":
        columns = [column(chance, n, depth - 1) for _ in range(chance.randrange(1, 4))]
        return pa.StructArray.from_arrays(columns, [str(i) for i in range(len(columns))], mask=mask(chance, n))
    if kind == "fixed":
        width = chance.randrange(4)
        values = column(chance, n * width, depth - 1)
        made = pa.FixedSizeListArray.from_arrays(values, width) if width else None
        return made if made is not None and len(made) == n else leaf(chance, n)
    if kind in ("list", "large"):
        values = column(chance, chance.randrange(3 * n + 1), depth - 1)
        make = pa.ListArray if kind == "list" else pa.LargeListArray
        ends = pa.array(offsets(chance, n, len(values)), pa.int32() if kind == "list" else pa.int64())
        return make.from_arrays(ends, values, mask=mask(chance, n))
    if kind == "views":
        values = column(chance, 2 * n, depth - 1)
        starts, sizes = ([chance.randrange(n + 1) for _ in range(n)] for _ in range(2))
        wide = chance.choice([(pa.ListViewArray, pa.int32()), (pa.LargeListViewArray, pa.int64())])
        return wide[0].from_arrays(pa.array(starts, wide[1]), pa.array(sizes, wide[1]), values, mask=mask(chance, n))
    if kind == "map":
        ends = offsets(chance, n, 2 * n)
        names = [str(i) for i in range(2 * n)]
        return pa.MapArray.from_arrays(ends, pa.array(names), column(chance, 2 * n, depth - 1), mask=mask(chance, n))
    if kind == "codes":
        values = column(chance, chance.randrange(1, 2 * n + 2), 0)
        codes = [chance.randrange(len(values)) if chance.random() < 0.8 else None for _ in range(n)]
        return pa.DictionaryArray.from_arrays(
            pa.array(codes, chance.choice([pa.int16(), pa.uint16(), pa.int64()])), values
        )
    if n == 0:
        return leaf(chance, n)
    ends = [*sorted(chance.sample(range(1, n), chance.randrange(n))), n]
    values = column(chance, len(ends), depth - 1)
    return pa.RunEndEncodedArray.from_arrays(
        pa.array(ends, chance.choice([pa.int16(), pa.int32(), pa.int64()])), values
    )


def column(chance, n, depth):
    """A slice of n elements."""
    before, after = chance.randrange(3), chance.randrange(3)
    return whole(chance, n + before + after, depth).slice(before, n)


LISTS = (pa.ListType, pa.LargeListType, pa.FixedSizeListType, pa.ListViewType, pa.LargeListViewType)


def plain(kind):
    """The type of the same values without codes and runs, and with the widest numbers."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, plain(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.list_(pa.struct([("key", plain(kind.key_type)), ("value", plain(kind.item_type))]))
    if isinstance(kind, LISTS):
        return pa.list_(plain(kind.value_type))
    if kind == pa.float16():
        return pa.float64()
    return kind


def contains(kind, is_it):
    """Whether a type, or one of its parts, is such a one."""
    parts = [kind.field(i).type for i in range(kind.num_fields)]
    if pa.types.is_dictionary(kind):
        parts = [kind.value_type]
    return is_it(kind) or any(contains(part, is_it) for part in parts)


def has_extension(kind):
    return contains(kind, lambda kind: isinstance(kind, pa.BaseExtensionType))


# Of others polars has no equal, or panics itself when it exports them within other types.
POLARS = [pa.bool_(), pa.int8(), pa.int64(), pa.uint32(), pa.uint64(), pa.float32(), pa.float64(), pa.large_string()]
POLARS += [pa.large_binary(), pa.decimal128(20, 2), pa.date32(), pa.timestamp("us"), pa.duration("ns")]


def is_for_polars(kind):
    if pa.types.is_struct(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return all(is_for_polars(kind.field(i).type) for i in range(kind.num_fields))
    return kind in POLARS


def check(chance):
    """Hash slices of one column, in each form that a user may have it; return how many."""
    n = chance.randrange(1, 30)
    array = column(chance, n, chance.randrange(4))
    values = array.to_pylist()
    nested = array.type.num_fields > 0 or pa.types.is_dictionary(array.type)
    if nested and has_extension(array.type):
        # pyarrow builds no UUIDs within others from values.
        expected = lately.hash_keys(array)
    else:
        expected = lately.hash_keys(array_of(values, plain(array.type)))
    table = pa.table({"a": array, "b": column(chance, n, 2)})
    rows = lately.hash_keys(table)
    series = pl.Series(pl.from_arrow(array)) if is_for_polars(array.type) else None
    frame = pd.DataFrame({name: pd.arrays.ArrowExtensionArray(table[name]) for name in table.column_names})
    checked = 0
    for _ in range(8):
        start = chance.randrange(n + 1)
        part = slice(start, start + chance.randrange(n + 1 - start))
        size = part.stop - part.start
        assert (lately.hash_keys(array.slice(part.start, size)) == expected[part]).all(), (array.type, part)
        assert (lately.hash_keys(table.slice(part.start, size)) == rows[part]).all(), (table.schema, part)
        for batch in table.slice(part.start, size).to_batches(max_chunksize=7):
            assert len(lately.hash_keys(batch)) == len(batch)
        chunks = pa.chunked_array([array.slice(0, part.start), array.slice(part.start)])
        assert (lately.hash_keys(chunks) == expected).all(), (array.type, part)
        assert (lately.hash_keys(frame["a"].iloc[part]) == expected[part]).all(), (array.type, part)
        assert (lately.hash_keys(frame.iloc[part]) == rows[part]).all(), (table.schema, part)
        checked += 5
        if series is not None:
            mine = lately.hash_keys(series)
            assert (lately.hash_keys(series[part.start : part.stop]) == mine[part]).all(), (series.dtype, part)
            checked += 1
    f = lately.AgePartitionedBloomFilter(1000, 1e-9)
    f.insert(table.slice(n // 2))
    assert f.query(table.slice(n // 2)).all()
    return checked


def test_slices_of_columns_of_every_type_have_the_hashes_of_their_plain_values():
    for kind, value in LEAVES:
        values = [None if i % 11 == 3 else value(i) for i in range(70)]
        holders, texts = [array_of(values, kind)], "string" in str(kind)
        if texts:
            holders += [pa.array(values, kind).dictionary_encode(), pl.Series(values)]
            rows = list(zip(values, range(70), strict=True))
            frame = pl.DataFrame(rows, orient="row")
        for part in (slice(0, 0), slice(1, 9), slice(7, 70)):
            expected = lately.hash_keys(values[part]).tolist()
            for holder in holders:
                assert lately.hash_keys(holder[part]).tolist() == expected, (kind, type(holder), part)
            if texts:
                assert lately.hash_keys(frame[part]).tolist() == lately.hash_keys(rows[part]).tolist(), part


def test_maps_views_of_lists_and_json_are_their_values_in_python():
    for array in (
        pa.array([[("a", 1)], None, [("b", 2), ("a", 1)], []], pa.map_(pa.string(), pa.int64())),
        pa.array([[1, 2], None, [3], []], pa.list_view(pa.int8())),
        pa.array(['{"a": 1}', None, "[]"], pa.json_()),
    ):
        expected = lately.hash_keys(array.to_pylist())
        for column in (array, pd.Series(array, dtype=pd.ArrowDtype(array.type)), list(array)):
            assert (lately.hash_keys(column) == expected).all()
        assert (lately.hash_keys(array[1:]) == expected[1:]).all()


@pytest.mark.parametrize("seed", range(5))
def test_slices_of_nested_columns_have_the_hashes_of_their_values(seed):
    chance = random.Random(seed)
    assert sum(check(chance) for _ in range(10)) >= 400


@pytest.mark.campaign
def test_a_million_slices_of_nested_columns(capsys):
    chance, checked, columns = random.Random(20), 0, 0
    while checked < 1_000_000:
        checked, columns = checked + check(chance), columns + 1
    with capsys.disabled():
        print(f"\n{checked:,} slices of {columns:,} nested columns")


def test_polars_structs_of_any_parts_are_hashed_as_their_values():
    values = [
        {"d": decimal.Decimal(i), "l": [i, None], "a": [1, 2], "t": dt.timedelta(seconds=i), "n": None}
        for i in range(50)
    ]
    schema = pl.Struct(
        {
            "d": pl.Decimal(20, 2),
            "l": pl.List(pl.Int8),
            "a": pl.Array(pl.Int64, 2),
            "t": pl.Duration("ms"),
            "n": pl.Null,
        }
    )
    series = pl.Series(values, dtype=schema)
    whole = lately.hash_keys(series)
    assert len(set(whole.tolist())) == 50
    for start in range(0, 50, 7):
        assert (lately.hash_keys(series[start:]) == whole[start:]).all()
        assert (lately.hash_keys(series.slice(start, 5)) == whole[start : start + 5]).all()
        assert (lately.hash_keys(series.to_frame().slice(start).to_series()) == whole[start:]).all()
    assert (lately.hash_keys(series.to_arrow()) == whole).all()


REFUSED = {
    "Interval": pa.array([(1, 2, 3), (4, 5, 6)], pa.month_day_nano_interval()),
    "Union": pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_types_that_cannot_be_keys_are_rejected_and_leave_the_filter_unchanged(name):
    f = lately.AgePartitionedBloomFilter(1000, 1e-9)
    array = REFUSED[name]
    table = pa.table({"a": array, "b": pa.StructArray.from_arrays([array], ["c"])})
    for keys in (array, array.slice(1), table, table.slice(1), *table.to_batches(), table.select(["b"]).slice(1)):
        with pytest.raises(TypeError, match=f"Arrow type {name} cannot be a key"):
            f.insert(keys)
    f.insert([1])
    assert (f.inserted, f.query([1]).tolist()) == (1, [True])
