"""The streams and runs behind `slicing.py`: sliced filters on sites of this process, some of which are killed."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, log
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import lately
from lately.distributed import FailedSitesWarning, LocalSites, SlicedFilter, SlicedShape

COLORS = {"horizontal": "tab:orange", "vertical": "tab:blue"}
MARKERS = (".", "x", "^")

Keys = NDArray[np.uint64]
Kind = Literal["horizontal", "vertical"]
Dice = Literal["h-v", "v-h"]

KINDS: tuple[Kind, ...] = ("horizontal", "vertical")
HASHES = 4
RATES = (0.02, 0.05, 0.08)
SLICES = (1, 5, 10, 20, 30, 40, 50)
EVENTS = 100_000
# Draws of seeds and of the killed sites, to average over.
DRAWS = 5
# First occurrences per point of a curve, over as many filters of different seeds as that takes.
FIRSTS = 100_000

# Here many sites fail on purpose.
warnings.simplefilter("ignore", FailedSitesWarning)


def table(header: str, rows: list[str]) -> list[str]:
    """Give a table in Markdown, and an empty line after it."""
    return [header, "|" + "---|" * (header.count("|") - 1), *rows, ""]


def size(distinct: int, rate: float, k: int = HASHES) -> int:
    """Bits that hold this many keys at a rate (eq. 2)."""
    return ceil(-k * distinct / log(1 - rate ** (1 / k)))


def density(distinct: int, bits: int, k: int = HASHES) -> float:
    """Share of the bits that are set."""
    return 1 - (1 - 1 / bits) ** (k * distinct)


@dataclass(frozen=True)
class Stream:
    """Events, and the sizes of the filters for `RATES`."""

    name: str
    keys: Keys
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, name: str, keys: Keys, sizes: tuple[int, ...] | None = None) -> "Stream":
        """Take the paper's sizes, or, if it has none, those by its rule."""
        return cls(name, keys, sizes or tuple(size(len(np.unique(keys)), rate) for rate in RATES))

    @property
    def firsts(self) -> Keys:
        """The distinct events, in the order of their first occurrence."""
        return self.keys[np.sort(np.unique(self.keys, return_index=True)[1])]


def drawn(name: str, domain: int, exponent: float, sizes: tuple[int, ...]) -> Stream:
    """Draw events by Zipf's law; with exponent 0 all are equally likely."""
    weights = np.arange(1.0, domain + 1) ** -exponent
    keys = np.random.default_rng(0).choice(domain, EVENTS, p=weights / weights.sum())
    return Stream.of(name, keys.astype(np.uint64), sizes)


def streams(folder: Path) -> list[Stream]:
    """Give the paper's streams as drawn anew, the web log's first, and two real ones."""
    nasa = pd.read_csv(folder / "nasa-http-1995-08-01.tsv.gz", sep="\t", quoting=3, encoding="latin-1", dtype=str)
    clicks = pd.read_json(folder / "usagov-clicks-2013.jsonl.gz", lines=True, dtype=False)
    return [
        drawn("Zipf, web log's size", 33_700, 1, (143_000, 105_000, 89_000)),
        drawn("uniform", 5_700, 0, (48_400, 35_600, 30_000)),
        drawn("Zipf", 6_000, 1, (48_400, 35_600, 30_000)),
        drawn("Zipf, flow log's size", 2_049, 1, (17_400, 12_800, 10_800)),
        Stream.of("NASA URLs", lately.hash_keys(nasa["url"])),
        Stream.of("clicks, URLs", lately.hash_keys(clicks["u"])),
    ]


def fresh(keys: int, seed: int) -> Keys:
    """Keys that are in no stream."""
    return np.random.default_rng([1, seed]).integers(1 << 62, 1 << 63, keys, dtype=np.uint64)


def sliced(kind: Kind, slices: int, bits: int, seed: int, *, k: int = HASHES, **options: Any) -> SlicedFilter:
    """Make a sliced Bloom filter of this many bits in all; keys whose sites have failed count as seen."""
    options = {"on_failure": "duplicate", **options}
    each = bits if kind == "vertical" else bits // slices
    return SlicedFilter(
        kind, slices, lately.BloomFilter.from_parameters(capacity=1, k=k, bits=each, seed=seed), **options
    )


@dataclass(frozen=True)
class Rate:
    """False positives of a sliced filter.

    Attributes
    ----------
    stream, full : float
        Share reported of the first occurrences as they come, and of fresh keys at the end.
    stream_theory, full_theory : float
        The same by `SlicedShape.fpr`, the former averaged over the keys held so far.
    """

    stream: float
    stream_theory: float
    full: float
    full_theory: float

    @classmethod
    def run(cls, stream: Stream, kind: Kind, slices: int, bits: int) -> "Rate":
        """Run the whole stream with one seed, and only its first occurrences, which are what counts, with others."""
        firsts = stream.firsts
        trials = ceil(FIRSTS / len(firsts))
        reported = queried = 0
        for seed in range(trials):
            f = sliced(kind, slices, bits, seed)
            if seed == 0:
                seen = f.duplicated(stream.keys, refresh=False)
                first = np.zeros(len(seen), np.bool_)
                first[np.unique(stream.keys, return_index=True)[1]] = True
                if not seen[~first].all():
                    raise AssertionError(f"{f!r} misses an event that it was given")
                reported += int(seen[first].sum())
            else:
                reported += int(f.duplicated(firsts, refresh=False).sum())
            queried += int(f.query(fresh(len(firsts), seed)).sum())
        held = (np.arange(32) + 0.5) * len(firsts) / 32
        rates = [expected(kind, slices, bits, round(keys)) for keys in held]
        of_all = trials * len(firsts)
        return cls(
            reported / of_all, float(np.mean(rates)), queried / of_all, expected(kind, slices, bits, len(firsts))
        )


