"""Real streams through the filter and through an exact sliding window: every difference, and the bytes of both."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import lately
from support.exact import ExactWindow
from support.planned import planned
from support.real_streams import CASES, EVENTS, SECONDS, Case, Key

FPR = 0.001
LATENESS = 9  # seconds: the clicks step back by no more
# A filter that keeps its promise exceeds its bound in one case of a million.
RISK = 1e-6


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
