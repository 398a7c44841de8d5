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
from lately._look import INK, bare, look

HERE = Path(__file__).parent
WINDOW = 10_000
FPR = 0.01
# Few enough to tell apart: those to know, and one of each other kind. The planner's table has them all.
SHOWN = [
    "age-partitioned-line",
    "age-partitioned",
    "guarded-epoch-transposed",
    "aged-quotient",
    "timing-line",
    "time-limited",
    "swamp",
    "stable",
]


def plain(name: str) -> dict[str, object]:
    """Give the look of a family; curves of many points take no markers."""
    return look(name) | {"marker": ""}


def legend(figure: Figure, axes: Axes) -> None:
    """Names in the order of `SHOWN`, beside the plot."""
    shown = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    names = [name for name in SHOWN if name in shown]
    figure.legend([shown[name] for name in names], names, loc="outside right upper", frameon=False, fontsize="small")


def decay(figure: Figure) -> None:
    """Share of keys reported by age, over all phases of a generation."""
    axes = figure.subplots()
    ages = np.linspace(0.9 * WINDOW, 1.8 * WINDOW, 181).astype(int)
    # A key a millisecond, for the filter that keeps windows of time alone.
    plans = {choice.name: choice for window in (f"{WINDOW}ms", WINDOW) for choice in lately.plan(window, FPR).choices}
    for name in tqdm(SHOWN, desc="decay"):
        f = plans[name].build()
        timed = isinstance(f.window, float)
        keys = np.arange(10 * WINDOW)
        reported = np.zeros(len(ages))
        # A step that divides no generation meets every phase alike.
        phases = 1601
        for _ in range(phases):
            f.insert(keys, **({"at": keys.astype("M8[ms]")} if timed else {}))
            reported += f.query(keys[-1] + 1 - ages, **({"at": keys[-1].astype("M8[ms]")} if timed else {}))
            keys = keys[-1] + 1 + np.arange(37)
        axes.plot(ages / WINDOW, reported / phases, **plain(name), label=name)
    axes.axvline(1, color=INK, lw=0.8, ls=":")
    axes.set(
        xlabel="age of the key, in windows", ylabel="share reported", title=f"How keys are forgotten, at {FPR:.0%}"
    )
    legend(figure, axes)


def memory(figure: Figure, requests: list[tuple[float, dict[str, float]]]) -> Axes:
    """Bits per key of each filter over what is asked for."""
    axes = figure.subplots()
    curves: dict[str, list[tuple[float, float]]] = {}
    for x, request in tqdm(requests, desc="memory"):
        for choice in lately.plan(WINDOW * 100, **request).choices:
            if choice.name not in SHOWN:
                continue
            curves.setdefault(choice.name, []).append((x, choice.bits_per_key))
    for name, points in curves.items():
        axes.plot(*zip(*points, strict=True), **plain(name), label=name)
    ticks = [10, 20, 50, 100, 200]
    axes.set(ylabel="bits per key of the window", xscale="log", yscale="log", ylim=(ticks[0], ticks[-1]))
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.set_yticks([], minor=True)
    axes.grid(axis="y", lw=0.8)
    legend(figure, axes)
    return axes


def by_rate(figure: Figure) -> None:
    """What a lower rate of false positives costs."""
    axes = memory(figure, [(fpr, {"fpr": fpr}) for fpr in np.logspace(-6, -1, 26)])
    axes.set(xlabel="highest chance of a false positive", title="Memory by rate, at the default slack")
    axes.invert_xaxis()


def by_slack(figure: Figure) -> None:
    """What a sharper edge of the window costs."""
    shares = np.logspace(-2, 0, 41)
    axes = memory(figure, [(share, {"fpr": FPR, "slack": int(share * WINDOW * 100)}) for share in shares])
    axes.set(xlabel="longest slack, in windows", title=f"Memory by slack, at {FPR:.0%}")


if __name__ == "__main__":
    plt.rcParams |= bare()
    for draw in (decay, by_rate, by_slack):
        figure = plt.figure(figsize=(8, 4), layout="constrained")
        draw(figure)
        figure.savefig(HERE / f"{draw.__name__.replace('_', '-')}.svg", metadata={"Date": None})
        plt.close(figure)
