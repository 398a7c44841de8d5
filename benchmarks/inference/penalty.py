"""What wrong answers cost with inference and without: paper 5, section 6, for families that compute probabilities.

    uv run --group bench benchmarks/inference/penalty.py [--scale 0.125] [--out FILE]

Before each query of 2**22, after 2**20 keys to warm up, a false positive and a false negative are given penalties of
their own, uniform in [1, 10). Each family has the parameters of least penalty, with inference and without, chosen from
the grid of `trials.py` on 2**16 queries of another stream, or more (`--choosing`): the less is at stake, the more it
takes to find the best. Writes a row per family, memory and condition; `figures.py`
makes figures and tables of them. Takes ten minutes on two cores at a scale of 0.125.
"""

import argparse
from collections.abc import Iterator
from functools import cache
from itertools import product
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from support.inference.streams import CONDITIONS
from support.inference.trials import GRIDS, Parameters, Stream, choose, make

RESULTS = Path(__file__).parents[1] / "results"
BITS = [10, 15, 20, 5, 8, 30, 1, 3, 25]
WARM_UP, QUERIES, CHOOSING = 2**20, 2**22, 2**16


@cache
def streams(condition: int, queries: int, choosing: int) -> tuple[Stream, Stream]:
    """One stream to choose parameters on, with chunks spread over a window after two to warm up, and one to measure."""
    of = CONDITIONS[condition]
    return Stream.draw(of, 2 * of.window, choosing, 1, unasked=of.window), Stream.draw(of, WARM_UP, queries, 3)


def text(parameters: Parameters) -> str:
    return ", ".join(f"{name}={value}" for name, value in parameters)


def trial(work: tuple[int, int, str, int, int]) -> dict[str, Any] | None:
    """Measure a family in a condition, at these bits per key; None if it has no filter so small."""
    number, bits, family, queries, choosing = work
    tried, measured = streams(number, queries, choosing)
    best = choose(family, bits, tried)
    if best is None:
        return None
    subject = make(family, measured.condition, bits, best.inferential)
    inferred = measured.run(subject)
    same = best.standard == best.inferential
    standard = inferred if same else measured.run(make(family, measured.condition, bits, best.standard))
    return {
        "condition": measured.condition.name,
        "bits": bits,
        "family": family,
        "standard": standard.standard_penalty,
        "inferential": inferred.penalty,
        "calibration error": inferred.calibration_error,
        "eq. 35": inferred.printed_error,
        "standard parameters": text(best.standard),
        "inferential parameters": text(best.inferential),
    }


def prior_only(queries: int) -> Iterator[dict[str, Any]]:
    """Give the cost without any filter."""
    for number, condition in enumerate(CONDITIONS):
        outcome = streams(number, queries, CHOOSING)[1].prior_only()
        yield {
            "condition": condition.name,
            "bits": 0,
            "family": "prior only",
            "inferential": outcome.penalty,
            "calibration error": outcome.calibration_error,
            "eq. 35": outcome.printed_error,
        }


def main() -> None:
    """Write the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="part of the 2**22 queries")
    parser.add_argument("--bits", type=int, nargs="+", default=BITS, help="bits per key of the window")
    parser.add_argument("--families", nargs="+", default=list(GRIDS), choices=list(GRIDS))
    parser.add_argument("--conditions", type=int, nargs="+", default=range(len(CONDITIONS)), help="by their numbers")
    parser.add_argument("--choosing", type=int, default=CHOOSING, help="queries to choose parameters on")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS / "paper-5-penalty.tsv")
    arguments = parser.parse_args()
    queries = round(QUERIES * arguments.scale)
    work = [
        (number, bits, family, queries, arguments.choosing)
        for bits, number, family in product(arguments.bits, arguments.conditions, arguments.families)
    ]
    rows = list(prior_only(queries))
    with Pool(arguments.processes) as pool:
        for row in tqdm(pool.imap(trial, work), total=len(work), unit="trial"):
            if row:
                rows.append(row)
            # Written after each row, so that an interrupted run has them.
            table = pd.DataFrame(rows).assign(queries=queries).sort_values(["condition", "family", "bits"])
            table.to_csv(arguments.out, sep="\t", index=False, float_format="%.6g")
    print(f"{len(rows)} rows in {arguments.out}")


if __name__ == "__main__":
    main()
