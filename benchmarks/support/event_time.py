"""Clicks by visitor in event time: every family with a window of time beside the exact answer.

A visitor is the user agent, the languages and the place (`a`, `al`, `c`, `gr`, `cy`; an absent field is a value too):
the log has no address. Has the visitor clicked within 10 minutes, within a day? The exact answer is the visitor's
greatest time so far, by pandas.

Times step back in this log, by up to 9 s, so that is the lateness. A filter keeps a late click as of the latest time
seen, so by that measure a visitor may be reported for as long as the slack lasts; none should be later, but for false
positives. Every click is inserted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import lately
from support.planned import planned
from support.real_streams import VISITOR, Case, read_clicks
from support.stream_comparison import LATENESS, RISK, binomial_bound

CLICKS = Case("clicks by visitor", "usagov-clicks-2013.jsonl.gz", read_clicks, VISITOR, time="t")
FPR = 0.001
BATCH = 500
# Factor by which the squeezed minute exceeds the planned keys of a minute.
BURST = 100

FAMILIES: dict[str, Callable[..., lately.Filter]] = {
    "the default": lately.Filter,
    "age-partitioned": partial(planned, "age-partitioned"),
    "age-partitioned, blocked": partial(planned, "age-partitioned-512"),
    "guarded epoch": partial(planned, "guarded-epoch"),
    "guarded epoch, blocked": partial(planned, "guarded-epoch-512"),
    "timing": lately.TimingBloomFilter,
    "timing, growing": partial(lately.TimingBloomFilter, grow="density"),
    "time-limited": lately.TimeLimitedBloomFilter,
}


@dataclass(frozen=True)
class Window:
    """What "lately" means, and the length of the busiest stretch, whose rate is planned for."""

    name: str
    seconds: int
    busiest: int

    def at_peak_rate(self, stream: "Stream") -> int:
        """Keys of a window in which the busiest stretch never ends: what `fpr` needs as the capacity."""
        return stream.most_within(self.busiest) * self.seconds // self.busiest

    def at_fullest(self, stream: "Stream") -> int:
        """Most keys in any window: enough where they come evenly."""
        return stream.most_within(self.seconds)


WINDOWS = [Window("10 min", 600, busiest=60), Window("1 d", 86_400, busiest=3600)]


@dataclass(frozen=True)
class Stream:
    """Keys in the order of their arrival, and their times in Unix seconds."""

    keys: pd.DataFrame
    times: NDArray[np.int64]

    @classmethod
    def load(cls, folder: Path) -> "Stream":
        """Read the clicks."""
        keys, times = CLICKS.load(folder)
        return cls(pd.DataFrame(keys, columns=list(VISITOR)), np.array(times))

    @cached_property
    def latest(self) -> NDArray[np.int64]:
        """The latest time seen so far."""
        return np.maximum.accumulate(self.times)

    def most_within(self, seconds: int) -> int:
        """Most events in any stretch of time of this length."""
        return int((np.searchsorted(self.latest, self.latest + seconds) - np.arange(len(self.latest))).max())

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """One number per key, made once for all filters."""
        return lately.hash_keys(self.keys)

    @cached_property
    def ages(self) -> NDArray[np.float64]:
        """Seconds since the key's latest time; infinite for its first. Negative where it comes late."""
        return self.times - self._greatest_before(self.times)

    @cached_property
    def held(self) -> NDArray[np.float64]:
        """Seconds between the latest times seen at either click of a key, which is what a filter keeps."""
        return self.latest - self._greatest_before(self.latest)

    def _greatest_before(self, times: NDArray[np.int64]) -> NDArray[np.float64]:
        visitor = self.keys.groupby(list(VISITOR), dropna=False, sort=False).ngroup()
        greatest = pd.Series(times).groupby(visitor).cummax().groupby(visitor).shift()
        return greatest.fillna(-np.inf).to_numpy()

    def squeezed(self, events: int) -> tuple["Stream", slice]:
        """Return a stream with `events` clicks within one minute, later ones moved up; and which clicks they are.

        The minute begins after the first tenth. In it they come evenly, and step back as they did.
        """
        begin = len(self.times) // 10
        end = begin + events
        if end >= len(self.times):
            raise ValueError(f"{len(self.times)} clicks are too few for {events} in one minute")
        times = self.times.copy()
        evenly = self.latest[begin] + 60 * np.arange(events) // events
        times[begin:end] = evenly + (self.times - self.latest)[begin:end]
        times[end:] -= self.latest[end - 1] - (self.latest[begin] + 60)
        return Stream(self.keys, times), slice(begin, end)


