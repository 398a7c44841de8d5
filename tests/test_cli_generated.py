"""Files as people have them. Each gives the records that Python's own readers, or pyarrow's, and a dict give."""

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import random
from contextlib import redirect_stderr
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from functools import cache
from threading import Thread
from unittest.mock import patch

import pyarrow as pa
import pytest
import zstandard
from pyarrow import parquet

from lately.cli import main, options
from support.command import SURE, Ended, finish, start


def named_gzip(data):
    with gzip.GzipFile("a name.log", "wb", fileobj=(made := io.BytesIO()), mtime=1) as file:
        file.write(data)
    return made.getvalue()


PACKED = [
    bytes,
    gzip.compress,
    named_gzip,
    bz2.compress,
    lambda data: lzma.compress(data, preset=0),
    lambda data: lzma.compress(data, lzma.FORMAT_ALONE, preset=0),
    zstandard.compress,
    lambda data: b"\x5f\x2a\x4d\x18\3\0\0\0abc" + zstandard.compress(data),  # a frame to skip before each
]
MARK = b"\xef\xbb\xbf"
ENCODINGS = ["utf-8", "utf-8", "utf-8", "latin-1", "cp1252", "shift_jis", "gb18030"]
CELLS = ["a", "A", "b", "", " ", "ä", "Ä", "日", "x,y", "x;y", 'see "x"', "two\nlines", "1", "1.0", "NA", "#x", "-"]
VALUES = ["a", "A", "", "ä", "\u2028", "null", 1, 1.0, True, 0, -0.0, 2**62, 2**70, 2**70 + 1, 1.5, None, "NaN"]


def moment(second, zone=UTC):
    return datetime.fromtimestamp(second, zone)


TIMES = {
    (): [
        str,
        "{}.25".format,
        "{}e0".format,
        lambda t: moment(t).isoformat(),
        lambda t: moment(t).strftime("%Y-%m-%d %H:%M:%S,5"),
        lambda t: moment(t).strftime("%Y%m%dT%H%M%SZ"),
        lambda t: moment(t, timezone(timedelta(hours=2))).isoformat(),
    ],
    ("--time-unit", "ms"): ["{}000".format, "{}000.5".format],
    ("--time-unit", "us"): ["{}000001".format],
    ("--time-unit", "ns"): ["{}000000000".format],
    ("--time-format", "%d/%b/%Y:%H:%M:%S"): [lambda t: moment(t).strftime("%d/%b/%Y:%H:%M:%S")],
}
COLUMNS = [
    (pa.string(), ["a", "A", "", "ä", None]),
    (pa.string_view(), ["a", "longer than twelve bytes", None]),
    (pa.dictionary(pa.int8(), pa.string()), ["a", "b", None]),
    (pa.binary(), [b"a", b"\xff", b"", None]),
    (pa.int32(), [-1, 0, 1, None]),
    (pa.uint64(), [0, 2**63, 2**64 - 1]),
    (pa.float64(), [0.0, -0.0, 1.5, None]),
    (pa.bool_(), [True, False, None]),
    (pa.date32(), [moment(0).date(), moment(10**9).date()]),
    (pa.decimal128(9, 2), [Decimal("1.50"), Decimal("1.51")]),
]
PARSER = cache(options.parser)
STORED = {pa.int64(): 0, pa.timestamp("s"): 0, pa.timestamp("ms", "Europe/Rome"): 3, pa.timestamp("us"): 6}


