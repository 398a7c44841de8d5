"""Draw the plots of which-filter.md, how keys are forgotten and what memory buys, and measure its table of three.

    uv run docs/which_filter.py [--table]

A build of the site draws them; by itself this writes them into `target/figures/`.
The curves of memory are what `lately.plan` states, and tests/test_plan.py holds it to; the decay is measured. The table
alone, with ``--table``, is to be measured on a machine that does nothing else.
"""

import argparse
import statistics
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from tqdm import tqdm

import lately
from lately._styles import INK, line_style, transparent

FIGURES = Path(__file__).parents[1] / "target" / "figures"
WINDOW = 10_000
FPR = 0.01
# Few enough to distinguish in a picture: those to know, and one of each other kind. The planner's table has them all.
SHOWN = [
    "age-partitioned-line",
    "age-partitioned",
    "guarded-epoch-transposed",
    "aged-cuckoo",
    "time-limited",
    "swamp",
    "stable",
]


def plain(name: str) -> dict[str, object]:
    """Give the look of a family; curves of many points take no markers."""
    return line_style(name) | {"marker": ""}


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
    for name in tqdm(SHOWN, desc="decay", disable=None):
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
    """Bits per key of each filter, over the requested rate or slack."""
    axes = figure.subplots()
    curves: dict[str, list[tuple[float, float]]] = {}
    for x, request in tqdm(requests, desc="memory", disable=None):
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
    axes = memory(figure, [(fpr, {"fpr": fpr}) for fpr in np.logspace(-6, -1, 11)])
    axes.set(xlabel="highest chance of a false positive", title="Memory by rate, at the default slack")
    axes.invert_xaxis()


def by_slack(figure: Figure) -> None:
    """What a sharper edge of the window costs."""
    shares = np.logspace(-2, 0, 17)
    axes = memory(figure, [(share, {"fpr": FPR, "slack": int(share * WINDOW * 100)}) for share in shares])
    axes.set(xlabel="longest slack, in windows", title=f"Memory by slack, at {FPR:.0%}")


def table(keys: int = 1_000_000, rounds: int = 9) -> None:
    """Print bits, cache lines and nanoseconds of the three to know. A key a millisecond, in windows of time."""
    known = ("aged-cuckoo", "age-partitioned-line", "guarded-epoch-transposed")
    rows: dict[str, dict[float, str]] = {name: {} for name in known}
    batch, rng = keys // 4, np.random.default_rng(1)
    for fpr in (FPR, 0.001):
        choices = {c.name: c for window in (f"{keys}ms", keys) for c in lately.plan(window, fpr).choices}
        filters = {name: choices[name].build() for name in known}
        taken: dict[str, list[list[float]]] = {name: [] for name in known}
        for turn in tqdm(range(12 + rounds), desc=f"table, {fpr:g}"):
            new = np.arange(2 * turn * batch, (2 * turn + 1) * batch)
            mixed = np.where(rng.random(batch) < 0.5, new + batch, new - rng.integers(0, keys // 4, batch))
            works = [("query", new + (1 << 50), 0), ("insert", new, 0), ("duplicated", mixed, batch)]
            for name, f in filters.items():
                times = []
                for method, queried, later in works:
                    timed = isinstance(f.window, float) and method != "query"
                    given = {"at": (new + later).astype("M8[ms]")} if timed else {}
                    hashes, call = lately.hash_keys(queried), getattr(f, method)
                    start = time.thread_time_ns()
                    call(hashes, **given)
                    times.append((time.thread_time_ns() - start) / batch)
                if turn >= 12:
                    taken[name].append(times)
        for name, f in filters.items():
            medians = [f"{statistics.median(column):.0f}" for column in zip(*taken[name], strict=True)]
            rows[name][fpr] = f"{f.nbytes * 8 / keys:.1f} | {choices[name].miss:.1f} | {' | '.join(medians)}"
    print("| filter | fpr | bits per key | lines of an absent key | ns: absent | new | half repeats |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for name, by_rate in rows.items():
        for fpr, row in by_rate.items():
            print(f"| {name} | {fpr:g} | {row} |")


def draw(folder: Path) -> None:
    """Draw all three into a folder."""
    with plt.rc_context(transparent()):
        for plot in (decay, by_rate, by_slack):
            figure = plt.figure(figsize=(8, 4), layout="constrained")
            plot(figure)
            figure.savefig(folder / f"{plot.__name__.replace('_', '-')}.svg", metadata={"Date": None})
            plt.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true")
    if parser.parse_args().table:
        table()
        raise SystemExit
    draw(FIGURES)
