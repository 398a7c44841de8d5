"""Columns by name, and the rows that are left, for frames of every kind."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lately

ROWS = {
    "ip": ["a", "a", "a", "b", "a", "b"],
    "url": ["/", "/x", "/", "/", "/x", "/"],
    "time": [0, 10, 20, 700, 3000, 3001],
    "n": [0, 1, 2, 3, 4, 5],
}
# By ip and url the third row is a repeat within any 10 minutes, by ip the second is too.
BY_BOTH, BY_IP = [0, 1, 3, 4, 5], [0, 3, 4, 5]


class Capsule:
    """A frame of an unknown library."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


class Array:
    """A batch that other libraries read by Arrow's C interface."""

    def __init__(self, batch):
        self.batch = batch

    def __arrow_c_array__(self, requested_schema=None):
        return self.batch.__arrow_c_array__(requested_schema)


def structured():
    rows = list(zip(*ROWS.values(), strict=True))
    return np.array(rows, dtype=[("ip", "U1"), ("url", "U2"), ("time", "i8"), ("n", "i8")])


FRAMES = {
    "pandas": lambda: pd.DataFrame(ROWS, index=list("uvwxyz")),
    "polars": lambda: pl.DataFrame(ROWS),
    "arrow table": lambda: pa.table(ROWS),
    "arrow batch": lambda: pa.record_batch(ROWS),
    "numpy": structured,
    "stream": lambda: Capsule(pa.table(ROWS)),
    "array": lambda: Array(pa.record_batch(ROWS)),
    "reader": lambda: pa.table(ROWS).to_reader(max_chunksize=2),
    "lazy": lambda: pl.LazyFrame(ROWS),
}
EAGER = [name for name in FRAMES if name != "lazy"]


def left(frame):
    """The numbers of the rows."""
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pa.RecordBatchReader):
        frame = frame.read_all()
    return np.asarray(frame["n"]).tolist()


@pytest.mark.parametrize("kind", EAGER)
def test_columns_by_name(kind):
    def kept(**options):
        return np.flatnonzero(~lately.duplicated(FRAMES[kind](), "10min", **options)).tolist()

    times = ROWS["time"]
    assert kept(subset=["ip", "url"], at="time") == BY_BOTH
    assert kept(subset="ip", at="time") == kept(subset=["ip"], at="time") == BY_IP
    assert kept(subset=["ip", "url"], at=times) == BY_BOTH
    assert kept(subset=["ip", "url"], at="time", fpr=1e-6) == BY_BOTH
    # All columns but the times: no row is a repeat.
    assert kept(at="time") == [0, 1, 2, 3, 4, 5]
    assert np.flatnonzero(~lately.duplicated(FRAMES[kind](), 2, subset="ip")).tolist() == [0, 3]


@pytest.mark.parametrize("kind", FRAMES)
def test_the_rows_that_are_left(kind):
    frame = FRAMES[kind]()
    given = type(frame)
    fresh = lately.drop_duplicates(frame, "10min", subset=["ip", "url"], at="time")
    assert isinstance(fresh, pa.Table if given in (Capsule, Array) else given)
    assert left(fresh) == BY_BOTH
    assert left(lately.drop_duplicates(FRAMES[kind](), "10min", subset="ip", at="time")) == BY_IP
    assert left(lately.drop_duplicates(FRAMES[kind](), 2, subset="ip")) == [0, 3]
    assert left(lately.drop_duplicates(FRAMES[kind](), 100, subset=["ip", "url"], fpr=1e-6)) == [0, 1, 3]
    assert left(lately.drop_duplicates(FRAMES[kind](), 100, subset="ip", refresh=False)) == [0, 3]


def test_pandas_keeps_its_index_and_types():
    frame = pd.DataFrame(ROWS, index=pd.MultiIndex.from_arrays([range(6), list("uvwxyz")]))
    frame["url"] = frame["url"].astype("category")
    fresh = lately.drop_duplicates(frame, 100, subset="ip")
    pd.testing.assert_frame_equal(fresh, frame.drop_duplicates(subset="ip"))
    series = pd.Series(list("aab"), index=[5, 6, 7], name="s")
    pd.testing.assert_series_equal(lately.drop_duplicates(series, 10), series.drop_duplicates())


