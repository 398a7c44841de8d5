"""Blocks read at once give what records one by one give, whatever bytes they hold."""

import json
import random
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import lately
from lately.cli import columns
from lately.cli.columns import CsvColumns, JsonColumns
from lately.cli.delimited import CsvReader
from lately.cli.lines import JsonReader
from lately.cli.records import Asked, Lines, Malformed
from lately.cli.times import Times
from support.parquet import parquet

CELLS = [
    b"a",
    b"b",
    b"",
    b" ",
    b"\xc3\xa4",
    b"\xe4",
    b'"',
    b'"x"',
    b'"x,y"',
    b'"x\ny"',
    b"\x00",
    b"NA",
    b"#",
    b"\r",
    b"1",
]
VALUES = ["a", "", "ä", "\x00", "\u2028", "null", 1, -0, 2**62, 2**70, 1.5, True, None, [1], {"k": 1}]
LINES = [b'{"k": "a"}{"k": "b"}', b'{"k"', b': "a"}', b'{"k": "a", "k": "b"}', b"{}", b"[]", b"", b'{"k": "\\ud800"}']
LINES += [b'{"k": "\xff"}', b'{"k": "a"', b'{"k": "a"} ', b'{"k": "\\u0061"}', b'{"k": NaN}', b'{"j": "a"}']


def asked(malformed, *, key, time=None, encoding=None):
    times = Times(time) if time else None
    return Asked(key, times, encoding or "utf-8", encoding is not None, 1 << 20, malformed, digest=False)


def everything(reader, path, malformed):
    """All that a reader gives of a file: numbers, hashes of keys, times, bytes and faults."""
    numbers, hashes, times, lines, head = [], [], [], [], b""
    for batch in reader.batches(str(path), lambda _: None):
        numbers += [int(number) for number in batch.numbers]
        hashes += lately.hash_keys(batch.keys).tolist()
        times += [] if batch.times is None else batch.times.tolist()
        lines += list(batch.records)
        head += batch.head
    return numbers, hashes, times, lines, head, sorted(reader.absent), malformed.count, malformed.first


@pytest.fixture
def both_ways(tmp_path, monkeypatch):
    """Read a file at once where that goes, and one by one; tell whether some block was read at once."""

    def run(make, data):
        path = tmp_path / "a"
        path.write_bytes(data)
        taken = []
        for kind in (CsvColumns, JsonColumns):
            read = kind.read
            monkeypatch.setattr(
                kind, "read", lambda self, block, read=read: taken.append(found := read(self, block)) or found
            )
        found = []
        for available in (True, False):
            if not available:
                monkeypatch.setattr(columns, "_arrow", lambda _: None)
            malformed = Malformed(True)
            found.append(everything(make(malformed), path, malformed))
        monkeypatch.undo()
        assert found[0] == found[1]
        return any(each is not None for each in taken)

    return run


def csv_reader(malformed, *, delimiter=",", quotes=True, head="names", **options):
    return CsvReader(asked(malformed, **options), delimiter=delimiter, quotes=quotes, head=head)


