"""An empty filter as a few numbers: it travels to sites and producers without its cells."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lately._core import Filter
from lately.distributed._seed import shared_seed
from lately.filters import BloomFilter


@dataclass(frozen=True)
class Blank:
    """An empty filter of a window of time, or a Bloom filter.

    Examples
    --------
    >>> blank = Blank.of(lately.BloomFilter(1_000_000, 0.01, seed=3))
    >>> blank.make()
    <BloomFilter capacity=1000000 fpr=1.00e-2 ...>
    """

    family: type[Filter]
    arguments: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, filter: Filter) -> "Blank":
        """Record the parameters of an empty filter.

        Raises
        ------
        TypeError
            If it is no filter.
        ValueError
            If it is not empty, its window counts insertions, or its seed is a secret.
        """
        if not isinstance(filter, Filter):
            raise TypeError(f"filter must be a filter of lately, got {type(filter).__name__}")
        if filter.window is not None and filter.lateness is None:
            raise ValueError(
                f"filter has a window of {filter.window} insertions, which several sites share no count of: "
                "take a window of time"
            )
        if filter.inserted:
            raise ValueError(f"filter must be empty, it holds {filter.inserted} insertions")
        # For an array of bits `slice_bits` would give its length a second time.
        arguments: dict[str, Any] = dict(filter.parameters) | {"seed": shared_seed(filter), "capacity": filter.capacity}
        if not isinstance(filter, BloomFilter):
            ahead = None if filter.ahead is None else _span(filter.ahead)
            arguments |= {"window": _span(filter.window), "lateness": _span(filter.lateness), "ahead": ahead}
        return cls(type(filter), tuple(arguments.items()))

    def make(self) -> Filter:
        """Make it, empty."""
        made: Filter = self.family.from_parameters(**dict(self.arguments))  # type: ignore[attr-defined]
        return made


def _span(seconds: float | None) -> np.timedelta64:
    return np.timedelta64(round((seconds or 0) * 1e9), "ns")