def test_names_that_are_no_text():
    frame = pd.DataFrame({0: [1, 1, 2], ("a", "b"): [1, 2, 1]})
    assert lately.duplicated(frame, 10, subset=0).tolist() == [False, True, False]
    assert lately.duplicated(frame, 10, subset=("a", "b")).tolist() == [False, False, True]
    assert lately.duplicated(frame, 10, subset=[0, ("a", "b")]).tolist() == [False, False, False]
    clicks = pd.DataFrame([["a", 0], ["a", 599], ["a", 2000]])
    levels = clicks.set_axis(pd.MultiIndex.from_tuples([("k", "x"), ("t", "y")]), axis=1)
    for frame, key, time in ((clicks, 0, 1), (levels, ("k", "x"), ("t", "y"))):
        for subset in (key, None):
            assert lately.duplicated(frame, "10min", subset=subset, at=time).tolist() == [False, True, False]
    with pytest.raises(KeyError, match="no column 5"):
        lately.duplicated(clicks, 10, subset=5)


@pytest.mark.parametrize("kind", FRAMES)
def test_a_column_that_is_named_twice_counts_once(kind):
    once, twice = (lately.drop_duplicates(FRAMES[kind](), 10, subset=names) for names in (["ip"], ["ip", "ip"]))
    assert left(once) == left(twice)


def test_columns_are_left_without_repeats_too():
    assert lately.drop_duplicates(pl.Series([1, 1, 2]), 5).to_list() == [1, 2]
    assert lately.drop_duplicates(np.array([1, 1, 2]), 5).tolist() == [1, 2]
    assert lately.drop_duplicates(np.array([[1, 2], [1, 2], [2, 1]]), 5).tolist() == [[1, 2], [2, 1]]
    assert lately.drop_duplicates(pa.array([1, 1, 2]), 5).to_pylist() == [1, 2]
    assert lately.drop_duplicates(pa.chunked_array([[1], [1, 2]]), 5).to_pylist() == [1, 2]


TEXTS = pa.array(["a", "b" * 40, "a", None, "c", None, "a"])
VIEWS = TEXTS.cast(pa.string_view())
WITHOUT_A_FILTER = {
    "string views": VIEWS,
    "byte views": TEXTS.cast(pa.binary()).cast(pa.binary_view()),
    "runs": pc.run_end_encode(TEXTS),
    "views in structs": pa.StructArray.from_arrays([VIEWS], ["x"]),
    "views in lists": pa.ListArray.from_arrays(range(8), VIEWS),
}


@pytest.mark.parametrize("kind", WITHOUT_A_FILTER)
def test_columns_that_pyarrow_cannot_filter_are_left_without_repeats_too(kind):
    column = WITHOUT_A_FILTER[kind]
    table = pa.table({"k": column, "n": range(7)})
    for rows in (column, pa.chunked_array([column[:3], column[3:]])):
        once = lately.drop_duplicates(rows, 9)
        assert (type(once), once.type) == (type(rows), column.type)
        assert once.to_pylist() == [column[i].as_py() for i in (0, 1, 3, 4)]
    for frame in (table, table.to_batches()[0], table.to_reader(max_chunksize=2)):
        fresh = lately.drop_duplicates(frame, 9, subset="k")
        fresh = fresh.read_all() if isinstance(fresh, pa.RecordBatchReader) else fresh
        fresh.validate(full=True)
        assert (fresh.schema, left(fresh)) == (table.schema, [0, 1, 3, 4])
    assert len(lately.drop_duplicates(table[:0], 9)) == 0


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_objects_in_a_lazy_frame_are_keys(engine):
    frame = pl.DataFrame({"k": pl.Series([1, "a", 1.0], dtype=pl.Object), "n": [0, 1, 2]})
    assert left(lately.drop_duplicates(frame.lazy(), 9, subset="k").collect(engine=engine)) == [0, 1]


