"""Blocks that are read by the fast path give the same records as single reads, for any bytes."""

import json
import random
import subprocess
import sys
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lately
from lately._core import RecordHashes, RecordReader
from lately.cli.delimited import CsvReader
from lately.cli.json_lines import JsonReader
from lately.cli.line_reader import LineReader
from lately.cli.records import Malformed, ReaderOptions
from lately.cli.text import TextReader
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


def options_for(malformed, *, key, time=None, encoding=None):
    times = Times(time) if time else None
    return ReaderOptions(key, times, encoding or "utf-8", encoding is not None, 1 << 20, malformed, digest=False)


SEEN = lately.AgePartitionedBloomFilter(1000, 0.01)  # of a public seed, as every run has it here


def everything(reader, path, malformed):
    """Return all that a reader yields of a file: places, hashes of keys, times, bytes and faults."""
    places, hashes, times, lines, head = [], [], [], [], b""
    for batch in reader.batches(str(path), lambda _: None, filter=SEEN):
        places += [batch.place(i) for i in range(len(batch.records))]
        keys = batch.keys if isinstance(batch.keys, RecordHashes) else RecordHashes(SEEN, batch.keys)
        hashes += [hash for _, hash in keys.sample(1, 0, 0)]
        times += [] if batch.times is None else batch.times.tolist()
        lines += list(batch.records)
        head += batch.head
    assert len(places) == len(hashes) == len(lines)
    return places, hashes, times, lines, head, sorted(reader.absent), malformed.count, malformed.first


@pytest.fixture
def both_ways(tmp_path, monkeypatch):
    """Read a file in blocks where possible, and record by record; return how many records came in blocks."""

    def run(make, data):
        path = tmp_path / "a"
        path.write_bytes(data)
        taken, read, found = [], LineReader._read_fast, []

        def counting(self, *arguments):
            batch = read(self, *arguments)
            taken.append(0 if batch is None else len(batch.keys))
            return batch

        for instead in (counting, lambda *_: None):
            with monkeypatch.context() as patch:
                patch.setattr(LineReader, "_read_fast", instead)
                malformed = Malformed(True)
                found.append(everything(make(malformed), path, malformed))
        assert found[0] == found[1]
        return sum(taken)

    return run


def csv_reader(malformed, *, delimiter=",", quotes=True, head="names", **options):
    return CsvReader(options_for(malformed, **options), delimiter=delimiter, quotes=quotes, head=head)


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
    assert 200 < taken < 450


def test_what_is_taken_and_what_is_left(both_ways):
    """Each file, and how many of its records behind the header the core takes."""
    for data, taken in [
        (b"k\n\n1\n", 0),  # a blank line
        (b"k\n1\n\n2\n", 1),
        (b"k\r\n1\r\n\r\n2\r\n", 1),
        (b"k\n1", 1),
        (b"k\n1\r", 0),
        (b"k\n1\r\r\n2\n", 0),
        (b"k\n1\r2\n", 0),
        (b'k\n"1\n2"\n3\n', 2),
        (b'k\n"1""2"\r\n"3"', 2),
        (b'k\n"1" \n', 0),
        (b'k\n"1""\n', 0),
        (b'k\n"1\n', 0),
        (b'k\n1"2"\n', 1),
        (b"k\n\xe4\n\xc3\xa4\n\xc3\n", 3),
        (b"k,l\n1,\n,2\n1\n3,4\n", 2),
        (b'k,l\n"",""\n",","\r\n"\n', 2),
        (b"k\n\xef\xbb\xbf1\n", 1),
        (b"\xef\xbb\xbfk\n1\n", 1),
    ]:
        assert both_ways(lambda malformed: csv_reader(malformed, key=["k"]), data) == taken, data


