"""A sample of a stream for `tune`: chunks of keys with their exact answers, chances and costs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lately._core import Hashes, hash_keys
from lately.priors import Probabilities, _checks
from lately.priors._distinct import of_stream

# The sample holds three windows or more. The first two fill every filter.
_WINDOWS, _WARM = 3, 2
# Keys are decided one chunk at a time, by the filter in its state before the chunk. A repeat in the chunk of its key
# is missed. Chunks are at most 1/64 of the window, so there are few such repeats.
_CHUNK, _CHUNKS_PER_WINDOW = 4096, 64


@dataclass(frozen=True)
class Chunk:
    """Successive keys that a filter decides together and then inserts.

    Attributes
    ----------
    keys : ndarray of uint64, shape (n,)
    seen : ndarray of bool, shape (n,)
        The exact answers: whether the key was inserted within the window before this chunk.
    prior : Probabilities
        The chance of each key.
    false_positive, false_negative : ndarray of float64, shape (n,)
        Cost of reporting a key that was not inserted within the window, and of missing a key that was.
    """

    keys: NDArray[np.uint64]
    seen: NDArray[np.bool_]
    prior: Probabilities
    false_positive: NDArray[np.float64]
    false_negative: NDArray[np.float64]

    def penalty(self, reported: NDArray[np.bool_]) -> float:
        """Return the cost of a filter's answers, summed over the keys."""
        return float(
            self.false_positive[reported & ~self.seen].sum() + self.false_negative[~reported & self.seen].sum()
        )

    def probable(self, window: int) -> NDArray[np.float64]:
        """Return the chance of each key that it came within the window, by the prior alone."""
        with np.errstate(divide="ignore"):
            probable: NDArray[np.float64] = -np.expm1(window * np.log1p(-np.asarray(self.prior.probability(self.keys))))
        return probable

    def by_prior_alone(self, window: int) -> NDArray[np.bool_]:
        """Return the answers of least penalty without a filter."""
        probable = self.probable(window)
        decided: NDArray[np.bool_] = self.false_positive * (1 - probable) <= self.false_negative * probable
        return decided


class Sample:
    """Keys of a sample: some to fill the filters, then chunks to decide.

    Keys are hashed once; from there on the hashes are the keys. `decided` has the keys of all chunks.
    """

    warm: NDArray[np.uint64]
    decided: Chunk
    chunks: list[Chunk]

    def __init__(
        self, keys: Any, window: int, prior: Any, false_positive: ArrayLike, false_negative: ArrayLike
    ) -> None:
        if hasattr(keys, "__next__"):
            keys = keys.read_all() if hasattr(keys, "read_all") else list(keys)
        hashes = hash_keys(keys)
        n = len(hashes)
        if n < _WINDOWS * window:
            raise ValueError(f"sample must have {_WINDOWS} windows, {_WINDOWS * window} keys or more, got {n}")
        costs = [_costs(false_positive, n, "false_positive"), _costs(false_negative, n, "false_negative")]
        step = min(max(window // _CHUNKS_PER_WINDOW, 1), _CHUNK)
        warm = _WARM * window
        cuts = [slice(start, min(start + step, n)) for start in range(warm, n, step)]
        if prior is None:
            prior, keys = _frequencies(hashes[:warm]), Hashes(hashes)
        p, distinct = _chances(prior, keys, n)
        seen = _seen(hashes, window, warm, cuts)
        self.warm = hashes[:warm]
        self.decided, *self.chunks = [
            Chunk(hashes[cut], seen[cut], Probabilities(p[cut], distinct=distinct), costs[0][cut], costs[1][cut])
            for cut in (slice(warm, n), *cuts)
        ]

    def __len__(self) -> int:
        return len(self.warm) + len(self.decided.keys)

    def disagreement(self, window: int) -> str | None:
        """Return how the prior disagrees with the sample about the share of repeats, if by a factor of two."""
        expected, found = self.decided.probable(window).mean(), self.decided.seen.mean()
        if found / 2 <= expected <= 2 * found:
            return None
        return (
            f"prior makes {expected:.2%} of the keys repeats within the window, but {found:.2%} of the sample's are; "
            "leave it out for the frequencies of the sample"
        )


def _numbers(values: Any, n: int, name: str) -> NDArray[np.float64]:
    """Read a number, or one per key of the sample."""
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number or an array of them, got {type(values).__name__}") from None
    if numbers.shape not in ((), (n,)):
        raise ValueError(
            f"{name} must be a number or one per key of the sample, {n} of them, got shape {numbers.shape}"
        )
    return numbers


def _costs(values: ArrayLike, n: int, name: str) -> NDArray[np.float64]:
    """Return one cost per key; `ValueError` if one is negative or not finite."""
    costs = _numbers(values, n, name)
    wrong = np.flatnonzero(~((costs >= 0) & np.isfinite(costs)))
    if wrong.size:
        raise ValueError(f"{name}[{wrong[0]}] must be 0 or more and finite, got {costs.flat[wrong[0]]}")
    return np.broadcast_to(costs, n)


def _frequencies(hashes: NDArray[np.uint64]) -> Probabilities:
    """Return the chances of keys by how often they came in a part of the stream: half an occurrence more for each."""
    keys, counts = np.unique(hashes, return_counts=True)
    of_all = len(hashes) + len(keys) / 2

    def chances(batch: Any) -> NDArray[np.float64]:
        given = hash_keys(batch)
        place = np.minimum(np.searchsorted(keys, given), len(keys) - 1)
        return (np.where(keys[place] == given, counts[place], 0) + 0.5) / of_all

    return Probabilities(chances, distinct=of_stream(hashes))


def _chances(prior: Any, keys: Any, n: int) -> tuple[NDArray[np.float64], Callable[..., NDArray[np.float64]] | None]:
    """Return the chance of every key, and the distinct-count curve."""
    p = _numbers(prior.probability(keys) if hasattr(prior, "probability") else prior, n, "prior")
    return np.broadcast_to(_checks.probabilities(np.atleast_1d(p), "prior"), n), getattr(prior, "distinct", None)


def _seen(hashes: NDArray[np.uint64], window: int, warm: int, cuts: list[slice]) -> NDArray[np.bool_]:
    """Return whether each key was inserted within the window before its chunk; False for keys before `warm`."""
    _, codes = np.unique(hashes, return_inverse=True)
    seen = np.zeros(len(hashes), bool)
    last = np.full(codes.max() + 1, -window - 1)
    last[codes[:warm]] = np.arange(warm)
    for cut in cuts:
        chunk = codes[cut]
        seen[cut] = cut.start - last[chunk] <= window
        last[chunk] = np.arange(cut.start, cut.stop)
    return seen
