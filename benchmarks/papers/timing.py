"""Paper 4, Figure 9: what equal timers show, with the timing filter of this package.

    uv run benchmarks/papers/timing.py [folder] [--out FILE]

*One is Enough: Distributed Filtering for Duplicate Elimination*, sections 4 and 7: how many of the 8 timers are equal
if the event is a true duplicate, and what a threshold gains and costs. Draws the figure into `target/figures/`, and
prints a table beside the paper's. Figures 10 and 11 are in `dynamic_size.py`.

The paper's web log is not public. Instead: its synthetic stream, 100,000 events by Zipf's law with exponent 1, about
6,000 of them distinct, and the URLs of the NASA log in `folder` (by default `examples/`). An event comes in each time
slot, and one taken for a duplicate sets no timer, as there. Not stated there: the window, here 1,000 slots; and the
size, here what a rate of 0.05 needs for the events delivered in a window. Each of a key's timers lies in a slice of its
own, the paper's vertical partitioning.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, log
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

import lately

EXAMPLES = Path(__file__).parents[2] / "examples"
FIGURES = Path(__file__).parents[2] / "target" / "figures"
FPR = 0.05

HASHES = 8
WINDOW = 1_000
THRESHOLDS = range(1, HASHES + 1)

Keys = NDArray[np.uint64]
Times = NDArray[np.int64]


def zipf(events: int) -> Keys:
    """Events by Zipf's law with exponent 1, of which some 6,000 in 100,000 are distinct."""
    weights = 1 / np.arange(1, 6_701)
    return np.random.default_rng(0).choice(len(weights), events, p=weights / weights.sum()).astype(np.uint64)


def nasa(folder: Path) -> Keys:
    """URLs of the NASA log, as numbers."""
    log = pd.read_csv(folder / "nasa-http-1995-08-01.tsv.gz", sep="\t", quoting=3, encoding="latin-1", dtype=str)
    return lately.hash_keys(log["url"])


def since_delivered(keys: Keys, times: Times, reported: Iterator[bool] | None = None, window: float = 0.0) -> Times:
    """Slots since each event was last delivered; infinite for its first time.

    An event is delivered if a filter did not report it or, without a filter, if it was not delivered within the window.
    """
    since = np.empty(len(keys))
    last: dict[int, int] = {}
    for i, (key, now) in enumerate(zip(keys.tolist(), times.tolist(), strict=True)):
        since[i] = now - last.get(key, -np.inf)
        if not (next(reported) if reported else since[i] <= window):
            last[key] = now
    return since


def delivered_per_window(keys: Keys, times: Times, window: int) -> int:
    """Distinct events of a window, on average: what a filter has to hold."""
    distinct = (since_delivered(keys, times, window=window) > window).sum()
    return round(distinct * window / len(keys))


@dataclass(frozen=True)
class Errors:
    """Shares of the events that a filter got wrong, judged by what it had itself delivered."""

    false_positive: float
    false_negative: float

    @classmethod
    def of(cls, f: lately.Filter, since: Times, reported: NDArray[np.bool_]) -> "Errors":
        """Count: a key is due for the window, and may be reported for the slack beyond."""
        fresh, within = since > f.window + f.slack, since <= f.window
        return cls(float(reported[fresh].mean()), float(1 - reported[within].mean()))


