"""A Ray dataset loses the repeats within the window, and no other row, however it is cut into blocks."""

import doctest
import gzip
import json
import random
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import lately
from lately.distributed import deduplicate
from lately.distributed._deduplicate import _Rows
from support import real_streams
from support.exact import ExactWindow

ray = pytest.importorskip("ray")

VISITOR = [*real_streams.VISITOR, "u"]


@pytest.fixture(scope="module")
def clicks():
    """Real clicks as a table: visitor, page and time; in the example's order, which steps back by up to 3 s."""
    with gzip.open(real_streams.EXAMPLES / "usagov-clicks-2013.jsonl.gz", "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    return pa.table({name: [record.get(name) for record in records] for name in [*VISITOR, "t"]})


def blocks(table: pa.Table, count: int):
    """As a dataset of blocks of about equal length, the last first."""
    edges = np.linspace(0, len(table), count + 1).astype(int)
    parts = [table.slice(start, stop - start) for start, stop in pairwise(edges)]
    return ray.data.from_arrow(parts[::-1])


def rows(dataset, names) -> list[tuple]:
    batches = dataset.iter_batches(batch_size=None, batch_format="pyarrow")
    return sorted(
        (row for batch in batches for row in zip(*(batch[name].to_pylist() for name in names), strict=True)), key=repr
    )


def expected(table: pa.Table, names, window: int, refresh: bool) -> list[tuple]:
    """Key and time of the rows that an exact window in Python lets through, in order of time."""
    keys = list(zip(*(table[name].to_pylist() for name in names), strict=True))
    times = table["t"].to_pylist()
    order = sorted(range(len(times)), key=times.__getitem__)
    keys, times = [keys[i] for i in order], [times[i] for i in order]
    mask = ExactWindow(window).duplicated(keys, times) if refresh else first_sightings(keys, times, window)
    left = ((*key, time) for key, time, again in zip(keys, times, mask, strict=True) if not again)
    return sorted(left, key=repr)


def first_sightings(keys, times, window) -> list[bool]:
    let_through: dict = {}
    mask = []
    for key, time in zip(keys, times, strict=True):
        mask.append(key in let_through and time - let_through[key] <= window)
        if not mask[-1]:
            let_through[key] = time
    return mask


@pytest.mark.parametrize(
    ("window", "refresh", "cut", "pieces"), [("10min", True, 7, 2), ("10min", False, 3, 3), (None, True, 6, 2)]
)
def test_clicks_equal_the_exact_window(ray_cluster, clicks, window, refresh, cut, pieces):
    """The drops are exactly the repeats: none within the window survives, none else is dropped.

    Without a window the earliest row of each key is left. Ray knows the page, which an earlier step adds, when it runs.
    """
    dataset = blocks(clicks, cut).map_batches(
        lambda batch: batch.append_column("page", batch["u"]), batch_format="pyarrow"
    )
    key = [*real_streams.VISITOR, "page"]
    left = deduplicate(dataset, key, window, at="t", refresh=refresh, num_partitions=pieces).materialize()
    assert rows(left, [*key, "t"]) == expected(clicks, VISITOR, 600 if window else 2**40, refresh)
    assert set(left.schema().names) == {*VISITOR, "page", "t"}


def test_keys_that_are_missing_or_equal(ray_cluster):
    """None is one key, and so are 5 and 5.0, also where each stands in a block of its own, some without rows."""
    one = pa.table({"key": [None, 5, None, 6], "t": [5, 5, 3, 4]})
    other = pa.table({"key": [5.0, 6.5, 5.0], "t": [7, 1, 2000]})
    dataset = ray.data.from_arrow([one.slice(4), one, other, other.slice(3)])
    left = deduplicate(dataset, "key", "10min", at="t", num_partitions=2)
    assert rows(left, ["key", "t"]) == [(5.0, 2000), (5.0, 5), (6.0, 4), (6.5, 1), (None, 3)]


NOTHING = pa.table({"key": ["a", "a"], "t": [1, 1]}).slice(2)


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (lambda: ray.data.from_arrow(NOTHING), {}),
        (
            lambda: ray.data.from_items([{"key": "a", "t": 1}]).map_batches(
                lambda batch: batch.slice(0, 0), batch_format="pyarrow"
            ),
            {"window": "1s", "at": "t"},
        ),
    ],
    ids=["blocks without rows", "all rows dropped before"],
)
def test_empty(ray_cluster, make, options):
    assert deduplicate(make(), "key", **options, num_partitions=1).take_all() == []


