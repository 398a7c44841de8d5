"""The filters of this package, as they are raced, and the base of all structures."""

from collections.abc import Callable
from typing import Any

import numpy as np

import lately
from lately._families import EVERY

OPERATIONS = ("duplicated", "query", "insert")
# The structure to which all ratios refer.
OURS = "lately.Filter"
EXACT = "lately.ExactFilter"

Make = Callable[[], "Structure"]


class Structure:
    """One way to find duplicates, with defaults that suit most."""

    operations = OPERATIONS
    # The form of keys it is fastest with, see `streams.give`.
    takes = "list"
    # It gets every n-th of the keys.
    share = 1
    # Whether it must report every key of the window.
    promise = True
    # Whether each round has a new one that holds the window: it only fills, or sees a part of the stream.
    renewed = False
    # Bytes it takes; None for all keys.
    bits: int | None = None
    # Keys after which it errs most.
    fullest = 0

    def close(self) -> None:
        """Free what is not memory."""


class Ours(Structure):
    """A filter of this package over a window of insertions."""

    def __init__(self, made: lately.Filter, takes: str = "array", share: int = 1, promise: bool = True) -> None:
        self.filter, self.takes, self.share, self.promise, self.renewed = made, takes, share, promise, share > 1
        self.insert, self.query, self.duplicated = made.insert, made.query, made.duplicated
        self.fullest = self.whole_generations(int(made.window))

    @property
    def bits(self) -> int:
        return self.filter.nbytes * 8

    def whole_generations(self, window: int) -> int:
        """Fill with two windows of keys: a filter is fullest just before a shift."""
        parameters = self.filter.parameters
        parts = next((parameters[name] for name in ("l", "r", "blocks", "epochs") if name in parameters), window)
        generation = -(-window // parts)
        return 2 * window // generation * generation


class Timed(Ours):
    """A filter over a window of time, with an event a second."""

    def __init__(self, made: lately.Filter, length: int) -> None:
        super().__init__(made)
        self.seconds, self.now = np.arange(length), 0
        self.insert, self.query, self.duplicated = self.timed_insert, self.timed_query, self.timed_duplicated

    def moments(self, keys: Any) -> np.ndarray:
        first, self.now = self.now, self.now + len(keys)
        return self.seconds[first : self.now]

    def timed_insert(self, keys: Any) -> None:
        self.filter.insert(keys, at=self.moments(keys))

    def timed_query(self, keys: Any) -> np.ndarray:
        return self.filter.query(keys, at=int(self.seconds[self.now - 1]))

    def timed_duplicated(self, keys: Any) -> np.ndarray:
        return self.filter.duplicated(keys, at=self.moments(keys))


class Exact(Structure):
    """The exact window."""

    takes = "array"

    def __init__(self, made: lately.ExactFilter) -> None:
        self.filter, self.fullest = made, 2 * int(made.window)
        self.insert, self.query, self.duplicated = made.insert, made.query, made.duplicated

    @property
    def bits(self) -> int:
        return self.filter.nbytes * 8


class Bloom(Structure):
    """Nothing is ever forgotten."""

    operations = ("query", "insert")
    takes = "array"
    renewed = True

    def __init__(self, made: lately.BloomFilter) -> None:
        self.insert, self.query = made.insert, made.query
        self.bits, self.fullest = made.nbytes * 8, made.capacity


def layouts(window: int, fpr: float) -> dict[str, Make]:
    """Make what a user gets without an option, the exact window, and families in each of their layouts."""
    families = {"age-partitioned": "age-partitioned", "guarded epochs": "guarded-epoch"}
    ways = {"line": "-line", "blocks of 512": "-512", "plain": ""}
    rows = {f"{title}, {way}": EVERY[name + end] for title, name in families.items() for way, end in ways.items()}
    rows["guarded epochs, transposed"] = EVERY["guarded-epoch-transposed"]
    default: dict[str, Make] = {
        OURS: lambda: Ours(lately.Filter(window, fpr)),
        EXACT: lambda: Exact(lately.ExactFilter(window)),
    }
    return default | {title: lambda row=row: Ours(row.make(window, fpr=fpr)) for title, row in rows.items()}


def others(window: int, fpr: float, length: int) -> dict[str, Make]:
    """Make the other families, windows of time included."""
    span, planned = f"{window}s", {"capacity": window}
    return {
        "age-partitioned, line, by time": lambda: Timed(lately.AgePartitionedBloomFilter(span, fpr, **planned), length),
        "lately.Filter, by time": lambda: Timed(lately.Filter(span, fpr), length),
        "time-limited": lambda: Timed(lately.TimeLimitedBloomFilter(span, fpr, **planned), length),
        "timing": lambda: Ours(lately.TimingBloomFilter(window, fpr)),
        "SWAMP": lambda: Ours(lately.Swamp(window, fpr)),
        "counting": lambda: Ours(lately.baselines.CountingBloomFilter(window, fpr)),
        "fingerprint buffer": lambda: Ours(lately.baselines.FingerprintBuffer(window, fpr), share=10_000),
        "stable, no promise": lambda: Ours(lately.baselines.StableBloomFilter(window, fpr), promise=False),
        "generalized, no promise": lambda: Ours(lately.baselines.GeneralizedBloomFilter(window, fpr), promise=False),
        "Bloom, no window": lambda: Bloom(lately.BloomFilter(window, fpr)),
    }


def containers(window: int, fpr: float, kind: str) -> dict[str, Make]:
    """Make the default again, to be given other containers than arrays."""
    forms = {"list": "a list", "object": "an object array"} if kind == "url" else {"list": "a list"}
    return {
        f"{OURS}, from {spoken}": lambda takes=takes: Ours(lately.Filter(window, fpr), takes)
        for takes, spoken in forms.items()
    }
