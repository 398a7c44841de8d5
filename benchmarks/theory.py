"""Theory beside measurement, for every filter: live keys missed, fresh keys reported, reported keys by age, bytes.

    uv run benchmarks/theory.py

prints tables in Markdown and writes them to `benchmarks/results/theory.md`. What should come out is in
`benchmarks/support/formulas.py`.
"""

import argparse
import math
from pathlib import Path

from tqdm import tqdm

import lately
from support.families import CASES, FPR
from support.theory import BOUND, FILTERS, PHASES, Figure, Found, measure

OUT = Path(__file__).parent / "results" / "theory.md"


def cell(figure: Figure | None) -> str:
    """Measured, expected, z."""
    if figure is None or math.isnan(figure.measured):
        return "-"
    if math.isnan(figure.expected):
        return f"{figure.measured:.4f}"
    return f"{figure.measured:.4f}, {figure.expected:.4f}, {figure.z:+.1f}"


def rate(figure: Figure) -> str:
    """Measured with its deviation, expected, z: three columns."""
    return f"{figure.measured:.3%} ± {figure.deviation:.3%} | {figure.expected:.3%} | {figure.z:+.1f}"


def tables(found: dict[str, Found], heading: str) -> str:
    """All findings, in Markdown."""
    lines = [
        heading,
        "",
        "| filter | live keys queried | missed | expected | `fpr` | fresh, worst phase | expected | z "
        "| fresh, average | expected | z |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, f in found.items():
        missing = 0 if CASES[name].promised else round(f.queried * (1 - f.ages["window"].expected))
        lines.append(
            f"| {name} | {f.queried:,} | {f.missed:,} | {missing:,} | {f.filter.fpr:.3%} "
            f"| {rate(f.worst)} | {rate(f.average)} |"
        )
    ages = ["window", *(f"slack {i}/4" for i in range(1, 5)), "beyond"]
    lines += [
        "",
        "Reported by age, over all phases: measured, expected, z.",
        "",
        "| filter | slack / W | `npws` | measured | " + " | ".join(ages) + " |",
        "|---|--:|--:|--:|" + "--:|" * len(ages),
    ]
    for name, f in found.items():
        end = f"{f.slack / f.window:.3f}" + (" …" if f.filter.slack > f.slack else "")
        by_age = " | ".join(cell(f.ages.get(age)) for age in ages)
        lines.append(f"| {name} | {end} | {f.filter.npws:.4f} | {f.npws:.4f} | {by_age} |")
    lines += [
        "",
        "| filter | `nbytes` | cells, saved | bits per key of W | parameters |",
        "|---|--:|--:|--:|---|",
    ]
    for name, f in found.items():
        parameters = ", ".join(f"{key}={value}" for key, value in f.filter.parameters.items())
        lines.append(
            f"| {name} | {f.filter.nbytes:,} | {f.saved:,} | {8 * f.filter.nbytes / f.window:.1f} | {parameters} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--window", type=int, default=20_000, metavar="W", help="keys of the window")
    parser.add_argument("--filters", type=int, default=FILTERS, help="filters of each kind, each of its own seed")
    parser.add_argument("--fresh", type=int, default=20_000, help="fresh keys per filter and phase")
    parser.add_argument("--out", type=Path, default=OUT, help="write the tables to this file too")
    options = parser.parse_args()
    found = {
        name: measure(case, options.window, options.filters, options.fresh)
        for name, case in tqdm(CASES.items(), unit="filter")
    }
    report = tables(
        found,
        f"lately {lately.__version__}. W = {options.window:,}, {FPR:.0%} requested; {options.filters} filters of each "
        f"kind, {PHASES} phases of a generation, {options.fresh:,} fresh keys each.",
    )
    print(report)
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(report + "\n", encoding="utf-8")
    off = [(name, kind) for name, f in found.items() for kind, figure in f.figures() if abs(figure.z) > BOUND]
    missed = [name for name, f in found.items() if (f.missed > 0) == CASES[name].promised]
    if off or missed:
        raise SystemExit(f"not as theory predicts: {off}, live keys: {missed}")


if __name__ == "__main__":
    main()