class Generated:
    """One or two files, the options to read them, and the records that are new.

    Attributes
    ----------
    head : str
        What precedes the records of each file.
    records : list
        The records, without their ends, or a table of them.
    keys : list of tuple
        Their keys, by another reader.
    malformed : list of str
        Lines to mix in which are not records.
    """

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.pick = self.rng.choice
        self.chance = lambda: self.rng.random() < 0.5
        self.format = self.pick(["text", "csv", "tsv", "zeek", "jsonl", "parquet"])
        self.lines = self.format != "parquet"
        self.encoding = self.pick(ENCODINGS)
        self.ends = self.pick([["\n"], ["\r\n"], ["\n", "\r\n"]])
        self.fold = self.lines and self.chance()
        self.timed = self.format != "text" and self.chance()
        self.options = ["--format", self.format, *["--ignore-case"] * self.fold]
        if self.lines and (self.encoding != "utf-8" or self.chance()):
            self.options += ["--encoding", self.encoding]
        count = self.pick([0, 1, 5, 40])
        # Times lie within a window, or many windows apart, so that the slack decides nothing.
        self.seconds = [1_700_000_000 + 1000 * (i // 4) + i % 4 for i in range(count)]
        self.unit, self.written = self.pick([(unit, form) for unit, forms in TIMES.items() for form in forms])
        self.times = list(map(self.written, self.seconds))
        self.time, self.malformed = "t", []
        self.head, self.records, self.keys = getattr(self, f"{self.format}_of")()
        self.malformed *= self.chance()
        self.options += ["--skip-bad"] * bool(self.malformed)
        if self.timed:
            self.options += [*self.unit, "--time", self.time, "--window", "10s", "--lateness", "0s"]
        else:
            self.options += ["--window", "1000", *SURE]
        self.kept = self.new()
        self.counted = {"read": count, "kept": len(self.kept), "malformed": 0, "blank": 0}

    def key(self, choices):
        """Choose a key among options. Each has the numbers of its fields, or a function."""
        key, of = self.pick([*choices.items()])
        self.options += ["--key", key]
        return of

    def encoded(self, values):
        """Return the values that the encoding has."""
        texts = [value for value in values if isinstance(value, str)]
        return [v for v in values if v not in texts or v == v.encode(self.encoding, "ignore").decode(self.encoding)]

    def text_of(self):
        gap = self.pick([" ", "  ", "\t"])
        words = [[self.pick("abAB") for _ in range(3)] for _ in self.times]
        of = self.key({"1": lambda w: w[0], "2-": lambda w: gap.join(w[1:]), "3,1": lambda w: w[2] + w[0]})
        return "", [gap.join(line) for line in words], [(of(line),) for line in words]

    def csv_of(self, delimiter=None, quotes=True):
        style = {"delimiter": delimiter or self.pick(",;|"), "quoting": self.pick([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])}
        if not quotes:
            style |= {"quoting": csv.QUOTE_NONE, "quotechar": None}
        cells = [cell for cell in self.encoded(CELLS) if quotes or "\n" not in cell]
        self.options += [
            "--delimiter",
            "tab" if delimiter else style["delimiter"],
            "--quotes" if quotes else "--no-quotes",
        ]

        def line(row):
            csv.writer(text := io.StringIO(newline=""), lineterminator="\n", **style).writerow(row)
            return text.getvalue().removesuffix("\n")

        names = self.pick([["k", "b", "t"], [" k", "b ", "t"], ["k", "k", "t"], None])
        choices = {"2": [1], "1-2": [0, 1], "2,1": [1, 0]}
        choices |= {"k": [0], "b,k": [1, 0]} if names and names[1] != "k" else {}
        if names is None:
            self.options += ["--no-header"]
            self.time = "3"
        of = self.key(choices)
        lines = [line([self.pick(cells), self.pick(cells), time]) for time in self.times]
        self.malformed = [line("four"), line("ab")]
        read = csv.reader(io.StringIO("\n".join(lines), newline=""), strict=True, **style)
        return line(names) if names else "", lines, [tuple(row[i] for i in of) for row in read]

    def tsv_of(self):
        return self.csv_of("\t", self.chance())

    def zeek_of(self):
        cells = [cell for cell in self.encoded(CELLS) if "\n" not in cell and not cell.startswith("#")]
        rows = [[self.pick(cells), self.pick(cells), time] for time in self.times]
        of = self.key({"k": [0], "b,k": [1, 0], "2": [1], "1-2": [0, 1]})
        head = self.pick(["", "#separator \\x09\n#set_separator\t,\n#path\tconn\n"]) + "#fields\tk\tb\tt"
        head += self.pick(["", "\n#types\tstring\tstring\ttime"])
        self.malformed = ["a\tb", "a\tb\tc\td"]
        keys = [tuple(row[i] for i in of) for row in rows]
        return head.replace("\n", self.ends[0]), ["\t".join(row) for row in rows], keys

    def jsonl_of(self):
        lines = []
        values = self.encoded(VALUES)
        parts = self.pick([(", ", ": "), (",", ":"), (" ,\t", " : ")])
        for time in self.times:
            number = self.written is str and self.chance()
            record = {"x": {"k": self.pick(values)}, "k": self.pick(values), "t": int(time) if number else time}
            record |= {"n": float("nan")} if self.chance() else {}
            ascii = "\u2028" not in values or self.chance()
            lines.append(json.dumps(record, ensure_ascii=ascii, separators=parts))
        of = self.key({"k": lambda r: (r["k"],), "x.k,k": lambda r: (r["x"]["k"], r["k"])})
        self.malformed = ['{"k": 1', "[1]", "{'k': 1}", "{} {}"]
        return "", lines, [of(json.loads(line)) for line in lines]

    def parquet_of(self):
        self.ends, self.unit = [""], ()
        kind, power = self.pick([*STORED.items()])
        columns = [self.pick(COLUMNS) for _ in range(2)]
        picked = [[self.pick(values) for _ in self.times] for _, values in columns]
        times = pa.array([second * 10**power for second in self.seconds], pa.int64()).cast(kind)
        arrays = [pa.array(values, kind) for values, (kind, _) in zip(picked, columns, strict=True)]
        of = self.key({"k": [0], "b,k": [1, 0]})
        keys = [tuple(row[i] for i in of) for row in zip(*picked, strict=True)]
        return "", pa.table([*arrays, times], ["k", "b", "t"]), keys

    def new(self):
        """Return the indices of the records that are new, by a dict of the times of keys."""
        last, new = {}, []
        for i, (key, second) in enumerate(zip(self.keys, self.seconds, strict=True)):
            folded = tuple(part.lower() if self.fold and isinstance(part, str) else part for part in key)
            if folded not in last or (self.timed and second - last[folded] > 10):
                new.append(i)
            last[folded] = second
        return new

    def files(self):
        """Return the bytes of the files before they are compressed, and those of the output."""
        cut = self.pick([0, 0, self.rng.randrange(len(self.records) + 1)])
        files, out = [], b""
        for first, last in [(0, cut), (cut, len(self.records))][cut == 0 :]:
            head = (self.head + self.pick(self.ends) if self.head else "").encode(self.encoding)
            marked = self.encoding == "utf-8" and (head or first < last) and self.chance()
            data = MARK if marked else b""
            out = out if files else data + head
            data += (b"" if self.format == "zeek" else self.others(["blank"])) + head
            for i in range(first, last):
                # Without a header, the first line has the number of fields.
                data += self.others(*[["blank"]] * (i == first and not head))
                line = self.records[i].encode(self.encoding)
                end = self.pick(["", *self.ends] if i == last - 1 else self.ends).encode()
                data += line + end
                if i in self.kept:
                    out += b"\n" * (out not in (b"", MARK) and not out.endswith(b"\n")) + line + end
            files.append(data + (self.others() if data.endswith(b"\n") and (head or first < last) else b""))
        return files, out

    def others(self, *kinds):
        """Return lines that are not records."""
        text = ""
        for kind in self.pick([[], [], [], *(kinds or (["blank"], ["blank", "malformed"], ["malformed"]))]):
            if kind == "blank" or self.malformed:
                text += self.pick(self.malformed if kind == "malformed" else [""]) + self.pick(self.ends)
                self.counted[kind] += 1
        return text.encode(self.encoding)

    def packed(self, data):
        """Compress the bytes in one or more members, of which the first may be empty."""
        compress = self.pick(PACKED)
        places = sorted(self.rng.choices(range(len(data) + 1), k=self.rng.randrange(3)))
        members = [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]
        return b"".join(map(compress, members))

    def write_parquet(self, path):
        codec = self.pick(["none", "snappy", "gzip", "zstd", "brotli", "lz4"])
        more = {"row_group_size": self.pick([1, 7, 1000]), "use_dictionary": self.chance()}
        parquet.write_table(self.records, path, compression=codec, data_page_version=self.pick(["1.0", "2.0"]), **more)


def in_this_process(*arguments):
    """Run the command in this process, with a parser that is made once."""
    stdout = os.dup(1)
    with (
        patch.object(options, "parser", PARSER),
        os.fdopen(os.memfd_create("out"), "r+b") as out,
        redirect_stderr(io.StringIO()) as err,
    ):
        os.dup2(out.fileno(), 1)
        try:
            status = main(["dedupe", *arguments])
        finally:
            os.dup2(stdout, 1)
            os.close(stdout)
        out.seek(0)
        return Ended(status, out.read(), err.getvalue())


def check(seed, folder):
    made = Generated(seed)
    run = in_this_process if seed % 200 else lambda *arguments: finish(start(*arguments))
    if made.lines:
        files, expected = made.files()
        names = [folder / str(i) for i in range(len(files))]
        for path, data in zip(names, map(made.packed, files), strict=True):
            path.unlink(missing_ok=True)
            if made.rng.random() < 0.8:
                path.write_bytes(data)
            else:
                os.mkfifo(path)
                Thread(target=path.write_bytes, args=(data,), daemon=True).start()
        ended = run(*map(str, names), *made.options)
        found = ended.out
    else:
        files, names = made.records, [folder / "in.parquet", folder / "out.parquet"]
        made.write_parquet(names[0])
        ended = run(str(names[0]), *made.options, "--output", str(names[1]))
        found = parquet.read_table(names[1]).to_pylist() if ended.status == 0 else None
        expected = [files.to_pylist()[i] for i in made.kept]
    assert (ended.status, found) == (0, expected), (seed, made.options, files, ended.err)
    counted = made.counted | {"read": made.counted["read"] + made.counted["malformed"]}
    for name, count in counted.items():
        assert (name == "blank" and not count) or f"\n{name:<10} {count:,}" in "\n" + ended.err, (seed, name, ended.err)


@pytest.mark.parametrize("part", range(4))
def test_generated_files(tmp_path, part):
    for seed in range(60 * part, 60 * part + 60):
        check(seed, tmp_path)


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(100))
def test_many_generated_files(tmp_path, part):
    for seed in range(1000 * part, 1000 * part + 1000):
        check(seed, tmp_path)
