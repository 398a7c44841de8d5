import gzip
import os
import re

import pytest

import lately
from support.command import ZEEK

CSV = b'id,"the, name",n\r\n1,"a\n""b""",x\r\n2,c,y\n1,"a\n""b""",z\n'


def test_csv_is_passed_on_byte_for_byte_with_its_header(tmp_path, dedupe):
    (tmp_path / "a.csv").write_bytes(CSV)
    ended = dedupe(tmp_path / "a.csv", "--window", 100, "--key", 'id,"the, name"')
    assert ended.out == b'id,"the, name",n\r\n1,"a\n""b""",x\r\n2,c,y\n'
    ended = dedupe(tmp_path / "a.csv", "--window", 100)
    assert ended.out == CSV


def test_csv_files_share_one_header(tmp_path, dedupe):
    (tmp_path / "a.csv").write_bytes(b"k,v\n1,2\n3,4")
    (tmp_path / "b.csv").write_bytes(b'"k",v\r\n5,6\r\n1,7')
    (tmp_path / "c.csv").write_bytes(b"")
    (tmp_path / "d.csv").write_bytes(b"k,v")
    assert dedupe(*sorted(tmp_path.iterdir()), "--window", 9, "--key", "k").out == b"k,v\n1,2\n3,4\n5,6\r\n"
    (tmp_path / "e.csv").write_bytes(b"v,k\n8,9\n")
    ended = dedupe(*sorted(tmp_path.iterdir()), "--window", 9, "--key", "k")
    assert ended.status == 1
    assert re.search(r"e\.csv: its header differs from that of .*a\.csv: the order", ended.err)


def test_a_long_quoted_field(tmp_path, dedupe):
    row = b'1,"' + b"x\n" * 100_000 + b'"\n'
    (tmp_path / "a.csv").write_bytes(b"k,v\n" + row + row)
    assert dedupe(tmp_path / "a.csv", "--window", 9).out == b"k,v\n" + row


@pytest.mark.parametrize(
    ("option", "header", "message"),
    [
        ("--key=ip", b"k,v", "the header names no field 'ip'; its fields are k, v"),
        ("--time=ts", b"k,v", "the header names no field 'ts'; its fields are k, v"),
        ("--key=k", b"k,v,k", "the header names more than one field 'k'"),
        ("--key=k", b"", "the header names no field 'k'; its fields are 1, 2"),
        ("--key=k", b"k\xff,v", "line 1: not valid utf-8"),
        ("--key=k", b'k"x,"v"v', "line 1: "),
    ],
)
def test_bad_headers_are_errors(tmp_path, dedupe, option, header, message):
    (tmp_path / "a.csv").write_bytes(header + b"\n1,2\n")
    window = ("--window", "1min", "--capacity", 9) if "time" in option else ("--window", 9)
    ended = dedupe(tmp_path / "a.csv", *window, option, "--skip-bad", "--encoding", "utf-8")
    assert ended.status == 1
    assert "a.csv" in ended.err
    assert message in ended.err


def test_csv_without_a_header(tmp_path, dedupe):
    (tmp_path / "a.csv").write_bytes(b"1,x,a\n2,y,b\n1,z,a\n1,x\n")
    (tmp_path / "b.csv").write_bytes(b"2,q,b\n3,q,c\n")
    options = (tmp_path / "a.csv", tmp_path / "b.csv", "--window", 9, "--no-header", "--skip-bad")
    ended = dedupe(*options, "--key", "1,3")
    assert ended.out == b"1,x,a\n2,y,b\n3,q,c\n"
    assert "malformed  1," in ended.err
    assert "the header names no field '4'; its fields are 1, 2, 3" in dedupe(*options, "--key", "4").err
    times = ("--time", "1", "--key", "2", "--window", "9s", "--capacity", 9, "--lateness", "9s")
    assert dedupe(*options[:2], "--no-header", "--skip-bad", *times).out == b"1,x,a\n2,y,b\n1,z,a\n2,q,b\n"


