"""What a learned prior is worth on real streams: penalties of answers, and how far posteriors are from the truth.

Each event is queried, then inserted, batch by batch; a wrong answer costs a penalty of its own, uniform in [1, 10).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

import lately
from support.planned import planned
from support.real_streams import VISITOR, Case, read_clicks, read_nasa, read_zeek

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
    """Return for each event whether its key was among the last `window` insertions when its batch began."""
    begins = np.arange(len(keys)) // batch * batch
    last = last_seen(keys)
    while np.any(late := last >= begins):  # inserted by the batch itself: go back to the time before
        last[late] = last[last[late]]
    return begins - last <= window


def run(keys: NDArray[np.int64], window: int, bits: float, prior: Prior, batch: int) -> Result:
    """Send a stream through a filter; compare the answers after the first quarter, when filter and prior are warm."""
    made = planned("age-partitioned", window, nbytes=round(bits * window / 8))
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
    # The answers of `decide`, without computing the posterior again.
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
