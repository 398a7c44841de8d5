"""Real streams: their keys, and their times."""

import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
EVENTS = 10_000
SECONDS = 600

Key = tuple[str | None, ...]
Record = dict[str, str]


def read_clicks(lines: Iterable[str]) -> Iterator[Record]:
    """One JSON object a line."""
    return map(json.loads, lines)


def read_nasa(lines: Iterable[str]) -> Iterator[Record]:
    """Tab-separated, the first line names the fields."""
    rows = (line.rstrip("\n").split("\t") for line in lines)
    names = next(rows)
    return (dict(zip(names, row, strict=True)) for row in rows)


def read_zeek(lines: Iterable[str]) -> Iterator[Record]:
    """Tab-separated, below lines that begin with ``#``; one of them names the fields."""
    names: list[str] = []
    for line in lines:
        row = line.rstrip("\n").split("\t")
        if row[0] == "#fields":
            names = row[1:]
        elif not row[0].startswith("#"):
            yield dict(zip(names, row, strict=True))


@dataclass(frozen=True)
class Case:
    """A stream, the fields of its key, and what "lately" means: a number of events, or seconds by a field."""

    name: str
    file: str
    read: Callable[[Iterable[str]], Iterator[Record]]
    fields: tuple[str, ...]
    time: str | None = None

    def __str__(self) -> str:
        window = f"{SECONDS // 60} min" if self.time else f"{EVENTS:,} events"
        return f"{self.name} within {window}"

    def load(self, folder: Path) -> tuple[list[Key], list[int] | None]:
        """Read the keys, and the times where the window is one of time; a field that is absent is None."""
        with gzip.open(folder / self.file, "rt", encoding="utf-8", errors="surrogateescape", newline="\n") as lines:
            records = list(self.read(lines))
        keys = [tuple(map(record.get, self.fields)) for record in records]
        return keys, [int(record[self.time]) for record in records] if self.time else None


VISITOR = ("a", "al", "c", "gr", "cy")
CASES = [
    Case("NASA by host and URL", "nasa-http-1995-08-01.tsv.gz", read_nasa, ("host", "url")),
    Case("clicks by visitor and URL", "usagov-clicks-2013.jsonl.gz", read_clicks, (*VISITOR, "u")),
    Case("clicks by visitor and URL", "usagov-clicks-2013.jsonl.gz", read_clicks, (*VISITOR, "u"), time="t"),
    Case("DNS by connection, id and name", "wrccdc-2018-dns.zeek.log.gz", read_zeek, ("uid", "trans_id", "query")),
]
