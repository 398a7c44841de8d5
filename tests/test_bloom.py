"""The Bloom filter for its users: no window, what it states."""

import math

import numpy as np
import pytest

import lately


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize(
    "given_",
    [
        {"capacity": 1, "fpr": 0.1},
        {"capacity": 3000, "fpr": 0.001, "seed": 2**64 - 1},
        {"capacity": np.int32(5000), "fpr": 1e-6},
        {"capacity": 5000, "nbytes": 10_001},
        {"capacity": 5000, "nbytes": 8},
    ],
)
def test_attributes_agree_with_parameters_and_cells(given_, partitioned):
    f = lately.BloomFilter(**given_, partitioned=partitioned)
    p = f.parameters
    capacity = given_["capacity"]
    assert (f.window, f.capacity, f.slack, f.lateness, f.npws) == (None, capacity, 0, None, 0)
    assert f.fpr <= given_.get("fpr", 1)
    bits = p["k"] * p["slice_bits"] if partitioned else p["bits"]
    assert f.nbytes == 8 * -(-bits // 64) <= given_.get("nbytes", 2**60)
    assert f.bits_per_key == 8 * f.nbytes / capacity
    assert f.cache_lines["hit"] == f.cache_lines["insert"] == p["k"]
    again = lately.BloomFilter.from_parameters(capacity, **p, seed=f.seed)
    assert again.to_bytes() == f.to_bytes()
    assert repr(f).startswith(f"<BloomFilter capacity={capacity} fpr=")
    for keys in (capacity, 3 * capacity):
        f.insert(np.arange(f.inserted, keys))
        assert f.query(np.arange(keys)).all()
        rate, trials = f.false_positive_rate(), 100_000
        found = int(f.query(np.arange(10**6, 10**6 + trials)).sum())
        assert abs(found - rate * trials) <= 6 * math.sqrt(rate * trials) + 6
    assert f.inserted == 3 * capacity
    if capacity > 1:
        assert rate >= f.fpr
    assert f.fill.tolist() == pytest.approx([f.fill[0]])
    if not partitioned:
        assert rate == pytest.approx(f.fill[0] ** p["k"], rel=1e-12)


@pytest.mark.parametrize("size", [{"bits": 9000}, {"slice_bits": 1500}])
def test_a_union_is_the_filter_that_took_all_keys(size):
    def made(keys):
        f = lately.BloomFilter.from_parameters(1000, k=6, **size)
        f.insert(keys)
        return f

    here, there = made(np.arange(700)), made(np.arange(600, 1300))
    both = here.union(there)
    assert both.to_bytes() == made([*range(700), *range(600, 1300)]).to_bytes()
    assert (both.inserted, type(both)) == (1400, lately.BloomFilter)
    other = lately.BloomFilter.from_parameters(1001, k=6, **size)
    with pytest.raises(ValueError, match="capacity is 1000 insertions here and 1001 insertions there"):
        here.union(other)
