import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.command import SURE
from support.parquet import parquet


def test_parquet(tmp_path, dedupe):
    table = parquet(
        tmp_path / "a.parquet",
        ip=pa.array(["a", "b", "a", None, None, "b"]).dictionary_encode(),
        n=pa.array([1, 2, 1, 3, 3, 9], pa.int16()),
        more=[[1], [], None, [2], [3], [4]],
    )
    target = tmp_path / "o.parquet"
    ended = dedupe(tmp_path / "a.parquet", "--window", 100, "--key", "ip,n", "--output", target)
    assert ended.status == 0
    assert pq.read_table(target).equals(table.take([0, 1, 3, 5]))
    assert pq.read_schema(target).equals(table.schema, check_metadata=True)
    dedupe(tmp_path / "a.parquet", "--window", 100, "--key", "ip", "--output", target)
    assert pq.read_table(target).equals(table.take([0, 1, 3]))


@pytest.mark.parametrize("skip", [(), ("--time", "t", "--skip-bad")])
def test_views_in_parquet(tmp_path, dedupe, skip):
    texts = pa.array(["a", "longer than twelve bytes", "a", None, None, "b"], pa.string_view())
    lists = pa.array([["a"], [], ["b"], None, ["c"], []], pa.list_(pa.string_view()))
    times = pa.array([0, 1, 2, 3, 4, None], pa.timestamp("s"))
    table = parquet(tmp_path / "a.pq", k=texts, more=lists, t=times)
    window = "10min" if skip else 100
    ended = dedupe(tmp_path / "a.pq", "--window", window, "--key", "k", *skip, "-o", tmp_path / "o.pq")
    rows = table.to_pylist()
    assert pq.read_table(tmp_path / "o.pq").to_pylist() == [rows[i] for i in ((0, 1, 3) if skip else (0, 1, 3, 5))]
    assert ended.status == 0


def test_parquet_by_whole_rows_and_over_several_files(tmp_path, dedupe):
    table = parquet(tmp_path / "a.pq", a=list(range(100_000)), b=["x"] * 100_000)
    parquet(tmp_path / "b.pq", a=[5, 5, -1], b=["x", "y", "x"])
    target = tmp_path / "o.pq"
    assert dedupe(tmp_path / "a.pq", tmp_path / "b.pq", "--window", 200_000, *SURE, "-o", target).status == 0
    assert pq.read_table(target)[:100_000].equals(table)
    assert pq.read_table(target)[100_000:].to_pylist() == [{"a": 5, "b": "y"}, {"a": -1, "b": "x"}]
    assert pq.ParquetFile(target).num_row_groups == 1  # not one per batch


def test_case_is_ignored_in_text_only(tmp_path, dedupe):
    more = [["a"], ["A"], [], None, []]
    rows = parquet(tmp_path / "a.pq", k=["A", "a", None, "Ä", "ä"], b=[b"A", b"a", b"A", b"a", b"a"], more=more)
    options = (tmp_path / "a.pq", "--window", 100, *SURE, "--ignore-case", "-o", tmp_path / "o.pq")
    for key, kept in (("k", [0, 2, 3]), ("b", [0, 1])):
        assert dedupe(*options, "--key", key).status == 0
        assert pq.read_table(tmp_path / "o.pq").equals(rows.take(kept))
    ended = dedupe(*options)
    assert ended.status == 1
    assert "--ignore-case is for fields of text, but more is list" in ended.err


@pytest.mark.parametrize(
    "times",
    [
        pa.array([0, 30_000, 200_000], pa.timestamp("ms")),
        pa.array([0, 30, 200], pa.timestamp("s", "Asia/Tokyo")),
        pa.array([0, 30, 200], pa.int32()),
        pa.array([0.0, 30.0, 200.0]),
        pa.array(["1970-01-01", "1970-01-01T01:00:30+01:00", "200"]),
    ],
)
def test_times_in_parquet(tmp_path, dedupe, times):
    table = parquet(tmp_path / "a.pq", t=times, k=[1, 1, 1])
    options = ("--window", "1min", "--capacity", 10, "--time", "t", "--key", "k")
    assert dedupe(tmp_path / "a.pq", *options, "-o", tmp_path / "o.pq").err.startswith("read       3")
    assert pq.read_table(tmp_path / "o.pq").equals(table.take([0, 2]))


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (pa.array([0, None, 1], pa.timestamp("s")), "row 2: the time t is missing"),
        (pa.array([0, 10**11, 1], pa.timestamp("s")), "row 2: the time t is outside the years"),
        (pa.array([0, None, 1]), "row 2: the time t is missing"),
        (pa.array([0, float("nan"), 1]), "row 2: the time t is missing"),
        (pa.array(["0", "noon", "1"]), "row 2: the time t 'noon' is neither"),
    ],
)
def test_bad_times_in_parquet(tmp_path, dedupe, times, message):
    table = parquet(tmp_path / "a.pq", t=times, k=[1, 2, 3])
    options = ("--window", "1min", "--capacity", 10, "--time", "t", "--key", "k", "-o", tmp_path / "o.pq")
    ended = dedupe(tmp_path / "a.pq", *options)
    assert ended.status == 1
    assert f"a.pq, {message}" in ended.err
    assert not (tmp_path / "o.pq").exists()
    ended = dedupe(tmp_path / "a.pq", *options, "--skip-bad")
    assert "malformed  1," in ended.err
    assert pq.read_table(tmp_path / "o.pq").equals(table.take([0, 2]))


