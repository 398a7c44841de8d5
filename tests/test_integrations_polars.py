"""The namespace of polars gives what the exact window gives, however polars runs the query."""

import importlib
import random

import polars as pl
import pytest

import lately.integrations.polars
from support.exact import ExactWindow

ROWS = 5000


@pytest.fixture(scope="module")
def clicks() -> pl.DataFrame:
    chance = random.Random(3)
    return pl.DataFrame(
        {
            "ip": [chance.choice([None, *range(12)]) for _ in range(ROWS)],
            "url": [chance.choice(["/", "/a", None]) for _ in range(ROWS)],
            "time": sorted(1_700_000_000 + chance.randrange(40_000) for _ in range(ROWS)),
            "site": [chance.randrange(3) for _ in range(ROWS)],
        }
    )


def expected(frame, window, times=None) -> list[bool]:
    return list(ExactWindow(window).duplicated(frame.select("ip", "url").rows(), times or range(frame.height)))


def visit():
    return pl.struct("ip", "url").lately


def test_eager_lazy_and_streaming(clicks, tmp_path):
    """From memory and from a file in many row groups; the engine that streams keeps the order."""
    clicks.write_parquet(tmp_path / "clicks.parquet", row_group_size=200)
    by_rows = visit().duplicated(window=20).alias("seen")
    by_time = visit().duplicated(window="1min", at="time").alias("seen")
    for marks, answer in ((by_rows, expected(clicks, 20)), (by_time, expected(clicks, 60, clicks["time"].to_list()))):
        assert clicks.select(marks)["seen"].to_list() == answer
        for query in (clicks.lazy(), pl.scan_parquet(tmp_path / "clicks.parquet")):
            for engine in ("in-memory", "streaming"):
                assert query.select(marks).collect(engine=engine)["seen"].to_list() == answer


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_polars_moves_no_operation_past_the_expression(clicks, engine):
    """A filter, a slice or a choice of columns that comes later takes no row away from the window."""
    left = clicks.filter(~pl.Series(expected(clicks, 20)))
    query = clicks.lazy().filter(~visit().duplicated(window=20))
    later = pl.col("site") == 1
    assert query.filter(later).collect(engine=engine).equals(left.filter(later))
    assert query.slice(100, 50).collect(engine=engine).equals(left.slice(100, 50))
    assert query.select("time").collect(engine=engine).equals(left.select("time"))
    before = clicks.filter(later)
    query = clicks.lazy().filter(later).select(visit().duplicated(window=20))
    assert query.collect(engine=engine).to_series().to_list() == expected(before, 20)


def test_each_group_is_a_stream(clicks):
    seen = clicks.with_columns(seen=visit().duplicated(window=20).over("site"))
    grouped = clicks.group_by("site", maintain_order=True).agg(visit().duplicated(window=20).alias("seen"))
    for site, marks in grouped.iter_rows():
        answer = expected(clicks.filter(pl.col("site") == site), 20)
        assert seen.filter(pl.col("site") == site)["seen"].to_list() == answer
        assert marks == answer


def test_one_column_and_an_expression_of_times(clicks):
    at = pl.from_epoch("time") + pl.duration(days=1)
    marks = clicks.select(pl.col("ip").lately.duplicated(window="1min", at=at))
    answer = ExactWindow(60).duplicated(clicks["ip"].to_list(), clicks["time"].to_list())
    assert marks["ip"].to_list() == list(answer)


def test_options(clicks):
    """A filter marks every repeat; missing keys may be distinct."""
    exact = pl.Series(expected(clicks, 20))
    marks = clicks.select(visit().duplicated(window=20, fpr=0.01, seed=1)).to_series()
    assert marks.filter(exact).all()
    marks = clicks.select(pl.col("ip").lately.duplicated(window=20, missing="distinct")).to_series()
    assert not marks.filter(clicks["ip"].is_null()).any()


def test_empty(clicks):
    for window, at in ((20, None), ("1min", "time")):
        marks = clicks.clear().select(visit().duplicated(window=window, at=at))
        assert marks.schema == {"ip": pl.Boolean}


def test_errors(clicks):
    """A bad request is rejected at once, bad rows when the query runs."""
    for given, error, words in (
        ({"window": "1min"}, TypeError, "at"),
        ({"window": 0}, ValueError, "window"),
        ({"window": 5, "fpr": 2}, ValueError, "fpr"),
        ({"window": 5, "missing": "all"}, ValueError, "missing"),
    ):
        with pytest.raises(error, match=words):
            visit().duplicated(**given)
    with pytest.raises(Exception, match="at must have one time for each of 5000 keys, got 1"):
        clicks.select(visit().duplicated(window="1min", at=pl.lit(5)))
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="hour"):
        clicks.select(visit().duplicated(window="1min", at="hour"))


def test_an_earlier_polars_is_rejected(monkeypatch):
    """Within groups and in lazy queries, marks by an earlier polars are wrong."""
    monkeypatch.setattr(pl, "__version__", "1.33.1")
    with pytest.raises(ImportError, match=r"needs polars 1\.34 or later, got 1\.33\.1"):
        importlib.reload(lately.integrations.polars)