@dataclass(frozen=True)
class Comparison:
    """A filter's reports on a stream, compared with the exact answer; an array has one value per event."""

    reported: NDArray[np.bool_]
    within: NDArray[np.bool_]
    fresh: NDArray[np.bool_]
    # Bytes, and the rate of false positives by the filter's bits, before the first batch and after each.
    nbytes: NDArray[np.int64]
    rates: NDArray[np.float64]

    @property
    def missed(self) -> int:
        """Events of the window that were not reported."""
        return int((self.within & ~self.reported).sum())

    @property
    def edge(self) -> str:
        """How often a key was reported that had left the window, for not longer than the slack."""
        edge = ~self.within & ~self.fresh
        return f"{(edge & self.reported).sum():,} of {edge.sum():,}"

    @property
    def false_positives(self) -> int:
        """Events reported whose key had been gone for longer than window and slack, or never seen."""
        return int((self.fresh & self.reported).sum())

    @property
    def expected(self) -> float:
        """False positives expected from the actual bits, by the mean rate before and after each batch."""
        fresh = np.add.reduceat(self.fresh.astype(np.int64), np.arange(0, len(self.fresh), BATCH))
        return float(fresh @ (self.rates[:-1] + self.rates[1:])) / 2

    def bound(self, rate: float) -> int:
        """Most false positives to accept at this rate."""
        return binomial_bound(int(self.fresh.sum()), rate, RISK)

    def rate(self, events: slice) -> float:
        """Share of these events' fresh keys that was reported."""
        return float(self.reported[events][self.fresh[events]].mean())


def compare(f: lately.Filter, stream: Stream) -> Comparison:
    """Run the filter over the stream, batch by batch."""
    reported, nbytes, rates = [], [f.nbytes], [f.false_positive_rate()]
    for start in range(0, len(stream.times), BATCH):
        batch = slice(start, start + BATCH)
        reported.append(f.duplicated(stream.hashes[batch], at=stream.times[batch]))
        nbytes.append(f.nbytes)
        rates.append(f.false_positive_rate())
    within = stream.ages <= f.window
    fresh = ~within & (stream.held > f.window + f.slack)
    return Comparison(np.concatenate(reported), within, fresh, np.array(nbytes), np.array(rates))


def new_filter(family: str, window: Window, capacity: int) -> lately.Filter:
    """Make a filter of this family, planned for `capacity` keys in a window."""
    return FAMILIES[family](f"{window.seconds}s", FPR, capacity=capacity, lateness=f"{LATENESS}s")


def left_after_gap(f: lately.Filter, stream: Stream) -> int:
    """How many keys of the stream are reported a second after window and slack have passed without any key."""
    later = float(stream.latest[-1] + f.window + f.slack + 1)
    return int(f.query(stream.hashes, at=later).sum())


def refusal(f: lately.Filter, stream: Stream) -> tuple[str, bool]:
    """The answer to a batch that ends with a click older than the lateness, and whether the filter is unchanged."""
    before = f.to_bytes()
    latest = int(stream.latest[-1])
    try:
        f.insert(["on time", "too late"], at=[latest, latest - LATENESS - 1])
    except ValueError as error:
        return str(error), f.to_bytes() == before
    return "taken", False
