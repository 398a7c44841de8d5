"""What a run tells a person: how far it is, and how it ended."""

from __future__ import annotations

import math
import sys
from contextlib import suppress

from lately._families import EVERY, generations, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import lately
    from lately.cli.records import Marks
    from lately.cli.slack import InSlack

_GOLDEN = (1 + 5**0.5) / 2


def say(text: str) -> None:
    """Write to standard error, if somebody is there."""
    if sys.stderr is not None:  # print would turn to standard output, among the records
        with suppress(OSError):
            print(text, file=sys.stderr, flush=True)


class Mistakes:
    """Expected number of new records taken for repeats.

    A new record is dropped with the rate p of false positives of that moment. Where `kept` came through, kept / (1 - p)
    are expected to have come, so kept * p / (1 - p) were dropped: an estimate without bias, whatever the records are.

    p changes smoothly within a generation and falls when the next begins, and to ask for it reads all of the filter's
    memory. It is asked for every 1.618 generations, at the planned load, and between two answers their mean counts. By
    this ratio, the golden one, the answers come from all phases of the generation in turn. For a window of a million
    that is a read of seven megabytes, which takes 14 ms, every 0.2 million records: 0.1 microseconds for each. Where
    generations are short, at least 251 records lie between two answers. Where memory grows with the rate, so does the
    step.
    """

    def __init__(self, filter: lately.Filter) -> None:
        self._filter = filter
        self._step = _GOLDEN * filter.capacity / (generations(filter) * filter.nbytes)
        self._rate = filter.false_positive_rate() if filter.inserted else 0.0
        self._seen = 0
        self._kept = 0
        self.highest = self._rate
        self.expected = 0.0

    @property
    def every(self) -> int:
        """Most records to count at a time."""
        return max(int(self._step * self._filter.nbytes), 251)

    def count(self, seen: int, kept: int) -> None:
        """Take account of records just seen, at most `every` of them, and those of them that were kept."""
        self._seen += seen
        self._kept += kept
        if self._seen >= self.every:
            self.settle()

    def settle(self) -> None:
        """Ask for the rate, and take account of the records since it was asked for last."""
        rate = self._filter.false_positive_rate()
        mean = (self._rate + rate) / 2
        if self._kept:
            self.expected += self._kept * mean / (1 - mean) if mean < 1 else math.inf
        self._rate = rate
        self.highest = max(self.highest, rate)
        self._seen = self._kept = 0


class Counts:
    """Records by what became of them.

    Attributes
    ----------
    kept, dropped, malformed : int
    latest : int or None
        The latest time, in nanoseconds since the Unix epoch.
    """

    def __init__(self) -> None:
        self.kept = self.dropped = self.malformed = 0
        self.latest: int | None = None

    def add(self, new: Marks, times: Any) -> None:
        """Take account of a batch."""
        kept = new.count(1)
        self.kept += kept
        self.dropped += len(new) - kept
        if times is not None and len(times):
            self.latest = max(int(times.max()), self.latest or 0)

    @property
    def read(self) -> int:
        """All of them."""
        return self.kept + self.dropped + self.malformed


def summary(counts: Counts, mistakes: Mistakes, slack: InSlack, filter: lately.Filter) -> str:
    """Put a run in figures."""
    name = name_of(filter)
    timed = isinstance(filter.window, float)
    window, last = (
        f"{value:g} s" if timed else f"{value:,} records" for value in (filter.window, filter.window + filter.slack)
    )
    late = []
    if not EVERY[name].promise:
        window += ", of which this filter may miss some repeats, and drop others at any time later"
    elif not filter.slack:
        window += ", without slack: no repeat after that is dropped but by chance"
    else:
        window += f", with slack {last}"
        late = [f"in slack   {'about ' * slack.sampled}{slack.expected:,} of them came after the window, up to {last}"]
    return "\n".join(
        [
            f"read       {counts.read:,} records",
            f"kept       {counts.kept:,}",
            f"dropped    {counts.dropped:,} as repeats",
            f"by chance  {mistakes.expected:.3g} of them are new, in expectation",
            *late,
            f"malformed  {counts.malformed:,}, passed over",
            f"window     {window}",
            f"filter     {name}, {filter.nbytes:,} bytes; rate of mistakes: planned for {filter.fpr:.3g}, "
            f"highest here {mistakes.highest:.3g}",
        ]
    )


# From this share on the mistakes among what was dropped are worth a word.
_MANY = 0.01
_1971 = 365 * 86_400 * 10**9


def warnings(counts: Counts, mistakes: Mistakes) -> list[str]:
    """Say what a person would want to know before using the result."""
    found = []
    if mistakes.expected >= 1 and mistakes.expected > _MANY * counts.dropped:
        found.append(
            f"warning: about {mistakes.expected:.3g} of the {counts.dropped:,} dropped are new records: a lower --fpr, "
            "or for windows of time a --capacity that is enough, drops fewer"
        )
    if counts.latest is not None and counts.latest < _1971:
        found.append("warning: all times are before 1971: are they Unix seconds? --time-unit and --time-format tell")
    return found
