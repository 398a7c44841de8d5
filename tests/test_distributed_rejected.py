"""What filters over several sites, trees and their formulas reject, each by an error that names it: one table."""

import numpy as np
import pytest

import lately
from lately._core import Slice, SlicedShape, slice_capacity
from lately.distributed import BloomTree, LocalSites, SlicedFilter
from lately.distributed._tree.topology import Topology
from support.bloom_trees import SHAPE, F, timing
from support.sliced import timers


def holding():
    """A filter that is not empty."""
    full = timers()
    full.insert(["a"], at=0)
    return full


PARTED = lately.TimingBloomFilter.from_parameters("10min", capacity=500, k=4, bpt=4, blocks=10, slice_timers=400)
GROWING = lately.TimingBloomFilter("10min", 0.01, capacity=500, grow="density")
BITS = lately.BloomFilter.from_parameters(capacity=500, k=5, bits=3001)
CELLS, TWO_SITES = np.zeros(3, np.uint64), SlicedShape("vertical", 4, 2)

VERTICAL = {"kind": "vertical", "slices": 3, "filter": timers()}
# Changes of these options.
OPTIONS = [
    ({"kind": "sideways"}, ValueError, "kind must be 'horizontal', 'vertical' or 'diced', got 'sideways'"),
    ({"slices": 0}, ValueError, "slices must be at least 1"),
    ({"slices": 70_000}, ValueError, "at most 65536"),
    ({"slices": (2, 3)}, TypeError, "slices of a vertical filter must be one number"),
    ({"slices": 2.0}, TypeError, "must be one number, got 2.0"),
    ({"kind": "diced", "slices": 6}, ValueError, "dice must be 'h-v' or 'v-h', got None"),
    ({"dice": "h-v"}, ValueError, "dice is for diced filters"),
    ({"kind": "horizontal", "pipelined": True}, ValueError, "pipelined is for"),
    ({"on_failure": 7}, ValueError, r"on_failure must lie in 0 \.\. 6"),
    ({"on_failure": "forget"}, ValueError, "on_failure must be"),
    ({"sites": "moon"}, ValueError, "sites must be 'local', 'ray'"),
    ({"interval": -1}, ValueError, "interval must be at least 0"),
    ({"filter": lately.ExactFilter("1h", seed=0, missing="distinct")}, ValueError, "with missing='same'"),
    ({"deadline": 0}, ValueError, "deadline must be above 0"),
    ({"sites": LocalSites, "deadline": 5}, ValueError, "deadline is for sites='ray'"),
    ({"sites": LocalSites, "name": "clicks"}, ValueError, "name is for sites='ray'"),
    ({"filter": holding()}, ValueError, "filter must be empty, it holds 1 insertions"),
    ({"filter": None}, TypeError, "filter must be a filter of lately, got NoneType"),
    (
        {"filter": lately.TimingBloomFilter(1000, 0.01)},
        ValueError,
        "window of 1000 insertions, but sites",
    ),
    ({"filter": lately.TimeLimitedBloomFilter("1min", 0.01)}, ValueError, "not a TimeLimitedBloomFilter"),
    ({"filter": lately.TimingBloomFilter("1min", 0.1, capacity=9, grow="density")}, ValueError, "grows"),
    ({"filter": lately.BloomFilter.from_parameters(capacity=9, k=2, bits=64)}, ValueError, "parts must lie in 1"),
]
# Parents of no tree.
PARENTS = [
    ([], ValueError, "found none"),
    ([0.5, -1], ValueError, "parent of node 0 is 0.5"),
    ("abc", ValueError, "parent of node 0 is 'a'"),
    ([[-1]], TypeError, "unhashable"),
    (7, TypeError, "not iterable"),
    ([0], ValueError, "found none"),
    ([-1, -1, 0], ValueError, "found 0, 1"),
    ([-1, 2], ValueError, "parent of node 1 is 2, which is no node"),
    ([-1, -2], ValueError, "parent of node 1 is -2"),
    ([-1, 2, 1], ValueError, "node 1 run in a cycle"),
    ({"a": None, "b": "c", "c": "b"}, ValueError, "'b' run in a cycle"),
    ({"a": None, "b": "z"}, ValueError, "'b' is 'z'"),
    ({"a": "b", "b": "a"}, ValueError, "found none"),
    ({"a": None, "b": None}, ValueError, "found 'a', 'b'"),
    ({None: None}, ValueError, "named None"),
    ({}, ValueError, "found none"),
]
CALLS = [
    (lambda: SlicedFilter(**VERTICAL | {"filter": F}).insert(["a"], at=0), ValueError, "this filter has no window"),
    (lambda: BloomTree("thick", SHAPE, F), ValueError, "'thick'"),
    (lambda: BloomTree("dense", SHAPE, F, on_failure="maybe"), ValueError, "'maybe'"),
    (lambda: BloomTree("dense", SHAPE, F, top_down=0), ValueError, "from 1 to 2, got 0"),
    (lambda: BloomTree("dense", SHAPE, F, top_down=3), ValueError, "from 1 to 2, got 3"),
    (lambda: BloomTree("dense", SHAPE, "filter"), TypeError, "got str"),
    (lambda: BloomTree("dense", SHAPE, lately.Swamp(100, 0.01)), TypeError, "got Swamp"),
    (lambda: BloomTree("dense", SHAPE, lately.TimingBloomFilter(100, 0.01)), ValueError, "100 insertions"),
    (
        lambda: BloomTree("dense", SHAPE, lately.TimingBloomFilter("1h", 0.01, capacity=9, grow="density")),
        ValueError,
        "grow",
    ),
    (
        lambda: BloomTree(
            "dense",
            SHAPE,
            lately.TimingBloomFilter.from_parameters(
                "1h", k=4, bpt=4, blocks=2, slice_timers=99, equal_timers=2, capacity=9
            ),
        ),
        ValueError,
        "equal timers",
    ),
    (lambda: BloomTree("dense", SHAPE, F, sites="moon"), ValueError, "'moon'"),
    (lambda: BloomTree("dense", SHAPE, F).at(1), ValueError, "no leaf"),
    (lambda: BloomTree("dense", SHAPE, F).at(99), KeyError, "99"),
    (lambda: BloomTree("dense", SHAPE, F).at(4).duplicated(["a"], at=5), ValueError, "no window"),
    (lambda: BloomTree("dense", SHAPE, F).at(4).duplicated(["a"], number=0), ValueError, "at least 1"),
    (lambda: BloomTree("dense", SHAPE, F).at(4, producer="p").duplicated(["a"]), TypeError, "needs its number"),
    (lambda: BloomTree("dense", SHAPE, F).at(4).duplicated([object()]), TypeError, "object"),
    (lambda: BloomTree("dense", SHAPE, timing()).at(4).duplicated(["a"], at=[1, 2]), ValueError, "2 times for 1"),
    (lambda: BloomTree("dense", SHAPE, timing()).at(4).duplicated(["a", "b"], at=[2, 1]), ValueError, "lateness"),
    (lambda: SlicedShape("flat", 4, 2), ValueError, 'kind must be .* got "flat"'),
    (lambda: SlicedShape("vertical", 4, 2, inner=2), ValueError, "inner"),
    (lambda: SlicedShape("vertical", 4, 0), ValueError, "sites"),
    (lambda: TWO_SITES.fpr(10, 0), ValueError, "cells"),
    (lambda: TWO_SITES.failure_rates(3, 0.5), ValueError, "failed"),
    (lambda: TWO_SITES.failure_rates(1, 1.5), ValueError, "density"),
    (lambda: TWO_SITES.failure_rates(1, 0.5, on_failure="x"), ValueError, "on_failure"),
    (lambda: TWO_SITES.failure_rates(1, 0.5, on_failure=0.5), TypeError, "on_failure"),
    (lambda: TWO_SITES.failure_rates(1, 0.5, on_failure=5), ValueError, "least must be at most k"),
    (lambda: SlicedShape("h-v", 4, 2).least_sites(2, 0.5, fpr=0.1), ValueError, "kind"),
    (lambda: TWO_SITES.least_sites(2, 0.9, fpr=0.1), ValueError, "no number of sites"),
    (lambda: TWO_SITES.least_sites(2, 0.9), TypeError, "fpr or fnr"),
    (lambda: slice_capacity(10, 0), ValueError, "slices"),
    (lambda: Slice(GROWING), ValueError, "grows"),
    (lambda: Slice(lately.Swamp(100, 0.1)), ValueError, "only Bloom filters and timing Bloom filters"),
    (lambda: Slice(5), TypeError, "like"),
    (lambda: Slice(PARTED, parts=0), ValueError, "parts must lie in 1 .. 100, .* got 0"),
    (lambda: Slice(PARTED, parts=101), ValueError, "got 101"),
    (lambda: Slice(PARTED, part=3, parts=3), ValueError, "part must lie in 0 .. 2, got 3"),
    (lambda: Slice(PARTED, part=-1), ValueError, "part"),
    (lambda: Slice.bounds(PARTED, 101), ValueError, "got 101"),
    (
        lambda: Slice(PARTED).ages(np.array([5])),
        TypeError,
        "cells must be an ndarray of uint32 or uint64, not an array of",
    ),
    (lambda: Slice(PARTED).ages([5]), TypeError, "not list"),
    (lambda: Slice(PARTED).ages(CELLS[None]), ValueError, "cells must have one dimension, got 2"),
    (lambda: Slice(PARTED).touch(CELLS, 0.5), TypeError, "float"),
    (lambda: Slice(BITS).touch(CELLS, 1), ValueError, "only generation 0, got 1"),
    (lambda: Slice.from_words(PARTED, CELLS, newest=5), ValueError, "100 words, got 3"),
    (lambda: Slice.from_words(PARTED, CELLS[None], newest=5), ValueError, "one dimension"),
    (lambda: Slice.from_words(PARTED, np.ones(100, "u8"), newest=-(2**63)), ValueError, "newest"),
]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        *((lambda change=change: SlicedFilter(**VERTICAL | change), *row) for change, *row in OPTIONS),
        *((lambda parents=parents: Topology.of(parents), *row) for parents, *row in PARENTS),
        *CALLS,
    ],
)
def test_an_error_names_what_is_rejected(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert caught.type is error
