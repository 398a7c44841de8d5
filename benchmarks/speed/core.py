"""The core beside the speed of memory: builds and runs `roofline.rs`, and reads what it prints."""

import subprocess
from pathlib import Path
from statistics import median

import pandas as pd

from speed.race import ratio

ROOT = Path(__file__).parents[2]


def roofline(windows: list[int], rounds: int) -> pd.DataFrame:
    """A row per window and round, nanoseconds per key."""
    arguments = map(str, (rounds, *windows))
    command = ["cargo", "run", "--release", "--quiet", "--locked", "--example", "roofline", "--", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        return pd.read_csv(running.stdout, sep="\t")


def table(found: pd.DataFrame) -> str:
    """Table of medians and of ratios within a round."""
    lines = [
        "| W | MB | ns per line read | per query of hashes | share of the roofline | per query of integers | share "
        "| paper's layout: ns per query of hashes | over the line layout |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for window, rounds in found.groupby("window"):
        roof, line, whole, paper = (rounds[name].tolist() for name in ("roof", "line", "line_hashing", "paper"))
        lines.append(
            f"| {window:,} | {rounds['bytes'].iloc[0] / 1e6:.3g} | {median(roof):.1f} | {median(line):.1f} "
            f"| {ratio(roof, line)} | {median(whole):.1f} | {ratio(roof, whole)} | {median(paper):.1f} "
            f"| {ratio(paper, line)} |"
        )
    return "\n".join(lines)