def expected(kind: Kind, slices: int, bits: int, keys: int) -> float:
    """Rate of false positives with this many keys (eq. 3; eq. 4 with OIE-5)."""
    cells = bits if kind == "vertical" else bits // slices * slices
    return SlicedShape(kind, HASHES, slices).fpr(keys, cells)


def loads(stream: Stream, kind: Kind, slices: int, seed: int) -> NDArray[np.float64]:
    """Shares of the lookups of a whole stream that each site gets; for a vertical filter, of the cells looked up.

    A filter of many bits, since vertical slices are whole words of 64, and load does not depend on its size.
    """
    f = sliced(kind, slices, 1 << 20, seed)
    f.query(stream.keys)
    return f.traffic.keys / f.traffic.keys.sum()


def fairness(load: NDArray[np.float64]) -> float:
    """Jain's index: 1 if all shares are equal."""
    return float(load.sum() ** 2 / (len(load) * (load**2).sum()))


def expected_fairness(stream: Stream, kind: Kind, slices: int) -> float:
    """Fairness by the mean square of loads, to which an event of share p adds p^2 (S - 1) / k; horizontally k = 1."""
    shares = np.unique(stream.keys, return_counts=True)[1] / len(stream.keys)
    return float(1 / (1 + (slices - 1) * (shares**2).sum() / (1 if kind == "horizontal" else HASHES)))


def failing(stream: Stream, kind: Kind, slices: int, most: int, seed: int, keys: int) -> Iterator[float]:
    """Give the share of fresh keys reported by a full filter with 0, 1 … `most` sites killed."""
    f = sliced(kind, slices, stream.sizes[0], seed)
    f.insert(stream.firsts)
    queried = fresh(keys, seed)
    yield float(f.query(queried).mean())
    for site in np.random.default_rng([2, seed]).permutation(slices)[:most]:
        f.sites.kill(int(site))
        yield float(f.query(queried).mean())


def diced_failing(stream: Stream, dice: Dice, outer: int, inner: int, failed: int, seed: int) -> float:
    """Give the share of fresh keys that a full diced filter reports with this many of its sites killed."""
    # One of S groups, or of the S' sub-slices of each range.
    each = stream.sizes[0] // (outer if dice == "h-v" else inner)
    blank = lately.BloomFilter.from_parameters(capacity=1, k=HASHES, bits=each, seed=seed)
    f = SlicedFilter("diced", (outer, inner), blank, dice=dice, on_failure="duplicate")
    f.insert(stream.firsts)
    for site in np.random.default_rng([2, seed]).permutation(len(f.sites))[:failed]:
        f.sites.kill(int(site))
    return float(f.query(fresh(50_000, seed)).mean())


def thresholds(stream: Stream, bits: int, k: int, slices: int, failed: int, seed: int) -> NDArray[np.float64]:
    """Give false positives and negatives of a full filter with killed sites, for x = 0 … k; shape (2, k + 1)."""
    filled = sliced("vertical", slices, bits, seed, k=k)
    filled.insert(stream.firsts)
    for site in np.random.default_rng([2, seed]).permutation(slices)[:failed]:
        filled.sites.kill(int(site))
    queried = fresh(len(stream.firsts), seed)
    # The same sites for every x: the producer decides about keys without an answer.
    views = [
        sliced("vertical", slices, bits, seed, k=k, on_failure=x, sites=lambda _: filled.sites) for x in range(k + 1)
    ]
    return np.array([[f.query(queried).mean(), 1 - f.query(stream.firsts).mean()] for f in views]).T


class CountedSites(LocalSites):
    """Sites that count the lookups they get."""

    lookups = 0

    def call(self, messages: Any) -> list[Any]:
        """Send messages, and count those that read."""
        self.lookups += sum(message.method == "read" for message in messages)
        return super().call(messages)


def messages(share: float, slices: int, lookups: int, *, pipelined: bool) -> tuple[float, float]:
    """Give messages per lookup of a stream with a share of distinct keys, and by `SlicedShape.messages` while it fills.

    The first events of each twentieth of the stream are looked up, key by key, before that twentieth is inserted.
    """
    distinct = round(share * EVENTS)
    rng = np.random.default_rng(0)
    # Each distinct key once, and repeats of any of them: only their number matters.
    keys = rng.permutation(np.concatenate([np.arange(distinct), rng.integers(0, distinct, EVENTS - distinct)]))
    bits = size(distinct, RATES[1])
    f = sliced("vertical", slices, bits, 0, pipelined=pipelined, sites=CountedSites)
    held, theory = np.zeros(distinct, np.bool_), []
    for piece in np.split(keys, 20):
        queried = piece[: lookups // 20]
        for key in queried:
            f.query([key])
        theory.append(
            SlicedShape("vertical", HASHES, slices).messages(
                pipelined=pipelined,
                density=density(int(held.sum()), bits),
                duplicates=float(held[queried].mean()),
            )
        )
        f.insert(piece)
        held[piece] = True
    assert isinstance(f.sites, CountedSites)
    return f.sites.lookups / lookups, float(np.mean(theory))
