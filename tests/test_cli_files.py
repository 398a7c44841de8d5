"""Files that other tools write: each is read as they read it, or refused by name."""

import bz2
import gzip
import lzma
import select

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

import lately
from lately.cli import main
from support.command import finish, start
from support.parquet import parquet


def test_logs_of_zeek_without_types_lose_no_record(tmp_path, dedupe):
    (tmp_path / "a").write_bytes(b"#fields\tts\tuid\n1\tA\n2\tB\n")
    (tmp_path / "b").write_bytes(b"#fields\tts\tuid\n3\tC\n4\tD\n2\tB\n")
    options = ("--format", "zeek", "--key", "uid", "--window", 99)
    head = b"#fields\tts\tuid\n"
    assert dedupe(tmp_path / "a", tmp_path / "b", *options).out == head + b"1\tA\n2\tB\n3\tC\n4\tD\n"
    (tmp_path / "c").write_bytes(b"".join((tmp_path / name).read_bytes() for name in "ab"))
    assert dedupe(tmp_path / "c", *options).out == head + b"1\tA\n2\tB\n3\tC\n4\tD\n"


@pytest.mark.parametrize(
    "data",
    [
        bz2.compress(b"") + bz2.compress(b"a\nb\na\n"),
        b"\x50\x2a\x4d\x18\x04\0\0\0size" + zstandard.compress(b"a\nb\na\n"),  # as pzstd writes
        lzma.compress(b"a\nb\na\n", lzma.FORMAT_ALONE),
    ],
)
def test_compressed_data_of_rare_forms_is_read(tmp_path, dedupe, data):
    (tmp_path / "a").write_bytes(data)
    assert dedupe(tmp_path / "a", "--window", 9).out == b"a\nb\n"


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("a.xlsx", b"PK\3\4\x14\0\6\0", "zip"),
        ("a.zip", b"PK\5\6" + bytes(18), "zip"),
        ("a.lz4", b"\x04\x22\x4d\x18\x64\x40", "lz4"),
        ("a.Z", b"\x1f\x9d\x90a", "compress"),
        ("a.txt.br", b"\x0b\x02\x80a\nb\n\x03", "brotli"),
        ("a.feather", b"ARROW1\0\0\xff\xff", "Arrow"),
        ("old.feather", b"FEA1\0\0\0\0\1\0", "Feather"),
        ("a", b"PAR1\x15\4\x15", "Parquet"),
        ("a.txt", "a\nb\n".encode("utf-16"), "iconv -f UTF-16"),
    ],
)
def test_what_is_not_text_is_refused_by_name(tmp_path, dedupe, name, data, kind):
    (tmp_path / name).write_bytes(data)
    ended = dedupe(tmp_path / name, "--window", 9, "-o", tmp_path / "o")
    assert (ended.status, kind in ended.err, (tmp_path / "o").exists()) == (1, True, False), ended.err


@pytest.mark.parametrize("text", [b"BZh9 is text\n", b"PK is text\n", b"PAR1 is text\n", b"7z\n", b"\x1f\n", b"(\n"])
def test_text_that_begins_as_other_files_do_is_text(tmp_path, dedupe, text):
    (tmp_path / "a").write_bytes(text * 2)
    assert dedupe(tmp_path / "a", "--window", 9).out == text


def test_a_window_that_is_too_long_for_zstd_is_named(tmp_path, dedupe):
    options = zstandard.ZstdCompressionParameters(window_log=28, enable_ldm=True)
    writer = zstandard.ZstdCompressor(compression_params=options).compressobj()
    (tmp_path / "a.zst").write_bytes(writer.compress(b"a\n" * 9) + writer.flush())
    ended = dedupe(tmp_path / "a.zst", "--window", 9)
    assert (ended.status, "zstd -dc --long=31" in ended.err) == (1, True), ended.err


def test_a_wrong_time_format_is_wrong_usage(capfd):
    with pytest.raises(SystemExit) as ended:
        main(["dedupe", "a.csv", "--window", "9s", "--time", "t", "--time-format", "%s", "--skip-bad"])
    assert (ended.value.code, "expected a format for strptime, got '%s'" in capfd.readouterr().err) == (2, True)


def test_the_report_has_the_times_as_they_were_read(tmp_path, dedupe):
    (tmp_path / "a.csv").write_bytes(b"t,k\nJan 2 03:04:05,a\nFeb 3 04:05:06,b\n")
    options = ("--key", "k", "--time", "t", "--time-format", "%b %d %H:%M:%S", "--window", "9s")
    assert (
        "times      1900-01-02T03:04:05 to 1900-02-03T04:05:06, as read\n" in dedupe(tmp_path / "a.csv", *options).err
    )


