"""Draw the picture of window, slack and forgetting, from real clicks.

    uv run docs/forgetting.py

After every batch, every key of the stream so far is queried. The picture shows the keys near the end of the window.
The notebook `01-deduplicate-a-click-stream` does the same step by step.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.ticker import PercentFormatter

import lately
from lately._styles import INK, line_style, transparent

HERE = Path(__file__).parent
CLICKS = HERE.parent / "examples" / "usagov-clicks-2013.jsonl.gz"
KEY = ["a", "al", "c", "gr", "cy", "u"]
FPR = 0.01
BATCH, STEP = 700, 25


def queried(f: lately.Filter, clicks: pd.DataFrame) -> pd.DataFrame:
    """Age of each key after each batch, and whether it was reported."""
    rows = []
    for start in range(0, len(clicks), BATCH):
        f.insert(clicks[KEY][start : start + BATCH])
        so_far = clicks[: f.inserted].drop_duplicates(KEY, keep="last")
        rows.append(pd.DataFrame({"age": f.inserted - so_far.index, "reported": f.query(so_far[KEY])}))
    return pd.concat(rows)


def draw() -> None:
    """Measure and draw."""
    f = lately.Filter(10_000, FPR)
    found = queried(f, pd.read_json(CLICKS, lines=True, dtype=False))
    share = found.groupby(found["age"] // STEP * STEP + STEP / 2)["reported"].mean()
    end = f.window + f.slack
    mistakes = found.loc[found["age"] > end, "reported"].mean()

    figure, axes = plt.subplots(figsize=(7.5, 2.9), layout="constrained")
    window, slack, beyond = line_style("guarded-epoch")["color"], line_style("time-limited")["color"], INK
    first, last = 9_700, 10_600
    for left, right, middle, colour, name, text in (
        (first, f.window, 0.5, window, "window", "always reported"),
        (f.window, end, 0.68, slack, "slack", "perhaps"),
        (end, last, 0.5, beyond, "forgotten", f"{mistakes:.2%} reported,\nat most {FPR:.0%} promised"),
    ):
        axes.axvspan(left, right, color=colour, alpha=0.15, lw=0)
        place = left + middle * (right - left)
        axes.text(place, 0.68, name, ha="center", color=colour, weight="bold", size=13)
        axes.text(place, 0.64, text, ha="center", va="top", color=colour, size=10)
    axes.plot(share.index, share, **line_style("aged-cuckoo"))
    axes.set(xlim=(first, last), ylim=(0, 1.05), xlabel="keys since it was last seen", ylabel="share of keys reported")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    figure.savefig(HERE / "forgetting.svg", metadata={"Date": None})


if __name__ == "__main__":
    plt.rcParams |= transparent()
    draw()
