"""What the command reads: text, tables, JSON lines and logs of Zeek, compressed or not, of any bytes.

It ends with 0, 1 or 2 and never by an exception. What it keeps of text is exactly the first of each line.
"""

import bz2
import gzip
import io
import lzma
import random
import tempfile
from contextlib import redirect_stderr
from pathlib import Path

import zstandard
from children import run

import lately.cli.options  # what `main` imports when first called: once for all children
from lately.cli import main

assert lately.cli.options

LINES = {
    ".txt": [b"a\n", b"b\n", b"\n", b"a\r\n", b"\xff\n", b"\xef\xbb\xbfa\n", b"x" * 70_000 + b"\n"],
    ".csv": [b"k,t\n", b"a,1\n", b'"b\nc",2\n', b'"x""y",3\n', b"a\n", b'"', b"a,2020-01-01\n", b",\n", b"\0\n"],
    ".tsv": [b"k\tt\n", b"a\t1\n", b"b\t2\n", b"\t\n", b'"a\t"\t1\n'],
    ".jsonl": [
        b'{"k": "a", "t": 1}\n',
        b'{"k": 1, "t": 1e3}\n',
        b'{"k": {"k": null}}\n',
        b'{"k": "\\ud800"}\n',
        b"[1]\n",
        b"1" * 5000,
    ],
    ".log": [b"#separator \\x09\n", b"#fields\tk\tt\n", b"#types\tstring\ttime\n", b"a\t1\n", b"-\t2\n", b"#close\n"],
    ".parquet": [b"PAR1", b"\x15\x04", b"PAR1"],
}
PACKED = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstandard.compress}
SURE = ["--window", "100000", "--fpr", "1e-15"]
OPTIONS = [
    ["--key", "k"],
    ["--key", "k", "--time", "t", "--window", "9s", "--capacity", "9"],
    ["--key", "1"],
    ["--no-header", "--key", "1"],
    ["--key", "k.k"],
    ["--skip-bad"],
    ["--encoding", "utf-8"],
    ["--no-quotes"],
    ["--mark"],
    ["--refresh", "delivered"],
    ["--max-record", "100"],
    ["--format", "csv"],
    ["--format", "jsonl"],
    ["--format", "tsv"],
    ["--format", "zeek"],
]


def bytes_of(chance: random.Random, lines: list[bytes]) -> bytes:
    """Give lines in any order, with some bytes of them changed, dropped or repeated."""
    data = bytearray(b"".join(chance.choices(lines, k=chance.randrange(30))))
    for _ in range(chance.choice([0, 0, 1, 3])):
        if data:
            at = chance.randrange(len(data))
            data[at : at + chance.choice([0, 1, 9])] = chance.randbytes(chance.choice([0, 1, 2]))
    return bytes(data)


def lines_of(data: bytes) -> list[bytes]:
    """Give its lines, without what ends them."""
    lines = data.split(b"\n")
    return [line.removesuffix(b"\r") for line in lines[: len(lines) - (lines[-1] == b"")]]


def case(chance: random.Random) -> None:
    """Run the command once."""
    extension, packed = chance.choice(sorted(LINES)), chance.choice(sorted(PACKED))
    plain = bytes_of(chance, LINES[extension])
    data = PACKED[packed](plain)
    damaged = packed and chance.random() < 0.3
    if damaged:
        data = bytes_of(chance, [data])
    options = [option for chosen in chance.sample(OPTIONS, chance.randrange(3)) for option in chosen]
    if "--window" not in options:
        options += SURE
    with tempfile.TemporaryDirectory() as folder, redirect_stderr(io.StringIO()) as errors:
        source, target = Path(folder) / f"in{extension}{packed}", Path(folder) / "out"
        source.write_bytes(data)
        try:
            status = main(["dedupe", str(source), "-o", str(target), *options])
        except SystemExit as ended:
            status = ended.code
        assert status in (0, 1, 2), (status, options)
        assert "Traceback" not in errors.getvalue()
        assert status == 0 or not target.exists()
        assert {path.name for path in Path(folder).iterdir()} <= {source.name, "out"}
        if status == 0 and extension == ".txt" and not damaged and options == SURE:
            kept = target.read_bytes()
            assert lines_of(kept) == list(dict.fromkeys(lines_of(plain))), (plain, kept)


if __name__ == "__main__":
    run(case)
