import gzip

import pyarrow as pa
import pyarrow.parquet as pq

from support.command import ZEEK
from support.parquet import parquet


def test_dropped_records_are_written_to_another_file(tmp_path, dedupe):
    (tmp_path / "a.csv").write_bytes(b"k,v\n1,a\n2,b\n1,c\n")
    options, rest = (tmp_path / "a.csv", "--window", 9, "--key", "k"), tmp_path / "rest.csv.gz"
    assert dedupe(*options, "--dropped", rest).out == b"k,v\n1,a\n2,b\n"
    assert gzip.decompress(rest.read_bytes()) == b"k,v\n1,c\n"
    ended = dedupe(*options, "-o", rest, "--dropped", rest)
    assert (ended.status, "are the same file" in ended.err) == (2, True)
    ended = dedupe(*options, "--dropped", tmp_path / "no" / "rest")
    assert f"cannot write {tmp_path}/no/rest: No such file" in ended.err


def test_records_dropped_from_parquet_are_written_to_another_file(tmp_path, dedupe):
    table = parquet(tmp_path / "a.pq", k=[1, 2, 1, 1])
    target, rest = tmp_path / "o.pq", tmp_path / "rest.pq"
    assert dedupe(tmp_path / "a.pq", "--window", 9, "-o", target, "--dropped", rest).status == 0
    assert pq.read_table(target).equals(table.take([0, 1]))
    assert pq.read_table(rest).equals(table.take([2, 3]))


def test_all_records_with_a_mark(tmp_path, dedupe):
    for name, given, out in [
        ("a.txt", b"a\nb\na", b"0\ta\n0\tb\n1\ta"),
        ("b.txt", b"\xef\xbb\xbfa\na\n", b"\xef\xbb\xbf0\ta\n1\ta\n"),
        ("a.csv", b"\xef\xbb\xbfk,v\r\n1,a\n1,b\n", b"\xef\xbb\xbfrepeat,k,v\r\n0,1,a\n1,1,b\n"),
        ("a.tsv", b"k\tv\n1\ta\n1\tb\n", b"repeat\tk\tv\n0\t1\ta\n1\t1\tb\n"),
        ("a.jsonl", b'{"k": 1}\n {"k": 1}\n', b'{"repeat": false, "k": 1}\n {"repeat": true, "k": 1}\n'),
    ]:
        (tmp_path / name).write_bytes(given)
        key = () if name.endswith(".txt") else ("--key", "k")
        ended = dedupe(tmp_path / name, "--window", 9, *key, "--mark")
        assert ended.out == out
    (tmp_path / "b.jsonl").write_bytes(b"{}\n{ }\n{}\n")
    marked = b'{"repeat": false}\n{"repeat": false }\n{"repeat": true}\n'
    assert dedupe(tmp_path / "b.jsonl", "--window", 9, "--mark").out == marked
    table = parquet(tmp_path / "a.pq", k=[1, 2, 1])
    assert dedupe(tmp_path / "a.pq", "--window", 9, "--mark", "-o", tmp_path / "o.pq").status == 0
    assert pq.read_table(tmp_path / "o.pq").equals(table.add_column(0, "repeat", pa.array([False, False, True])))
    (tmp_path / "c.log").write_bytes(ZEEK)
    ended = dedupe(tmp_path / "c.log", "--format", "zeek", "--window", 9, "--mark")
    assert (ended.status, "--mark is not for Zeek" in ended.err) == (2, True)


def test_records_that_are_marked_already_are_not_marked_again(tmp_path, dedupe):
    (tmp_path / "a.csv").write_bytes(b"k,repeat\n1,0\n")
    (tmp_path / "a.jsonl").write_bytes(b'{"k": "repeat"}\n{"k": 1, "repeat": true}\n')
    parquet(tmp_path / "a.pq", k=[1], repeat=[True])
    for name in ("a.csv", "a.jsonl", "a.pq"):
        ended = dedupe(tmp_path / name, "--window", 9, "--mark", "-o", tmp_path / f"o-{name}")
        assert (ended.status, f"{name}: --mark adds the field 'repeat'" in ended.err) == (1, True)


def test_a_state_covers_the_file_of_dropped_records(tmp_path, dedupe):
    (tmp_path / "a.txt").write_bytes(b"a\nb\na\n")
    target, rest = tmp_path / "o", tmp_path / "rest"
    options = (tmp_path / "a.txt", "--window", 9, "--state", tmp_path / "s", "-o", target, "--dropped", rest)
    for _ in range(2):
        assert dedupe(*options).status == 0
        assert (target.read_bytes(), rest.read_bytes()) == (b"a\nb\n", b"a\n")
    rest.unlink()
    assert dedupe(*options).status == 0
    assert (target.read_bytes(), rest.read_bytes()) == (b"", b"a\nb\na\n")