def test_fractions_of_a_unit_count(tmp_path, dedupe):
    (tmp_path / "a.csv").write_bytes(b"t,k\n0.5,a\n1.5,a\n")
    options = ("--key", "k", "--time", "t", "--time-unit", "ms", "--window", "1ms")
    assert dedupe(tmp_path / "a.csv", *options).out == b"t,k\n0.5,a\n"
    parquet(tmp_path / "a.pq", t=[0.5, 1.5], k=["a", "a"])
    assert "kept       1\n" in dedupe(tmp_path / "a.pq", *options, "-o", tmp_path / "o.pq").err


def test_leap_seconds_and_the_end_of_a_day_are_times(tmp_path, dedupe):
    times = [b"2016-12-31T23:59:60Z", b"2017-01-01T24:00:00Z", b"2017-01-02T00:00:00Z"]
    (tmp_path / "a.csv").write_bytes(b"t,k\n" + b"".join(time + b",a\n" for time in times))
    ended = dedupe(tmp_path / "a.csv", "--key", "k", "--time", "t", "--window", "1ms")
    assert ended.out == b"t,k\n2016-12-31T23:59:60Z,a\n2017-01-01T24:00:00Z,a\n"
    assert "times      2017-01-01T00:00:00 to 2017-01-02T00:00:00, as read\n" in ended.err


@pytest.mark.parametrize(
    ("time", "hint"),
    [
        ("1700000000000", "--time-unit ms"),
        ("1700000000000000", "--time-unit us"),
        ("31/Jan/2024 1:00", "--time-format"),
    ],
)
def test_an_unreadable_time_names_the_option_that_reads_it(tmp_path, dedupe, time, hint):
    (tmp_path / "a.csv").write_text(f"t,k\n{time},a\n")
    ended = dedupe(tmp_path / "a.csv", "--key", "k", "--time", "t", "--window", "1h")
    assert (ended.status, f"add {hint}" in ended.err, "--skip-bad" in ended.err) == (1, True, False), ended.err


@pytest.mark.parametrize(
    ("name", "data", "out"),
    [
        ("a.csv", b"k,v\n1,a\n\n1,b\n\r\n2,c\n\n", b"k,v\n1,a\n2,c\n"),
        ("b.csv", b"\xef\xbb\xbf\n\r\nk,v\n1,a\n1,b\n\n", b"\xef\xbb\xbfk,v\n1,a\n"),
        ("a.jsonl", b'{"k": 1}\n\n{"k": 1}\n  \n{"k": 2}\n\n', b'{"k": 1}\n{"k": 2}\n'),
        ("a.tsv", b"\xef\xbb\xbf", b""),
        ("a.txt", b"\xef\xbb\xbf", b""),
    ],
)
def test_blank_lines_and_a_byte_order_mark_alone_are_no_records(tmp_path, dedupe, name, data, out):
    (tmp_path / name).write_bytes(data)
    ended = dedupe(tmp_path / name, "--window", 9, *["--key", "k"] * (b"k" in data))
    assert (ended.status, ended.out) == (0, out), ended.err
    assert ("blank      3 lines, skipped" in ended.err) == (b"k" in data)


def test_a_header_that_differs_or_lacks_a_field_is_described(tmp_path, dedupe):
    (tmp_path / "a.csv").write_bytes(b"id, name\n1,x\n2,y\n")
    (tmp_path / "b.csv").write_bytes(b"id,title\n1,x\n")
    (tmp_path / "c.csv").write_bytes(b"id;name\n1;x\n")
    (tmp_path / "d.csv").write_bytes(b"id,v,id\n1,x,2\n1,y,3\n")
    (tmp_path / "e.csv").write_bytes(b"id, name\n")
    for key in (" name", "name", "2"):
        assert dedupe(tmp_path / "a.csv", "--key", key, "--window", 9).out == b"id, name\n1,x\n2,y\n"
    ended = dedupe(tmp_path / "a.csv", tmp_path / "b.csv", "--key", "id", "--window", 9)
    assert "it lacks  name and it adds title" in ended.err
    assert (
        "(if ; separates fields, add --delimiter ';')" in dedupe(tmp_path / "c.csv", "--key", "id", "--window", 9).err
    )
    assert "(a number chooses one: 1 or 3)" in dedupe(tmp_path / "d.csv", "--key", "id", "--window", 9).err
    assert dedupe(tmp_path / "d.csv", "--key", "3", "--window", 9).out == b"id,v,id\n1,x,2\n1,y,3\n"
    assert dedupe(tmp_path / "d.csv", "--key", "1", "--window", 9).out == b"id,v,id\n1,x,2\n"


