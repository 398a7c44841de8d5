"""Files as people have them. Each gives the records that Python's own readers and a dict give."""

import bz2
import csv
import gzip
import io
import json
import lzma
import random
from datetime import UTC, datetime

import pytest
import zstandard

from support.command import SURE

PACKED = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstandard.compress}
CELLS = ["a", "A", "b", "", " ", "ä", "Ä", "x,y", 'see "x"', "two\nlines", "1", "1.0", "NA", "#x", "-", "5 6"]
VALUES = ["a", "A", "", "ä", "\u2028", "null", 1, 1.0, True, 0, -0.0, 2**62, 2**70, 2**70 + 1, 1.5, None, "NaN"]
TIMES = {
    (): [str, "{}.25".format, lambda t: datetime.fromtimestamp(t, UTC).isoformat()],
    ("--time-unit", "ms"): ["{}000".format, "{}000.5".format],
    ("--time-unit", "ns"): ["{}000000000".format],
    ("--time-format", "%d/%b/%Y:%H:%M:%S"): [lambda t: datetime.fromtimestamp(t, UTC).strftime("%d/%b/%Y:%H:%M:%S")],
}


class Generated:
    """A file, the options to read it, and the records that should be kept."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.chance = lambda: self.rng.random() < 0.5
        self.format = self.rng.choice(["text", "csv", "tsv", "zeek", "jsonl"])
        self.end = self.rng.choice(["\n", "\r\n"])
        self.encoding = self.rng.choice(["utf-8", "utf-8", "latin-1"])
        self.fold = self.chance()
        self.timed = self.format != "text" and self.chance()
        self.options = ["--ignore-case"] * self.fold
        if self.encoding != "utf-8" or self.chance():
            self.options += ["--encoding", self.encoding]
        count = self.rng.choice([0, 1, 5, 40])
        # Times lie within a window, or many windows apart, so that the slack decides nothing.
        self.seconds = [1_700_000_000 + 1000 * (i // 4) + i % 4 for i in range(count)]
        unit, written = self.rng.choice([(unit, form) for unit, forms in TIMES.items() for form in forms])
        self.times = [written(second) for second in self.seconds]
        self.options += [*unit, "--time", "t", "--window", "10s", "--lateness", "0s"] if self.timed else []
        self.head, self.records, self.keys = getattr(self, f"{self.format}_of")(count)
        if not self.timed:
            self.options += ["--window", "1000", *SURE]

    def text_of(self, count):
        words = [[self.rng.choice("abAB") for _ in range(3)] for _ in range(count)]
        key, of = self.rng.choice(
            [("1", lambda w: w[0]), ("2-", lambda w: " ".join(w[1:])), ("3,1", lambda w: (w[2], w[0]))]
        )
        self.options += ["--key", key]
        return "", [" ".join(line) for line in words], [of(line) for line in words]

    def rows(self, count, cells):
        rows = [[self.rng.choice(cells), self.rng.choice(cells), time] for time in self.times]
        key, of = self.rng.choice([("k", [0]), ("b,k", [1, 0]), ("2", [1]), ("1-2", [0, 1])])
        self.options += ["--key", key]
        return rows, [tuple(row[i] for i in of) for row in rows]

    def csv_of(self, count, delimiter=","):
        rows, _ = self.rows(count, CELLS)
        style = {"delimiter": delimiter, "quoting": self.rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])}
        self.options += ["--format", "csv", "--delimiter", delimiter, "--quotes"]

        def line(row):
            csv.writer(text := io.StringIO(newline=""), lineterminator="\n", **style).writerow(row)
            return text.getvalue().removesuffix("\n")

        lines = [line(row) for row in rows]
        key = self.options[self.options.index("--key") + 1]
        of = {"k": [0], "b,k": [1, 0], "2": [1], "1-2": [0, 1]}[key]
        read = csv.reader(io.StringIO("\n".join(lines), newline=""), delimiter=delimiter, strict=True)
        return line("kbt"), lines, [tuple(row[i] for i in of) for row in read]

    def tsv_of(self, count):
        return self.csv_of(count, "\t")

    def zeek_of(self, count):
        rows, keys = self.rows(count, [cell for cell in CELLS if "\n" not in cell and not cell.startswith("#")])
        self.options += ["--format", "zeek"]
        head = self.rng.choice(["#fields\tk\tb\tt", "#separator \\x09\n#fields\tk\tb\tt\n#types\tstring\tstring\ttime"])
        return head.replace("\n", self.end), ["\t".join(row) for row in rows], keys

    def jsonl_of(self, count):
        self.options += ["--format", "jsonl"]
        lines = []
        for time in self.times:
            record = {"x": {"k": self.rng.choice(VALUES)}, "k": self.rng.choice(VALUES), "s": '"NaN"'}
            record |= {"t": json.loads(time) if time.replace(".", "").isdecimal() and self.chance() else time}
            record |= {"n": float("nan")} if self.chance() else {}
            lines.append(json.dumps(record, ensure_ascii=self.encoding != "utf-8" or self.chance()))
        key, of = self.rng.choice([("k", ["k"]), ("x.k,k", ["x", "k"])])
        self.options += ["--key", key]

        def value(found):
            return found["k"] if isinstance(found, dict) else found

        return "", lines, [tuple(value(json.loads(line)[name]) for name in of) for line in lines]

    def kept(self):
        """Return the records that are new, by a dict of the times of keys."""
        last, kept = {}, []
        for record, key, second in zip(self.records, self.keys, self.seconds, strict=True):
            folded = tuple(part.lower() if self.fold and isinstance(part, str) else part for part in key)
            if folded not in last or (self.timed and second - last[folded] > 10):
                kept.append(record)
            last[folded] = second
        return kept

    def data(self):
        """Return the bytes of the file, and those of the output."""

        def blank():
            return self.end * self.rng.choice([0, 0, 0, 1, 2])

        head = self.head + self.end if self.head else ""
        lines = [record + self.end for record in self.records]
        out = head + "".join(record + self.end for record in self.kept())
        given = head + "".join(line + blank() for line in lines)
        mark = b"\xef\xbb\xbf" if self.encoding == "utf-8" and self.format == "csv" and self.chance() else b""
        return mark + given.encode(self.encoding), mark + out.encode(self.encoding)

    def packed(self, data):
        """Compress the bytes in one or more members, of which the first may be empty."""
        extension = self.rng.choice([*PACKED])
        places = sorted(self.rng.choices(range(len(data) + 1), k=self.rng.randrange(3)))
        members = [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]
        return b"".join(map(PACKED[extension], members))


def check(seed, folder, dedupe):
    made = Generated(seed)
    data, out = made.data()
    path = folder / "a"
    path.write_bytes(made.packed(data))
    ended = dedupe(path, *made.options)
    assert (ended.status, ended.out) == (0, out), (seed, made.options, data, ended.err)
    count = len(made.records)
    assert f"read       {count:,} records\nkept       {len(made.kept()):,}\n" in ended.err, (seed, ended.err)


@pytest.mark.parametrize("part", range(4))
def test_generated_files(tmp_path, dedupe, part):
    for seed in range(60 * part, 60 * part + 60):
        check(seed, tmp_path, dedupe)


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(100))
def test_many_generated_files(tmp_path, dedupe, part):
    for seed in range(1000 * part, 1000 * part + 1000):
        check(seed, tmp_path, dedupe)
