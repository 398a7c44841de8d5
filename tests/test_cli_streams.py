import os
import select
import zlib

import pytest

from support.command import finish, start


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