@pytest.mark.parametrize("quotes", [True, False])
@pytest.mark.parametrize("encoding", [None, "utf-8", "latin-1"])
def test_csv(both_ways, quotes, encoding):
    rng = random.Random(f"{quotes} {encoding}")
    taken = 0
    for trial in range(150):
        cells = CELLS[: 2 + trial // 10] if trial % 2 else CELLS[:4] + rng.sample(CELLS, 1)
        rows = [[rng.choice(cells) for _ in range(3)] for _ in range(rng.randrange(6))]
        if trial % 5 == 0 and rows:
            rng.choice(rows).append(b"more")
        end = rng.choice([b"\n", b"\r\n"])
        data = end.join([b"k,l,m", *map(b",".join, rows)]) + rng.choice([b"", end])
        key = rng.choice([[], ["k"], ["m", "k"]])
        head = rng.choice(["names", "none"])
        if head == "none":
            key = [{"k": "1", "l": "2", "m": "3"}[field] for field in key]
        make = partial(csv_reader, quotes=quotes, head=head, key=key, encoding=encoding)
        taken += both_ways(make, data)
    assert 30 < taken < 150


def test_blank_lines_and_marks_of_byte_order(both_ways, monkeypatch):
    for data in (b"k\n\n1\n", b"k\n1\n\n2\n", b"k\r\n1\r\n\r\n2\r\n", b"k\n\r\n1\n", b"k\n1\n\n"):
        assert not both_ways(lambda malformed: csv_reader(malformed, key=["k"]), data)
    mark = "\ufeff".encode()
    monkeypatch.setattr("lately.cli.inputs.BLOCK", 8)  # a line each
    assert both_ways(
        lambda malformed: csv_reader(malformed, key=["name"]), mark + b"name\n" + b"1234567\n" + mark + b"1234\n" * 2
    )


def test_csv_with_times(both_ways):
    for cells in [
        (b"1", b"1700000000", b"1.5", b"-3", b"1e5", b"1700000000.123456"),
        (b"2020-01-31", b"2020-01-31T12:00:00Z", b"7"),
        (b"1", b"", b"nan"),
        (b" 1", b"1_0"),
        (b"1", b"inf"),
        (b"9e99", b"1"),
    ]:
        rows = b"".join(b"%b,%d\n" % (cell, i) for i, cell in enumerate(cells))
        both_ways(lambda malformed: csv_reader(malformed, key=["k"], time="t"), b"t,k\n" + rows)
    assert both_ways(lambda malformed: csv_reader(malformed, key=["k"], time="t"), b"t,k\n1.25,a\n2,b\n")


def test_zeek(both_ways):
    head = b"#separator \\x09\n#fields\tk\tl\n#types\tstring\tstring\n"
    for rows in (b"a\tb\nc\td\n", b"a\tb\n#close\n", b"#\tb\n", b"a\n"):
        both_ways(
            lambda malformed: csv_reader(malformed, delimiter="\t", quotes=False, head="zeek", key=["k"]), head + rows
        )


def test_records_across_blocks(both_ways, monkeypatch):
    """Blocks that can be read at once take turns with those that cannot, at any place."""
    rng = random.Random(0)
    for _ in range(10):
        rows = [b"%d,x\n" % rng.randrange(99) for _ in range(20_000)]
        for _ in range(3):
            rows[rng.randrange(len(rows))] = rng.choice([b'"1\n2",x\n', b"1\n", b'"3,x\n', b"\xff,x\n", b"4,x\r\n"])
        with monkeypatch.context() as patch:
            patch.setattr("lately.cli.inputs.BLOCK", 1 << 12)
            assert both_ways(lambda malformed: csv_reader(malformed, key=["k"]), b"k,v\n" + b"".join(rows))


def test_json_lines(both_ways):
    rng = random.Random(0)
    taken = 0
    for trial in range(300):
        values = VALUES[: 1 + trial // 20]
        lines = []
        for _ in range(rng.randrange(6)):
            record = {field: rng.choice(values) for field in ("k", "l", "m") if rng.random() < 0.95}
            lines.append(json.dumps(record, ensure_ascii=rng.random() < 0.5).encode())
        if trial % 3 == 0:
            lines.insert(rng.randrange(len(lines) + 1), rng.choice(LINES))
        data = rng.choice([b"\n", b"\r\n"]).join(lines) + rng.choice([b"", b"\n"])
        key, time = rng.choice([["k"], ["k", "l"], []]), rng.choice([None, None, "m"])
        taken += both_ways(lambda malformed: JsonReader(asked(malformed, key=key, time=time)), data)  # noqa: B023
    assert 30 < taken < 300


def test_objects_that_share_lines(both_ways):
    for data in (b'{"k": "a"}{"k": "b"}\n{"k"\n: "c"}\n', b'{"k": "a"}{"k": "b"}\n{"k": "c", "l": [{}\n,{}]}\n'):
        assert not both_ways(lambda malformed: JsonReader(asked(malformed, key=["k"])), data)


def test_lines_that_are_chosen():
    rng = np.random.default_rng(0)
    block = b"a\nbb\n\nccc\nd"
    lines = Lines(block, np.array([0, 2, 5, 6, 10, 11]))
    assert list(lines) == [b"a\n", b"bb\n", b"\n", b"ccc\n", b"d"]
    assert (len(lines[1:3]), list(lines[1:3]), list(lines[3:1]), lines[4]) == (2, [b"bb\n", b"\n"], [], b"d")
    for _ in range(40):
        which = rng.random(5) < 0.5
        assert lines.chosen(which) == b"".join(line for line, goes in zip(lines, which, strict=True) if goes)


@pytest.mark.parametrize("extension", ["csv", "jsonl", "parquet"])
def test_a_run_does_not_import_pandas(tmp_path, extension):
    """Which pyarrow does where it is given something that might be pandas', and which takes longer than many a run."""
    path = tmp_path / f"a.{extension}"
    if extension == "parquet":
        parquet(path, k=["1", "1"], t=[2, 3])
    else:
        path.write_bytes({"csv": b"k,t\n1,2\n1,3\n", "jsonl": b'{"k": "1", "t": 2}\n{"k": "1", "t": 3}\n'}[extension])
    code = 'import sys; from lately.cli import main; main(sys.argv[1:]); sys.exit("pandas" in sys.modules)'
    options = ["--key", "k", "--time", "t", "--window", "9s", "-o", tmp_path / f"o.{extension}"]
    ended = subprocess.run([sys.executable, "-c", code, "dedupe", path, *options], capture_output=True, text=True)
    assert (ended.returncode, "kept       1\n" in ended.stderr) == (0, True)
