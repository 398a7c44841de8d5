"""An empty filter as a few numbers: it travels to sites and producers without its cells."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lately import filters
from lately._core import Filter, FilterSpec
from lately._plan import Choice

# The generation of a cell that is not set, and the moment before all others.
NEVER = int(np.iinfo(np.int64).min)


def shared_seed(made: Filter | FilterSpec) -> int:
    """Return the seed of a distributed filter; raise `ValueError` if it is a secret.

    Machines exchange hashes, and every producer must compute the same ones.
    """
    if made.seed is None:
        raise ValueError("a filter over many sites needs a seed that all producers know: an int, not a secret")
    return made.seed


@dataclass(frozen=True)
class EmptyFilter:
    """The parameters of an empty filter: its class, and the arguments of a constructor from parameters.

    The filter has a window of time, or is a Bloom filter. Values are of JSON's types; spans are in nanoseconds.
    """

    manifest: Mapping[str, Any]

    @property
    def family(self) -> str:
        """Name of the class of the filter."""
        family: str = self.manifest["family"]
        return family

    @classmethod
    def of(cls, filter: Filter | Choice) -> "EmptyFilter":
        """Return the parameters of an empty or a planned filter; raise an error for any other."""
        if not isinstance(filter, Filter | Choice):
            raise TypeError(f"filter must be a filter of lately, got {type(filter).__name__}")
        like: Any = filter.spec() if isinstance(filter, Choice) else filter
        if like.window is not None and like.lateness is None:
            raise ValueError(
                f"filter has a window of {like.window} insertions, but sites have no common count: "
                "take a window of time"
            )
        if isinstance(filter, Filter) and filter.inserted:
            raise ValueError(f"filter must be empty, it holds {filter.inserted} insertions")
        family = like.kind if isinstance(like, FilterSpec) else like._family
        manifest = {"family": family, **like.parameters, "seed": shared_seed(like)}
        if family != "ExactFilter":
            manifest["capacity"] = like.capacity
        elif like.missing == "distinct":
            raise ValueError(
                "filter takes each missing key for a key of its own, which sites cannot: make it with missing='same', "
                "and leave out the missing keys"
            )
        if family != "BloomFilter":
            max_ahead = None if like.max_ahead is None else _span(like.max_ahead)
            manifest |= {"window": _span(like.window), "lateness": _span(like.lateness), "max_ahead": max_ahead}
        return cls(manifest)

    def make(self) -> Filter:
        """Make the filter, empty."""
        kind: type[filters.Filter] = getattr(filters, self.family)
        return kind._built(self.family, **self._given())

    def spec(self) -> FilterSpec:
        """Return the parameters as an object without cells."""
        return FilterSpec(self.family, **self._given())

    def _given(self) -> dict[str, Any]:
        """Return what makes a filter of the family."""
        given = {name: value for name, value in self.manifest.items() if name in ("seed", "capacity", *_SPANS)}
        for name in _SPANS:
            if given.get(name) is not None:
                given[name] = np.timedelta64(given[name], "ns")
        others = self.manifest.keys() - given.keys() - {"family"}
        return given | {"parameters": {name: self.manifest[name] for name in others}}


_SPANS = ("window", "lateness", "max_ahead")


def _span(seconds: float | None) -> int:
    return round((seconds or 0) * 1e9)
