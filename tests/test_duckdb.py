"""DuckDB, unmodified: a query in, record batches through lately, a table out; no table is held whole."""

import duckdb
import pytest

import lately
from support.exact import ExactWindow

CLICKS = """
    SELECT (hash(i) % 40)::INT AS ip, (hash(i + 7) % 3)::INT AS url, i * 2 AS time FROM range(30_000) AS r(i) ORDER BY i
"""


@pytest.mark.parametrize("options", [{"window": 20}, {"window": "1min", "at": "time"}])
def test_a_query_through_a_reader_into_a_table(options):
    """Exactly the rows that an exact window lets through, in order."""
    clicks = duckdb.connect().sql(CLICKS)
    fresh = lately.drop_duplicates(clicks.to_arrow_reader(500), subset=["ip", "url"], **options)
    # A connection reads one result at a time: the rows go into another.
    kept = duckdb.connect()
    kept.register("fresh", fresh)
    kept.execute("CREATE TABLE kept AS SELECT * FROM fresh")
    rows = duckdb.connect().sql(CLICKS).fetchall()
    keys, times = [row[:2] for row in rows], [row[2] for row in rows]
    exact, stamps = (ExactWindow(60), times) if "at" in options else (ExactWindow(20), range(len(rows)))
    repeats = exact.duplicated(keys, stamps)
    assert 3000 < sum(repeats) < 27_000
    expected = [row for row, again in zip(rows, repeats, strict=True) if not again]
    assert kept.sql("SELECT * FROM kept ORDER BY time").fetchall() == expected


def test_a_relation_is_a_frame():
    marks = lately.duplicated(duckdb.connect().sql(CLICKS), 20, subset=["ip", "url"])
    assert marks.shape == (30_000,)
