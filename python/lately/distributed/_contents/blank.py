"""An empty filter as a few numbers: it travels to sites and producers without its cells."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lately import filters
from lately._core import Filter
from lately.distributed._seed import shared_seed
from lately.filters import BloomFilter


@dataclass(frozen=True)
class Blank:
    """An empty filter of a window of time, or a Bloom filter.

    Attributes
    ----------
    family : str
        Name of its class.
    arguments : tuple of (str, value)
        What its `from_parameters` takes, of JSON's types: spans are nanoseconds.

    Examples
    --------
    >>> blank = Blank.of(lately.BloomFilter(1_000_000, 0.01, seed=3))
    >>> blank.make()
    <BloomFilter capacity=1000000 fpr=1.00e-2 ...>
    """

    family: str
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
        return cls(type(filter).__name__, tuple(arguments.items()))

    @property
    def manifest(self) -> dict[str, Any]:
        """Itself, of JSON's types."""
        return {"family": self.family, **dict(self.arguments)}

    @classmethod
    def of_manifest(cls, manifest: Mapping[str, Any]) -> "Blank":
        """Make it again."""
        given = dict(manifest)
        return cls(given.pop("family"), tuple(given.items()))

    def make(self) -> Filter:
        """Make it, empty."""
        given = {
            name: np.timedelta64(value, "ns") if name in _SPANS and value is not None else value
            for name, value in self.arguments
        }
        made: Filter = getattr(filters, self.family).from_parameters(**given)
        return made


_SPANS = ("window", "lateness", "ahead")


def _span(seconds: float | None) -> int:
    return round((seconds or 0) * 1e9)
