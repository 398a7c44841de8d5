"""Formulas of a filter over several sites: the messages beside a simulation, and how arguments are taken.

`test_sliced_rates.py` compares the rates with those of filters, and `tests/core/shape/slicing.rs` with the paper's.
"""

import numpy as np
import pytest

from lately._core import SlicedShape, slice_capacity

ARRANGED = [("horizontal", 12, 1), ("vertical", 12, 1), ("vertical", 3, 1), ("h-v", 4, 3), ("v-h", 3, 4)]
K, TRIALS = 5, 200_000
TWO_SITES = SlicedShape("vertical", 4, 2)


def sites_of_cells(rng, kind, sites, inner, partitioned):
    """The sites of the K cells of TRIALS keys, numbered through."""
    groups, spread = {"horizontal": (sites, 1), "vertical": (1, sites), "h-v": (sites, inner), "v-h": (inner, sites)}[
        kind
    ]
    place = rng.random((TRIALS, K))
    if partitioned:
        place = (np.arange(K) + place) / K
    return groups * spread, rng.integers(groups, size=(TRIALS, 1)) * spread + (place * spread).astype(int)


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize(("kind", "sites", "inner"), ARRANGED)
def test_messages_beside_a_simulation(kind, sites, inner, partitioned):
    rng = np.random.default_rng(7)
    count, at = sites_of_cells(rng, kind, sites, inner, partitioned)
    seen = rng.random((TRIALS, 1)) < 0.3
    is_set = seen | (rng.random((TRIALS, K)) < 0.7)
    read = {False: np.zeros(TRIALS), True: np.zeros(TRIALS)}
    going = np.ones(TRIALS, bool)
    for j in range(K):
        new = (at[:, :j] != at[:, j : j + 1]).all(axis=1)
        read[False] += new
        read[True] += new & going
        # The site that is read tests all of the key's cells that it has.
        going &= ~(new & ((at == at[:, j : j + 1]) & ~is_set).any(axis=1))
    shape = SlicedShape(kind, K, sites, inner=inner, partitioned=partitioned)
    for pipelined, messages in read.items():
        expected = shape.messages(pipelined=pipelined, density=0.7, duplicates=0.3)
        assert abs(messages.mean() - expected) <= 5 * messages.std() / np.sqrt(TRIALS) + 1e-9
        assert 1 <= expected <= min(K, count)


def test_arguments_are_those_of_the_formulas():
    shape = SlicedShape("vertical", 5, 10)
    assert shape.failure_rates(3, 0.45) == pytest.approx(((0.3 + 0.7 * 0.45) ** 5, 0))
    assert shape.failure_rates(3, 0.45, on_failure="distinct") == pytest.approx(((0.7 * 0.45) ** 5, 1 - 0.7**5))
    assert shape.failure_rates(3, 0.45, on_failure=5) == shape.failure_rates(3, 0.45, on_failure="distinct")
    for kind, on_failure, bound in (("vertical", "duplicate", "fpr"), ("horizontal", "distinct", "fnr")):
        least = SlicedShape(kind, 7, 1).least_sites(3, 0.4, **{bound: 0.1}, on_failure=on_failure)
        for sites, enough in ((least - 1, False), (least, True)):
            rates = SlicedShape(kind, 7, sites).failure_rates(3, 0.4, on_failure=on_failure)
            assert (rates[("fpr", "fnr").index(bound)] <= 0.1) == enough
    assert [slice_capacity(10, 2, overfull=overfull) for overfull in (0.0215, 0.0214)] == [8, 9]