def test_the_core_goes_on_behind_what_it_leaves(both_ways):
    rows = b"".join(b"%d,x\n" % i for i in range(200))
    data = b"k,l\n" + rows + b"1\n" + rows + b"1\n" + b"2,x\n" + b"1\n" + rows
    assert both_ways(lambda malformed: csv_reader(malformed, key=["k"]), data) == 401
    data = rows + b"\xe4\n" + rows
    assert both_ways(lambda malformed: TextReader(options_for(malformed, key=[], encoding="utf-8")), data) == 400
    data = b'{"k": 1}\n' * 200 + b"{}\n" + b'{"k": 1}\n' * 200 + b"[]\n{}\n[]\n" + b'{"k": 1}\n' * 200
    assert both_ways(lambda malformed: JsonReader(options_for(malformed, key=["k"])), data) == 400


def test_text(both_ways):
    rng = random.Random(0)
    taken = 0
    for encoding in (None, "utf-8", "latin-1", "cp1252", "iso2022_jp"):
        for _ in range(40):
            cells = [*CELLS, b"\xef\xbb\xbf", b"\x1b$B", b"\x1b(B", b"x" * 2_000]
            lines = [b"".join(rng.choices(cells, k=rng.randrange(3))) for _ in range(rng.randrange(9))]
            options = {"key": [], "encoding": encoding}
            data = rng.choice([b"\n", b"\r\n"]).join(lines)
            taken += both_ways(lambda malformed: TextReader(options_for(malformed, **options)), data)  # noqa: B023
    assert taken > 200


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
    """Blocks for the fast path alternate with others, at any place."""
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
        taken += both_ways(lambda malformed: JsonReader(options_for(malformed, key=key, time=time)), data)  # noqa: B023
    assert 200 < taken < 900


def test_objects_that_share_lines(both_ways):
    for data in (b'{"k": "a"}{"k": "b"}\n{"k"\n: "c"}\n', b'{"k": "a"}{"k": "b"}\n{"k": "c", "l": [{}\n,{}]}\n'):
        assert not both_ways(lambda malformed: JsonReader(options_for(malformed, key=["k"])), data)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["\ud83d\ude00", "\ud800", "\udc00\ud800", "a/b", '"', "\\", "\x7f", "\n"])
)
NAMES = st.sampled_from(["k", "l", "n", "n.x", "x", "t", '"', "ä", ""])
OBJECTS = st.dictionaries(
    NAMES,
    st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)),
    max_size=5,
)
SPACE = st.sampled_from(["", "", "", " ", "\t", "\r"])


@st.composite
def json_lines(draw):
    """Draw a JSON object, with random spaces, repeated names and changed bytes."""
    text = json.dumps(draw(OBJECTS), ensure_ascii=draw(st.booleans()))
    if draw(st.booleans()):
        more = json.dumps(draw(OBJECTS))[1:]
        text = f"{text[:-1]},{draw(SPACE)}{more}" if len(text) > 2 and len(more) > 1 else text
    line = (draw(SPACE) + text.replace("/", draw(st.sampled_from(["/", "\\/"]))) + draw(SPACE)).encode(
        errors="surrogatepass"
    )
    if draw(st.integers(0, 3)) == 0:
        at = draw(st.integers(0, len(line)))
        line = line[:at] + draw(st.binary(max_size=2)).replace(b"\n", b"") + line[at + draw(st.integers(0, 2)) :]
    return line


FILES = {"suppress_health_check": [HealthCheck.function_scoped_fixture]}


