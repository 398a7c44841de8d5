import time

import pytest

from support.command import SURE


def test_encoding(tmp_path, dedupe):
    lines = b"caf\xe9\nna\xefve\ncaf\xe9\n"
    (tmp_path / "a.txt").write_bytes(lines)
    ended = dedupe(tmp_path / "a.txt", "--window", 9, "--encoding", "latin-1", "--output", tmp_path / "o")
    assert (tmp_path / "o").read_bytes() == b"caf\xe9\nna\xefve\n"
    assert ended.status == 0
    assert dedupe(tmp_path / "a.txt", "--window", 9).out == b"caf\xe9\nna\xefve\n"  # bytes are keys as well
    ended = dedupe(tmp_path / "a.txt", "--window", 9, "--encoding", "utf-8")
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


def test_without_refresh_a_record_that_never_stops_passes_once_a_window(tmp_path, dedupe):
    (tmp_path / "a.txt").write_bytes(b"x\n" * 100_000)
    for options, passed in (((), 1), (("--refresh", "no"), 100_000 // 11 + 1), (("--refresh", "delivered"), 1)):
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
    assert "malformed  2, skipped" in ended.err
    ended = dedupe(tmp_path / "a.csv", *options, "--max-ahead", "2000d", "--skip-bad")
    assert "steps back" in ended.err


LOG = b"".join(
    [
        b'1.1.1.1 - - "GET /"\n',
        b'2.2.2.2 - - "GET /a"\n',
        b'  1.1.1.1\t- - "GET /b"\n',
        b"1.1.1.1\xc2\xa0- - x y z\n",
        b'1.1.1.1 - \xff "GET /"\n',
    ]
)


@pytest.mark.parametrize(("key", "kept"), [("1", [0, 1, 3]), ("1,5", [0, 1, 2, 3]), ("3", [0, 3, 4])])
def test_the_key_of_a_log_may_be_words_of_its_lines(dedupe, tmp_path, key, kept):
    """Words lie between blanks, as in awk; a byte that is not valid changes no other word of its line."""
    (tmp_path / "a.log").write_bytes(LOG)
    ended = dedupe(tmp_path / "a.log", "--window", 100, "--key", key, "--quiet")
    assert (ended.status, ended.out) == (0, b"".join(line for i, line in enumerate(LOG.splitlines(True)) if i in kept))


def test_a_line_with_too_few_words_is_malformed(dedupe, tmp_path):
    (tmp_path / "a.log").write_bytes(b"\xef\xbb\xbfa b\na\nc b\n")
    ended = dedupe(tmp_path / "a.log", "--window", 100, "--key", "2")
    # Standard output has each record as soon as it is decided.
    assert (ended.status, ended.out) == (1, b"\xef\xbb\xbfa b\n")
    assert "a.log, line 2: expected at least 2 words, for --key, got 1" in ended.err
    assert dedupe(tmp_path / "a.log", "--window", 100, "--key", "2", "--skip-bad").out == b"\xef\xbb\xbfa b\n"
    assert dedupe(tmp_path / "a.log", "--window", 100, "--key", "1").out == b"\xef\xbb\xbfa b\nc b\n"


@pytest.mark.parametrize("key", ["ip", "0", "-1", "1.5", "²", f"1-{2**64}"])
def test_a_name_is_no_key_of_text(dedupe, tmp_path, key):
    (tmp_path / "a.log").write_bytes(LOG)
    ended = dedupe(tmp_path / "a.log", "--window", 100, f"--key={key}")
    assert (ended.status, f"--key {key}: text has no names for its fields" in ended.err) == (2, True)
