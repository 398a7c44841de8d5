import os
import select
import signal
import zlib

import pytest

from support.command import finish, start
from support.parquet import parquet


def shown(process, count):
    """Return the output that comes before the input ends."""
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
def test_decided_records_are_written_when_the_input_pauses(options, head, line):
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


class Following:
    """The command while it follows a file."""

    def __init__(self, path, *options):
        self.path = path
        self.process = start(path, "--follow", "--window", 100, *options)

    def write(self, text, mode="ab"):
        with self.path.open(mode) as file:
            file.write(text)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return finish(self.process)


def test_a_file_that_grows_is_followed(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\nb\na\n")
    follows = Following(path)
    assert shown(follows.process, 2) == b"a\nb\n"
    follows.write(b"b\nc\nd")  # the last line has not ended
    assert shown(follows.process, 1) == b"c\n"
    follows.write(b"d\n")
    assert shown(follows.process, 1) == b"dd\n"
    path.rename(tmp_path / "a.1")
    follows.write(b"a\ne\n")  # to another file of that name
    assert shown(follows.process, 1) == b"e\n"
    follows.write(b"f\n", "wb")  # the file was cut
    assert shown(follows.process, 1) == b"f\n"
    ended = follows.end(signal.SIGINT)
    assert (ended.status, ended.out) == (0, b"")
    assert "read       9 records\nkept       6\n" in ended.err


def test_following_keeps_state_and_output_when_it_is_ended(tmp_path):
    path, target, state = tmp_path / "a.csv", tmp_path / "o.csv", tmp_path / "s"
    path.write_bytes(b"k,v\n1,a\n1,b\n")
    follows = Following(path, "--key", "k", "-o", target, "--dropped", "/dev/stdout", "--state", state)
    assert shown(follows.process, 2) == b"k,v\n1,b\n"
    follows.write(b"2,c\n1,d\n3")
    assert shown(follows.process, 1) == b"1,d\n"
    ended = follows.end()
    assert (ended.status, ended.out, target.read_bytes()) == (0, b"", b"k,v\n1,a\n2,c\n"), ended.err
    follows = Following(path, "--state", state)  # begins at the start, and the state knows what it reads
    follows.write(b"0,e\n")  # the end of the last line, which was left
    assert shown(follows.process, 2) == b"k,v\n30,e\n"
    assert follows.end().status == 0


def test_following_ends_when_the_pipe_is_closed(tmp_path):
    ended = finish(start("--follow", "--window", 9), b"a\na\nb")
    assert (ended.status, ended.out) == (0, b"a\nb")


def test_a_named_pipe_is_followed_from_writer_to_writer(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    follows = Following(path)
    for text, out in [(b"a\nb\n", b"a\nb\n"), (b"b\nc\n", b"c\n")]:
        follows.write(text)
        assert shown(follows.process, out.count(b"\n")) == out
    assert follows.end().status == 0


def test_only_the_last_file_is_followed_and_no_parquet(tmp_path, dedupe):
    (tmp_path / "a.txt").write_bytes(b"a\n")
    path = tmp_path / "b.txt"
    path.write_bytes(b"b\n")
    process = start(tmp_path / "a.txt", path, "--follow", "--window", 9)
    assert shown(process, 2) == b"a\nb\n"
    process.send_signal(signal.SIGTERM)
    assert finish(process).status == 0
    parquet(tmp_path / "a.pq", k=[1])
    ended = dedupe(tmp_path / "a.pq", "--follow", "--window", 9, "-o", tmp_path / "o.pq")
    assert (ended.status, "--follow is not for Parquet" in ended.err) == (1, True)
