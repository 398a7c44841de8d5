import bz2
import gzip
import json
import lzma
import os
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from support.command import COMMAND, SURE, finish, some_lines, start, unique
from support.forked import Forked
from support.parquet import parquet

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
def test_output_is_compressed_by_its_extension(tmp_path, dedupe, extension, decompress):
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
    assert ended.status == 2
    assert "different formats" in ended.err
    ended = dedupe(tmp_path / "a.log", "--window", 9, "--key", "k")
    assert ended.status == 2
    assert "--key k: text has no names for its fields" in ended.err
    assert dedupe(tmp_path / "a.log", tmp_path / "a.TSV", "--window", 9, "--format", "text").out == b"k\n1\n"


def test_a_missing_input_is_an_error(tmp_path, dedupe):
    (tmp_path / "a.txt").write_bytes(b"a\n")
    ended = dedupe(tmp_path / "a.txt", tmp_path / "none.txt", "--window", 9)
    assert ended.status == 1
    assert ended.out == b""
    assert f"{tmp_path}/none.txt: No such file" in ended.err
    ended = dedupe(tmp_path, "--window", 9)
    assert ended.status == 1
    assert f"{tmp_path}: Is a directory" in ended.err


@pytest.mark.parametrize(("module", "file"), [("zstandard", "a.txt"), ("pyarrow", "a.parquet")])
def test_an_error_names_the_missing_library(tmp_path, dedupe, monkeypatch, module, file):
    (tmp_path / file).write_bytes(zstandard.compress(b"a\n"))
    (tmp_path / "b.csv").write_bytes(b"a\n1\n1\n")
    for missing in ("zstandard", "pyarrow", "pyarrow.parquet", "tqdm"):
        monkeypatch.setitem(sys.modules, missing, None)
    ended = dedupe(tmp_path / file, "--window", 9, "--output", tmp_path / "o")
    assert ended.status == 1
    assert f"needs {module}: pip install {module}" in ended.err
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
    for name in ("a.csv", "a.tsv", "a.txt"):
        (tmp_path / name).write_bytes(b"k\n1\n")
    (tmp_path / "a.jsonl").write_bytes(b'{"k": 1}\n')
    parquet(tmp_path / "b.pq", k=[1])
    (tmp_path / "o.csv").write_bytes(b"of before")
    for source, target, *options in [
        ("a.csv", "o.parquet"),
        ("b.pq", "o.csv"),
        ("a.txt", "o.csv"),
        ("a.txt", "o.jsonl.gz"),
        ("a.tsv", "o.csv"),
        ("a.csv", "o.tsv"),
        ("a.jsonl", "o.csv"),
        ("a.txt", "o.tsv", "--format", "csv"),
        ("a.csv", "o.jsonl", "--format", "text"),
    ]:
        for option in ("--output", "--dropped"):
            ended = dedupe(tmp_path / source, "--window", 9, *options, option, tmp_path / target)
            assert (ended.status, "records are written as they were read" in ended.err) == (2, True), (source, target)
    assert (tmp_path / "o.csv").read_bytes() == b"of before"
    for source, target, *options in [
        ("a.csv", "p.csv", "--format", "text"),
        ("a.csv", "p.txt"),
        ("a.txt", "p.tsv", "--format", "csv", "--delimiter", "tab"),
        ("a.txt", "p.log"),
    ]:
        assert dedupe(tmp_path / source, "--window", 9, *options, "--output", tmp_path / target).status == 0


# Memory


def peak(*arguments, stdin=b""):
    """Run the command; return its peak of memory in MiB, and its result."""
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
    "compress",
    [partial(gzip.compress, compresslevel=1), zstandard.compress, partial(lzma.compress, preset=0), bz2.compress],
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


@pytest.mark.parametrize("extension", ["txt", "csv", "tsv", "jsonl"])
@pytest.mark.parametrize("mebibytes", [3, 17])
def test_one_limit_holds_for_records_of_every_format_and_for_their_fields(tmp_path, dedupe, extension, mebibytes):
    half = mebibytes << 19
    document = ("words " * 20 + "\n") * (half // 121 + 1), "line " * (half // 5 + 1)
    long = {
        "txt": document[1] * 2,
        "csv": '"' + "".join(document) + '",1',
        "tsv": document[1] * 2 + "\t1",
        "jsonl": json.dumps({"k": document[1] * 2}),
    }[extension]
    head = {"csv": "k,v\n", "tsv": "k\tv\n"}.get(extension, "")
    (tmp_path / f"a.{extension}").write_text(head + long + "\n")
    ended = dedupe(tmp_path / f"a.{extension}", "--window", 9)
    assert (ended.status == 0) == (mebibytes == 3)
    assert ("longer than --max-record 16777216" in ended.err) == (mebibytes == 17)
    assert len(dedupe(tmp_path / f"a.{extension}", "--window", 9, "--max-record", "64MiB").out) > mebibytes << 20
