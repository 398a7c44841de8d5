"""The Bloom filter for its users: no window, what it states, and invalid parameters."""

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
def test_what_a_filter_says_of_itself_holds_together(given_, partitioned):
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


def test_there_is_no_time():
    with pytest.raises(ValueError, match="at is for windows of time; this filter has no window"):
        lately.BloomFilter(100, 0.1).add("a", at=5)


COUNT = {"capacity": 1000, "fpr": 0.01}
GIVEN = {"capacity": 1000, "k": 3, "bits": 500}


@pytest.mark.parametrize(
    ("make", "base", "change", "kind", "name"),
    [
        *((0, COUNT, {"capacity": c}, ValueError, "capacity") for c in (0, -1, 2**62 + 1, 2**64, 2**200)),
        *((0, COUNT, {"capacity": c}, TypeError, "capacity") for c in (1e3 + 0.5, "1min", None)),
        *((0, COUNT, {"fpr": p}, ValueError, "fpr") for p in (0, 1, -0.1, math.nan, math.inf)),
        (0, {"capacity": 2**50}, {"fpr": 1e-6}, ValueError, "fpr"),
        (0, COUNT, {"fpr": None}, TypeError, "fpr or nbytes"),
        (0, COUNT, {"nbytes": 100}, TypeError, "fpr or nbytes"),
        *((0, {"capacity": 1000}, {"nbytes": b}, ValueError, "nbytes") for b in (-1, 0, 7, 2**60 + 1, 2**64)),
        (0, COUNT, {"seed": -1}, ValueError, "seed"),
        (0, COUNT, {"partitioned": "yes"}, TypeError, "partitioned"),
        (0, {"capacity": 2**50, "fpr": 0.1}, {}, MemoryError, "bytes"),
        *((1, GIVEN, {"k": k}, ValueError, "k") for k in (0, -1, 129, 2**64)),
        *((1, GIVEN, {"bits": m}, ValueError, "bits") for m in (0, -1, 2**60 + 1, 2**64)),
        *((1, GIVEN, {"bits": None, "slice_bits": m}, ValueError, "slice_bits") for m in (0, -1, 2**59, 2**64)),
        (1, GIVEN, {"slice_bits": 100}, TypeError, "bits or slice_bits"),
        (1, GIVEN, {"bits": None}, TypeError, "bits or slice_bits"),
        (1, GIVEN, {"bits": 2**58}, MemoryError, "bytes"),
    ],
)
def test_a_parameter_that_cannot_be_is_named(make, base, change, kind, name):
    makers = lately.BloomFilter, lately.BloomFilter.from_parameters
    with pytest.raises(kind) as caught:
        makers[make](**base | change)
    assert caught.type is kind
    assert name in " ".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