def test_times_in_the_index_of_pandas_by_its_name():
    times = pd.DatetimeIndex(["2026-01-01 00:10", "2026-01-01 00:00", "2026-01-01 00:11"], name="time")
    frame = pd.DataFrame({"k": ["a", "a", "b"], "n": range(3)}, index=times)
    levels = frame.set_index(pd.Index([5, 6, 7], name="id"), append=True)
    for rows in (frame, levels, frame["k"]):
        given = {} if rows.ndim == 1 else {"subset": "k"}
        assert lately.duplicated(rows, "10min", at="time", **given).tolist() == [True, False, False]
    assert lately.duplicated(frame.assign(time=0), "10min", at="time", subset="k").tolist() == [False, True, False]
    with pytest.raises(KeyError, match="no column 'id'; its columns are 'k', 'n'"):
        lately.duplicated(frame, "10min", at="id")


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_a_lazy_frame_stays_lazy(engine):
    ran = []

    def noted(column):
        ran.append(len(column))
        return column

    n = 20_000
    lazy = pl.LazyFrame({"key": np.arange(n) % 70, "other": np.arange(n), "unused": np.arange(n)})
    lazy = lazy.with_columns(pl.col("key").map_batches(noted, return_dtype=pl.Int64))
    fresh = lately.drop_duplicates(lazy, 100, subset="key", refresh=False)
    assert not ran
    rows = np.flatnonzero(~lately.duplicated(np.arange(n) % 70, 100, refresh=False)).tolist()
    assert fresh.select("other").collect(engine=engine)["other"].to_list() == rows
    # What comes after it stays after it: filters, slices, and columns that the key does not need.
    later = fresh.filter(pl.col("other") % 2 == 1).select("other").collect(engine=engine)
    assert later["other"].to_list() == [row for row in rows if row % 2 == 1]
    assert fresh.head(3).collect(engine=engine)["other"].to_list() == rows[:3]
    assert fresh.tail(2).collect(engine=engine)["other"].to_list() == rows[-2:]
    assert fresh.select(pl.len()).collect(engine=engine).item() == len(rows)


def test_a_reader_is_read_only_as_far_as_needed():
    taken = []

    def batches():
        for start in range(0, 100, 10):
            taken.append(start)
            yield pa.record_batch({"k": [n % 15 for n in range(start, start + 10)]})

    reader = pa.RecordBatchReader.from_batches(pa.schema({"k": pa.int64()}), batches())
    fresh = lately.drop_duplicates(reader, 20)
    assert taken == []
    assert fresh.read_next_batch().num_rows == 10
    assert taken == [0]
    assert fresh.read_all().num_rows == 5
    back = pa.table({"k": [1, 2], "t": [10, 5]}).to_reader()
    with pytest.raises(ValueError, match=r"at\[1\] lies 5 s before .*: rows of a reader must come in .* read_all\(\)"):
        lately.drop_duplicates(back, "1min", subset="k", at="t").read_all()


@pytest.mark.parametrize("window", [50, "50s"])
def test_a_reader_through_a_filter(window):
    """Batch by batch too: no repeat within the window is left, and of the others all but few."""
    rng = np.random.default_rng(11)
    table = pa.table({"k": rng.integers(0, 2000, 20_000), "t": np.arange(20_000)})
    at = {} if window == 50 else {"at": "t"}
    exact = lately.drop_duplicates(table.to_reader(max_chunksize=100), window, subset="k", **at).read_all()
    reader = table.to_reader(max_chunksize=100)
    left = lately.drop_duplicates(reader, window, subset="k", fpr=1e-4, seed=3, **at)
    first = left.read_next_batch()
    # What the reader has not returned is still there.
    assert first.num_rows > 90
    left = pa.Table.from_batches([first, *left])
    assert set(left["t"].to_pylist()) <= set(exact["t"].to_pylist())
    # Half a window of slack drops 1.3 % of the rows: 25 keys of 2000 come again there. Chance drops 2 more.
    assert len(left) > 0.97 * len(exact)
    missing = pa.table({"k": pa.nulls(9, pa.int64())}).to_reader(max_chunksize=2)
    assert lately.drop_duplicates(missing, 50, fpr=1e-4, missing="distinct").read_all().num_rows == 9


@pytest.mark.parametrize("options", [{}, {"fpr": 0.01}])
def test_a_reader_without_times(options):
    """The system's clock does not decide the times of rows; the error comes before a row is read."""
    with pytest.raises(TypeError, match="needs at"):
        lately.drop_duplicates(pa.table({"a": [1]}).to_reader(), "5s", **options)


