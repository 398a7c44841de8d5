"""Paper 2, Table 1, with the filters of this package: five structures at 14 bits per key of the window.

    uv run benchmarks/papers/guarded_epoch.py [folder] [--out FILE]

F. Alpay, L. Sarıoğlu, *Guarded Epoch Bloom Filters for Sliding-Window Membership*, 2026. The paper gives the memory,
the window (20,000), the insertions (120,000), the queries (20,000 live, fresh and expired each) and three workloads
over three seeds. It leaves the rest open; here it is:

- k = 8 bits per segment for the guarded filters. Blocks of 64 bits with a bit in each of 4 parts and of 512 with 8, the
  best for each: the printed rate lies between them. k = 3 for the counting filter. For the stable filter k = 2 slices
  of 4-bit cells with 30 decrements each per insertion.
- *uniform*: every key is new. *Zipf*: exponent 1.1 over a million keys. *bursty*: bursts of 200, each from 10,000
  neighbouring keys of its own, so that 1 % repeat: the printed medians leave room for no more in the middle workload.

The paper's log is not public. `folder` (by default `examples/`) holds the NASA log and may hold the Apache log named
below. Their keys are host, method and URL, the URL with its query; lines in their order. Both are shorter than the
paper's, so the window is about a third of each, and all else is in proportion. Fresh keys are made up. The printed
figures beside are those of a log of 213,182 requests of only 2,350 kinds, which leaves every filter nearly empty.

All structures are charged for their cells, as in the paper; the counting filter's queue of deletions is extra.
Speeds are left out: the paper's are those of NumPy.
"""

import argparse
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

import lately

EXAMPLES = Path(__file__).parents[2] / "examples"
BITS_PER_KEY = 14
WINDOW = 20_000
INSERTIONS = 6 * WINDOW
QUERIES = 20_000
SEEDS = range(3)

# Table 1 as printed: fresh keys reported, live keys missed, expired keys reported; on synthetic streams, on the log.
PRINTED = {
    "counting": ((0.1910, 0.0, 0.1882), (0.0002, 0.0, 0.0)),
    "stable": ((0.1505, 0.1900, 0.1638), (0.0001, 0.0047, 0.0031)),
    "guarded epoch, r = 4": ((0.0227, 0.0, 0.2680), (0.0, 0.0, 0.0679)),
    "guarded epoch, r = 8": ((0.0222, 0.0, 0.1469), (0.0, 0.0, 0.0098)),
    "guarded epoch, r = 8, blocks of 64": ((0.0708, 0.0, 0.1858), (0.0002, 0.0, 0.0098)),
    "guarded epoch, r = 8, blocks of 512": ((0.0708, 0.0, 0.1858), (0.0002, 0.0, 0.0098)),
}
# Host, then in quotes the request: method, URL and perhaps the protocol. A request of another form is all method.
COMBINED = re.compile(r'(?P<host>\S+) [^"]*"(?P<method>\S+)(?: (?P<url>\S+))?')


