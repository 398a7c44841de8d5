import bz2
import csv
import gzip
import io
import json
import lzma
import os
import pty
import random
import re
import resource
import select
import signal
import subprocess
import sys
import termios
import threading
import time
import zlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

import lately
from lately._families import DEFAULT, EVERY, FAMILIES
from lately.cli import main
from lately.cli.report import Mistakes
from support.forked import Forked

# In a process of its own, Ctrl-C works even where the tests themselves run in the background, deaf to it.
COMMAND = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from lately.cli import main
sys.argv.insert(1, "dedupe")
sys.exit(main())
"""

# No false positive is to be expected in any test that does not want one: fewer than 10^5 keys at 10^-12.
SURE = ("--fpr", "1e-12")


@dataclass
class Ended:
    status: int
    out: bytes
    err: str


@pytest.fixture
def dedupe(capfdbinary):
    """Run the command in this process."""

    def run(*arguments):
        capfdbinary.readouterr()
        status = main(["dedupe", *map(str, arguments)])
        out, err = capfdbinary.readouterr()
        return Ended(status, out, err.decode())

    return run


def start(*arguments, largest_file=resource.RLIM_INFINITY, **options):
    """Start the command in a process of its own, whose files can be made full at some size."""
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({largest_file}, {largest_file}))"
    return Forked(limit + COMMAND, *arguments, **options)


def finish(process, stdin=b""):
    out, err = process.communicate(stdin)
    return Ended(process.returncode, out, err.decode())


def unique(lines):
    return list(dict.fromkeys(lines))


def some_lines(count=5000, different=1000, seed=0):
    rng = random.Random(seed)
    return [f"line {rng.randrange(different)}\n".encode() for _ in range(count)]


def temporaries(folder):
    return [path for path in folder.iterdir() if path.name.startswith(".")]


# Text


def test_text_is_passed_on_byte_for_byte(tmp_path, dedupe):
    (tmp_path / "a.txt").write_bytes("b\n\nä €\n a\nb\n\nb \nä €\n a\n".encode())
    ended = dedupe(tmp_path / "a.txt", "--window", 100)
    assert ended.status == 0
    assert ended.out == "b\n\nä €\n a\nb \n".encode()


def test_the_end_of_a_line_is_no_part_of_its_key(tmp_path, dedupe):
    (tmp_path / "a.txt").write_bytes(b"a\r\nb\na\nc")
    (tmp_path / "b.txt").write_bytes(b"c\nd")
    (tmp_path / "c.txt").write_bytes(b"e\nd")
    assert dedupe(*sorted(tmp_path.iterdir()), "--window", 100).out == b"a\r\nb\nc\nd\ne\n"


def test_a_last_line_without_its_end_gets_none(tmp_path, dedupe):
    (tmp_path / "a.txt").write_bytes(b"a\na\nb")
    assert dedupe(tmp_path / "a.txt", "--window", 100).out == b"a\nb"


def test_a_byte_order_mark_is_no_part_of_a_key(tmp_path, dedupe):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfa\nb\na\n")
    (tmp_path / "b.txt").write_bytes(b"\xef\xbb\xbfb\n")
    ended = dedupe(tmp_path / "a.txt", tmp_path / "b.txt", "--window", 100)
    assert ended.out == b"\xef\xbb\xbfa\nb\n"


def test_encoding(tmp_path, dedupe):
    lines = b"caf\xe9\nna\xefve\ncaf\xe9\n"
    (tmp_path / "a.txt").write_bytes(lines)
    ended = dedupe(tmp_path / "a.txt", "--window", 9, "--encoding", "latin-1", "--output", tmp_path / "o")
    assert (tmp_path / "o").read_bytes() == b"caf\xe9\nna\xefve\n"
    assert ended.status == 0
    ended = dedupe(tmp_path / "a.txt", "--window", 9)
    assert ended.status == 1
    assert "a.txt, line 1: not valid utf-8" in ended.err
    (tmp_path / "b.csv").write_bytes(b"k\xff,v\n\xc3\xa9,1\n\xe9,2\n\xe9,3\n")
    ended = dedupe(tmp_path / "b.csv", "--window", 9, "--encoding", "bytes")
    assert ended.out == b"k\xff,v\n\xc3\xa9,1\n\xe9,2\n\xe9,3\n"
    ended = dedupe(tmp_path / "b.csv", "--window", 9, "--encoding", "bytes", "--no-header", "--key", "1")
    assert ended.out == b"k\xff,v\n\xc3\xa9,1\n\xe9,2\n"


def test_more_lines_than_one_batch_and_more_windows_than_one(tmp_path, dedupe):
    # Each line comes twice, 300 lines apart: within the window of 400, and long gone when it comes again.
    lines = [f"{(i - 300 * (i // 300 % 2)) % 6000}\n".encode() for i in range(150_000)]
    (tmp_path / "a.txt").write_bytes(b"".join(lines))
    ended = dedupe(tmp_path / "a.txt", "--window", 400, *SURE)
    assert ended.out == b"".join(line for i, line in enumerate(lines) if i // 300 % 2 == 0)


def test_a_repeat_restarts_the_window_unless_told_otherwise(tmp_path, dedupe):
    # "x" every 60 lines, in a window of 100 and with a slack of less than 100.
    lines = [b"x\n" if i % 60 == 0 else b"%d\n" % i for i in range(1200)]
    (tmp_path / "a.txt").write_bytes(b"".join(lines))
    kept = dedupe(tmp_path / "a.txt", "--window", 100, *SURE).out.splitlines()
    assert kept.count(b"x") == 1
    for options in (("--no-refresh",), ("--refresh", "no")):
        kept = dedupe(tmp_path / "a.txt", "--window", 100, *options, *SURE).out.splitlines()
        assert kept.count(b"x") >= 1200 // 60 // 4


def test_a_record_that_never_stops_is_passed_on_again_unless_deliveries_are_counted(tmp_path, dedupe):
    (tmp_path / "a.txt").write_bytes(b"x\n" * 100_000)
    for options, passed in (((), 1), (("--no-refresh",), 100_000 // 11 + 1), (("--refresh", "delivered"), 1)):
        ended = dedupe(tmp_path / "a.txt", "--window", 10, "--filter", "swamp", *options, *SURE)
        assert ended.out == b"x\n" * passed, options
    with pytest.raises(SystemExit):
        dedupe(tmp_path / "a.txt", "--window", 10, "--refresh", "never")


def test_how_far_ahead_a_record_may_lie(tmp_path, dedupe):
    rows = [f"{1_700_000_000 + i},{i % 5}\n" for i in range(40)]
    future = [f"{int(time.time()) + 10**8 + i},{i}\n" for i in range(2)]
    (tmp_path / "a.csv").write_text("t,k\n" + "".join([*rows[:20], future[0], *rows[20:], future[1]]))
    options = ("--key", "k", "--time", "t", "--window", "10s", "--capacity", 10, *SURE)
    ended = dedupe(tmp_path / "a.csv", *options)
    assert ended.status == 1
    assert f"{tmp_path}/a.csv, line 22: the time " in ended.err
    assert "lies more than 86400 s ahead of this machine's clock (--skip-bad" in ended.err
    ended = dedupe(tmp_path / "a.csv", *options, "--skip-bad")
    assert ended.out.decode() == "t,k\n" + "".join(rows[:5])
    assert "malformed  2, passed over" in ended.err
    ended = dedupe(tmp_path / "a.csv", *options, "--ahead", "2000d", "--skip-bad")
    assert "steps back" in ended.err


# CSV


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
    assert re.search(r"e\.csv: its header is unlike that of .*a\.csv", ended.err)


def test_a_csv_file_of_a_header_alone(tmp_path, dedupe):
    (tmp_path / "a.csv").write_bytes(b"k,v\n")
    assert dedupe(tmp_path / "a.csv", "--window", 9, "--key", "k").out == b"k,v\n"


def test_tsv_without_quotes(tmp_path, dedupe):
    log = b'host\turl\tagent\na\t/\t"x\nb\t/\ty"\na\t/\t"\n'
    (tmp_path / "a.tsv").write_bytes(log)
    ended = dedupe(tmp_path / "a.tsv", "--window", 9, "--key", "host,url", "--no-quotes")
    assert ended.out == b'host\turl\tagent\na\t/\t"x\nb\t/\ty"\n'
    (tmp_path / "a.log").write_bytes(log)
    options = ("--format", "csv", "--delimiter", "tab", "--no-quotes", "--key", "url")
    assert dedupe(tmp_path / "a.log", "--window", 9, *options).out == b'host\turl\tagent\na\t/\t"x\n'


def test_a_long_quoted_field(tmp_path, dedupe):
    row = b'1,"' + b"x\n" * 100_000 + b'"\n'
    (tmp_path / "a.csv").write_bytes(b"k,v\n" + row + row)
    assert dedupe(tmp_path / "a.csv", "--window", 9).out == b"k,v\n" + row


@pytest.mark.parametrize(
    ("option", "header", "message"),
    [
        ("--key=ip", b"k,v", "the header names no field 'ip'; it has: k, v"),
        ("--time=ts", b"k,v", "the header names no field 'ts'; it has: k, v"),
        ("--key=k", b"k,v,k", "the header names more than one field 'k'"),
        ("--key=k", b"", "line 1: a header that names the fields is needed"),
        ("--key=k", b"k\xff,v", "line 1: not valid utf-8"),
        ("--key=k", b'k"x,"v"v', "line 1: "),
    ],
)
def test_a_header_that_will_not_do(tmp_path, dedupe, option, header, message):
    (tmp_path / "a.csv").write_bytes(header + b"\n1,2\n")
    window = ("--window", "1min", "--capacity", 9) if "time" in option else ("--window", 9)
    ended = dedupe(tmp_path / "a.csv", *window, option, "--skip-bad")
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
    assert "the header names no field '4'; it has: 1, 2, 3" in dedupe(*options, "--key", "4").err
    times = ("--time", "1", "--key", "2", "--window", "9s", "--capacity", 9, "--lateness", "9s")
    assert dedupe(*options[:2], "--no-header", "--skip-bad", *times).out == b"1,x,a\n2,y,b\n1,z,a\n2,q,b\n"


ZEEK = b"#separator \\x09\n#path\tconn\n#open\t2024-01-01\n#fields\tts\tid.orig_h\tnote\n#types\ttime\taddr\tstring\n"


def test_zeek(tmp_path, dedupe):
    rows = [b'1.5\t10.0.0.1\t"a\n', b"2.5\t10.0.0.2\t-\n", b'3.5\t10.0.0.1\t"b\n']
    (tmp_path / "a.log").write_bytes(ZEEK + b"".join(rows) + b"#close\t2024-01-02\n")
    (tmp_path / "b.log").write_bytes(ZEEK + rows[1] + b"4.5\t10.0.0.3\t-\n")
    options = ("--format", "zeek", "--key", "id.orig_h", "--window", 9)
    ended = dedupe(tmp_path / "a.log", tmp_path / "b.log", *options)
    assert ended.out == ZEEK + rows[0] + rows[1] + b"4.5\t10.0.0.3\t-\n"
    assert "read       5 records" in ended.err
    (tmp_path / "c.log").write_bytes(b"1\t2\n")
    ended = dedupe(tmp_path / "c.log", *options)
    assert (ended.status, "c.log, line 1: a header that names" in ended.err) == (1, True)


# JSON lines


def test_keys_within_fields(tmp_path, dedupe):
    lines = [b'{"n": {"x": 1, "y": 1}}\n', b'{"n": {"x": 1, "y": 2}}\n', b'{"n": {"x": 2}}\n', b'{"n.x": 2}\n']
    (tmp_path / "a.jsonl").write_bytes(b"".join(lines))
    ended = dedupe(tmp_path / "a.jsonl", "--window", 9, "--key", "n.x")
    assert ended.out == lines[0] + lines[2]
    assert "warning" not in ended.err
    assert "no record has the key field n.z" in dedupe(tmp_path / "a.jsonl", "--window", 9, "--key", "n.x,n.z").err
    (tmp_path / "a.jsonl").write_bytes(b'{"n": 5}\n')
    assert "none of the key fields n.x is there" in dedupe(tmp_path / "a.jsonl", "--window", 9, "--key", "n.x").err


def test_json_lines_are_passed_on_byte_for_byte(tmp_path, dedupe):
    lines = [
        b'{"ip": "a", "url": "/", "n": 1}\n',
        b'{"url":"/","ip":"a"}\n',  # a repeat
        b' {"ip": "a" , "url": null}\n',
        b'{"ip": "a"}\r\n',  # an absent field is as missing as null: a repeat
        b'{"ip": 5, "url": "/"}\n',
        b'{"ip": 5.0, "url": "/"}\n',  # a repeat
        b'{"ip": "5", "url": "/"}\n',
        b'{"ip": "\\u00e4", "url": "/"}\n',
        '{"ip": "ä", "url": "/"}'.encode(),  # a repeat
    ]
    (tmp_path / "a.jsonl").write_bytes(b"".join(lines))
    ended = dedupe(tmp_path / "a.jsonl", "--window", 100, "--key", "ip,url")
    assert ended.status == 0
    assert ended.out == b"".join(lines[i] for i in (0, 2, 4, 6, 7))


def test_json_lines_without_a_key(tmp_path, dedupe):
    (tmp_path / "a.jsonl").write_bytes(b'{"a": [1]}\n{"a": [2]}\n{"a": [1]}')
    assert dedupe(tmp_path / "a.jsonl", "--window", 9).out == b'{"a": [1]}\n{"a": [2]}\n'


def test_a_key_field_that_never_occurs_is_warned_of(tmp_path, dedupe):
    (tmp_path / "a.jsonl").write_bytes(b'{"ip": "a"}\n{"ip": "b", "url": null}\n')
    assert "warning" not in dedupe(tmp_path / "a.jsonl", "--window", 9, "--key", "ip,url").err
    ended = dedupe(tmp_path / "a.jsonl", "--window", 9, "--key", "ip,uri")
    assert ended.status == 0
    assert "warning: no record has the key field uri\n" in ended.err


# Parquet


def parquet(path, **columns):
    table = pa.table(columns).replace_schema_metadata({"made by": "a test"})
    pq.write_table(table, path, row_group_size=7 if len(table) < 1000 else 7000)
    return pq.read_table(path)


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


def test_parquet_by_whole_rows_and_over_several_files(tmp_path, dedupe):
    table = parquet(tmp_path / "a.pq", a=list(range(100_000)), b=["x"] * 100_000)
    parquet(tmp_path / "b.pq", a=[5, 5, -1], b=["x", "y", "x"])
    target = tmp_path / "o.pq"
    assert dedupe(tmp_path / "a.pq", tmp_path / "b.pq", "--window", 200_000, *SURE, "-o", target).status == 0
    assert pq.read_table(target)[:100_000].equals(table)
    assert pq.read_table(target)[100_000:].to_pylist() == [{"a": 5, "b": "y"}, {"a": -1, "b": "x"}]
    assert pq.ParquetFile(target).num_row_groups == 1  # not one per batch


def test_parquet_without_rows(tmp_path, dedupe):
    table = parquet(tmp_path / "a.pq", a=pa.array([], pa.int8()))
    assert dedupe(tmp_path / "a.pq", "--window", 9, "--key", "a", "-o", tmp_path / "o.pq").status == 0
    assert pq.read_table(tmp_path / "o.pq").equals(table)


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


def test_parquet_that_will_not_do(tmp_path, dedupe):
    target = tmp_path / "o.pq"
    parquet(tmp_path / "a.pq", a=[1, 2], b=[[1], [2]])
    parquet(tmp_path / "b.pq", a=["1", "2"], b=[[1], [2]])
    (tmp_path / "c.pq").write_bytes((tmp_path / "a.pq").read_bytes()[:-9])
    for files, options, message in [
        (["a.pq"], ["--key", "c", "-o", target], r"a.pq: there is no column 'c'; it has: a, b"),
        (["a.pq", "b.pq"], ["--key", "a", "-o", target], r"b.pq: its schema is unlike that of .*a.pq"),
        (["a.pq"], ["--key", "b", "-o", target], r"a.pq: "),
        (["c.pq"], ["--key", "a", "-o", target], r"c.pq: "),
        (["a.pq"], ["--key", "a"], r"Parquet needs --output FILE"),
        (["a.pq"], ["--key", "a", "-o", tmp_path / "o.pq.gz"], r"Parquet needs --output FILE"),
        (["-"], ["--format", "parquet", "-o", target], r"give a file instead of standard input"),
    ]:
        ended = dedupe(*(tmp_path / file if file != "-" else file for file in files), "--window", 9, *options)
        assert ended.status == 1
        assert re.search(message, ended.err)
        assert "Exception ignored" not in ended.err
        assert not target.exists()


# Formats, compression, standard input and output


@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstandard.compress, lzma.compress, bz2.compress])
def test_compressed_input_is_known_by_its_bytes(tmp_path, dedupe, compress):
    lines = some_lines()
    half = len(lines) // 2
    data = compress(b"".join(lines[:half])) + compress(b"".join(lines[half:]))  # two members, two frames
    (tmp_path / "a.txt").write_bytes(data)
    assert dedupe(tmp_path / "a.txt", "--window", 9000, *SURE).out == b"".join(unique(lines))
    ended = finish(start("--window", 9000, *SURE), data)
    assert (ended.status, ended.out) == (0, b"".join(unique(lines)))


def test_a_pipe_that_gives_one_byte_at_a_time(tmp_path, dedupe):
    pipe = tmp_path / "pipe.txt"
    os.mkfifo(pipe)

    def write():
        with pipe.open("wb", buffering=0) as stream:
            for i, byte in enumerate(gzip.compress(b"a\nb\na\n")):
                stream.write(bytes([byte]))
                time.sleep(0.05 if i < 4 else 0)  # the reader has time to take it before the next one comes

    writer = threading.Thread(target=write)
    writer.start()
    ended = dedupe(pipe, "--window", 9)
    writer.join()
    assert ended.out == b"a\nb\n"


@pytest.mark.parametrize(
    ("extension", "decompress"),
    [
        (".gz", gzip.decompress),
        (".zst", lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data)),
        (".xz", lzma.decompress),
        (".bz2", bz2.decompress),
        (".out", bytes),
    ],
)
def test_output_is_compressed_as_its_name_says(tmp_path, dedupe, extension, decompress):
    lines = some_lines()
    (tmp_path / "a").write_bytes(b"".join(lines))
    target = tmp_path / f"o{extension}"
    assert dedupe(tmp_path / "a", "--window", 9000, *SURE, "--output", target).out == b""
    assert decompress(target.read_bytes()) == b"".join(unique(lines))


@pytest.mark.parametrize("extension", [".gz", ".zst"])
@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_damaged_compressed_input(tmp_path, dedupe, extension, damage):
    data = b"".join(some_lines())
    data = bytearray(
        gzip.compress(data) if extension == ".gz" else zstandard.ZstdCompressor(write_checksum=True).compress(data)
    )
    if damage == "cut":
        del data[-3:]
    else:
        data[len(data) // 2] ^= 255
    (tmp_path / f"a.txt{extension}").write_bytes(data)
    ended = dedupe(tmp_path / f"a.txt{extension}", "--window", 9, "--skip-bad", "--output", tmp_path / "o")
    assert ended.status == 1
    assert ended.err.startswith(f"lately: error: {tmp_path}/a.txt{extension}: ")
    assert not (tmp_path / "o").exists()


def test_the_format_is_in_the_name(tmp_path, dedupe):
    rows = b"k\n1\n1\n"
    for name, kept in [("a.csv.gz", b"k\n1\n"), ("a.TSV", b"k\n1\n"), ("a.log", b"k\n1\n")]:
        (tmp_path / name).write_bytes(gzip.compress(rows) if name.endswith("gz") else rows)
        assert dedupe(tmp_path / name, "--window", 9).out == kept
    for name in ("a.jsonl", "a.ndjson.zst", "a.json"):
        line = b'{"k": 1, "v": %d}\n'
        (tmp_path / name).write_bytes(line % 1 + line % 2)
        assert dedupe(tmp_path / name, "--window", 9, "--key", "k").out == line % 1
    ended = dedupe(tmp_path / "a.log", tmp_path / "a.TSV", "--window", 9)
    assert ended.status == 1
    assert "different formats" in ended.err
    ended = dedupe(tmp_path / "a.log", "--window", 9, "--key", "k")
    assert ended.status == 1
    assert "text has no fields for --key or --time" in ended.err
    assert dedupe(tmp_path / "a.log", tmp_path / "a.TSV", "--window", 9, "--format", "text").out == b"k\n1\n"


def test_an_input_that_is_not_there(tmp_path, dedupe):
    (tmp_path / "a.txt").write_bytes(b"a\n")
    ended = dedupe(tmp_path / "a.txt", tmp_path / "none.txt", "--window", 9)
    assert ended.status == 1
    assert ended.out == b""
    assert f"{tmp_path}/none.txt: No such file" in ended.err
    ended = dedupe(tmp_path, "--window", 9)
    assert ended.status == 1
    assert f"{tmp_path}: Is a directory" in ended.err


@pytest.mark.parametrize(("module", "file"), [("zstandard", "a.txt"), ("pyarrow", "a.parquet")])
def test_what_the_extra_is_for(tmp_path, dedupe, monkeypatch, module, file):
    (tmp_path / file).write_bytes(zstandard.compress(b"a\n"))
    (tmp_path / "b.csv").write_bytes(b"a\n1\n1\n")
    for missing in ("zstandard", "pyarrow", "pyarrow.parquet", "tqdm"):
        monkeypatch.setitem(sys.modules, missing, None)
    ended = dedupe(tmp_path / file, "--window", 9, "--output", tmp_path / "o")
    assert ended.status == 1
    assert f"needs {module}: pip install 'lately[cli]'" in ended.err
    assert dedupe(tmp_path / "b.csv", "--window", 9).out == b"a\n1\n"


def test_a_pipe_has_the_format_of_the_output(tmp_path):
    for name, given, new in [
        ("o.csv.gz", b"k,v\n1,2\n1,3\n", b"k,v\n1,2\n"),
        ("o.tsv.gz", b"k\tv\n1\t2\n1\t3\n", b"k\tv\n1\t2\n"),
        ("o.jsonl.gz", b'{"k": 1}\n{"k": 1, "v": 2}\n', b'{"k": 1}\n'),
    ]:
        assert finish(start("--window", 9, "--key", "k", "-o", tmp_path / name), given).status == 0
        assert gzip.decompress((tmp_path / name).read_bytes()) == new


def test_records_do_not_change_their_format(tmp_path, dedupe):
    (tmp_path / "a.csv").write_bytes(b"k\n1\n")
    parquet(tmp_path / "b.pq", k=[1])
    for source, target in [("a.csv", "o.parquet"), ("b.pq", "o.csv")]:
        ended = dedupe(tmp_path / source, "--window", 9, "-o", tmp_path / target)
        assert (ended.status, "records go out as they came" in ended.err) == (1, True)


# The other records


def test_what_is_dropped_goes_elsewhere(tmp_path, dedupe):
    (tmp_path / "a.csv").write_bytes(b"k,v\n1,a\n2,b\n1,c\n")
    options, rest = (tmp_path / "a.csv", "--window", 9, "--key", "k"), tmp_path / "rest.csv.gz"
    assert dedupe(*options, "--dropped", rest).out == b"k,v\n1,a\n2,b\n"
    assert gzip.decompress(rest.read_bytes()) == b"k,v\n1,c\n"
    assert dedupe(*options, "--dropped", rest, "--only-repeats").out == b"k,v\n1,c\n"
    assert gzip.decompress(rest.read_bytes()) == b"k,v\n1,a\n2,b\n"
    assert dedupe(*options, "--count", "--dropped", rest).out == b"2\n"
    assert dedupe(*options, "--count", "--only-repeats").out == b"1\n"
    ended = dedupe(*options, "-o", rest, "--dropped", rest)
    assert (ended.status, "are the same file" in ended.err) == (1, True)
    ended = dedupe(*options, "--dropped", tmp_path / "no" / "rest")
    assert f"cannot write {tmp_path}/no/rest: No such file" in ended.err


def test_what_is_dropped_from_parquet(tmp_path, dedupe):
    table = parquet(tmp_path / "a.pq", k=[1, 2, 1, 1])
    target, rest = tmp_path / "o.pq", tmp_path / "rest.pq"
    assert dedupe(tmp_path / "a.pq", "--window", 9, "-o", target, "--dropped", rest).status == 0
    assert pq.read_table(target).equals(table.take([0, 1]))
    assert pq.read_table(rest).equals(table.take([2, 3]))
    assert dedupe(tmp_path / "a.pq", "--window", 9, "--count").out == b"2\n"


def test_all_records_with_a_mark(tmp_path, dedupe):
    for name, given, out in [
        ("a.txt", b"a\nb\na", b"0\ta\n0\tb\n1\ta"),
        ("a.csv", b"\xef\xbb\xbfk,v\r\n1,a\n1,b\n", b"\xef\xbb\xbfrepeat,k,v\r\n0,1,a\n1,1,b\n"),
        ("a.tsv", b"k\tv\n1\ta\n1\tb\n", b"repeat\tk\tv\n0\t1\ta\n1\t1\tb\n"),
        ("a.jsonl", b'{"k": 1}\n {"k": 1}\n', b'{"repeat": false, "k": 1}\n {"repeat": true, "k": 1}\n'),
    ]:
        (tmp_path / name).write_bytes(given)
        key = () if name == "a.txt" else ("--key", "k")
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
    assert (ended.status, "--mark is not for Zeek" in ended.err) == (1, True)


def test_a_state_and_what_is_dropped(tmp_path, dedupe):
    (tmp_path / "a.txt").write_bytes(b"a\nb\na\n")
    target, rest = tmp_path / "o", tmp_path / "rest"
    options = (tmp_path / "a.txt", "--window", 9, "--state", tmp_path / "s", "-o", target, "--dropped", rest)
    for _ in range(2):
        assert dedupe(*options).status == 0
        assert (target.read_bytes(), rest.read_bytes()) == (b"a\nb\n", b"a\n")
    rest.unlink()
    assert dedupe(*options).status == 0
    assert (target.read_bytes(), rest.read_bytes()) == (b"", b"a\nb\na\n")


# Streams that pause


def shown(process, count):
    """What comes out within a while, though the input has not ended."""
    got = b""
    while got.count(b"\n") < count:
        assert select.select([process.stdout], [], [], 60)[0], got
        got += os.read(process.stdout.fileno(), 1 << 16)
    return got


@pytest.mark.parametrize(
    ("options", "head", "line"),
    [
        ((), b"", b"%d\n"),
        (("--format", "csv", "--key", "k"), b"k,v\n", b"%d,x\n"),
        (("--format", "jsonl", "--key", "k"), b"", b'{"k": %d}\n'),
    ],
)
def test_what_is_decided_is_written_when_the_input_pauses(options, head, line):
    process = start("--window", 100, *options)
    for text, out in [
        (head + line % 1 + line % 2 + line % 1, head + line % 1 + line % 2),
        (line % 2 + line % 3 + (line % 4)[:-1], line % 3),  # the last line has not ended
        (b"\n" + line % 3, line % 4),
    ]:
        process.stdin.write(text)
        process.stdin.flush()
        assert shown(process, out.count(b"\n")) == out
    assert finish(process, line % 5).out == line % 5


def test_compressed_input_that_pauses():
    process = start("--window", 100)
    compressor = zlib.compressobj(wbits=31)
    for number in range(3):
        process.stdin.write(compressor.compress(b"%d\n%d\n" % (number, number)) + compressor.flush(zlib.Z_SYNC_FLUSH))
        process.stdin.flush()
        assert shown(process, 1) == b"%d\n" % number
    assert finish(process, compressor.flush()).status == 0


# Memory


def peak(*arguments, stdin=b""):
    """Run the command, and give its peak of memory in MiB with how it ended."""
    report = """