def test_no_blocks(ray_cluster):
    assert deduplicate(ray.data.from_items([]), "key", "1s", at="t", num_partitions=1).count() == 0


@pytest.mark.parametrize(("at", "window"), [(None, None), ("t", None), ("t", "1s")])
def test_blocks_that_are_empty(at, window):
    """Of a dataset without blocks there is one without columns, with a window and without."""
    work = _Rows(("key",), at, window, True, 0)
    assert work.first_seen(work.hashed(NOTHING)) == NOTHING
    assert work.first_seen(work.hashed(pa.table({}))) == pa.table({})


def test_no_such_column(ray_cluster):
    dataset = ray.data.from_arrow(pa.table({"key": [1]}))
    with pytest.raises(ValueError, match="no column 'kee'; there are 'key'"):
        deduplicate(dataset, "kee")
    later = dataset.map_batches(lambda batch: batch.rename_columns(["name"]), batch_format="pyarrow")
    left = deduplicate(later, "key", num_partitions=1)
    with pytest.raises(Exception, match="no column 'key'; there are 'name'"):
        left.take_all()


def test_bad_times_say_so():
    work = _Rows(("key",), "t", "1s", True, 0)
    with pytest.raises(ValueError, match=r"column 't': at\[1\] is missing"):
        work.first_seen(work.hashed(pa.table({"key": [1, 1], "t": [1.0, None]})))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"key": "key", "window": 100}, TypeError, "share no count of rows"),
        ({"key": "key", "window": "1s"}, TypeError, "needs at"),
        ({"key": "key", "window": "1 parsec", "at": "t"}, ValueError, "1 parsec"),
        ({"key": "key", "window": "0s", "at": "t"}, ValueError, "longer than 0"),
        ({"key": []}, ValueError, "names no column"),
        ({"key": [0]}, TypeError, "named by text, got 0"),
        ({"key": "key", "num_partitions": 0}, ValueError, "num_partitions must be at least 1, got 0"),
        ({"key": "key", "seed": -1}, ValueError, "seed"),
    ],
)
def test_bad_arguments(ray_cluster, arguments, error, message):
    dataset = ray.data.from_arrow(pa.table({"key": [1], "t": [1]}))
    with pytest.raises(error, match=message):
        deduplicate(dataset, **arguments)


def test_example(ray_cluster):
    test = doctest.DocTestParser().get_doctest(deduplicate.__doc__, {"lately": lately}, "deduplicate", None, None)
    assert doctest.DocTestRunner().run(test) == (0, 4)


def test_not_a_dataset():
    with pytest.raises(TypeError, match=r"ray\.data\.Dataset, got list"):
        deduplicate([1, 2], "key")


@pytest.mark.parametrize("refresh", [True, False])
@pytest.mark.parametrize("window", [1, 7, 1000])
def test_random_rows_equal_the_exact_window(window, refresh):
    """In any order of time, with many equal times, and chains of a key that are longer than the window."""
    chance = random.Random(window)
    table = pa.table({"key": [chance.randrange(40) for _ in range(3000)], "t": chance.choices(range(700), k=3000)})
    work = _Rows(("key",), "t", f"{window}s", refresh, 0)
    left = work.first_seen(work.hashed(table))
    found = sorted(zip(*(left[name].to_pylist() for name in ("key", "t")), strict=True), key=repr)
    assert found == expected(table, ["key"], window, refresh)