def structures(window: int, seed: int) -> Iterator[lately.Filter]:
    """Make the structures of `PRINTED`, in that order, for a window."""
    bits = BITS_PER_KEY * window
    guarded = lately.GuardedEpochBloomFilter
    yield lately.baselines.CountingBloomFilter.from_parameters(window, k=3, slice_cells=bits // 12, seed=seed)
    yield lately.baselines.StableBloomFilter.from_parameters(
        window, k=2, slice_cells=bits // 8, bits=4, decrements=30, seed=seed
    )
    for r in (4, 8):
        yield guarded.from_parameters(window, r=r, k=8, segment_bits=bits // (r + 1), seed=seed)
    for size, parts in ((64, 4), (512, 8)):
        blocks = bits // 9 // size
        yield guarded.from_parameters(window, r=8, blocks=blocks, block_bits=size, parts=parts, seed=seed)


def workloads(rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
    """The three synthetic streams. Keys below 2**62; those above are fresh."""
    bursts = INSERTIONS // 200
    origins = rng.integers(2**61, 2**62 - 10_000, bursts)
    return {
        "uniform": rng.integers(2**61, 2**62, INSERTIONS),
        "Zipf": rng.choice(1_000_000, INSERTIONS, p=zipf(1.1, 1_000_000)),
        "bursty": np.repeat(origins, 200) + rng.integers(0, 10_000, INSERTIONS),
    }


def zipf(exponent: float, keys: int) -> NDArray[np.float64]:
    """Chance of each key, the most popular first."""
    weights = np.arange(1, keys + 1) ** -exponent
    return weights / weights.sum()


def nasa(folder: Path) -> pd.DataFrame:
    """Keys of the NASA log."""
    log = pd.read_csv(folder / "nasa-http-1995-08-01.tsv.gz", sep="\t", quoting=3, encoding="latin-1", dtype=str)
    return log[["host", "method", "url"]]


def apache(folder: Path) -> pd.DataFrame:
    """Keys of the Apache log."""
    path = folder / "apache-combined-2015-05.log.gz"
    lines = pd.read_csv(path, sep="\x01", header=None, names=["line"], quoting=3, encoding="latin-1", dtype=str)
    return lines["line"].str.extract(COMBINED)


LOGS = {"NASA log": (nasa, 10_000), "Apache log": (apache, 3_000)}


def rates(
    f: lately.Filter, hashes: NDArray[np.uint64], window: int, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Rates of fresh keys reported, live keys missed and expired keys reported, after the stream.

    Expired keys are those of the last window but one that do not occur in the last.
    """
    f.insert(hashes)
    live, before = hashes[-window:], hashes[-2 * window : -window]
    expired = before[~np.isin(before, live)]
    fresh = rng.integers(2**62, 2**63, QUERIES).astype(np.uint64)
    return (
        float(f.query(fresh).mean()),
        1 - float(f.query(rng.choice(live, QUERIES)).mean()),
        float(f.query(rng.choice(expired, QUERIES)).mean()),
    )


def table(name: str, streams: list[NDArray[np.uint64]], window: int, log: bool) -> Iterator[str]:
    """Rows of medians over the streams and seeds, with the printed figures beside."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    for seed, hashes in enumerate(streams):
        for structure, f in zip(PRINTED, structures(window, seed), strict=True):
            found.setdefault(structure, []).append(rates(f, hashes, window, np.random.default_rng(seed)))
    for structure, f in zip(PRINTED, structures(window, 0), strict=True):
        medians = np.median(found[structure], axis=0)
        cells = [f"{ours:.4f} ({printed:.4f})" for ours, printed in zip(medians, PRINTED[structure][log], strict=True)]
        yield f"| {name} | {structure} | {f.fpr:.4f} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=EXAMPLES, help="where the logs are")
    parser.add_argument("--out", type=Path, help="write the table to this file as well")
    arguments = parser.parse_args()
    by_workload: dict[str, list[NDArray[np.uint64]]] = {}
    for seed in tqdm(SEEDS, desc="streams"):
        for name, keys in workloads(np.random.default_rng(seed)).items():
            by_workload.setdefault(name, []).append(keys.astype(np.uint64))
    lines = [
        "| stream | structure | by theory | fresh, reported (printed) | live, missed (printed) "
        "| expired, reported (printed) |",
        "|---|---|--:|--:|--:|--:|",
        *table("synthetic, all nine", list(chain.from_iterable(by_workload.values())), WINDOW, log=False),
    ]
    for name, streams in tqdm(by_workload.items(), desc="workloads"):
        lines += table(name, streams, WINDOW, log=False)
    for name, (read, window) in LOGS.items():
        try:
            hashes = lately.hash_keys(read(arguments.folder))[: 3 * window]
        except FileNotFoundError:
            continue
        kinds = len(np.unique(hashes))
        lines += table(f"{name}, {len(hashes):,} of {kinds:,} kinds", [hashes] * len(SEEDS), window, log=True)
    text = "\n".join(lines)
    print(text)
    if arguments.out:
        arguments.out.write_text(f"# Paper 2, Table 1\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