@pytest.mark.parametrize("call", [lately.duplicated, lately.drop_duplicates])
@pytest.mark.parametrize(
    ("given", "options", "kind", "words"),
    [
        ("pandas", {"subset": "nope"}, KeyError, "no column 'nope'; its columns are 'ip', 'url', 'time', 'n'"),
        ("polars", {"subset": ["ip", "nope"]}, KeyError, "no column 'nope'"),
        ("arrow table", {"at": "nope"}, KeyError, "no column 'nope'"),
        ("reader", {"at": "nope"}, KeyError, "no column 'nope'"),
        ("stream", {"subset": "nope"}, KeyError, "no column 'nope'"),
        ("numpy", {"subset": "nope"}, KeyError, "no column 'nope'"),
        ("pandas", {"subset": []}, ValueError, "subset must name one column or more"),
        ([1, 2], {"at": "time"}, TypeError, "at='time' names a column, so keys must be a frame, got a list"),
        ([1, 2], {"subset": "ip"}, TypeError, "subset='ip' names columns, so keys must be a frame, got a list"),
        (np.arange(3), {"at": "time"}, TypeError, "got a ndarray"),
        (pd.Series([1]), {"subset": "ip"}, TypeError, "got a Series"),
    ],
)
def test_names_that_are_not_there(call, given, options, kind, words):
    frame = FRAMES[given]() if isinstance(given, str) else given
    with pytest.raises(kind, match=words):
        call(frame, "10min", **options)


class Dask:
    """A frame of another package: iteration yields the names of its columns."""

    columns = property(lambda self: ["k"])

    def __iter__(self):
        return iter(self.columns)


def test_frames_of_other_packages_are_rejected_with_what_to_pass():
    for call in (
        lambda: lately.drop_duplicates(Dask(), 9),
        lambda: lately.duplicated(Dask(), 9, subset="k"),
        lambda: lately.Filter(9, 0.1).duplicated(Dask()),
    ):
        with pytest.raises(TypeError, match=r"keys is a .*Dask, .* pass `frame.compute\(\)`, or one partition after"):
            call()
    with pytest.raises(TypeError, match=r"events must be .* got a Dask: call lately.drop_duplicates"):
        lately.unique(Dask(), 9)


def test_values_without_rows_are_rejected():
    with pytest.raises(TypeError, match=r"keys must be a frame or a column .* got a list; .* lately.unique"):
        lately.drop_duplicates([1, 2], 5)
    with pytest.raises(TypeError, match=r"got a polars LazyFrame: collect\(\)"):
        lately.duplicated(pl.LazyFrame({"a": [1]}), 5)
    with pytest.raises(TypeError, match="at must name a column of the LazyFrame"):
        lately.drop_duplicates(pl.LazyFrame({"a": [1]}), "5s", at=[1])
    with pytest.raises(ValueError, match="window must be at least 1 insertion"):
        lately.drop_duplicates(pl.LazyFrame({"a": [1]}), 0)
    with pytest.raises(TypeError, match="a window of time needs at"):
        lately.drop_duplicates(pl.LazyFrame({"a": [1]}), "5s")
    with pytest.raises(TypeError, match="at must name a column of the reader"):
        lately.drop_duplicates(pa.table({"a": [1]}).to_reader(), "5s", at=[1])
    with pytest.raises(TypeError, match="a window of time needs at"):
        lately.drop_duplicates(pa.table({"a": [1]}).to_reader(), "5s").read_all()
    with pytest.raises(ValueError, match="2 columns named 'a'"):
        lately.duplicated(pd.DataFrame([[1, 2]], columns=["a", "a"]), 5, subset="a")


def test_a_column_named_none_is_a_key_and_no_times():
    frame = pd.DataFrame([[1, 2], [3, 2]], columns=pd.Index([None, ("a", "b")], dtype=object))
    assert lately.duplicated(frame, 5).tolist() == [False, False]


@pytest.mark.parametrize("make", [lately.Filter, lambda *given: lately.ExactFilter(given[0])])
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_filter_takes_columns_by_name_as_the_one_liner_does(make, frame):
    rows = {"user": ["a", "a", "b", "a"], "page": [1, 2, 1, 1], "t": [0, 10, 20, 700]}
    for given in ({"at": "t"}, {"at": "t", "subset": ["user"]}, {"at": "t", "subset": "user"}):
        expected = lately.duplicated(frame(rows), "10min", **given).tolist()
        assert make("10min", 1e-9).duplicated(frame(rows), **given).tolist() == expected
    assert make(100, 1e-9).duplicated(frame(rows), subset=["user", "page"]).tolist() == [False, False, False, True]
    with pytest.raises(KeyError, match="visitor"):
        make(100, 1e-9).duplicated(frame(rows), subset="visitor")
    with pytest.raises(TypeError, match="keys must be a frame, got a list"):
        make(100, 1e-9).duplicated(["a"], subset="user")
