"""Draw the plots of which-filter.md: how keys are forgotten, and what memory buys.

    uv run docs/which_filter.py

The curves of memory are what `lately.plan` states, and tests/test_plan.py holds it to; the decay is measured.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from tqdm import tqdm

import lately

HERE = Path(__file__).parent
WINDOW = 10_000
FPR = 0.01
# One colour per filter in all plots.
NAMES = sorted(choice.name for choice in lately.plan(WINDOW, FPR).choices)
COLOURS = {name: f"C{i}" for i, name in enumerate(NAMES)}


def decay(figure: Figure) -> None:
    """Share of keys reported by age, over all phases of a generation."""
    axes = figure.subplots()
    ages = np.linspace(1, 2.2 * WINDOW, 221).astype(int)
    for choice in tqdm(lately.plan(WINDOW, FPR).choices, desc="decay"):
        f = choice.build()
        f.insert(np.arange(4 * WINDOW))
        reported = np.zeros(len(ages))
        # A step that divides no generation meets every phase alike.
        phases = 401
        for _ in range(phases):
            f.insert(f.inserted + np.arange(37))
            reported += f.query(f.inserted - ages)
        axes.plot(ages / WINDOW, reported / phases, color=COLOURS[choice.name], label=choice.name)
    axes.axvline(1, color="gray", lw=0.8, ls=":")
    axes.set(xlabel="age of the key, in windows", ylabel="share reported", title=f"How keys are forgotten, fpr {FPR:g}")
    axes.legend(frameon=False, fontsize="x-small", ncols=2)


def memory(axes: Axes, requests: list[tuple[float, dict[str, float]]]) -> None:
    """Bits per key of each filter over what is asked for."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for x, request in tqdm(requests, desc="memory"):
        for choice in lately.plan(WINDOW * 100, **request).choices:
            curves.setdefault(choice.name, []).append((x, choice.bits_per_key))
    for name, points in curves.items():
        axes.plot(*zip(*points, strict=True), marker=".", color=COLOURS[name], label=name)
    axes.set(ylabel="bits per key of the window", xscale="log", ylim=(0, 100))
    axes.legend(frameon=False, fontsize="x-small", ncols=2)


def by_rate(figure: Figure) -> None:
    """What a lower rate of false positives costs."""
    axes = figure.subplots()
    memory(axes, [(fpr, {"fpr": fpr}) for fpr in np.logspace(-6, -1, 16)])
    axes.set(xlabel="highest chance of a false positive", title="Memory by rate, slack of half a window")
    axes.invert_xaxis()


def by_slack(figure: Figure) -> None:
    """What a sharper edge of the window costs."""
    axes = figure.subplots()
    shares = np.logspace(-1.7, 0, 12)
    memory(axes, [(share, {"fpr": FPR, "slack": int(share * WINDOW * 100)}) for share in shares])
    axes.set(xlabel="longest slack, in windows", title=f"Memory by slack, fpr {FPR:g}")


if __name__ == "__main__":
    plt.rcParams["svg.hashsalt"] = "the same file for the same figures"
    for draw in (decay, by_rate, by_slack):
        figure = plt.figure(figsize=(8, 4), layout="constrained")
        draw(figure)
        figure.savefig(HERE / f"{draw.__name__.replace('_', '-')}.svg", metadata={"Date": None})
        plt.close(figure)
