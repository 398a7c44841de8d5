"""Figures 8 to 11 of paper 5, and the tables beside them, from the rows that `penalty.py` has written.

uv run --group bench benchmarks/inference/figures.py [--rows FILE] [--out FILE]
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes

from lately._styles import INK, line_style, transparent
from penalty import RESULTS
from support.inference.streams import CONDITIONS

FIGURES = Path(__file__).parents[2] / "target" / "figures"
PRINTED, CORRECTED = "BTBF as printed", "BTBF, G corrected"
# At most this share of the cost of the inferential BTBF as printed, at these bits per key of the first condition.
WANTED, WANTED_AT = 0.5, [10, 15, 20]
# The paper's own structures are grey.
LOOKS = {
    PRINTED: line_style("") | {"ls": "--"},
    CORRECTED: line_style(""),
    "simple buffer": line_style("") | {"ls": ":"},
}
# Few enough to distinguish; the tables have all.
CHEAPEST = [PRINTED, CORRECTED, "simple buffer", "timing", "age-partitioned", "guarded-epoch", "aged-cuckoo"]
CONDITION_NAMES = [condition.name for condition in CONDITIONS]
GBF = ["generalized", "age-partitioned", "guarded-epoch"]


def curves(rows: pd.DataFrame, condition: str, column: str, families: list[str], axes: Axes) -> None:
    """Draw a column over bits per key."""
    for family in families:
        of = rows[(rows["condition"] == condition) & (rows["family"] == family)]
        if len(of):
            axes.plot(of["bits"], of[column], label=family, **LOOKS.get(family) or line_style(family) | {"marker": "."})


def save(figure: plt.Figure, name: str) -> None:
    figure.savefig(FIGURES / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def figure_8(rows: pd.DataFrame) -> None:
    """Draw the parameter of least penalty: k, but r of guarded epochs and the bits per hash of the buffer."""
    families = [PRINTED, "timing", "age-partitioned", "guarded-epoch", "generalized", "simple buffer"]
    first = rows.assign(first=rows["inferential parameters"].str.extract(r"=(\d+)")[0].astype(float))
    figure, panels = plt.subplots(1, 4, figsize=(13, 3), layout="constrained", sharey=True)
    for condition, axes in zip(CONDITION_NAMES, panels, strict=True):
        curves(first, condition, "first", families, axes)
        axes.set(title=condition, xlabel="bits per key", yscale="log")
    panels[0].set_ylabel("k; r; bits of a hash")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize="small")
    save(figure, "figure-8")


def ratios_and_errors(rows: pd.DataFrame, families: list[str], name: str) -> None:
    """Draw penalty ratios above calibration errors: of the filters of Figure 9, or of Figure 10."""
    figure, panels = plt.subplots(2, 4, figsize=(13, 5.4), layout="constrained", sharex=True, sharey="row")
    for condition, (above, below) in zip(CONDITION_NAMES, panels.T, strict=True):
        curves(rows, condition, "ratio", families, above)
        curves(rows, condition, "calibration error", families, below)
        above.set(title=condition, ylim=(0, 1.25))
        below.axhline(0.01, color=INK, lw=0.6, ls=":")
        below.set(xlabel="bits per key", ylim=(0, None))
    panels[0, 0].set_ylabel("penalty, inferential / standard")
    panels[1, 0].set_ylabel("|frequency - posterior|")
    entries = panels[0, 0].get_legend_handles_labels()
    figure.legend(*entries, loc="outside right upper", frameon=False, fontsize="small")
    save(figure, name)


def figure_11(rows: pd.DataFrame) -> None:
    """Draw what the cheapest of a family costs."""
    figure, panels = plt.subplots(1, 4, figsize=(13, 3.4), layout="constrained")
    for condition, axes in zip(CONDITION_NAMES, panels, strict=True):
        curves(rows, condition, "inferential", CHEAPEST, axes)
        prior = rows[(rows["condition"] == condition) & (rows["family"] == "prior only")]
        axes.axhline(prior["inferential"].item(), color=INK, lw=0.6, label="prior only")
        axes.set(title=condition, xlabel="bits per key", yscale="log")
    panels[0].set_ylabel("penalty per query, inferential")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize="small")
    save(figure, "figure-11")


def of_condition(rows: pd.DataFrame, condition: str) -> Iterator[str]:
    """Give a table: inferential penalty and its ratio to the standard one, by family and bits; the least in bold."""
    here = rows[(rows["condition"] == condition) & (rows["bits"] > 0)]
    bits = sorted(here["bits"].unique())
    least = here.groupby("bits")["inferential"].min()
    yield f"| bits per key | {' | '.join(str(each) for each in bits)} |"
    yield f"|---|{'--:|' * len(bits)}"
    for family in dict.fromkeys(here["family"]):
        of = here[here["family"] == family].set_index("bits")
        cells = []
        for each in bits:
            if each not in of.index:
                cells.append("")
                continue
            cost, ratio = of.loc[each, "inferential"], of.loc[each, "ratio"]
            number = f"{1000 * cost:.3g}"
            cells.append(f"{f'**{number}**' if cost == least[each] else number} ({ratio:.0%})")
        yield f"| {family} | {' | '.join(cells)} |"
    prior = rows[(rows["condition"] == condition) & (rows["family"] == "prior only")]["inferential"].item()
    yield f"| prior only | {1000 * prior:.3g}{' |' * len(bits)}"


def against_printed(rows: pd.DataFrame) -> Iterator[str]:
    """Give a table: the best of ours over the inferential BTBF as printed, at equal memory."""
    yield "| condition | bits per key | best of ours | shape | its penalty over that of the BTBF as printed |"
    yield "|---|--:|---|---|--:|"
    ours = rows[~rows["family"].isin([PRINTED, CORRECTED, "simple buffer", "prior only"])]
    for condition in CONDITION_NAMES:
        for bits in sorted(ours["bits"].unique()):
            here = ours[(ours["condition"] == condition) & (ours["bits"] == bits)]
            printed = rows[(rows["condition"] == condition) & (rows["bits"] == bits) & (rows["family"] == PRINTED)]
            if printed.empty or here.empty:
                continue
            best = here.loc[here["inferential"].idxmin()]
            ratio = best["inferential"] / max(printed["inferential"].item(), 1e-12)
            missed = condition == CONDITION_NAMES[0] and bits in WANTED_AT and ratio > WANTED
            cell = f"**{ratio:.2f}**, wanted: {WANTED}" if missed else f"{ratio:.2f}"
            yield f"| {condition} | {bits} | {best['family']} | {best['inferential parameters']} | {cell} |"


def main() -> None:
    """Draw the figures, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, default=RESULTS / "paper-5-penalty.tsv")
    parser.add_argument("--out", type=Path, help="write the tables to this file as well")
    arguments = parser.parse_args()
    rows = pd.read_csv(arguments.rows, sep="\t", keep_default_na=False, na_values=[""])
    rows["ratio"] = rows["inferential"] / rows["standard"].clip(lower=1e-12)
    # Equal figures give equal files; text stays text, which takes a third of the size.
    plt.rcParams.update(transparent())
    FIGURES.mkdir(parents=True, exist_ok=True)
    figure_8(rows)
    ratios_and_errors(rows, [PRINTED, CORRECTED, "timing"], "figure-9")
    ratios_and_errors(rows, GBF, "figure-10")
    figure_11(rows)
    lines = [
        f"1000 times the mean penalty of {rows['queries'].iloc[0]:,} queries, by bits per key of the window; the least "
        "in bold. In parentheses: with inference over without.",
        "",
    ]
    for condition in CONDITION_NAMES:
        lines += [f"## {condition}", "", *of_condition(rows, condition), ""]
    lines += ["## At equal memory", "", *against_printed(rows)]
    text = "\n".join(lines)
    print(text)
    if arguments.out:
        arguments.out.write_text(f"# Paper 5, Figures 8 to 11: what wrong answers cost\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
