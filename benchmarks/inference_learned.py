"""What a learned prior is worth on real streams, beside the stream's true frequencies and beside no inference at all.

    uv run --group bench benchmarks/inference_learned.py [folder]

Each event is asked for, then inserted, batch by batch; a wrong answer costs a penalty of its own, uniform in [1, 10).
Prints a table in Markdown: what the answers of `query` and of `decide` cost, and how far posteriors are from what was
true.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

import lately
from real_streams import EXAMPLES, VISITOR, Case, read_clicks, read_nasa, read_zeek

CASES = [
    Case("clicks by visitor", "usagov-clicks-2013.jsonl.gz", read_clicks, VISITOR),
    Case("NASA by host", "nasa-http-1995-08-01.tsv.gz", read_nasa, ("host",)),
    Case("DNS by name", "wrccdc-2018-dns.zeek.log.gz", read_zeek, ("query",)),
]
BINS = 20


class Prior(Protocol):
    """What every prior can do."""

    def probability(self, keys: NDArray[np.int64]) -> float | NDArray[np.float64]: ...

    def distinct(self, insertions: NDArray[np.float64]) -> NDArray[np.float64]: ...


@dataclass
class Result:
    """What happened after the first quarter of a stream: answers, truth and penalties, one each per query."""

    standard: NDArray[np.bool_]
    inferred: NDArray[np.bool_]
    posterior: NDArray[np.float64]
    truth: NDArray[np.bool_]
    false_positive: NDArray[np.float64]
    false_negative: NDArray[np.float64]

    def penalty(self, answers: NDArray[np.bool_]) -> float:
        """Mean penalty of these answers, per query."""
        wrong = np.where(self.truth, ~answers * self.false_negative, answers * self.false_positive)
        return float(wrong.mean())

    @property
    def ratio(self) -> float:
        """Penalty with inference over penalty without."""
        return self.penalty(self.inferred) / max(self.penalty(self.standard), 1e-300)

    @property
    def errors(self) -> tuple[float, float]:
        """Calibration error, |share of true - mean posterior| in 20 bins: their mean, and weighted by the queries.

        A bin of fewer than 100 queries is left out of the first: its share of true is known to 0.05 at best.
        """
        bins = np.minimum((self.posterior * BINS).astype(np.int64), BINS - 1)
        queries = np.bincount(bins, minlength=BINS)
        off = np.abs(np.bincount(bins, self.truth - self.posterior, BINS))
        full = queries >= 100
        return float(np.mean(off[full] / queries[full])), float(off.sum() / queries.sum())


def last_seen(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Place in the stream at which each event's key was last inserted, or a place long before the stream."""
    order = np.argsort(keys, kind="stable")
    again = keys[order[1:]] == keys[order[:-1]]
    last = np.full(len(keys), -(2**62))
    last[order[1:][again]] = order[:-1][again]
    return last


def present(keys: NDArray[np.int64], window: int, batch: int) -> NDArray[np.bool_]:
    """Tell for each event whether its key was among the last `window` insertions when its batch began."""
    begins = np.arange(len(keys)) // batch * batch
    last = last_seen(keys)
    while np.any(late := last >= begins):  # inserted by the batch itself: go back to the time before
        last[late] = last[last[late]]
    return begins - last <= window


def run(keys: NDArray[np.int64], window: int, bits: float, prior: Prior, batch: int) -> Result:
    """Send a stream through a filter; judge the answers after the first quarter, when filter and prior are warm."""
    made = lately.AgePartitionedBloomFilter(window, nbytes=round(bits * window / 8))
    rng = np.random.default_rng(1)
    false_positive, false_negative = rng.uniform(1, 10, (2, len(keys)))
    learns = isinstance(prior, lately.Learned)
    standard, posterior = np.zeros(len(keys), bool), np.zeros(len(keys))
    for start in range(0, len(keys), batch):
        part = slice(start, start + batch)
        standard[part] = made.query(keys[part])
        posterior[part] = made.posterior(keys[part], prior)
        made.insert(keys[part])
        if learns:
            prior.insert(keys[part])
    # What `decide` answers, without asking the filter for the posterior again.
    inferred = false_positive * (1 - posterior) <= false_negative * posterior
    truth = present(keys, window, batch)
    warm = slice(len(keys) // 4, None)
    return Result(*(each[warm] for each in (standard, inferred, posterior, truth, false_positive, false_negative)))


def oracle(keys: NDArray[np.int64]) -> Prior:
    """Give the prior of paper 5, section 6.4.2: how often each key comes in the whole stream, before it has come."""
    unique, counts = np.unique(keys, return_counts=True)
    return lately.Probabilities(dict(zip(unique.tolist(), counts / len(keys), strict=True)))


def load(case: Case, folder: Path) -> NDArray[np.int64]:
    """Read a stream, its keys numbered."""
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in case.load(folder)[0]])


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
    parser.add_argument("--batch", type=int, help="events asked for before they are inserted; default: window / 100")
    parser.add_argument("--events", type=int, help="only so many of each stream")
    parser.add_argument("--mistuned", action="store_true", help="also half-lives of four windows and of a quarter")
    for row in rows(parser.parse_args()):
        print(row, flush=True)


if __name__ == "__main__":
    main()