def test_keys_of_lines_as_people_cut_them(tmp_path, dedupe):
    (tmp_path / "a.log").write_bytes(b"10:01 INFO disk full\n10:02 info Disk full\n10:03 INFO disk full\n")
    for options, kept in ((["2-"], [0, 1]), (["2-", "--ignore-case"], [0]), (["3-4,2"], [0, 1]), (["1-"], [0, 1, 2])):
        ended = dedupe(tmp_path / "a.log", "--window", 9, "--key", *options)
        lines = (tmp_path / "a.log").read_bytes().splitlines(keepends=True)
        assert ended.out == b"".join(lines[i] for i in kept), options


def test_a_pipe_without_times_has_a_window_by_arrival(tmp_path, dedupe):
    process = start("--window", "1s", "--refresh", "no")
    for again in (False, True):
        process.stdin.write(b"a\na\n")
        process.stdin.flush()
        assert select.select([process.stdout], [], [], 60)[0]
        assert process.stdout.read1() == b"a\n"
        select.select([], [], [], 2.5 if not again else 0)  # past the window and its slack
    assert finish(process).status == 0
    (tmp_path / "a.txt").write_bytes(b"a\n")
    ended = dedupe(tmp_path / "a.txt", "--window", "1s")
    assert (ended.status, "a window of time needs --time" in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("values", "there", "new"),
    [
        (pa.array([19_000], pa.date32()), "2022-01-08", "2022-01-09"),
        (pa.array([5_000_000], pa.timestamp("us")), "1970-01-01 00:00:05", "1970-01-01 00:00:06"),
        (pa.array([1234], pa.int64()).cast(pa.decimal128(30, 2)), "1234.00", "1234.01"),
        (pa.array([b"ab"]), "ab", "ac"),
        (pa.array([7], pa.duration("s")), "7", "8"),
        (pa.array([3_600_000_000], pa.time64("us")), "01:00:00", "01:00:01"),
        (pa.array([5.5]), "5.5", "5.25"),
        (pa.array(["5"]), "5", "6"),
    ],
)
def test_a_query_takes_the_types_of_a_state_of_parquet(tmp_path, dedupe, capfdbinary, values, there, new):
    parquet(tmp_path / "a.pq", k=values, v=[1])
    state = tmp_path / "s"
    options = ("--key", "k", "--window", 9, "--state", state, "-o", tmp_path / "o.pq")
    assert dedupe(tmp_path / "a.pq", *options).status == 0
    assert main(["query", str(state), there, new]) == 0
    assert capfdbinary.readouterr().out.decode() == f"seen\t{there}\nnew\t{new}\n"
    if not pa.types.is_string(values.type) and not pa.types.is_binary(values.type):
        assert main(["query", str(state), "x"]) == 1
        assert b"cannot be read as" in capfdbinary.readouterr().err


def test_parquet_is_read_within_bounds(tmp_path, dedupe):
    target = tmp_path / "o.pq"
    pq.write_table(pa.table({"k": ["x" * 2_000_000] * 30}), tmp_path / "a.pq")
    ended = dedupe(tmp_path / "a.pq", "--window", 9, "--max-record", "1MiB", "-o", target)
    assert (ended.status, "a.pq, row 1: longer than --max-record" in ended.err) == (1, True), ended.err
    parquet(tmp_path / "c.pq", k=pa.array([], pa.int64()))
    assert dedupe(tmp_path / "c.pq", "--key", "k", "--window", 9, "-o", target).status == 0


def test_a_saved_exact_filter_is_described_and_queried(tmp_path, capfd):
    f = lately.ExactFilter(9)
    f.add("a")
    f.save(tmp_path / "s")
    assert main(["info", str(tmp_path / "s")]) == 0
    assert "filter     exact\nwindow     9 keys\nslack      0 keys\n" in capfd.readouterr().out
    assert main(["query", str(tmp_path / "s"), "a", "b"]) == 0
    assert capfd.readouterr().out == "seen\ta\nnew\tb\n"


def test_an_input_that_is_replaced_is_announced(tmp_path, dedupe):
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"a\na\n"))
    ended = dedupe(tmp_path / "a.txt.gz", "--window", 9, "-o", tmp_path / "a.txt.gz")
    assert f"warning: {tmp_path}/a.txt.gz was an input, and is replaced" in ended.err
    assert gzip.decompress((tmp_path / "a.txt.gz").read_bytes()) == b"a\n"
