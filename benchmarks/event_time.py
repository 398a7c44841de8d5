"""Clicks by visitor in event time: every family with a window of time beside the exact answer.

    uv run benchmarks/event_time.py [folder] [--out FILE]

`folder` holds usagov-clicks-2013.jsonl.gz (by default `examples/`, with its first 50,000 clicks). What a visitor is,
and `benchmarks/support/event_time.py` defines what is exact.
"""

import argparse
from pathlib import Path

import numpy as np
from tqdm import tqdm

from support.event_time import (
    BATCH,
    BURST,
    FAMILIES,
    FPR,
    WINDOWS,
    Stream,
    Window,
    compare,
    left_after_gap,
    new_filter,
    refusal,
)
from support.exact import ExactWindow
from support.real_streams import EXAMPLES

AS_IT_IS = """Each window is planned twice: for the peak rate (a busiest minute, or hour, that never ends), and
for the fullest window there is. `fpr` holds for the first: a filter that keeps its rate exceeds the bound in one case
of a million. The second is enough only where keys come evenly; here whole hours of clicks fall into one epoch of a
day's filter. By the bits: false positives to expect from the filter's bits as they were. After a gap: keys of the
stream still reported a second after window and slack have passed without any."""
IN_A_BURST = """Rates of false positives for keys gone for longer than window and slack, or never seen: in the clicks
before the minute, in it, and from one window and slack after it on. Planned for the peak rate, so the minute holds ten
times the clicks of a 10-minute window, but 7 % of a day's. Growing timers open as many parts as the keys fill, and each
may have the rate."""


def exact_nbytes(stream: Stream, window: Window) -> int:
    """Bytes of the exact window, at the batch that leaves it with the most keys."""
    exact = ExactWindow(window.seconds)
    keys, latest = list(stream.keys.itertuples(index=False, name=None)), stream.latest.tolist()
    nbytes, most = 0, 0
    for start in range(0, len(keys), BATCH):
        exact.duplicated(keys[start : start + BATCH], latest[start : start + BATCH])
        if len(exact.last) > most:
            nbytes, most = exact.nbytes(), len(exact.last)
    return nbytes


def as_it_is(stream: Stream) -> list[str]:
    """Table of the stream as it is."""
    lines = [
        "| window | planned keys | filter | missed | reported within the slack | false positives | bound | by the bits "
        "| bytes | reported after a gap |",
        "|---|--:|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for window in WINDOWS:
        peak, fullest = window.at_peak_rate(stream), window.at_fullest(stream)
        for capacity, family in tqdm([(c, family) for c in (peak, fullest) for family in FAMILIES], desc=window.name):
            f = new_filter(family, window, capacity)
            found = compare(f, stream)
            bound = found.bound(f.fpr) if capacity == peak else ""
            lines.append(
                f"| {window.name} | {capacity:,} | {family} | {found.missed} of {found.within.sum():,} | {found.edge} "
                f"| {found.false_positives:,} of {found.fresh.sum():,} | {bound} "
                f"| {found.expected:.1f} | {found.nbytes.max():,} | {left_after_gap(f, stream)} |"
            )
        lines.append(f"| {window.name} | | exact window | 0 | | 0 | | | {exact_nbytes(stream, window):,} | 0 |")
    return lines


def in_a_burst(stream: Stream) -> list[str]:
    """Table of the stream with a minute of 100 times the plan."""
    lines = [
        "| window | filter | clicks in the minute | missed | rate before | in the minute | once it has left "
        "| bytes before | most | at the end |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for window in WINDOWS:
        capacity = window.at_peak_rate(stream)
        squeezed, burst = stream.squeezed(BURST * capacity * 60 // window.seconds)
        for family in tqdm(FAMILIES, desc=f"{window.name}, squeezed"):
            f = new_filter(family, window, capacity)
            found = compare(f, squeezed)
            gone = int(np.searchsorted(squeezed.latest, squeezed.latest[burst.stop] + f.window + f.slack))
            before, nbytes = slice(0, burst.start), found.nbytes
            lines.append(
                f"| {window.name} | {family} | {burst.stop - burst.start:,} | {found.missed} of {found.within.sum():,} "
                f"| {found.rate(before):.5f} | {found.rate(burst):.5f} | {found.rate(slice(gone, None)):.5f} "
                f"| {nbytes[: burst.start // BATCH].max():,} | {nbytes.max():,} | {nbytes[-1]:,} |"
            )
    return lines


def too_late(stream: Stream) -> list[str]:
    """Table of the answers to a click older than the lateness."""
    lines = ["| filter | error | filter unchanged |", "|---|---|---|"]
    for family in FAMILIES:
        f = new_filter(family, WINDOWS[0], 1000)
        f.insert(stream.hashes[-1000:], at=stream.times[-1000:])
        message, unchanged = refusal(f, stream)
        lines.append(f"| {family} | {message} | {'yes' if unchanged else 'no'} |")
    return lines


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=EXAMPLES, help="where the clicks are")
    parser.add_argument("--out", type=Path, help="write the tables to this file as well")
    arguments = parser.parse_args()
    stream = Stream.load(arguments.folder)
    steps = int((np.diff(stream.times) < 0).sum())
    text = "\n".join(
        [
            f"# Clicks by visitor in event time, fpr {FPR:g}",
            "",
            f"`benchmarks/event_time.py`, over {len(stream.times):,} clicks that step back {steps:,} times, by at most",
            f"{(stream.latest - stream.times).max()} s. {AS_IT_IS}",
            "",
            *as_it_is(stream),
            "",
            f"## One minute of {BURST} times the plan",
            "",
            IN_A_BURST,
            "",
            *in_a_burst(stream),
            "",
            "## A click older than the lateness",
            "",
            *too_late(stream),
        ]
    )
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