def shape(capacity: int) -> dict[str, int]:
    """Timers for 0.05 false positives at this many events."""
    timers = ceil(-HASHES * capacity / log(1 - FPR ** (1 / HASHES)))
    return {"k": HASHES, "bpt": 10, "slice_timers": timers // HASHES}


def equal_timers(threshold: int, capacity: int) -> lately.TimingBloomFilter:
    """Make the filter, with a block per slot."""
    return lately.TimingBloomFilter.from_parameters(
        f"{WINDOW}s", blocks=WINDOW, equal_timers=threshold, capacity=capacity, **shape(capacity)
    )


def in_theory(f: lately.TimingBloomFilter) -> Errors:
    """Errors of a full filter, the false negatives for duplicates spread evenly over the window."""
    missed = f.false_negative_rates
    return Errors(f.fpr, float(missed.mean()) if len(missed) else 0.0)


@dataclass(frozen=True)
class EqualTimers:
    """Figure 9 for one stream: values for 1 to 8 timers."""

    name: str
    # Reported events of which at most x timers are equal, and those among them that were delivered in the window.
    reported: NDArray[np.int64]
    true: NDArray[np.int64]
    errors: list[Errors]
    theory: list[Errors]

    @classmethod
    def run(cls, name: str, keys: Keys) -> "EqualTimers":
        """Run the stream through one filter, counting how many timers agree, and through one filter per threshold."""
        times = np.arange(len(keys))
        capacity = delivered_per_window(keys, times, WINDOW)
        filters = [equal_timers(threshold, capacity) for threshold in THRESHOLDS]
        alike = np.empty(len(keys), np.int64)
        # The plain filter decides what is set in all filters. So they hold the same timers, and a threshold that
        # reports shows that at least that many are equal.
        for i in tqdm(range(len(keys)), desc=f"figure 9, {name}"):
            alike[i] = sum(bool(f.query(keys[i : i + 1], at=int(times[i]))[0]) for f in filters)
            if alike[i] == 0:
                for f in filters:
                    f.insert(keys[i : i + 1], at=int(times[i]))
        since = since_delivered(keys, times, iter(alike > 0))
        errors, theory = [], []
        for threshold in THRESHOLDS:
            f = equal_timers(threshold, capacity)
            answers = f.duplicated(keys, at=times, refresh=False)
            errors.append(Errors.of(f, since_delivered(keys, times, iter(answers)), answers))
            theory.append(in_theory(f))
        reported = np.bincount(alike, minlength=HASHES + 1)[1:]
        true = np.bincount(alike[since <= WINDOW], minlength=HASHES + 1)[1:]
        return cls(name, reported, true, errors, theory)

    def rows(self) -> Iterator[str]:
        """Rows of a table."""
        for x, found, theory in zip(THRESHOLDS, self.errors, self.theory, strict=True):
            reported, true = self.reported[x - 1], self.true[x - 1]
            yield (
                f"| {self.name} | {x} | {reported:,} | {true:,} "
                f"| {found.false_positive:.5f} ({theory.false_positive:.5f}) "
                f"| {found.false_negative:.4f} ({theory.false_negative:.4f}) |"
            )


def figure_9(runs: list[EqualTimers]) -> None:
    """Draw true duplicates by the number of timers alike, and both errors by the threshold."""
    figure, (true, positive, negative) = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
    for run in runs:
        true.plot(THRESHOLDS, run.true / run.reported, marker=".", label=run.name)
        (line,) = positive.plot(THRESHOLDS, [error.false_positive for error in run.errors], marker=".", label=run.name)
        positive.plot(THRESHOLDS, [error.false_positive for error in run.theory], color=line.get_color(), ls=":")
        negative.plot(THRESHOLDS, [error.false_negative for error in run.errors], marker=".", label=run.name)
        negative.plot(THRESHOLDS, [error.false_negative for error in run.theory], color=line.get_color(), ls=":")
    true.set(title="true duplicates", xlabel="timers alike", ylabel="share of those reported", ylim=(0, 1.05))
    positive.set(title="false positives (dotted: theory)", xlabel="timers that must be alike")
    negative.set(title="false negatives (dotted: theory)", xlabel="timers that must be alike")
    true.legend(frameon=False, fontsize="small")
    FIGURES.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURES / "figure-9.svg", metadata={"Date": None})
    plt.close(figure)


EQUAL = """Figure 9. By the paper: to call an event distinct when all its timers are unequal (here: to require two
alike) strikes a good balance between false positives and false negatives. Rates in parentheses are by theory at a full
filter: `fpr`, and the mean of `false_negative_rates`. An event wrongly taken for a duplicate is not set, so when it
comes again soon it is again; as in the paper, that counts as another false positive."""


def equal_timers_at_work(folder: Path) -> list[str]:
    """Draw Figure 9, give its table."""
    streams = {"Zipf": zipf(100_000), "NASA URLs": nasa(folder)}
    runs = [EqualTimers.run(name, keys) for name, keys in streams.items()]
    figure_9(runs)
    return [
        EQUAL,
        "",
        "| stream | timers | reported, by equal timers | true duplicates of them | false positives from this number on "
        "| false negatives |",
        "|---|--:|--:|--:|--:|--:|",
        *[row for run in runs for row in run.rows()],
    ]


def main() -> None:
    """Draw the figure, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=EXAMPLES, help="where the NASA log is")
    parser.add_argument("--out", type=Path, help="write the tables to this file as well")
    arguments = parser.parse_args()
    # The same file for the same figures.
    plt.rcParams["svg.hashsalt"] = "paper 4"
    lines = equal_timers_at_work(arguments.folder)
    text = "\n".join(lines)
    print(text)
    if arguments.out:
        arguments.out.write_text(f"# Paper 4, Figure 9\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
