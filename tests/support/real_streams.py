"""Real streams through the filter and through an exact sliding window: every difference, and the bytes of both."""

import gzip
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import lately
from support.exact import ExactWindow
from support.planned import planned

EXAMPLES = Path(__file__).parents[2] / "examples"
FPR = 0.001
EVENTS = 10_000
SECONDS = 600
LATENESS = 9  # seconds: the clicks step back by no more
# A filter that keeps its promise exceeds its bound in one case of a million.
RISK = 1e-6

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


def cases(folder: Path) -> list[Case]:
    """Give the cases whose files are in `folder`."""
    return [case for case in CASES if (folder / case.file).exists()]


@dataclass(frozen=True)
class Exact:
    """The answers of the exact window for a stream, and the most bytes it held."""

    mask: list[bool]
    nbytes: int


def run_exact(keys: Sequence[Key], times: Sequence[int] | None) -> Exact:
    """Run the exact window. A late event is taken as of the latest time, as the filter takes it."""
    window = ExactWindow(SECONDS if times else EVENTS)
    stamps = list(accumulate(times, max)) if times else range(len(keys))
    mask: list[bool] = []
    nbytes, largest = 0, 0
    for start in range(0, len(keys), 500):
        mask += window.duplicated(keys[start : start + 500], stamps[start : start + 500])
        if len(window.last) > largest:
            nbytes, largest = window.nbytes(), len(window.last)
    return Exact(mask, nbytes)


def new_filter(times: Sequence[int] | None, name: str) -> lately.Filter:
    """Make the filter: of the last `EVENTS` keys, or of `SECONDS` in which the busiest minute never ends."""
    if times is None:
        return planned(name, EVENTS, FPR)
    busiest = max(Counter(latest // 60 for latest in accumulate(times, max)).values())
    return planned(name, f"{SECONDS}s", FPR, capacity=busiest * SECONDS // 60, lateness=f"{LATENESS}s")


@dataclass
class Counts:
    """How often each kind of key was queried, and how often it was reported a duplicate."""

    queried: int = 0
    reported: int = 0

    def count(self, reported: bool) -> None:
        """One more."""
        self.queried += 1
        self.reported += reported

    def __str__(self) -> str:
        return f"{self.reported:,} of {self.queried:,}"


@dataclass
class Comparison:
    """Events by when their key was last inserted: within the window, within the slack behind it, or not at all."""

    window: Counts
    slack: Counts
    fresh: Counts
    # Without refresh a false positive is not inserted, so a later query of the same key repeats the mistake. Such
    # queries are no new trials of the error rate.
    again: Counts
    nbytes: int
    mask: list[bool]

    @property
    def bound(self) -> int:
        """Most false positives to accept."""
        return binomial_bound(self.fresh.queried, FPR, RISK)


def compare(keys: Sequence[Key], times: Sequence[int] | None, name: str, refresh: bool) -> Comparison:
    """Run the filter over the stream; compare each answer with the keys queried, and let through, until then."""
    made = new_filter(times, name)
    mask = made.duplicated(keys, at=times, refresh=refresh).tolist()
    latest = accumulate(times, max) if times else None
    result = Comparison(Counts(), Counts(), Counts(), Counts(), made.nbytes, mask)
    stamps: dict[Key, int] = {}
    mistaken = set()
    for queried, (key, reported) in enumerate(zip(keys, mask, strict=True)):
        now = next(latest) if latest else queried
        age = now - stamps.get(key, -math.inf)
        if age <= made.window:
            result.window.count(reported)
        elif age <= made.window + made.slack:
            result.slack.count(reported)
        elif key in mistaken:
            result.again.count(reported)
        else:
            result.fresh.count(reported)
            if reported:
                mistaken.add(key)
        if refresh or not reported:
            mistaken.discard(key)
            stamps[key] = now
    return result


def binomial_bound(trials: int, rate: float, risk: float) -> int:
    """Give the least n with P(more than n successes) <= `risk`."""
    below, n = 0.0, -1
    while 1 - below > risk:
        n += 1
        logarithm = math.lgamma(trials + 1) - math.lgamma(n + 1) - math.lgamma(trials - n + 1)
        below += math.exp(logarithm + n * math.log(rate) + (trials - n) * math.log1p(-rate))
    return n
