"""Paper 3, Figures 1 to 5 and Table 2, with the filter of this package.

    uv run benchmarks/papers/time_limited.py [--out FILE]

A. Rodrigues, A. Shtul, C. Baquero, P. S. Almeida, *Time-limited Bloom Filter*, 2023. Filters made for a tenth or
for ten times the keys that come are watched as they adapt: number of slices and size of the newest (Figures 1 and 2),
bits per key of the window (3), rate of false positives (4 and 5). Draws them into `target/figures/`, and prints how the
filters settle beside the paper's. It takes a minute or two.

Our copy of the paper has lost its numbers. Taken here: a window of 600 s and a new key every 0.06 s, so 10,000
per window, for four windows; the pairs (k, l) of paper 1, Table 2, for an error rate of 0.01, and in Figures 4 and 5
for 0.1 too. The paper looks after every insertion; here it is every hundredth, then with 50,000 new keys.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, log
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator
from numpy.typing import NDArray
from tqdm import tqdm

import lately

FIGURES = Path(__file__).parents[2] / "target" / "figures"
SPAN = 600.0
PER_WINDOW = 10_000
BATCH = 100
WINDOWS = 4
PROBES = 50_000
PLANS = {"under-dimensioned": PER_WINDOW // 10, "over-dimensioned": PER_WINDOW * 10}

Pair = tuple[int, int]
# Pairs (k, l) by error rate.
PAIRS: dict[float, list[Pair]] = {
    1e-1: [(4, 3), (5, 7), (6, 14), (7, 28), (8, 56)],
    1e-2: [(7, 5), (8, 8), (9, 14), (10, 25), (11, 46)],
    1e-3: [(10, 7), (11, 9), (12, 14), (13, 23), (14, 40)],
    1e-4: [(14, 11), (15, 15), (16, 22), (17, 36), (18, 63)],
    1e-5: [(17, 13), (18, 16), (19, 22), (20, 33), (21, 54)],
}
# Table 2 as printed: least and most bits per element.
PRINTED_BITS = {1e-1: (10, 13), 1e-2: (19, 24), 1e-3: (26, 35), 1e-4: (32, 45), 1e-5: (41, 56)}


@dataclass(frozen=True)
class History:
    """A filter after each batch; an array has one value per batch."""

    slices: NDArray[np.int64]
    newest: NDArray[np.int64]
    bits: NDArray[np.int64]
    # Rates of false positives: of new keys, and by the filter's bits.
    measured: NDArray[np.float64]
    computed: NDArray[np.float64]

    @property
    def windows(self) -> NDArray[np.float64]:
        """How many windows of time have passed."""
        return np.arange(1, len(self.slices) + 1) * BATCH / PER_WINDOW

    @property
    def bits_per_key(self) -> NDArray[np.float64]:
        """Bits of all slices by the keys of the window, of which there are fewer in the first."""
        return self.bits / (np.minimum(self.windows, 1) * PER_WINDOW)

    @property
    def last(self) -> slice:
        """The batches of the last window."""
        return slice(-PER_WINDOW // BATCH, None)

    def settled(self, pair: Pair) -> float:
        """Windows until there are as many slices as at a steady rate and all are of nearly one size."""
        usual = (self.slices <= sum(pair) + 1) & (abs(self.bits / self.bits[self.last].mean() - 1) < 0.1)
        return float(self.windows[-1] if not usual[-1] else self.windows[np.flatnonzero(~usual)[-1] + 1])


def watch(pair: Pair, capacity: int, probes: int = 0) -> History:
    """Run a filter whose first slices are made for `capacity` keys per window."""
    k, l = pair  # noqa: E741
    slice_bits = max(512, 64 * ceil(k * capacity / l / log(2) / 64))
    f = lately.TimeLimitedBloomFilter.from_parameters(f"{SPAN}s", k=k, l=l, slice_bits=slice_bits)
    fresh = np.random.default_rng(0).integers(2**62, 2**63, max(probes, 1))
    rows = []
    for start in range(0, WINDOWS * PER_WINDOW, BATCH):
        keys = np.arange(start, start + BATCH)
        times = keys * (SPAN / PER_WINDOW)
        f.insert(keys, at=times)
        sizes = f.slice_bits
        measured = f.query(fresh + start, at=times[-1]).mean() if probes else 0.0
        rows.append((len(sizes), sizes[0], sizes.sum(), measured, f.false_positive_rate()))
    return History(*map(np.array, zip(*rows, strict=True)))


@dataclass(frozen=True)
class Panel:
    """One diagram: a field of the histories of several pairs over time, and possibly its expected value."""

    title: str
    axis: str
    histories: list[tuple[str, History]]
    field: str
    target: float | None = None
    log: bool = False


def save(name: str, panels: list[Panel]) -> None:
    """Draw panels side by side."""
    figure, axes = plt.subplots(1, len(panels), figsize=(9, 3.4), layout="constrained")
    for panel, axis in zip(panels, axes, strict=True):
        for label, history in panel.histories:
            draw(axis, history.windows, getattr(history, panel.field), label)
        if panel.target:
            axis.axhline(panel.target, color="gray", lw=0.8, ls=":")
        axis.set(title=panel.title, xlabel="windows since the first key", ylabel=panel.axis)
        if panel.log:
            axis.set(yscale="log")
            axis.minorticks_off()
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.yaxis.set_major_formatter("{x:g}")
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "ncols": len(panel.histories)}
        axis.legend(frameon=False, fontsize="x-small", columnspacing=1, handlelength=1, **below)
    figure.savefig(FIGURES / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def draw(panel: Axes, x: NDArray[np.float64], y: NDArray[np.float64], label: str) -> None:
    """Draw a line, with points only where it turns: the file is then small."""
    turns = np.ones(len(y), bool)
    turns[1:-1] = np.diff(y, 2) != 0
    panel.plot(x[turns], y[turns], lw=0.9, label=label)


def figures() -> Iterator[str]:
    """Draw the figures; give the rows of a table of how the filters settle."""
    found: dict[tuple[str, float], list[tuple[str, History]]] = {}
    runs = [(plan, fpr, pair) for plan in PLANS for fpr in (1e-1, 1e-2) for pair in PAIRS[fpr]]
    for plan, fpr, pair in tqdm(runs, desc="figures 1 to 5"):
        history = watch(pair, PLANS[plan], PROBES)
        found.setdefault((plan, fpr), []).append((f"({pair[0]}, {pair[1]})", history))
        last = history.last
        yield (
            f"| {plan} | {fpr:g} | {pair[0]}, {pair[1]} | {history.slices.max()} "
            f"| {history.slices[last].min()} to {history.slices[last].max()} ({sum(pair)}) "
            f"| {history.newest[0]:,} | {history.newest[last].min():,} to {history.newest[last].max():,} "
            f"| {history.settled(pair):.2f} | {history.computed.max():.4f} | {history.computed[last].max():.4f} "
            f"| {history.measured[last].mean():.4f} |"
        )
    for number, plan in enumerate(PLANS, start=1):
        fields = [("slices", "slices"), ("bits of the newest slice", "newest")]
        save(f"figure-{number}", [Panel(f"{plan}, fpr 0.01", axis, found[plan, 1e-2], field) for axis, field in fields])
    save(
        "figure-3",
        [Panel(f"{plan}, fpr 0.01", "bits per key", found[plan, 1e-2], "bits_per_key", log=True) for plan in PLANS],
    )
    for number, plan in enumerate(PLANS, start=4):
        rates = [(fpr, found[plan, fpr]) for fpr in (1e-1, 1e-2)]
        save(
            f"figure-{number}",
            [Panel(f"{plan}, fpr {fpr:g}", "false positives", runs, "measured", fpr) for fpr, runs in rates],
        )


def table_2() -> Iterator[str]:
    """Rows of bits per key at a steady rate, for the pairs of each error rate.

    The printed figures count the keys of all l to l + 1 generations stored (erratum TLBF-5); l are the window's.
    """
    for fpr, pairs in tqdm(PAIRS.items(), desc="table 2"):
        stored = [bits / log(2) / n for k, l in pairs for bits in [k * (k + l)] for n in (l, l + 1)]  # noqa: E741
        runs = [watch(pair, PER_WINDOW) for pair in pairs]
        window = np.concatenate([run.bits_per_key[run.last] for run in runs])
        low, high = PRINTED_BITS[fpr]
        yield (
            f"| {fpr:g} | {low} to {high} | {min(stored):.1f} to {max(stored):.1f} "
            f"| {window.min():.1f} to {window.max():.1f} |"
        )


SETTLING = """By the paper: an under-dimensioned filter takes on slices until it inserts the keys it aims at between
shifts, then comes back to k + l; an over-dimensioned one never has more, and finds its size at the first shift; low
pairs take longer; the rate goes a bit over the target while there are more slices. Here a generation also ends after
the l-th part of the window, so the first shift of an over-dimensioned filter does not wait for its keys; and a filter
begins with k slices, which become k + l in the first window.

Settled: windows until the number of slices is at most k + l + 1, as at a steady rate, and all bits together are within
a tenth of their final mean. Rates: highest by the filter's bits, ever and in the last window, and the mean of the last
window with new keys."""


def main() -> None:
    """Draw the figures, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the tables to this file as well")
    arguments = parser.parse_args()
    # The same file for the same figures.
    plt.rcParams["svg.hashsalt"] = "paper 3"
    FIGURES.mkdir(parents=True, exist_ok=True)
    lines = [
        SETTLING,
        "",
        "| filter | fpr | k, l | most slices | slices at last (k + l) | first slice, bits | newest at last | settled "
        "| highest rate | at last | measured |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
        *figures(),
        "",
        "Table 2, bits per key at a steady rate:",
        "",
        "| fpr | printed | by theory, per key stored | measured, per key of the window |",
        "|--:|--:|--:|--:|",
        *table_2(),
    ]
    text = "\n".join(lines)
    print(text)
    if arguments.out:
        arguments.out.write_text(f"# Paper 3, Figures 1 to 5 and Table 2\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
