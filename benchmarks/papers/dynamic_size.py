"""Paper 4, Figures 10 and 11: filters of dynamic size in a burst, with the timing filter of this package.

    uv run benchmarks/papers/dynamic_size.py [--out FILE]

*One is Enough: Distributed Filtering for Duplicate Elimination*, sections 5 and 7: how many filters there are, and how
many false positives, when events come two or five times as fast in the second third of the stream. Draws the figures
into `target/figures/`, and prints a table beside the paper's.

The stream is the synthetic one of `timing.py`, one event per slot before and after the burst. Not stated in the paper,
and taken here: a third lasts eight windows; the first filter is made for the events that are delivered in a window
before the burst, at a rate of 0.05.
"""

import argparse
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

import lately
from timing import FIGURES, FPR, Errors, Times, delivered_per_window, since_delivered, zipf

# Windows in slots, factors of the rate, and the windows in each third of the stream.
WINDOWS = (100, 500, 1_000)
BURSTS = (2, 5)
THIRD = 8
GROWTH = ("density", "cardinality")


@dataclass(frozen=True)
class Burst:
    """A filter of dynamic size over a stream with a burst."""

    window: int
    times_as_fast: int
    growth: str
    # Twenty times or more in a window: the slot, and the number of filters.
    slots: Times
    filters: NDArray[np.int64]
    # False positives in each third.
    rates: list[float]

    @classmethod
    def run(cls, window: int, times_as_fast: int, growth: str) -> "Burst":
        """Run the stream."""
        length, batch_size = THIRD * window, window // 20
        times = np.repeat(np.arange(3 * length), np.repeat([1, times_as_fast, 1], length))
        keys = zipf(len(times))
        capacity = delivered_per_window(keys[:length], times[:length], window)
        f = lately.TimingBloomFilter(f"{window}s", FPR, slack=f"{window // 10}s", capacity=capacity, grow=growth)
        reported, filters = [], []
        for start in range(0, len(keys), batch_size):
            batch = slice(start, start + batch_size)
            reported.append(f.duplicated(keys[batch], at=times[batch], refresh=False))
            filters.append(f.parts)
        answers = np.concatenate(reported)
        since = since_delivered(keys, times, iter(answers))
        third = times // length
        rates = [Errors.of(f, since[third == i], answers[third == i]).false_positive for i in range(3)]
        return cls(window, times_as_fast, growth, times[::batch_size], np.array(filters), rates)

    def row(self) -> str:
        """Row of a table."""
        before, burst = (self.filters[self.slots // (THIRD * self.window) == third] for third in (0, 1))
        return (
            f"| {self.window:,} | {self.times_as_fast} | {self.growth} | {before.max()} "
            f"| {burst.max()} | {self.filters[-1]} | {' | '.join(f'{rate:.4f}' for rate in self.rates)} "
            f"| {1 - (1 - FPR) ** burst.max():.4f} |"
        )


def figures_10_and_11(runs: list[Burst]) -> None:
    """Draw the number of filters over time, and the false positives of each third."""
    figure, axes = plt.subplots(
        len(GROWTH), len(WINDOWS), figsize=(10, 5), sharex=True, sharey=True, layout="constrained"
    )
    for (growth, window), axis in zip(product(GROWTH, WINDOWS), axes.flat, strict=True):
        for run in [run for run in runs if (run.growth, run.window) == (growth, window)]:
            axis.step(run.slots / window, run.filters, lw=0.9, where="post", label=f"{run.times_as_fast} times as fast")
        axis.set(title=f"{growth}, window {window:,}", ylim=(0, None))
    axes[0, -1].legend(frameon=False, fontsize="small", loc="upper right")
    figure.supxlabel("windows since the first event")
    figure.supylabel("filters")
    FIGURES.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURES / "figure-10.svg", metadata={"Date": None})
    plt.close(figure)

    figure, axes = plt.subplots(1, len(BURSTS), figsize=(9, 3.2), sharey=True, layout="constrained")
    for times_as_fast, axis in zip(BURSTS, axes, strict=True):
        for run in [run for run in runs if run.times_as_fast == times_as_fast]:
            axis.plot(["before", "burst", "after"], run.rates, marker=".", label=f"{run.growth}, {run.window:,}")
        axis.axhline(FPR, color="gray", lw=0.8, ls=":")
        axis.set(title=f"{times_as_fast} times as fast", ylabel="false positives")
    axes[-1].legend(frameon=False, fontsize="x-small")
    figure.savefig(FIGURES / "figure-11.svg", metadata={"Date": None})
    plt.close(figure)


DYNAMIC = """By the paper: further filters are made for the burst and go after it; by cardinality
their number swings more than by density; the rate of all is slightly above the 0.05 aimed at. But each filter may have
that rate, so F filters come to 1 - 0.95^F when all are full (erratum OIE-10), and repeated mistakes count again. Here
the first filter is made for the rate before the burst."""


def main() -> None:
    """Draw the figures, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the table to this file as well")
    arguments = parser.parse_args()
    # The same file for the same figures.
    plt.rcParams["svg.hashsalt"] = "paper 4"
    cases = list(product(WINDOWS, BURSTS, GROWTH))
    runs = [Burst.run(*case) for case in tqdm(cases, desc="figures 10 and 11")]
    figures_10_and_11(runs)
    lines = [
        DYNAMIC,
        "",
        "| window | times as fast | grows by | filters before | most | at last | false positives before | in the burst "
        "| after | 1 - 0.95^F |",
        "|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|",
        *[run.row() for run in runs],
    ]
    text = "\n".join(lines)
    print(text)
    if arguments.out:
        arguments.out.write_text(f"# Paper 4, Figures 10 and 11\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
