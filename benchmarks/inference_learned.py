"""What a learned prior is worth on real streams, beside the stream's true frequencies and beside no inference at all.

    uv run --group bench benchmarks/inference_learned.py [folder]

Prints a table in Markdown: what the answers of `query` and of `decide` cost, and how far posteriors are from the truth.
`tests/support/learned.py` runs the streams.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from tqdm import tqdm

import lately
from support.learned import CASES, Prior, load, oracle, run
from support.real_streams import EXAMPLES


def rows(arguments: argparse.Namespace) -> Iterator[str]:
    """Give the table line by line."""
    yield "| stream | window | present | bits per key | prior | query | decide | ratio | mean error | weighted error |"
    yield "|---|--:|--:|--:|---|--:|--:|--:|--:|--:|"
    work = [
        (case, window, bits)
        for case in CASES
        if (arguments.folder / case.file).exists()
        for window in arguments.windows
        for bits in arguments.bits
    ]
    for case, window, bits in tqdm(work, unit="case"):
        keys = load(case, arguments.folder)[: arguments.events]
        priors: list[tuple[str, Prior]] = [("true frequencies", oracle(keys))]
        for size in arguments.nbytes:
            priors.append((f"learned, {size >> 10} KiB", lately.Learned(window, nbytes=size)))
        if arguments.mistuned:
            for factor in (4, 0.25):
                half_life = round(window * factor)
                priors.append((f"learned, half-life {factor:g} windows", lately.Learned(half_life)))
        for name, prior in priors:
            result = run(keys, window, bits, prior, arguments.batch or max(1, window // 100))
            mean, weighted = result.errors
            yield (
                f"| {case.name} | {window:,} | {result.truth.mean():.2f} | {bits:g} | {name} "
                f"| {result.penalty(result.standard):.4f} | {result.penalty(result.inferred):.4f} | {result.ratio:.3f} "
                f"| {mean:.3f} | {weighted:.4f} |"
            )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=EXAMPLES, help="where the streams are")
    parser.add_argument("--windows", type=int, nargs="+", default=[300, 3_000, 30_000], help="insertions")
    parser.add_argument("--bits", type=float, nargs="+", default=[5, 10, 15], help="bits per key of the window")
    parser.add_argument("--nbytes", type=int, nargs="+", default=[1 << 20, 1 << 14], help="memory of the learned prior")
    parser.add_argument("--batch", type=int, help="events queried before they are inserted; default: window / 100")
    parser.add_argument("--events", type=int, help="events of each stream; default: all")
    parser.add_argument("--mistuned", action="store_true", help="also half-lives of four windows and of a quarter")
    for row in rows(parser.parse_args()):
        print(row, flush=True)


if __name__ == "__main__":
    main()
