"""The report of a run, and its warnings, on standard error."""

from __future__ import annotations

import math
import sys
from contextlib import suppress

from lately._families import generations, of_filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import lately

_GOLDEN = (1 + 5**0.5) / 2


def print_error(text: str) -> None:
    """Write a line to standard error, if it is open."""
    if sys.stderr is not None:  # print would write to standard output, among the records
        with suppress(OSError):
            print(text, file=sys.stderr, flush=True)


class Counts:
    """Numbers of records kept and dropped, and the expected number of new records that were dropped by mistake.

    A new record is dropped with probability p, the current rate of false positives. If `kept` records were kept, then
    kept / (1 - p) new records are expected to have come, and kept * p / (1 - p) of them were dropped. This estimate has
    no bias, for any records.

    p changes smoothly within a generation, and falls when the next one begins. Its computation reads all of the
    filter's memory, so it is done every 1.618 generations at the planned load, and the mean of two results counts for
    the records between them. With this ratio, the golden one, the results come from all phases of a generation in turn.
    For a window of a million, that is a read of seven megabytes (14 ms) every 0.2 million records: 0.1 microseconds for
    each record. At least 251 records lie between two results, and a 64th of a window. The step grows with the memory.

    Attributes
    ----------
    kept, dropped, malformed, blank : int
        Number of such records, and of blank lines.
    times : list of int
        The first and the last time, in nanoseconds since 1970.
    expected : float
        Expected number of counts.
    highest : float
        Highest rate of false positives.
    """

    def __init__(self, filter: lately.Filter) -> None:
        self._filter = filter
        self._step = _GOLDEN * filter.capacity / (generations(filter) * filter.nbytes)
        self._rate = filter.false_positive_rate() if filter.inserted else 0.0
        self._seen = self._kept = 0  # since the last result
        self.kept = self.dropped = self.malformed = self.blank = 0
        self.times: list[Any] = []
        self.highest = self._rate
        self.expected = 0.0

    @property
    def every(self) -> int:
        """Greatest number of records between two results."""
        return max(int(self._step * self._filter.nbytes), 251)

    def count(self, seen: int, kept: int) -> None:
        """Count records, at most `every` of them, and those of them that were kept."""
        self.kept += kept
        self.dropped += seen - kept
        self._seen += seen
        self._kept += kept
        if self._seen >= self.every:
            self.update()

    def span(self, times: Any) -> None:
        """Store the first and the last time that was read."""
        if times is not None and len(times):
            self.times[len(self.times[:1]) :] = times[[0, -1]].tolist()[len(self.times[:1]) :]

    @property
    def read(self) -> int:
        """Number of all records."""
        return self.kept + self.dropped + self.malformed

    def update(self) -> None:
        """Compute the rate, and add the mistakes since the last result."""
        rate = self._filter.false_positive_rate()
        mean = (self._rate + rate) / 2
        if self._kept:
            self.expected += self._kept * mean / (1 - mean) if mean < 1 else math.inf
        self._rate = rate
        self.highest = max(self.highest, rate)
        self._seen = self._kept = 0


def summary(counts: Counts, filter: lately.Filter) -> str:
    """Format the report of a run."""
    timed = isinstance(filter.window, float)
    window, last = (
        f"{value:g} s" if timed else f"{value:,} records" for value in (filter.window, filter.window + filter.slack)
    )
    if not of_filter(filter).promise:
        window += "; this filter may miss repeats within it, and may drop older ones at any time"
    elif not filter.slack:
        window += ", slack 0: repeats older than the window are kept (except by chance, at the rate below)"
    else:
        slacks = f"{filter.slack:g} s" if timed else f"{filter.slack:,}"
        window += f", slack {slacks}: a repeat may be dropped up to {last} after its key"
    return "\n".join(
        [
            f"read       {counts.read:,} records",
            f"kept       {counts.kept:,}",
            f"dropped    {counts.dropped:,} as repeats",
            f"by chance  {counts.expected:.3g} of them are new, in expectation",
            f"malformed  {counts.malformed:,}, skipped",
            *[f"blank      {counts.blank:,} lines, skipped"] * bool(counts.blank),
            *_times(counts.times),
            f"window     {window}",
            f"filter     {filter.family}, {filter.nbytes:,} bytes; rate of mistakes: planned for {filter.fpr:.3g}, "
            f"highest here {counts.highest:.3g}",
        ]
    )


def _times(times: list[int]) -> list[str]:
    """Return the line with the first and the last time as they were read, by which a wrong unit is seen."""
    if not times:
        return []
    import numpy as np

    first, last = (str(np.datetime64(time, "ns")).rstrip("0").rstrip(".") for time in times)
    return [f"times      {first} to {last}, as read"]


_MANY = 0.01
"""Least share of mistakes among the dropped records for a warning."""

_LONG_AGO = 20 * 365 * 86_400 * 10**9
"""Times before 1990, which are probably in another unit or count from the start of a recording."""

_EXPENSIVE = 256
"""Bytes of a filter per record, in addition to 4 MiB, from which a warning advises a shorter lateness."""


def warnings(counts: Counts, filter: lately.Filter, *, time_unit: str | None = None) -> list[str]:
    """Return the warnings: what to check before the result is used."""
    found = []
    if counts.expected >= 1 and counts.expected > _MANY * counts.dropped:
        found.append(
            f"warning: about {counts.expected:.3g} of the {counts.dropped:,} dropped records are new: a lower --fpr "
            "drops fewer, and for windows of time a higher --capacity"
        )
    latest: Any = filter.latest if counts.read else None
    if latest is not None and latest.astype("int64") < _LONG_AGO and time_unit is None:
        found.append(
            "warning: all times are before 1990, counted in seconds from 1970: --time-unit ms, us or ns sets another "
            "unit, --time-unit s accepts these, and --time-format reads others"
        )
    if filter.lateness and filter.nbytes > (4 << 20) + _EXPENSIVE * counts.read:
        found.append(
            f"warning: the filter takes {filter.nbytes:,} bytes for {counts.read:,} records, because --lateness is "
            f"{filter.lateness:g} s: a shorter one takes less"
        )
    return found