@settings(**FILES, max_examples=settings().max_examples // 2)
@given(st.lists(json_lines(), max_size=4), st.sampled_from([["k"], ["k", "n.x"], ["n.x"], []]), st.booleans())
def test_any_json(both_ways, lines, key, timed):
    time = "t" if timed else None
    data = b"\n".join([b"{}", *lines])  # the first bytes of a file may mark it as compressed
    both_ways(lambda malformed: JsonReader(options_for(malformed, key=key, time=time)), data)


PIECES = st.sampled_from(
    [b'"', b'""', b",", b"\n", b"\r\n", b"\r", b"a", b"1", b" ", b"\xc3\xa4", b"\xe4", b"\0", b"#"]
)


@settings(**FILES)
@given(st.lists(PIECES, max_size=30), st.integers(1, 3), st.booleans(), st.sampled_from([None, "utf-8", "latin-1"]))
def test_any_csv(both_ways, pieces, width, quotes, encoding):
    data = b",".join([b"k", b"l", b"m"][:width]) + b"\n" + b"".join(pieces)
    key = ["m", "k"][-min(width, 2) :] if width != 2 else []
    both_ways(lambda malformed: csv_reader(malformed, quotes=quotes, key=key, encoding=encoding), data)


def test_records_of_a_block():
    block = b"a\nbb\n\nccc\nd"
    lines, keys, times, met = RecordReader.lines(SEEN, "utf-8", 100).read(block, 2, 2, False)
    assert (list(lines), len(lines), len(keys), times, met) == ([b"bb\n", b"\n", b"ccc\n", b"d"], 4, 4, [], 0)
    assert (list(lines[1:3]), list(lines[3:1]), lines[3]) == ([b"\n", b"ccc\n"], [], b"d")
    assert ([lines.line(i) for i in range(5)], lines[2:].line(1), lines.end) == ([2, 3, 4, 5, 5], 5, len(block))
    rng = random.Random(0)
    for part in (lines, lines[1:]):
        for _ in range(40):
            which = bytes(rng.choices([0, 1], k=len(part)))
            assert part.chosen(which) == b"".join(line for line, goes in zip(part, which, strict=True) if goes)
    for wrong in (lambda: lines.chosen(b"\1"), lambda: lines[::2], lambda: keys[::-1]):
        with pytest.raises(ValueError, match=r"one for each record|step"):
            wrong()
    for beyond in (
        lambda: lines[4],
        lambda: lines.line(5),
        lambda: RecordReader.lines(SEEN, "utf-8", 9).read(b"", 1, 1, False),
    ):
        with pytest.raises(IndexError, match=r"no record|start must be"):
            beyond()


def imported(folder, options, *names):
    """Run the command on each file of a folder, in one process; return which of the modules it imported."""
    code = f"""
import sys
from lately.cli import main
*files, options = sys.argv[1:]
for file in files:
    assert main(["dedupe", file, *eval(options), "-o", f"{{file}}.out"]) == 0
sys.exit(str({ {*names} } & {{*sys.modules}}))
"""
    files = sorted(folder.iterdir())
    ended = subprocess.run([sys.executable, "-c", code, *files, repr(options)], capture_output=True, text=True)
    assert ended.stderr.count("kept       1\n") == len(files), ended.stderr
    return ended.stderr.splitlines()[-1]


def test_a_run_does_not_import_pandas(tmp_path):
    """pyarrow imports pandas when it gets an object that may be of pandas; the import takes longer than many runs."""
    (tmp_path / "a.csv").write_bytes(b"k,t\n1,2\n1,3\n")
    (tmp_path / "a.jsonl").write_bytes(b'{"k": "1", "t": 2}\n{"k": "1", "t": 3}\n')
    parquet(tmp_path / "a.parquet", k=["1", "1"], t=[2, 3])
    options = ["--key", "k", "--time", "t", "--window", "9s"]
    assert imported(tmp_path, options, "pandas") == "set()"


def test_a_run_without_times_imports_no_numpy(tmp_path):
    (tmp_path / "a.csv").write_bytes(b'k,l\n"1",2\n1,3\n')
    (tmp_path / "a.jsonl").write_bytes(b'{"k": "1"}\n{"k": "1"}\n')
    assert imported(tmp_path, ["--key", "k", "--window", "200000"], "numpy") == "set()"


def test_a_run_on_text_imports_no_more_than_it_needs(tmp_path):
    """Each import takes as long as thousands of records, which a user of a small file notices."""
    (tmp_path / "a.txt").write_bytes(b"1\n1\n")
    needless = {"dataclasses", "hashlib", "inspect", "json", "lately.cli.delimited", "lately.cli.parquet", "numpy"}
    assert imported(tmp_path, ["--window", "200000"], *needless) == "set()"