import atexit, pathlib, re, sys
read = lambda: re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]
atexit.register(lambda: print(read(), file=sys.stderr))
"""
    with Path(os.devnull).open("wb") as nowhere:
        ended = finish(Forked(report + COMMAND, *arguments, stdout=nowhere), stdin)
    return int(ended.err.split()[-1]) >> 10, ended


@pytest.fixture(scope="module")
def least():
    return peak("--window", 9, "--quiet", stdin=b"a\n")[0]


@pytest.mark.parametrize(
    "compress", [gzip.compress, zstandard.compress, partial(lzma.compress, preset=0), bz2.compress]
)
def test_a_bomb_of_one_record_stays_small(tmp_path, least, compress):
    (tmp_path / "bomb").write_bytes(compress(bytes(1 << 27)))  # 128 MiB, from 4 KiB of zstd
    memory, ended = peak(tmp_path / "bomb", "--window", 9)
    assert ended.status == 1
    assert "line 1: longer than --max-record 16777216" in ended.err
    assert memory < least + 100


def test_a_bomb_of_empty_records_stays_small(tmp_path, least):
    (tmp_path / "bomb").write_bytes(zstandard.compress(b"\n" * (1 << 22)))
    memory, ended = peak(tmp_path / "bomb", "--window", 9, "--quiet")
    assert ended.status == 0
    assert memory < least + 100


@pytest.mark.parametrize("extension", ["txt", "csv", "jsonl", "parquet"])
def test_long_records_stay_small(tmp_path, least, extension):
    path = tmp_path / f"a.{extension}"
    if extension == "parquet":
        schema = pa.schema({"k": pa.string()})
        with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
            for i in range(20):
                rows = [f"{i} {j}" + "x" * 20_000 for j in range(500)]
                writer.write_table(pa.table({"k": rows}, schema))
        options = ("-o", tmp_path / "o.parquet")
    else:
        form, options = {"txt": "%d%s\n", "csv": "%d,%s\n", "jsonl": '{"k": %d, "v": "%s"}\n'}[extension], ()
        with path.open("w") as file:
            for i in range(6000):  # 120 MB
                file.write(form % (i, "x" * 20_000))
    memory, ended = peak(path, "--window", 9, "--quiet", *options)
    assert ended.status == 0, ended.err
    assert memory < least + (300 if extension == "parquet" else 100)


@pytest.mark.parametrize(
    ("extension", "good", "long"),
    [
        ("txt", b"a\n", b"x" * 2_000_000 + b"\n"),
        ("csv", b"k,v\na,1\n", b"b," + b"x" * 999 + b"\n"),
        ("csv", b"k,v\na,1\n", b'b,"' + b"x\n" * 400 + b'"\n'),
        ("jsonl", b'{"k": 1}\n', b'{"k": "' + b"x" * 999 + b'"}\n'),
    ],
)
def test_the_longest_record(tmp_path, dedupe, extension, good, long):
    (tmp_path / f"a.{extension}").write_bytes(good + long + long)
    options = (tmp_path / f"a.{extension}", "--window", 9)
    assert dedupe(*options).out == good + long
    number = good.count(b"\n") + 1
    ended = dedupe(*options, "--max-record", 500)
    assert ended.status == 1
    assert f"line {number}: longer than --max-record 500" in ended.err
    ended = dedupe(*options, "--max-record", 500, "--skip-bad")
    assert ended.out == good
    assert "malformed  2," in ended.err


# Windows of time


EVENTS = [(0, "a"), (5, "b"), (9, "a"), (18, "a"), (18, "c"), (60, "b"), (100, "a")]
KEPT = [0, 1, 4, 5, 6]  # of EVENTS, in a window of 10 s: two of "a" were seen 9 s before


@pytest.mark.parametrize(
    "written",
    [
        str,
        lambda second: f"{second}.0",
        lambda second: f"1970-01-01T00:{second // 60:02}:{second % 60:02}Z",
        lambda second: f"1970-01-01 00:{second // 60:02}:{second % 60:02}.000",
        lambda second: f"1970-01-01T02:{second // 60:02}:{second % 60:02}+02:00",
    ],
)
def test_windows_of_time(tmp_path, dedupe, written):
    rows = [f"{written(second)},{key}\n".encode() for second, key in EVENTS]
    options = ("--key", "k", "--time", "t", "--window", "10s", "--capacity", 10)
    (tmp_path / "a.csv").write_bytes(b"t,k\n" + b"".join(rows))
    assert dedupe(tmp_path / "a.csv", *options).out == b"t,k\n" + b"".join(rows[i] for i in KEPT)
    rows = [json.dumps({"t": written(second), "k": key}).encode() + b"\n" for second, key in EVENTS]
    (tmp_path / "a.jsonl").write_bytes(b"".join(rows))
    assert dedupe(tmp_path / "a.jsonl", *options).out == b"".join(rows[i] for i in KEPT)


@pytest.mark.parametrize(
    ("options", "written"),
    [
        (("--time-unit", "ms"), lambda second: f"{1_700_000_000 + second}000"),
        (("--time-unit", "ms"), lambda second: f"{1_700_000_000 + second}000.0"),
        (("--time-unit", "us"), lambda second: f"{1_700_000_000 + second}000000"),
        (("--time-unit", "ns"), lambda second: f"{1_700_000_000 + second}000000000"),
        (("--time-format", "%H:%M:%S %d.%m.%Y"), lambda second: f"01:{second // 60:02}:{second % 60:02} 31.12.2020"),
        (("--time-format", "%Y%m%d%H%M%S"), lambda second: f"2020123101{second // 60:02}{second % 60:02}"),
    ],
)
@pytest.mark.parametrize("extension", ["csv", "jsonl", "parquet"])
def test_units_and_formats_of_times(tmp_path, dedupe, options, written, extension):
    path, target = tmp_path / f"a.{extension}", tmp_path / f"o.{extension}"
    texts = [written(second) for second, _ in EVENTS]
    values = [int(text) if text.isdecimal() else float(text) if text[-2:] == ".0" else text for text in texts]
    if extension == "parquet":
        parquet(path, t=values, k=[key for _, key in EVENTS])
    elif extension == "csv":
        path.write_text("t,k\n" + "".join(f"{text},{key}\n" for text, (_, key) in zip(texts, EVENTS, strict=True)))
    else:
        rows = zip(values, EVENTS, strict=True)
        path.write_text("".join(json.dumps({"t": value, "k": key}) + "\n" for value, (_, key) in rows))
    ended = dedupe(path, "--key", "k", "--time", "t", "--window", "10s", *options, "-o", target)
    assert ended.status == 0, ended.err
    assert f"kept       {len(KEPT)}\n" in ended.err
    assert "1971" not in ended.err
    if options[0] == "--time-format":
        path.write_text("t,k\nnoon,a\n") if extension == "csv" else None
        ended = dedupe(path, "--key", "k", "--time", "t", "--window", "10s", *options, "-o", target)
        assert extension != "csv" or "the time t time data 'noon' does not match" in ended.err


def test_dates_taken_for_seconds_are_warned_of(tmp_path, dedupe):
    (tmp_path / "a.csv").write_bytes(b"t,k\n20200131,a\n20200201,a\n")
    ended = dedupe(tmp_path / "a.csv", "--key", "k", "--time", "t", "--window", "1h")
    assert "warning: all times are before 1971: are they Unix seconds? --time-unit and --time-format tell" in ended.err
    ended = dedupe(tmp_path / "a.csv", "--key", "k", "--time", "t", "--window", "1h", "--time-format", "%Y%m%d")
    assert "warning" not in ended.err


@pytest.mark.parametrize("fraction", ["", ".1"])
def test_late_records(tmp_path, dedupe, fraction):
    # Half as many records again as are in a batch, and a late one among the last.
    rows = [f"{1_700_000_000 + i // 100}{fraction},{i}\n" for i in range(100_000)]
    rows[90_000] = f"{1_700_000_000 + 899 - 10}{fraction},late\n"
    (tmp_path / "a.csv").write_text("t,k\n" + "".join(rows))
    options = ("--key", "k", "--time", "t", "--window", "1min", "--capacity", 6000, *SURE)
    ended = dedupe(tmp_path / "a.csv", *options, "--lateness", "9.99s", "--output", tmp_path / "o", "--skip-bad")
    assert ended.status == 1
    assert f"{tmp_path}/a.csv, line 90002: the time 2023-11-14T22:28:09.{fraction[1:] or '0'}" in ended.err
    assert "steps back from the latest before it by more than the --lateness of 9.99 s" in ended.err
    assert not (tmp_path / "o").exists()
    ended = dedupe(tmp_path / "a.csv", *options, "--lateness", "10s")
    assert ended.out.decode() == "t,k\n" + "".join(rows)


def test_a_window_of_time_and_its_options(tmp_path, dedupe):
    (tmp_path / "a.csv").write_bytes(b"t,k\n1,2\n")
    for options, message in [
        ([], "--window is needed"),
        (
            ["--window", "10s", "--time", "t", "--filter", "age-partitioned"],
            "--window 10s needs --capacity with --filter age-partitioned: how many records come within 10s",
        ),
        (["--window", "10s", "--capacity", 9], "needs --time"),
        (["--window", "10", "--time", "t"], "--time is for windows of time"),
        (["--window", "10", "--capacity", 9], "--capacity is for windows of time"),
        (["--window", "10", "--lateness", "1s"], "--lateness is for windows of time"),
        (["--window", "0"], "window"),
        (["--window", "9", "--fpr", "2"], "fpr"),
        (["--window", "9", "--seed", "-1"], "seed"),
        (["--window", "9999999999999999", "--filter", "age-partitioned", "--fpr", "0.001"], "memory"),
    ]:
        ended = dedupe(tmp_path / "a.csv", *options)
        assert ended.status == 1, options
        assert message in ended.err, options
        assert ended.err.startswith("lately: error: ")
        assert ended.out == b""


# Malformed records


GOOD_CSV = [b"a,1\n", b'"b\nc",2\n']
GOOD_JSON = [b'{"k": "a", "t": 1}\n', b'{"k": "b", "t": 2}\n']
MALFORMED = [
    (".txt", [b"a\n", b"b\n"], b"\xff\n", "not valid utf-8"),
    (".csv", GOOD_CSV, b"x,\xff\n", "not valid utf-8"),
    (".csv", GOOD_CSV, b"x\n", "1 fields where the header has 2"),
    (".csv", GOOD_CSV, b"x,1,y\n", "3 fields where the header has 2"),
    (".csv", GOOD_CSV, b"\n", "0 fields where the header has 2"),
    (".csv", GOOD_CSV, b'"x"x,1\n', "expected after"),
    (".csv", GOOD_CSV, b'x,"1\n', ""),  # a quote that is never closed
    (".csv", GOOD_CSV, b"x,\n", "the time t '' is neither a number of Unix seconds nor ISO 8601"),
    (".csv", GOOD_CSV, b"x,nan\n", "the time t is missing"),
    (".csv", GOOD_CSV, b"x,2020-13-01\n", "the time t '2020-13-01' is neither"),
    (".csv", GOOD_CSV, b"x,1700000000000\n", "the time t is 1700000000000.0, outside the years 1677 to 2262"),
    (".csv", GOOD_CSV, b"x,9000000000\n", "the time 2255-03-14T16:00:00.000000000 lies more than 86400 s ahead of"),
    (".jsonl", GOOD_JSON, b'{"k": "\xff", "t": 1}\n', "not valid utf-8"),
    (".jsonl", GOOD_JSON, b'{"k": "x", \n', "not JSON: "),
    (".jsonl", GOOD_JSON, b"\n", "a blank line"),
    (".jsonl", GOOD_JSON, b"[1]\n", "an object is needed, not list"),
    (".jsonl", GOOD_JSON, b"1" * 5000 + b"\n", "digits"),
    (".jsonl", GOOD_JSON, b"[" * 100_000 + b"\n", "nested too deeply"),
    (".jsonl", GOOD_JSON, b'{"t": 1}\n', "none of the key fields k is there"),
    (".jsonl", GOOD_JSON, b'{"k": [1], "t": 1}\n', "the key field k is not a single value"),
    (".jsonl", GOOD_JSON, b'{"k": {}, "t": 1}\n', "the key field k is not a single value"),
    (".jsonl", GOOD_JSON, b'{"k": "\\ud800", "t": 1}\n', "half a surrogate pair"),
    (".jsonl", GOOD_JSON, b'{"k": "x"}\n', "the time t is missing"),
    (".jsonl", GOOD_JSON, b'{"k": "x", "t": true}\n', "the time t is of type bool"),
    (".jsonl", GOOD_JSON, b'{"k": "x", "t": [1]}\n', "the time t is of type list"),
]


@pytest.mark.parametrize(("extension", "good", "bad", "message"), MALFORMED)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_malformed_records(tmp_path, dedupe, extension, good, bad, message, place):
    lines = [*good[:place], bad, *good[place:]]
    head = b"k,t\n" if extension == ".csv" else b""
    path, target, state = tmp_path / f"a{extension}", tmp_path / "o", tmp_path / "s"
    path.write_bytes(head + b"".join(lines))
    target.write_bytes(b"as it was")
    fields = ("--window", "9s", "--capacity", 9, "--key", "k", "--time", "t", "--lateness", "9s")
    options = [*(("--window", 9) if extension == ".txt" else fields), "--output", target, "--state", state]
    ended = dedupe(path, *options)
    assert ended.status == 1
    number = (head + b"".join(good[:place])).count(b"\n") + 1
    assert f"{path}, line {number}: " in ended.err
    assert message in ended.err
    assert "--skip-bad" in ended.err
    assert target.read_bytes() == b"as it was"
    assert not state.exists()
    assert not temporaries(tmp_path)

    ended = dedupe(path, *options, "--skip-bad")
    assert ended.status == 0
    assert target.read_bytes() == head + b"".join(good)
    assert "read       3 records\nkept       2\ndropped    0 " in ended.err
    assert "malformed  1, passed over" in ended.err
    assert f"warning: the first malformed record is {path}, line {number}: " in ended.err


def test_a_stray_quote_takes_no_good_lines_with_it(tmp_path, dedupe):
    rows = [b"%d,x\n" % i for i in range(1000)]
    rows[500] = b'500,"x"\n'
    bad = {10: b'10,"x\n', 700: b'700,"x\n', 990: b'"990,x\n'}
    (tmp_path / "a.csv").write_bytes(b"k,v\n" + b"".join(bad.get(i, row) for i, row in enumerate(rows)))
    ended = dedupe(tmp_path / "a.csv", "--window", 2000, "--key", "k", "--skip-bad", *SURE)
    # Up to the next quote, or the end of the file, lines look like one field; they are read again, one by one.
    assert ended.out == b"k,v\n" + b"".join(row for i, row in enumerate(rows) if i not in bad)
    assert "malformed  3," in ended.err


# State


def test_two_runs_are_as_good_as_one(tmp_path, dedupe):
    lines = some_lines(20_000, 15_000)
    whole = tmp_path / "whole.txt"
    whole.write_bytes(b"".join(lines))
    # With a high rate there are false positives too, and they must be the same.
    options = ("--window", 3000, "--fpr", 0.05, "--seed", 7, "--quiet")
    once = dedupe(whole, *options, "--state", tmp_path / "once")
    assert len(once.out.splitlines()) < len(lines)
    twice = []
    for part in (lines[:7001], lines[7001:]):
        (tmp_path / "part.txt").write_bytes(b"".join(part))
        given = options if not twice else ("--quiet",)  # the state knows them
        twice.append(dedupe(tmp_path / "part.txt", *given, "--state", tmp_path / "twice"))
    assert twice[0].out + twice[1].out == once.out
    assert (tmp_path / "twice").read_bytes() == (tmp_path / "once").read_bytes()


def test_two_runs_in_a_window_of_time(tmp_path, dedupe):
    rows = [f"{i},{random.Random(i).randrange(50)}\n" for i in range(4000)]
    options = ("--key", "k", "--time", "t", "--state", tmp_path / "s")
    new = ("--window", "10s", "--capacity", 10)
    out = b""
    for part, more in ((rows[:1000], new), (rows[1000:2000], ()), (rows[2000:], (*new, "--lateness", "0s"))):
        (tmp_path / "part.csv").write_text("t,k\n" + "".join(part))
        out += dedupe(tmp_path / "part.csv", *options, *more).out.removeprefix(b"t,k\n")
    (tmp_path / "whole.csv").write_text("t,k\n" + "".join(rows))
    assert b"t,k\n" + out == dedupe(tmp_path / "whole.csv", *options[:4], *new).out
    ended = dedupe(tmp_path / "part.csv", *options)  # its times are before those in the state
    assert ended.status == 1
    assert "part.csv, line 2: the time 1970-01-01T00:33:20" in ended.err


def test_options_that_contradict_the_state(tmp_path, dedupe):
    (tmp_path / "a.csv").write_bytes(b"t,k\n1,2\n")
    counted, timed = tmp_path / "counted", tmp_path / "timed"
    made = {
        counted: ["--window", 10_000, "--fpr", 0.01, "--seed", 5],
        timed: ["--window", "10min", "--capacity", 5000, "--lateness", "5s", "--time", "t", "--fpr", 0.001],
    }
    for state, options in made.items():
        for _ in range(2):  # the same options again are no contradiction
            assert dedupe(tmp_path / "a.csv", *options, "--state", state).status == 0
    for state, option, given, has in [
        (counted, "--window", "10001", "window is 10000"),
        (counted, "--window", "10000s", "window is 10000"),
        (counted, "--fpr", "0.001", "fpr is 0.00"),
        (counted, "--seed", "6", "seed is 5"),
        (counted, "--lateness", "1s", "lateness is None"),
        (timed, "--window", "11min", "window is 600 s"),
        (timed, "--window", "600", "window is 600 s"),
        (timed, "--capacity", "5001", "capacity is 5000"),
        (timed, "--lateness", "6s", "lateness is 5 s"),
        (timed, "--fpr", "0.1", "fpr is 0.000"),
        (timed, "--seed", "1", "seed is 0"),
    ]:
        before = state.read_bytes()
        ended = dedupe(tmp_path / "a.csv", option, given, "--state", state)
        assert ended.status == 1, (option, given)
        assert f"{option} {given} contradicts the state in {state}, whose {has}" in ended.err
        assert state.read_bytes() == before


def test_a_state_that_will_not_do(tmp_path, dedupe):
    (tmp_path / "a.txt").write_bytes(b"a\n")
    state = tmp_path / "s"
    assert dedupe(tmp_path / "a.txt", "--window", 9, "--state", state).status == 0
    state.write_bytes(state.read_bytes()[:-1])
    ended = dedupe(tmp_path / "a.txt", "--window", 9, "--state", state)
    assert ended.status == 1
    assert f"--state {state}" in ended.err
    ended = dedupe(tmp_path / "a.txt", "--window", 9, "--state", tmp_path / "no" / "s")
    assert ended.status == 1
    assert f"there is no folder {tmp_path}/no" in ended.err
    assert ended.out == b""
    ended = dedupe(tmp_path / "a.txt", "--window", 9, "--state", tmp_path / "x", "-o", tmp_path / "x")
    assert ended.status == 1
    assert "the same file" in ended.err


def test_a_run_that_the_state_holds_leaves_its_output(tmp_path, dedupe):
    source, target, state = tmp_path / "a.txt", tmp_path / "o", tmp_path / "s"
    source.write_bytes(b"a\nb\na\n")
    options = (source, "--window", 9, "--state", state, "-o", target)
    assert dedupe(*options).status == 0
    before = state.read_bytes()
    ended = dedupe(*options)  # as a scheduler does that lost the first one's exit status
    assert (ended.status, target.read_bytes(), state.read_bytes()) == (0, b"a\nb\n", before)
    assert "these inputs are in --state" in ended.err
    target.write_bytes(b"")  # somebody has taken what was there
    os.utime(target, ns=(0, 0))
    assert dedupe(*options).status == 0
    assert target.read_bytes() == b""
    source.write_bytes(b"a\nc\n")
    assert dedupe(*options).status == 0
    assert target.read_bytes() == b"c\n"


def test_a_state_holds_what_came_by_a_pipe(tmp_path):
    target, options = tmp_path / "o", ("--window", 9, "--state", tmp_path / "s", "-o", tmp_path / "o")
    for given, new in [(b"a\nb\n", b"a\nb\n"), (b"a\nb\n", b"a\nb\n"), (b"b\nc\n", b"c\n")]:
        assert finish(start(*options), given).status == 0
        assert target.read_bytes() == new


def test_a_state_that_python_saved_goes_on(tmp_path, dedupe):
    (tmp_path / "a.csv").write_bytes(b"k,v\n1,2\n3,4\n")
    options = (tmp_path / "a.csv", "--state", tmp_path / "s", "-o", tmp_path / "o.csv")
    assert dedupe(*options, "--window", 9, "--key", "k").status == 0
    f = lately.open(tmp_path / "s")
    f.add("5")
    f.save(tmp_path / "s")
    (tmp_path / "a.csv").write_bytes(b"k,v\n5,2\n6,4\n")
    assert dedupe(*options).status == 0
    assert (tmp_path / "o.csv").read_bytes() == b"k,v\n6,4\n"


def test_two_runs_do_not_share_a_state(tmp_path):
    options = ("--window", 9, "--state", tmp_path / "s")
    first = start(*options)
    first.stdin.write(b"a\n")
    first.stdin.flush()
    assert first.stdout.readline() == b"a\n"
    ended = finish(start(*options), b"b\n")
    assert (ended.status, ended.out) == (1, b"")
    assert f"--state {tmp_path}/s is in use by another run" in ended.err
    assert finish(first, b"c\n").status == 0
    assert finish(start(*options), b"a\nb\nc\n").out == b"b\n"
    assert sorted(tmp_path.iterdir()) == [tmp_path / "s", tmp_path / "s.json"]


def test_a_state_knows_key_and_format(tmp_path, dedupe):
    (tmp_path / "a.csv").write_bytes(b"k,v\n1,2\n3,4\n")
    (tmp_path / "b.jsonl").write_bytes(b'{"k": "1", "v": "5"}\n')
    state = tmp_path / "s"
    assert dedupe(tmp_path / "a.csv", "--window", 9, "--key", "k", "--state", state).status == 0
    (tmp_path / "a.csv").write_bytes(b"k,v\n1,9\n5,4\n")
    assert dedupe(tmp_path / "a.csv", "--state", state).out == b"k,v\n5,4\n"  # the key is that of the state
    before = state.read_bytes()
    for options, message in [
        ((tmp_path / "a.csv", "--key", "v,k"), "--key v,k contradicts the state in {}, whose key is k"),
        ((tmp_path / "a.csv", "--format", "text"), "--format text contradicts the state in {}, whose format is csv"),
        ((tmp_path / "b.jsonl",), "{}/b.jsonl is jsonl by its name, and the state in {}/s is of csv"),
    ]:
        ended = dedupe(*options, "--state", state)
        assert ended.status == 1
        assert message.replace("{}/", f"{tmp_path}/").format(state) in ended.err
        assert state.read_bytes() == before


def test_a_state_and_its_places(tmp_path, dedupe):
    (tmp_path / "a.txt").write_bytes(b"a\n")
    ended = dedupe(tmp_path / "a.txt", "--window", 9, "--state", "/dev/null")
    assert (ended.status, "not a regular file" in ended.err) == (1, True)
    ended = dedupe(tmp_path / "a.txt", "--window", 9, "--state", tmp_path / "s", "-o", tmp_path / "a.txt")
    assert (ended.status, "is an input too" in ended.err) == (1, True)
    assert list(tmp_path.iterdir()) == [tmp_path / "a.txt"]


# Files are replaced whole or not at all


def test_output_replaces_its_own_input_and_keeps_mode_and_link(tmp_path, dedupe):
    path, link = tmp_path / "a.txt", tmp_path / "link"
    path.write_bytes(b"a\nb\na\n")
    path.chmod(0o640)
    link.symlink_to(path)
    assert dedupe(path, "--window", 9, "--output", link).status == 0
    assert link.is_symlink()
    assert path.read_bytes() == b"a\nb\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(tmp_path.iterdir()) == [path, link]


def test_output_that_cannot_be(tmp_path, dedupe):
    (tmp_path / "a.txt").write_bytes(b"a\n")
    for target, message in [(tmp_path / "no" / "o", "No such file"), (tmp_path, "Is a directory")]:
        ended = dedupe(tmp_path / "a.txt", "--window", 9, "--output", target, "--state", tmp_path / "s")
        assert ended.status == 1
        assert f"cannot write {target}: {message}" in ended.err
        assert not (tmp_path / "s").exists()


def test_a_named_pipe_or_device_is_written_to_and_not_replaced(tmp_path, dedupe):
    (tmp_path / "a.txt").write_bytes(b"a\nb\na\n")
    pipe, got = tmp_path / "pipe.gz", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    assert dedupe(tmp_path / "a.txt", "--window", 9, "--output", pipe).status == 0
    assert pipe.is_fifo()
    reader.join()
    assert gzip.decompress(got[0]) == b"a\nb\n"


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
def test_standard_output_by_another_name(tmp_path, name):
    if name == "link":
        name = tmp_path / "link"
        name.symlink_to("/dev/stdout")
    ended = finish(start("--window", 9, "-o", name), b"a\nb\na\n")
    assert (ended.status, ended.out) == (0, b"a\nb\n")
    target = tmp_path / "o"
    with target.open("wb") as file:
        file.write(b"head\n")
        file.flush()
        inode = target.stat().st_ino
        assert finish(start("--window", 9, "-o", name, stdout=file), b"a\nb\na\n").status == 0
    assert (target.read_bytes(), target.stat().st_ino) == (b"head\na\nb\n", inode)


def test_a_descriptor_of_the_shell(tmp_path):
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "lately", "dedupe", "--window", "9", "-o", f"/dev/fd/{writing}", "--quiet"]
    ended = subprocess.run(command, input=b"a\na\n", pass_fds=[writing], capture_output=True)
    os.close(writing)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == b"a\n"


@pytest.mark.parametrize("device", ["/dev/null", "/dev/full"])
def test_a_device_stays_one(tmp_path, device):
    ended = finish(start("--window", 9, "-o", device, "--state", tmp_path / "s"), b"a\n")
    assert ended.status == (1 if device == "/dev/full" else 0)
    assert Path(device).is_char_device()


def test_full_standard_output(tmp_path):
    with Path("/dev/full").open("wb") as full:
        ended = finish(start("--window", 9, "--state", tmp_path / "s", stdout=full), b"a\nb\n")
    assert ended.status == 1
    assert ended.err == "lately: error: cannot write standard output: No space left on device\n"
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("extension", ["", ".gz", ".zst", ".parquet"])
def test_a_full_disk_leaves_the_old_output(tmp_path, extension):
    rng = random.Random(0)
    values = [rng.getrandbits(64) for _ in range(100_000)]
    if extension == ".parquet":
        source = tmp_path / "a.parquet"
        parquet(source, a=pa.array(values, pa.uint64()))
    else:
        source = tmp_path / "a"
        source.write_text("".join(f"{value}\n" for value in values))
    target, state = tmp_path / f"o{extension}", tmp_path / "s"
    target.write_bytes(b"as it was")
    ended = finish(start(source, "--window", 9, "-o", target, "--state", state, largest_file=100_000))
    assert ended.status == 1
    assert ended.err == f"lately: error: cannot write {target}: File too large\n"
    assert target.read_bytes() == b"as it was"
    assert not state.exists()
    assert not temporaries(tmp_path)


def test_a_full_disk_leaves_the_old_state(tmp_path):
    target, state = tmp_path / "o", tmp_path / "s"
    options = ("--window", 100_000, "--state", state, "--output", target)
    assert finish(start(*options), b"a\nb\n").status == 0
    before = state.read_bytes()
    ended = finish(start(*options, largest_file=len(before) // 2), b"b\nc\n")
    assert ended.status == 1
    assert f"cannot write --state {state}: File too large" in ended.err
    assert state.read_bytes() == before
    assert target.read_bytes() == b"a\nb\n"
    assert sorted(tmp_path.iterdir()) == [target, state, tmp_path / "s.json"]


def test_state_follows_output(tmp_path, dedupe, monkeypatch):
    """A crash between the two gives records again. The other order would lose them."""
    (tmp_path / "a.txt").write_bytes(b"a\n")
    seen = []
    replace = Path.replace

    def watch(self, target):
        seen.append((tmp_path / "s").exists())
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", watch)
    assert dedupe(tmp_path / "a.txt", "--window", 9, "-o", tmp_path / "o", "--state", tmp_path / "s").status == 0
    assert seen == [False]
    assert (tmp_path / "s").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("target", ["o", "o.gz", "-"])
def test_interrupted(tmp_path, target, number):
    path, state = tmp_path / "o", tmp_path / "s"
    assert finish(start("--window", 9, "--state", state, "-o", path), b"old\n").status == 0
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    output = target if target == "-" else tmp_path / target
    process = start("--state", state, "-o", output)
    # More than a batch; for a pipe that nobody reads yet, less than it holds. The end does not come.
    process.stdin.write(b"".join(some_lines(5_000 if target == "-" else 70_000)))
    process.stdin.flush()
    if target == "-":
        assert select.select([process.stdout], [], [], 60)[0]
    else:
        deadline = time.monotonic() + 60
        while not temporaries(tmp_path):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    process.send_signal(number)
    ended = finish(process)
    assert ended.status == 128 + number
    assert ended.err == "lately: interrupted\n"
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize("count", [1, 200_000])
def test_a_closed_pipe(tmp_path, count):
    source, state = tmp_path / "a.txt", tmp_path / "s"
    source.write_text("".join(f"{i}\n" for i in range(count)))
    reading, writing = os.pipe()
    os.close(reading)
    process = start(source, "--window", 9, "--state", state, stdout=writing)
    os.close(writing)
    ended = finish(process)
    assert ended.status == 141
    assert ended.err == ""
    assert not state.exists()


# The filter


def times(source):
    """The same lines as CSV, ten to a second."""
    return b"t,k\n" + b"".join(b"%d,%b" % (i // 10, line) for i, line in enumerate(source))


@pytest.mark.parametrize("name", FAMILIES)
def test_every_filter_passes_on_what_is_new(tmp_path, dedupe, name):
    family = FAMILIES[name]
    # A line comes again after 30 in the mean, and never after 500; for 30 lines a rate of 10^-6 is none.
    lines = some_lines(3000, 30)
    (tmp_path / "a.txt").write_bytes(b"".join(lines))
    (tmp_path / "a.csv").write_bytes(times(lines))
    counted = (tmp_path / "a.txt", "--window", 500)
    timed = (tmp_path / "a.csv", "--window", "50s", "--capacity", 500, "--key", "k", "--time", "t")
    arguments = counted if family.windows in ("any", "insertions") else timed
    ended = dedupe(*arguments, "--fpr", 1e-6, "--filter", name)
    assert ended.status == 0, ended.err
    kept = [line.split(b",")[-1] for line in ended.out.splitlines(keepends=True) if line != b"t,k\n"]
    if family.promise:
        assert kept == unique(lines)
    else:
        assert set(kept) == set(lines)
    report = ended.err.splitlines()
    assert report[5].startswith(f"filter     {name}, ")
    assert ("may miss" in report[4]) is not family.promise
    assert ("no repeat after that" in report[4]) == (family.windows == "insertions" and family.promise)
    ended = dedupe(*(counted if arguments is timed else timed), "--fpr", 1e-6, "--filter", name)
    assert ended.status == (0 if family.windows == "any" else 1)
    if family.windows != "any":
        why = ["has no windows of time", "window must be a span of time", "grow is for windows of time"]
        assert any(words in ended.err for words in why)


def test_a_rate_that_nobody_knows(tmp_path, dedupe):
    (tmp_path / "a.csv").write_bytes(times(some_lines(40_000, 10**9)))
    options = (tmp_path / "a.csv", "--key", "k", "--time", "t", "--window", "1000s", "--fpr", 0.01)
    assert "filter     time-limited, " in dedupe(*options).err
    assert "--window 1000s needs --capacity with --filter timing" in dedupe(*options, "--filter", "timing").err
    ended = dedupe(*options, "--filter", "time-limited", "--state", tmp_path / "s", "--quiet")
    assert (ended.status, ended.err) == (0, "")
    assert dedupe(*options, "--filter", "time-limited", "--state", tmp_path / "s").err.startswith("lately: error")


@pytest.mark.parametrize("name", FAMILIES)
def test_a_state_of_another_family(tmp_path, dedupe, name):
    (tmp_path / "a.txt").write_bytes(b"t,k\n1,2\n")
    timed = FAMILIES[name].windows in ("time", "unknown rate")
    window = ("--window", "1s", "--capacity", 9) if timed else ("--window", 1000)
    options = (tmp_path / "a.txt", "--format", "csv", *(("--time", "t") if timed else ()))
    options = (*options, "--state", tmp_path / "s", "--fpr", 0.01)
    assert dedupe(*options, *window, "--filter", name).status == 0
    assert f"filter     {name}, " in dedupe(*options).err  # which the state knows
    assert dedupe(*options, "--filter", name).status == 0
    before = (tmp_path / "s").read_bytes()
    other = "swamp" if name == "counting" else "counting"
    ended = dedupe(*options, "--filter", other)
    assert ended.status == 1
    assert f"--filter {other} contradicts the state in {tmp_path}/s, whose filter is {name}" in ended.err
    assert (tmp_path / "s").read_bytes() == before


@pytest.mark.parametrize("name", sorted(EVERY.keys() - FAMILIES.keys()))
def test_a_state_of_a_family_that_is_not_offered_goes_on(tmp_path, dedupe, name):
    (tmp_path / "a.txt").write_bytes(b"1\n2\n")
    made = EVERY[name].make(1000, fpr=0.01)
    made.insert(["1"])
    made.save(tmp_path / "s")
    ended = dedupe(tmp_path / "a.txt", "--state", tmp_path / "s", "--window", 1000, "--fpr", 0.01)
    assert ended.out == b"2\n"
    assert f"filter     {name}, " in ended.err
    assert lately.open(tmp_path / "s").inserted == 3


def test_memory_that_grows_is_looked_at_less_often():
    """To ask for the rate reads all of it; per record that must not grow."""
    f = lately.TimeLimitedBloomFilter("1h", 0.001)
    mistakes = Mistakes(f)
    before = f.nbytes, mistakes.every
    f.insert(range(10**6), at=0)
    assert f.nbytes > 50 * before[0]
    assert mistakes.every / f.nbytes > 0.2 * before[1] / before[0]


# The report


def test_report(tmp_path, dedupe):
    (tmp_path / "a.txt").write_bytes(b"a\nb\na\n\xff\na\nc\n")
    ended = dedupe(tmp_path / "a.txt", "--window", 1000, "--skip-bad", "--fpr", 0.001)
    made = lately.AgePartitionedBloomFilter(1000, 0.001, layout="line")
    lines = ended.err.splitlines()
    assert lines[:2] == ["read       6 records", "kept       3"]
    assert re.fullmatch(r"dropped    2 as repeats; \d\S* of them by mistake, in expectation", lines[2])
    assert lines[3] == "malformed  1, passed over"
    assert lines[4].startswith("window     1,000 records (a repeat up to 1,144 later ")
    assert lines[5].startswith(
        f"filter     age-partitioned-line, {made.nbytes:,} bytes; rate of mistakes: planned for {made.fpr:.3g}, "
    )
    assert dedupe(tmp_path / "a.txt", "--window", 1000, "--skip-bad", "--quiet").err == ""


@pytest.mark.parametrize("window", [7, 1000, 20_000])
def test_expected_mistakes_are_those_made(tmp_path, dedupe, window):
    """All records are new, so all that are dropped are mistakes."""
    total = 300_000
    (tmp_path / "a.txt").write_text("".join(f"{i}\n" for i in range(total)))
    ended = dedupe(tmp_path / "a.txt", "--window", window, "--fpr", 0.05, "--filter", "age-partitioned-512")
    dropped = total - ended.out.count(b"\n")
    expected = float(re.search(r"; (\S+) of them by mistake", ended.err)[1])
    # As many independent draws of rate 0.05 or less: 5 standard deviations, and 1 % for the rounding of the report
    # and for taking the rate at a quarter of a generation's records.
    assert dropped > 1000
    assert abs(dropped - expected) < 5 * dropped**0.5 + 0.01 * dropped


def test_many_mistakes_are_warned_of(tmp_path, dedupe):
    (tmp_path / "a.txt").write_text("".join(f"{i % 9900}\n" for i in range(10_000)))
    ended = dedupe(tmp_path / "a.txt", "--window", 10_000, "--fpr", 0.01)
    assert re.search(r"warning: about \S+ of the \d+ dropped are new records: a lower --fpr", ended.err)
    assert "warning" not in dedupe(tmp_path / "a.txt", "--window", 10_000).err


def test_the_last_records_count_for_mistakes_too(tmp_path, dedupe):
    (tmp_path / "a.txt").write_text("".join(f"{i}\n" for i in range(100_000)))  # under a quarter of a generation
    ended = dedupe(tmp_path / "a.txt", "--window", 1_000_000, "--fpr", 0.5)
    assert float(re.search(r"; (\S+) of them by mistake", ended.err)[1]) > 0


def test_expected_mistakes_in_a_window_of_time(tmp_path, dedupe):
    """Twice as many records as planned for part of the time: more mistakes, and the report says so."""
    seconds = [second for second in range(2000) for _ in range(20 if 800 <= second < 1000 else 10)]
    (tmp_path / "a.csv").write_text("t,k\n" + "".join(f"{second},{i}\n" for i, second in enumerate(seconds)))
    options = ("--time", "t", "--key", "k", "--window", "100s", "--capacity", 1000, "--fpr", 0.03)
    options = (*options, "--filter", "age-partitioned-512")
    ended = dedupe(tmp_path / "a.csv", *options)
    dropped = len(seconds) + 1 - ended.out.count(b"\n")
    expected = float(re.search(r"; (\S+) of them by mistake", ended.err)[1])
    assert dropped > 1000
    assert abs(dropped - expected) < 5 * dropped**0.5 + 0.05 * dropped
    assert float(re.search(r"highest here (\S+)", ended.err)[1]) > 0.1


@pytest.mark.parametrize("quiet", [False, True])
def test_progress_where_a_person_looks(tmp_path, quiet):
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"".join(some_lines(200_000, 200_000))))
    terminal, child = pty.openpty()
    termios.tcsetwinsize(child, (24, 80))
    with Path(os.devnull).open("wb") as nowhere:
        process = start(tmp_path / "a.txt.gz", "--window", 9, *["--quiet"] * quiet, stdout=nowhere, stderr=child)
    os.close(child)
    shown = b""
    try:
        while chunk := os.read(terminal, 1 << 16):
            shown += chunk
    except OSError:  # how Linux says that the terminal's other end is closed
        pass
    os.close(terminal)
    process.stdin.close()
    assert process.wait() == 0
    assert (b"%|" in shown) is not quiet
    assert (b"read       200,000" in shown) is not quiet


# The command line


def test_version_and_help(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"lately {lately.__version__}\n"
    with pytest.raises(SystemExit) as ended:
        main(["dedupe", "--help"])
    assert ended.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "default: 1e-06" in shown
    assert all(f" {name} " in shown for name in FAMILIES)
    assert f" {DEFAULT} (default)" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "COMMAND"),
        (["dedupe", "--window", "ten"], "must be a span of time such as '10min'"),
        (["dedupe", "--filter", "sieve"], "'guarded-epoch-512'"),
        (["dedupe", "--lateness", "10"], "must be a span of time"),
        (["dedupe", "--key", "a,,b"], "names of fields between commas"),
        (["dedupe", "--delimiter", "ab"], "one character is needed"),
        (["dedupe", "--delimiter", '"'], "one character is needed"),
        (["dedupe", "--max-record", "many"], "a number of bytes is needed"),
        (["dedupe", "--max-record", "0"], "a number of bytes is needed"),
        (["dedupe", "--encoding", "klingon"], "there is no encoding 'klingon'"),
        (["dedupe", "--encoding", "utf-16"], "utf-16 is no extension of ASCII"),
    ],
)
def test_wrong_usage(capsys, arguments, message):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_the_examples_in_the_help_are_understood(capsys, tmp_path, monkeypatch):
    with pytest.raises(SystemExit):
        main(["dedupe", "--help"])
    commands = re.findall(
        r"lately (dedupe .*?)(?: > \S+)?$", capsys.readouterr().out.split("examples:")[1], re.MULTILINE
    )
    assert len(commands) == 5
    monkeypatch.chdir(tmp_path)
    Path("access.log").write_bytes(b"a\n")
    Path("clicks.jsonl.gz").write_bytes(gzip.compress(b'{"ip": 1, "page": {"url": 2}, "ts": 3}\n'))
    Path("monday.csv").write_bytes(b"id\n1\n")
    for command in commands:
        ended = finish(start(*next(csv.reader(io.StringIO(command), delimiter=" "))[1:]), b"host\turl\na\tb\n")
        assert (ended.status, "error" in ended.err) == (0, False), command
