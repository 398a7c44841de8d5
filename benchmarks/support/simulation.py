"""Runs a planned filter under its planned load; and bounds for comparing what it does with what the plan states."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import lately
from lately._families import generations


@dataclass
class Measured:
    """What a filter did, at the ends of generations, where it is fullest and its oldest keys are oldest."""

    live: int = 0  # queries of keys within the window
    missed: int = 0  # of those
    fresh: int = 0  # queries of keys never inserted
    reported: int = 0  # of those
    gone: int = 0  # queries of keys gone for longer than window and slack
    returned: int = 0  # of those
    npws: float = 0.0  # keys in the slack that are reported, over those of the window
    nbytes: int = 0
    keys: int = 0  # within the last window


def simulate(choice: lately.Choice, *, rate: int = 0, fresh: int = 100_000) -> Measured:
    """Run planned load through a filter for four windows and what it keeps beyond, all keys different.

    It is queried at the ends of the last three generations, and just after the shifts between. `rate` is the number
    of keys in a window if the filter does not know it; `fresh` keys never inserted are queried at each end.
    """
    f = choice.build()
    seen = Measured()
    ages, steps = _timeline(f, rate)
    timed = isinstance(f.window, float)
    keys = np.arange(len(ages))
    start = 0
    for stop, phase_ends in steps:
        at = {"at": ages[start:stop].view("M8[ns]")} if timed else {}
        f.insert(keys[start:stop], **at)
        now = {"at": ages[stop - 1].view("M8[ns]")} if timed else {}
        start = stop
        # The key inserted `window` insertions ago, or at that distance in time, is the oldest of the window.
        unit = 10**9 if timed else 1
        kept = int(np.searchsorted(ages[:stop], ages[stop - 1] - round(f.window * unit) + (not timed)))
        seen.keys = stop - kept
        seen.live += stop - kept
        seen.missed += int((~f.query(keys[kept:stop], **now)).sum())
        if not phase_ends:
            continue
        seen.fresh += fresh
        seen.reported += int(f.query(np.arange(fresh) + 10**12 + stop * fresh, **now).sum())
        if math.isfinite(f.slack):
            last = int(np.searchsorted(ages[:stop], ages[stop - 1] - round((f.window + f.slack) * unit)))
            seen.gone += last
            seen.returned += int(f.query(keys[:last], **now).sum())
            seen.npws = max(seen.npws, int(f.query(keys[last:kept], **now).sum()) / seen.keys)
    seen.nbytes = f.nbytes
    return seen


def _timeline(f: lately.Filter, rate: int) -> tuple[NDArray[np.int64], Iterator[tuple[int, bool]]]:
    """Stamps of all keys (insertions or nanoseconds), and the numbers of keys after which to query.

    Each number comes with whether a generation ends there; it is followed by the first key of the next.
    """
    full = generations(f)
    if isinstance(f.window, float):
        span = math.ceil((f.window + f.lateness) * 1e9 / full)
        each = math.ceil((rate or f.capacity) * span / (f.window * 1e9))
    else:
        span = each = max(1, math.ceil((f.window - 1) / full))
    slack = min(f.slack, f.window)
    runs = math.ceil((4 * f.window + slack) / f.window * full) + 1
    numbers = np.arange(runs * each)
    # The keys of a generation come evenly, the last at its last moment.
    stamps = numbers // each * span + (numbers % each + 1) * span // each - 1
    ends = [runs - 2, runs - 1, runs]
    return stamps, (
        (end * each + extra, not extra) for end in ends for extra in (0, 1) if end * each + extra <= len(stamps)
    )


def most(choice: lately.Choice, measured: Measured, queries: int) -> float:
    """Bound on the reports of `queries` keys that should not be reported: five standard deviations.

    The reports of one filter are like coins. Its rate scatters about the expectation, which is `fpr`: by the inequality
    of Efron and Stein, by at most k / sqrt(n), relatively, for n keys and k = log2(1 / fpr) bits a key.
    """
    expected = queries * choice.fpr
    return expected * (1 + 5 * math.log2(1 / choice.fpr) / math.sqrt(measured.keys)) + 5 * math.sqrt(expected) + 1
