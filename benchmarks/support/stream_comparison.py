"""A real stream through a filter, beside a dict of when each key came last."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path

import lately
from support.real_streams import CASES, EVENTS, SECONDS, Case, Key

FPR = 0.01
LATENESS = 9  # seconds: the clicks step back by no more
# A filter that keeps its promise exceeds its bound in one case of a million.
RISK = 1e-6
# What is compared, the default first.
FILTERS: dict[str, Callable[..., lately.Filter]] = {
    "the default": partial(lately.Filter, fpr=FPR),
    '`prefer="speed"`': partial(lately.Filter, fpr=FPR, prefer="speed"),
    '`prefer="memory"`': partial(lately.Filter, fpr=FPR, prefer="memory"),
    "`ExactFilter`": lately.ExactFilter,
}


def cases(folder: Path) -> list[Case]:
    """Give the cases whose files are in `folder`."""
    return [case for case in CASES if (folder / case.file).exists()]


def new_filter(times: Sequence[int] | None, name: str) -> lately.Filter:
    """Make one of the filters: of the last `EVENTS` keys, or of `SECONDS` in which the busiest minute never ends."""
    if times is None:
        return FILTERS[name](EVENTS)
    busiest = max(Counter(latest // 60 for latest in accumulate(times, max)).values())
    # The exact filter grows with its keys, and takes no capacity.
    planned = {} if name == "`ExactFilter`" else {"capacity": busiest * SECONDS // 60}
    return FILTERS[name](f"{SECONDS}s", lateness=f"{LATENESS}s", **planned)


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
    nbytes: int

    @property
    def wrongly(self) -> float:
        """Share of the events not within the window that are reported."""
        return (self.slack.reported + self.fresh.reported) / (self.slack.queried + self.fresh.queried)

    @property
    def bound(self) -> int:
        """Most false positives to accept."""
        return binomial_bound(self.fresh.queried, FPR, RISK)


def compare(keys: Sequence[Key], times: Sequence[int] | None, name: str) -> Comparison:
    """Run a filter over the stream, and compare each answer with when the key came last."""
    made = new_filter(times, name)
    mask = made.duplicated(keys, at=times).tolist()
    result = Comparison(Counts(), Counts(), Counts(), made.nbytes)
    latest: dict[Key, float] = {}
    for key, reported, now in zip(keys, mask, times or range(len(keys)), strict=True):
        last = latest.get(key, -math.inf)
        ends = (last + made.window, last + made.window + made.slack)
        kind = (result.window, result.slack, result.fresh)[sum(now > end for end in ends)]
        kind.count(reported)
        latest[key] = max(last, now)
    return result


def binomial_bound(trials: int, rate: float, risk: float) -> int:
    """Give the least n with P(more than n successes) <= `risk`."""
    below, n = 0.0, -1
    while 1 - below > risk:
        n += 1
        logarithm = math.lgamma(trials + 1) - math.lgamma(n + 1) - math.lgamma(trials - n + 1)
        below += math.exp(logarithm + n * math.log(rate) + (trials - n) * math.log1p(-rate))
    return n
