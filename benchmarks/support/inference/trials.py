"""Trials of paper 5, section 6: one filter in one condition, its answers and posteriors compared with the truth.

Every query is followed by the insertion of its key. Deviation from the paper: a chunk of 1021 keys is queried at its
beginning and then inserted, and the truth is that of the same moment.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import ceil
from operator import itemgetter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import lately
from lately._families import EVERY
from support.inference.printed import BlockTimers, SimpleBuffer
from support.inference.streams import CHUNK, Bools, Condition, Floats, Keys, ages

BINS = 20
PENALTIES = (1.0, 10.0)
WORD = 64


class Subject(Protocol):
    """What is tried."""

    def insert(self, keys: Keys) -> None: ...

    def query(self, keys: Keys) -> Bools: ...

    def posterior(self, keys: Keys, prior: Any) -> Floats: ...


def timers(condition: Condition, bits: int, k: int, *, corrected: bool) -> Subject:
    """Paper 5's filter: with all as printed, or with G corrected and D exact."""
    distinct = condition.law.distinct if corrected else condition.printed_distinct
    return BlockTimers(condition.window, bits, k, distinct, corrected=corrected)


def buffer(condition: Condition, bits: int, hash_bits: int) -> Subject:
    return SimpleBuffer(condition.window, bits, hash_bits, condition.law.distinct)


def words(bits: int, parts: int) -> int:
    """Bits of each part, in whole words, as the filters round them up."""
    return bits // parts // WORD * WORD


def timing(condition: Condition, bits: int, k: int, bpt: int) -> Subject:
    blocks = min(2**bpt - 2, condition.window - 1)
    slice_timers = bits // k // WORD * (WORD // bpt)
    return lately.TimingBloomFilter.from_parameters(
        condition.window, k=k, bpt=bpt, blocks=blocks, slice_timers=slice_timers
    )


def age_partitioned(condition: Condition, bits: int, k: int, l: int) -> Subject:  # noqa: E741
    return lately.AgePartitionedBloomFilter.from_parameters(condition.window, k=k, l=l, slice_bits=words(bits, k + l))


def guarded_epoch(condition: Condition, bits: int, r: int, k: int) -> Subject:
    return lately.GuardedEpochBloomFilter.from_parameters(condition.window, r=r, k=k, segment_bits=words(bits, r + 1))


