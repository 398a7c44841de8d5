"""The pictures and the front page's table, from the tables of the report."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from lately._styles import INK, line_style, transparent

# How the report names what is drawn, its name here, and its look: families have their own, others are grey.
SHOWN = {
    "lately.Filter": ("aged-cuckoo", line_style("aged-cuckoo")),
    "lately.ExactFilter": ("exact", line_style("") | {"ls": "-.", "marker": "s"}),
    "age-partitioned, line": ("age-partitioned-line", line_style("age-partitioned-line")),
    "age-partitioned, plain": ("age-partitioned", line_style("age-partitioned")),
    "guarded epochs, line": ("guarded-epoch-line", line_style("guarded-epoch-line")),
    "two ablooms, rotated": ("two rotated abloom filters", line_style("") | {"ls": "--", "marker": "x"}),
    "pandas, whole column": ("pandas, all keys", line_style("") | {"ls": ":", "marker": "o"}),
    "polars, whole column": ("polars, all keys", line_style("") | {"ls": ":", "marker": "D"}),
}
# Points by which a name stands above the end of its line.
AWAY = {"pandas, all keys": 5, "guarded-epoch-line": -2, "one random line read": -7, "a query": 2}
# The rows of the front page's table and the bars of its picture.
FRONT = {
    "lately.Filter": "lately",
    "lately.ExactFilter": "`lately.ExactFilter`",
    "age-partitioned, line": 'lately, `prefer="speed"`',
    "pandas, whole column": "pandas, whole column",
    "polars, whole column": "polars, whole column",
    "two ablooms, rotated": "two rotated Bloom filters (abloom)",
    "OrderedDict, exact": "`OrderedDict`, exact",
}

Table = dict[str, dict[str, str]]


def tables(report: str, section: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Columns and rows of each table of a section."""
    lines = report.partition(f"\n## {section}\n")[2].partition("\n## ")[0].splitlines()
    table: list[list[str]] = []
    for line in [*lines, ""]:
        if line.startswith("|"):
            table.append([cell.strip() for cell in line.strip("|").split("|")])
        elif table:
            yield table[0], table[2:]
            table = []


def masks(report: str, section: str) -> Table:
    """Columns of the duplicate mask, by structure."""
    ((columns, rows),) = tables(report, section)
    return {row[1]: dict(zip(columns, row, strict=True)) for row in rows if row[0] == "duplicated"}


def number(text: str) -> float:
    return float(text.removeprefix("W = ").replace(",", "").removesuffix("%"))


def ends(axes: Axes, xs: list[float], ys: list[float], label: str, style: dict[str, Any]) -> None:
    """Draw a line in nanoseconds per key, and write its name where it ends, clear of its neighbour's."""
    axes.plot(xs, ys, **style)
    place = (6, AWAY.get(label, 0))
    axes.annotate(label, (xs[-1], ys[-1]), place, textcoords="offset points", va="center", color=style["color"])


def growth(axes: Axes, columns: list[str], rows: list[list[str]]) -> None:
    """Draw what a key costs over the window or over the rate."""
    xs = [number(column) for column in columns[1:]]
    for row in rows:
        if row[0] in SHOWN:
            name, style = SHOWN[row[0]]
            ends(axes, xs, [number(cell) for cell in row[1:]], name, style)


def draw(report: str, out: Path) -> None:
    """Draw what a key costs against window, rate and batch, and a query of the core beside the speed of memory."""
    with plt.rc_context(transparent() | {"font.size": 9}):
        picture, ((left, right), (low, last)) = plt.subplots(2, 2, figsize=(11, 7.5), layout="constrained")
        window, rate, batch = tables(report, "Growth")
        growth(left, *window)
        left.set(xlabel="keys of the window", title="a mask, by window")
        growth(right, *rate)
        right.set(xlabel="false positives requested, %", title="a mask, by rate")
        right.invert_xaxis()
        growth(low, *batch)
        low.set(xlabel="keys per call", title="a mask, by batch")
        ((_, core),) = tables(report, "The core beside the speed of memory")
        windows = [number(row[0]) for row in core]
        for place, name, style in (
            (2, "one random line read", line_style("") | {"ls": "--"}),
            (3, "a query", line_style("age-partitioned-line")),
            (7, "a query, paper's layout", line_style("age-partitioned")),
        ):
            ends(last, windows, [number(row[place]) for row in core], name, style)
        last.set(xlabel="keys of the window", title="age-partitioned in the core, without Python")
        for axes in (left, right, low, last):
            axes.set(xscale="log", yscale="log", ylabel="ns per key")
            axes.grid(axis="y", which="major")
            axes.yaxis.set_major_formatter("{x:,.0f}")
            axes.minorticks_off()
        picture.savefig(out, metadata={"Date": None})
        plt.close(picture)


def bars(report: str, out: Path) -> None:
    """Draw how many keys a second each way to find duplicates takes."""
    kinds = {"integers": "Integers, as NumPy array", "URLs": "URLs of 40 bytes, in Arrow"}
    with plt.rc_context(transparent() | {"font.size": 11}):
        picture, both = plt.subplots(1, 2, figsize=(9, 2.3), layout="constrained", sharey=True)
        for axes, (kind, section) in zip(both, kinds.items(), strict=True):
            found = masks(report, section)
            speeds = [number(found[name]["M keys/s"]) for name in FRONT]
            colours = [line_style("age-partitioned-line")["color"], *[INK] * (len(FRONT) - 1)]
            drawn = axes.barh([name.replace("`", "") for name in FRONT.values()], speeds, color=colours, height=0.7)
            axes.bar_label(drawn, [f"{speed:.3g}" for speed in speeds], padding=4)
            axes.set(title=f"million {kind} a second", xlim=(0, max(speeds) * 1.15), xticks=[])
            axes.spines["bottom"].set_visible(False)
        both[0].invert_yaxis()
        picture.savefig(out, metadata={"Date": None})
        plt.close(picture)


def front(report: str) -> str:
    """Give the front page's table."""
    integers, urls = masks(report, "Integers, as NumPy array"), masks(report, "URLs of 40 bytes, in Arrow")
    lines = [
        "| a mask, million keys a second | integers | URLs | false positives | bits per key of the window |",
        "|---|--:|--:|--:|--:|",
    ]
    for name, shown in FRONT.items():
        row = integers[name]
        speeds = f"{row['M keys/s']} | {urls[name]['M keys/s']}"
        lines.append(f"| {shown} | {speeds} | {row['false positives']} | {row['bits per key']} |")
    return "\n".join(lines)
