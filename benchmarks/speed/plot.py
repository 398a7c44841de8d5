"""The picture: cost of a key of the mask against window, error and batch, and of a query beside the roofline."""

from pathlib import Path
from statistics import median

import matplotlib.pyplot as plt
import pandas as pd

from speed.race import Figures


def lines(axes: plt.Axes, figures: dict[float, Figures], title: str, across: str) -> None:
    """Draw nanoseconds per key of all structures that are in every race."""
    names = [name for operation, name in next(iter(figures.values())).seconds if operation == "duplicated"]
    for name in names:
        times = [1e9 * median(found.seconds["duplicated", name]) for found in figures.values()]
        axes.plot([*figures], times, marker="o", markersize=3, label=name)
    axes.set(xscale="log", yscale="log", xlabel=across, ylabel="ns per key", title=title)


def draw(
    windows: dict[float, Figures], rates: dict[float, Figures], batches: dict[int, float], core: pd.DataFrame, out: Path
) -> None:
    """Write the picture as SVG, the same bytes for the same figures."""
    plt.rcParams |= {"svg.hashsalt": "speed", "svg.fonttype": "none", "font.size": 8}
    picture, ((left, right), (low, last)) = plt.subplots(2, 2, figsize=(10, 8), layout="constrained")
    lines(left, windows, "duplicate mask: growth with the window", "W")
    lines(right, rates, "growth with the error asked for", "false positive rate")
    right.invert_xaxis()
    low.plot([*batches], [1e9 * seconds for seconds in batches.values()], marker="o", markersize=3)
    low.set(
        xscale="log",
        yscale="log",
        xlabel="keys per call",
        ylabel="ns per key",
        title="line layout: growth with the batch",
    )
    found = core.groupby("window").median()
    for name, label in (("roof", "one random line read"), ("line", "query, line"), ("paper", "query, paper's layout")):
        last.plot(found.index, found[name], marker="o", markersize=3, label=label)
    last.set(xscale="log", yscale="log", xlabel="W", ylabel="ns per key", title="the core beside the roofline")
    last.legend()
    picture.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    picture.savefig(out, metadata={"Date": None})
