import pytest

from support.command import SURE, temporaries

GOOD_CSV = [b"a,1\n", b'"b\nc",2\n']
GOOD_JSON = [b'{"k": "a", "t": 1}\n', b'{"k": "b", "t": 2}\n']
MALFORMED = [
    (".txt", [b"a\n", b"b\n"], b"\xff\n", "not valid utf-8"),
    (".csv", GOOD_CSV, b"x,\xff\n", "not valid utf-8"),
    (".csv", GOOD_CSV, b"x\n", "1 fields where the header has 2"),
    (".csv", GOOD_CSV, b"x,1,y\n", "3 fields where the header has 2"),
    (".csv", GOOD_CSV, b'"x"x,1\n', "closing quote"),
    (".csv", GOOD_CSV, b'x,"1\n', "quote"),
    (".csv", GOOD_CSV, b"x,\n", "the time t '' is neither a number of Unix seconds nor ISO 8601"),
    (".csv", GOOD_CSV, b"x,nan\n", "the time t is missing"),
    (".csv", GOOD_CSV, b"x,2020-13-01\n", "the time t '2020-13-01' is neither"),
    (
        ".csv",
        GOOD_CSV,
        b"x,1700000000000\n",
        "outside the years 1677 to 2262 (numbers are Unix seconds): if it counts Unix ms, add --time-unit ms",
    ),
    (".csv", GOOD_CSV, b"x,9000000000\n", "the time 2255-03-14T16:00:00.000000000 lies more than 86400 s ahead of"),
    (".jsonl", GOOD_JSON, b'{"k": "\xff", "t": 1}\n', "not valid utf-8"),
    (".jsonl", GOOD_JSON, b'{"k": "x", \n', "not JSON: "),
    (".jsonl", GOOD_JSON, b"[1]\n", "expected an object, got an array"),
    (".jsonl", GOOD_JSON, b"1" * 5000 + b"\n", "expected an object, got a number"),
    (".jsonl", GOOD_JSON, b"[" * 100_000 + b"\n", "not JSON: "),
    (".jsonl", GOOD_JSON, b'{"t": 1}\n', "it has none of the key fields k"),
    (".jsonl", GOOD_JSON, b'{"k": [1], "t": 1}\n', "the key field k is not a single value"),
    (".jsonl", GOOD_JSON, b'{"k": {}, "t": 1}\n', "the key field k is not a single value"),
    (".jsonl", GOOD_JSON, b'{"k": "x", "t": "\\ud800"}\n', "the time t is not text"),
    (".jsonl", GOOD_JSON, b'{"k": "x"}\n', "the time t is missing"),
    (".jsonl", GOOD_JSON, b'{"k": "x", "t": true}\n', "the time t is true or false"),
    (".jsonl", GOOD_JSON, b'{"k": "x", "t": [1]}\n', "the time t is an array"),
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
    options += ["--encoding", "utf-8"]
    ended = dedupe(path, *options)
    assert ended.status == 1
    number = (head + b"".join(good[:place])).count(b"\n") + 1
    assert f"{path}, line {number}: " in ended.err
    assert message in ended.err
    assert ("--skip-bad" in ended.err) != ("add --time-" in ended.err)
    assert target.read_bytes() == b"as it was"
    assert not state.exists()
    assert not temporaries(tmp_path)

    ended = dedupe(path, *options, "--skip-bad")
    assert ended.status == 0
    assert target.read_bytes() == head + b"".join(good)
    assert "read       3 records\nkept       2\ndropped    0 " in ended.err
    assert "malformed  1, skipped" in ended.err
    assert f"warning: the first malformed record is {path}, line {number}: " in ended.err


def test_a_stray_quote_loses_no_good_lines(tmp_path, dedupe):
    rows = [b"%d,x\n" % i for i in range(1000)]
    rows[500] = b'500,"x"\n'
    bad = {10: b'10,"x\n', 700: b'700,"x\n', 990: b'"990,x\n'}
    (tmp_path / "a.csv").write_bytes(b"k,v\n" + b"".join(bad.get(i, row) for i, row in enumerate(rows)))
    ended = dedupe(tmp_path / "a.csv", "--window", 2000, "--key", "k", "--skip-bad", *SURE)
    # Up to the next quote, or the end of the file, lines look like one field; they are read again, line by line.
    assert ended.out == b"k,v\n" + b"".join(row for i, row in enumerate(rows) if i not in bad)
    assert "malformed  3," in ended.err
