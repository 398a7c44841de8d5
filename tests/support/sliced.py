"""Sliced filters of each kind, the small filters they are made of, and sites that fail them."""

import numpy as np
import pytest

import lately
from lately._core import FilterSpec
from lately.distributed import LocalSites

KINDS = {
    "horizontal": {"kind": "horizontal", "slices": 6},
    "vertical": {"kind": "vertical", "slices": 9},
    "pipelined": {"kind": "vertical", "slices": 9, "pipelined": True},
    "h-v": {"kind": "diced", "slices": (2, 3), "dice": "h-v"},
    "v-h": {"kind": "diced", "slices": (3, 2), "dice": "v-h"},
}
# A vertical filter writes as a pipelined one does, and is queried as diced ones are.
CELLS = {name: shape for name, shape in KINDS.items() if name not in ("horizontal", "vertical")}
every_kind = pytest.mark.parametrize("shape", [KINDS["horizontal"], *CELLS.values()], ids=["horizontal", *CELLS])
cells_of_keys = pytest.mark.parametrize("shape", CELLS.values(), ids=CELLS)
TIMERS = {"window": "10min", "k": 6, "bpt": 5, "blocks": 12, "capacity": 500, "seed": 3}


def timers(**more):
    return lately.TimingBloomFilter.from_parameters(**TIMERS | {"slice_timers": 1000} | more)


def wide():
    """Many timers: hardly any of a fresh key's cells are set, on all sites but one as on all."""
    return lately.TimingBloomFilter.from_parameters("600s", k=6, bpt=5, blocks=12, slice_timers=60_000, capacity=20_000)


def state(sliced):
    return [{name: array.tobytes() for name, array in site._contents.state().items()} for site in sliced.sites._sites]


def sites_of_cells(sliced, keys):
    """The site of each cell of keys, shape (n, k); of a cell that a key has twice, the site of its first cell."""
    scattered = sliced._slices.ranges.scatter(lately.hash_keys(keys, seed=sliced.seed))
    sites = np.full((len(keys), sliced._like.parameters["k"]), -1)
    for (site, _), places in zip(scattered.shares(), scattered.places(), strict=True):
        sites.reshape(-1)[places] = site
    return np.where(sites < 0, sites[:, :1], sites)


def spec(f):
    """The attributes of a filter as an object without cells, with which producers number generations."""
    given = {"window": f.window, "seed": f.seed, "parameters": f.parameters}
    if isinstance(f.window, float):
        given |= {"window": f"{f.window}s", "lateness": f"{f.lateness}s", "capacity": f.capacity}
    return FilterSpec(f._family, **given if f.window else given | {"capacity": f.capacity})


def retained(f):
    return spec(f).retained


def generations_of(f, at, n):
    """The generation of each moment; None is now."""
    like, at = spec(f), at if isinstance(f.window, float) else None
    return like.generations(like.moments(at, n, latest=None, new=False), n)


class Halting(LocalSites):
    """Sites of which, once, only every other one gets what is written, before the process that sends it dies.

    In vertical and diced filters one site has the batch and its record already.
    """

    halt = False

    def call(self, messages):
        if self.halt and len(messages) > 1 and messages[0].method in ("set", "touch", "insert", "duplicated"):
            self.halt = False
            super().call(messages[::2])
            raise ConnectionError("the producer dies")
        return super().call(messages)