def aged_cuckoo(condition: Condition, bits: int, fingerprint_bits: int, epochs: int) -> Subject:
    """Return a filter in pages of at most 2,048 lines."""
    lines = bits // 512
    pages = ceil(lines / 2048)
    size = {"fingerprint_bits": fingerprint_bits, "epochs": epochs, "pages": pages, "lines": lines // pages // 2 * 2}
    return lately.AgedCuckooFilter.from_parameters(condition.window, **size)


def generalized(condition: Condition, bits: int, k: int) -> Subject:
    return lately.baselines.GeneralizedBloomFilter.from_parameters(condition.window, bits=bits, k1=k, k0=k)


def as_planned(condition: Condition, bits: int, name: str) -> Subject:
    """A filter of this package in the shape it gives itself for so much memory."""
    return EVERY[name].make(condition.window, nbytes=bits // 8)


class EverySecond:
    """A filter with a window of time, given a key every second."""

    def __init__(self, condition: Condition) -> None:
        self.filter = lately.TimeLimitedBloomFilter.from_parameters(f"{condition.window}s", k=6, l=12, slice_bits=4096)
        self.inserted = 0

    def insert(self, keys: Keys) -> None:
        self.filter.insert(keys, at=self.inserted + np.arange(len(keys)))
        self.inserted += len(keys)

    def query(self, keys: Keys) -> Bools:
        return self.filter.query(keys, at=self.inserted - 1)

    def posterior(self, keys: Keys, prior: float | Floats) -> Floats:
        rate = -np.log1p(-np.asarray(prior))
        return self.filter.posterior(keys, rate if rate.ndim else float(rate), at=self.inserted - 1)


PAPER_K = [1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 21, 25, 30]
GRIDS: dict[str, tuple[Any, dict[str, list[Any]]]] = {
    "BTBF as printed": (partial(timers, corrected=False), {"k": PAPER_K}),
    "BTBF, G corrected": (partial(timers, corrected=True), {"k": PAPER_K}),
    "simple buffer": (buffer, {"hash_bits": list(range(1, 31))}),
    "timing": (timing, {"k": [1, 2, 3, 4, 5, 6, 8, 10, 12, 15], "bpt": [2, 3, 4, 5, 6, 7, 8, 10, 12]}),
    "age-partitioned": (age_partitioned, {"k": [1, 2, 3, 4, 6, 8, 10, 14, 20], "l": [2, 4, 8, 16, 32, 64, 107]}),
    "guarded-epoch": (guarded_epoch, {"r": [1, 2, 3, 4, 6, 8, 16, 32, 64, 127], "k": [1, 2, 3, 4, 6, 8, 10, 12, 15]}),
    "aged-cuckoo": (
        aged_cuckoo,
        {"fingerprint_bits": [10, 13, 16, 20, 25, 28, 32, 37], "epochs": [2, 4, 8, 16, 32, 64, 128, 200]},
    ),
    "generalized": (generalized, {"k": PAPER_K}),
    **{
        name: (as_planned, {"name": [name]})
        for name in [
            "age-partitioned-512",
            "age-partitioned-line",
            "guarded-epoch-512",
            "guarded-epoch-line",
            "swamp",
            "counting",
            "stable",
        ]
    },
}
"""How each family is made, and the parameters tried for it."""

Parameters = tuple[tuple[str, Any], ...]


def grid(family: str) -> Iterator[Parameters]:
    """Give every choice of parameters."""
    names, values = zip(*GRIDS[family][1].items(), strict=True)
    return (tuple(zip(names, each, strict=True)) for each in product(*values))


def make(family: str, condition: Condition, bits_per_key: float, parameters: Parameters) -> Subject:
    """Make a filter of this many bits per key of the window; ValueError if there is none of that shape."""
    subject: Subject = GRIDS[family][0](condition, round(condition.window * bits_per_key), **dict(parameters))
    return subject


@dataclass
class Outcome:
    """Queries of a trial: answers without inference, posteriors, truth, and what a wrong answer costs."""

    standard: Bools
    posterior: Floats
    truth: Bools
    false_positive: Floats
    false_negative: Floats

    def costs(self, answers: Bools) -> Floats:
        """Penalty of each query."""
        return np.where(self.truth, ~answers * self.false_negative, answers * self.false_positive)

    @property
    def standard_penalty(self) -> float:
        """What the answers of `query` cost: mean penalty per query."""
        return float(self.costs(self.standard).mean())

    @property
    def decided(self) -> Bools:
        """The answers of least expected penalty, which `decide` gives."""
        return self.false_positive * (1 - self.posterior) <= self.false_negative * self.posterior

    @property
    def penalty(self) -> float:
        """What these cost: mean penalty per query."""
        return float(self.costs(self.decided).mean())

    @property
    def _bins(self) -> NDArray[np.int64]:
        return np.minimum((self.posterior * BINS).astype(np.int64), BINS - 1)

    def _off(self, expected: Floats) -> float:
        """|true queries - expected ones| by bin, in proportion to all queries."""
        return float(np.abs(np.bincount(self._bins, self.truth - expected, BINS)).sum() / len(expected))

    @property
    def calibration_error(self) -> float:
        """Mean over the queries of |frequency in their bin of 20 - mean posterior in it|."""
        return self._off(self.posterior)

    @property
    def printed_error(self) -> float:
        """Eq. 35: |frequency - middle of the bin|, which cannot be 0 for posteriors near 0 and 1."""
        return self._off((self._bins + 0.5) / BINS)


@dataclass(frozen=True)
class Stream:
    """What all trials of a condition see. Queries come in chunks; the last three are of shape (chunks, keys)."""

    condition: Condition
    keys: Keys
    starts: NDArray[np.int64]
    truth: Bools
    false_positive: Floats
    false_negative: Floats

    @classmethod
    def draw(cls, condition: Condition, warm_up: int, queries: int, seed: int, *, unasked: int = 0) -> "Stream":
        """Draw a stream; of the keys after the warm-up as many as `unasked`, at random, are inserted only."""
        chunks = ceil(queries / CHUNK)
        keys = condition.draw(warm_up + chunks * CHUNK + unasked, seed)
        rng = np.random.default_rng(seed + 1)
        skipped = rng.multinomial(unasked, np.full(chunks, 1 / chunks)).cumsum()
        starts = warm_up + skipped + np.arange(chunks) * CHUNK
        penalties = rng.uniform(*PENALTIES, (2, chunks, CHUNK))
        return cls(condition, keys, starts, ages(keys, starts) < condition.window, *penalties)

    def thinned(self, by: int) -> "Stream":
        """Give the same with one of every `by` chunks."""
        each_part = (each[::by] for each in (self.starts, self.truth, self.false_positive, self.false_negative))
        return Stream(self.condition, self.keys, *each_part)

    def compare(self, standard: Bools, posterior: Floats) -> Outcome:
        """Set answers of shape (chunks, keys) against the truth."""
        each = (standard, posterior, self.truth, self.false_positive, self.false_negative)
        return Outcome(*(of.ravel() for of in each))

    def run(self, subject: Subject) -> Outcome:
        """Query each chunk, then insert it."""
        standard, posterior = np.empty(self.truth.shape, bool), np.empty(self.truth.shape)
        inserted = 0
        for chunk, start in enumerate(self.starts.tolist()):
            subject.insert(self.keys[inserted:start])
            inserted = start
            keys = self.keys[start : start + CHUNK]
            standard[chunk] = subject.query(keys)
            # A filter of this package reads the law itself, also for the number of different keys.
            prior = self.condition.law if isinstance(subject, lately.Filter) else self.condition.prior(keys)
            posterior[chunk] = subject.posterior(keys, prior)
        return self.compare(standard, posterior)

    def prior_only(self) -> Outcome:
        """Decide without a filter: without inference every key counts as present."""
        keys = self.keys[self.starts[:, None] + np.arange(CHUNK)]
        chance = -np.expm1(self.condition.window * np.log1p(-np.asarray(self.condition.prior(keys))))
        return self.compare(np.ones(keys.shape, bool), np.broadcast_to(chance, keys.shape))


@dataclass(frozen=True)
class Best:
    """The parameters of least penalty without and with inference."""

    standard: Parameters
    inferential: Parameters


def choose(family: str, bits_per_key: float, stream: Stream) -> Best | None:
    """Try the whole grid on an eighth of the queries, the better ones on all; None if the family has no such filter."""
    candidates = list(grid(family))
    for part, keep in ((stream.thinned(8), 6), (stream, 1)):
        found: list[tuple[float, float, Parameters]] = []
        for parameters in candidates:
            try:
                subject = make(family, stream.condition, bits_per_key, parameters)
            except ValueError:
                continue  # the grid reaches beyond what fits into little memory
            outcome = part.run(subject)
            found.append((outcome.standard_penalty, outcome.penalty, parameters))
        if not found:
            return None
        standard, inferential = ([each[2] for each in sorted(found, key=itemgetter(by))[:keep]] for by in (0, 1))
        candidates = list(dict.fromkeys(standard + inferential))
    return Best(standard[0], inferential[0])