def test_a_log_of_zeek_whose_fields_change_in_the_middle_is_an_error(tmp_path, dedupe):
    first, other = (b"#separator \\x09\n#fields\t" + names + b"\n#types\tx\tx\n" for names in (b"id\tts", b"ts\tid"))
    options = ("--format", "zeek", "--key", "id", "--window", 9)
    (tmp_path / "a.log").write_bytes(first + b"a\t1\n#close\tx\n" + first + b"a\t2\n")
    assert dedupe(tmp_path / "a.log", *options).out == first + b"a\t1\n"
    (tmp_path / "b.log").write_bytes(first + b"a\t1\n#close\tx\n" + other + b"2\ta\n")
    ended = dedupe(tmp_path / "b.log", *options, "--skip-bad")
    assert (ended.status, "b.log, line 7: the fields of this header differ" in ended.err) == (1, True)
    (tmp_path / "c.log").write_bytes(b"1\t2\n")
    ended = dedupe(tmp_path / "c.log", *options)
    assert (ended.status, "c.log, line 1: expected a header" in ended.err) == (1, True)


def test_a_log_of_zeek_is_known_by_its_first_line(tmp_path, dedupe):
    rows = [b"1.5\t10.0.0.1\t-\n", b"2.5\t10.0.0.1\t-\n"]
    (tmp_path / "a.log").write_bytes(ZEEK + b"".join(rows))
    (tmp_path / "b.log.gz").write_bytes(gzip.compress(ZEEK + b"".join(rows)))
    for name in ("a.log", "b.log.gz"):
        assert dedupe(tmp_path / name, "--key", "id.orig_h", "--window", 9).out == ZEEK + rows[0]
    (tmp_path / "c.log").write_bytes(b"#sep")
    assert "--format csv, tsv, zeek" in dedupe(tmp_path / "c.log", "--key", "id.orig_h", "--window", 9).err


def test_quotes_enclose_fields_in_csv_and_not_in_tsv(tmp_path, dedupe):
    rows = [b"k\tv\n", b'"a\t1\n', b'"b\t2\n', b'"a\t3\n']
    (tmp_path / "a.tsv").write_bytes(b"".join(rows))
    assert dedupe(tmp_path / "a.tsv", "--key", "k", "--window", 9).out == b"".join(rows[:3])
    (tmp_path / "b.tsv").write_bytes(b'k\tv\n"a\tb"\t1\n"a\tb"\t2\n')
    assert "3 fields where the header has 2; if quotes" in dedupe(tmp_path / "b.tsv", "--key", "k", "--window", 9).err
    ended = dedupe(tmp_path / "b.tsv", "--key", "k", "--window", 9, "--quotes")
    assert ended.out == b'k\tv\n"a\tb"\t1\n'
    (tmp_path / "c.csv").write_bytes(b'k,v\n"a,b",1\n"a,b",2\n')
    assert dedupe(tmp_path / "c.csv", "--key", "k", "--window", 9).out == b'k,v\n"a,b",1\n'


def test_a_key_that_is_not_valid_text_is_its_bytes(tmp_path, dedupe):
    rows = [b"caf\xe9,1\n", b"caf\xc3\xa9,2\n", b"caf\xe9,3\n", b"caf\xe8,4\n", b"caf\xc3\xa9,\xe9\n"]
    (tmp_path / "a.csv").write_bytes(b"k\xe9,v\n" + b"".join(rows))
    options = ("--key", os.fsdecode(b"k\xe9"), "--window", 9, "--state", tmp_path / "s")
    assert dedupe(tmp_path / "a.csv", *options).out == b"k\xe9,v\n" + rows[0] + rows[1] + rows[3]
    f = lately.open(tmp_path / "s")
    assert f.query([b"caf\xe9", b"caf\xe8", "café", "caf\xe8"]).tolist() == [True, True, True, False]