def test_bad_parquet_is_an_error(tmp_path, dedupe):
    target = tmp_path / "o.pq"
    parquet(tmp_path / "a.pq", a=[1, 2], b=[[1], [2]])
    parquet(tmp_path / "b.pq", a=["1", "2"], b=[[1], [2]])
    (tmp_path / "c.pq").write_bytes((tmp_path / "a.pq").read_bytes()[:-9])
    for files, options, message in [
        (["a.pq"], ["--key", "c", "-o", target], r"a.pq: it has no column 'c'; its columns are a, b"),
        (["a.pq", "b.pq"], ["--key", "a", "-o", target], r"b.pq: its schema differs from that of .*a.pq"),
        (["c.pq"], ["--key", "a", "-o", target], r"c.pq: "),
        (["a.pq"], ["--key", "a"], r"Parquet needs --output FILE"),
        (["a.pq"], ["--key", "a", "-o", tmp_path / "o.pq.gz"], r"Parquet needs --output FILE"),
        (["-"], ["--format", "parquet", "-o", target], r"pass a file instead of standard input"),
    ]:
        ended = dedupe(*(tmp_path / file if file != "-" else file for file in files), "--window", 9, *options)
        assert ended.status == (2 if "needs --output" in message else 1)
        assert re.search(message, ended.err)
        assert "Exception ignored" not in ended.err
        assert not target.exists()


def test_keys_within_structures(tmp_path, dedupe):
    nested = [{"x": {"y": 1}, "z": 0}, {"x": {"y": 1}, "z": 1}, {"x": {"y": 2}, "z": 1}, {"x": None, "z": 1}, None]
    table = parquet(tmp_path / "a.pq", n=nested, t=pa.array([0, 1, 2, 3, 4]), k=["a"] * 5)
    target = tmp_path / "o.pq"
    for key, kept in [("n.x.y", [0, 2, 3]), ("n.z", [0, 1, 4]), ("k,n.x.y", [0, 2, 3])]:
        assert dedupe(tmp_path / "a.pq", "--window", 9, "--key", key, "-o", target).status == 0
        assert pq.read_table(target).equals(table.take(kept)), key
    for key in ("n.q", "n.z.q", "n.", ".n", "q.n"):
        ended = dedupe(tmp_path / "a.pq", "--window", 9, "--key", key, "-o", target)
        assert (ended.status, f"it has no column '{key}'; its columns are n, t, k" in ended.err) == (1, True)
    parquet(tmp_path / "b.pq", **{"n.x": [1, 1], "n": [{"x": 1}, {"x": 2}], "e": [{"t": 0}, {"t": 99}]})
    assert dedupe(tmp_path / "b.pq", "--window", 9, "--key", "n.x", "-o", target).status == 0
    assert pq.read_table(target).num_rows == 1
    times = ("--window", "9s", "--time", "e.t", "--key", "n.x")
    assert dedupe(tmp_path / "b.pq", *times, "-o", target).status == 0
    assert pq.read_table(target).num_rows == 2


def test_a_group_that_ends_early_is_an_error(tmp_path, dedupe, monkeypatch):
    """As for ARROW-GH-41317 of the public corpus of damaged files, of which pyarrow yields 2 rows of 5."""
    pq.write_table(pa.table({"a": [1, 2, 3]}), tmp_path / "a.parquet")
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *_, **__: iter(()))
    ended = dedupe(tmp_path / "a.parquet", "--window", 9, "--output", tmp_path / "o.parquet")
    assert (ended.status, (tmp_path / "o.parquet").exists()) == (1, False)
    assert "a.parquet: it is damaged: 3 rows of row group 0 cannot be read" in ended.err
