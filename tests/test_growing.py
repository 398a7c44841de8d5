"""A timing filter that grows: what it states of itself."""

from datetime import timedelta

import numpy as np
import pytest

import lately

timers = lately.TimingBloomFilter.from_parameters


GROWING = [
    {"window": "10min", "fpr": 0.01, "capacity": 3000},
    {"window": timedelta(minutes=10), "fpr": 1e-4, "capacity": 7, "lateness": "90s", "slack": "2min", "seed": 9},
]


@pytest.mark.parametrize("grow", ["cardinality", "density"])
@pytest.mark.parametrize("given_", GROWING, ids=["plain", "late"])
def test_attributes_of_a_growing_filter_agree(given_, grow):
    f, fixed = (lately.TimingBloomFilter(**given_, grow=choice) for choice in (grow, None))
    p = f.parameters
    limit = {"cardinality": "part_keys", "density": "part_timers"}[grow]
    assert {name: value for name, value in p.items() if name != limit} == fixed.parameters
    assert 0.8 * fixed.fpr < f.fpr <= fixed.fpr
    assert (f.slack, f.npws, f.capacity, f.lateness) == (fixed.slack, fixed.npws, fixed.capacity, fixed.lateness)
    assert (f.parts, fixed.parts, f.nbytes) == (1, 1, fixed.nbytes + 24)
    again = timers(**{k: v for k, v in given_.items() if k not in ("fpr", "slack")}, **p)
    assert (again.to_bytes(), repr(again), again.fpr) == (f.to_bytes(), repr(f), f.fpr)

    n = 30 * f.capacity
    f.insert(np.arange(n), at=5.0)
    assert 15 < f.parts < 40
    assert f.nbytes == 16 + f.parts * (fixed.nbytes + 8) == len(f.to_bytes()) - len(f.__reduce_ex__(5)[1][0])
    assert f.fill.shape == (f.parts * p["k"],)
    assert f.query(np.arange(n), at=605.0).all()
    copy, big = f.copy(), f.parts
    f.add("later", at=10_000.0)
    assert (f.parts, f.nbytes, copy.parts) == (1, fixed.nbytes + 24, big)
    assert copy.query(np.arange(n), at=605.0).all()
    with pytest.raises(ValueError, match="cannot merge these filters: timing filters that grow"):
        copy.union(copy)
