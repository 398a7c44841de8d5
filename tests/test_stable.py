"""The stable filter for its users: what it states."""

import math

import numpy as np
import pytest

import lately


@pytest.mark.parametrize(
    "given_",
    [
        {"window": 1, "fpr": 0.1},
        {"window": 3000, "fpr": 0.001, "seed": 2**64 - 1},
        {"window": np.int32(5000), "fpr": 1e-6},
        {"window": 5000, "nbytes": 10_001},
        {"window": 5000, "nbytes": 40_008},
    ],
)
def test_attributes_agree_with_parameters_and_cells(given_):
    f = lately.baselines.StableBloomFilter(**given_)
    p = f.parameters
    assert (f.window, f.capacity, f.slack, f.lateness) == (given_["window"], given_["window"], math.inf, None)
    assert f.fpr <= given_.get("fpr", 1)
    assert f.nbytes == 8 * -(-p["k"] * p["slice_cells"] * p["bits"] // 64) <= given_.get("nbytes", 2**60)
    assert f.cache_lines["hit"] == p["k"]
    assert f.npws >= 0
    again = lately.baselines.StableBloomFilter.from_parameters(f.window, **p, seed=f.seed)
    assert again.to_bytes() == f.to_bytes()
    assert repr(f).startswith(f"<StableBloomFilter window={f.window} fpr=")
    n = 20 * f.window + 1000
    f.insert(np.arange(n))
    assert n - 1 in f
    # A tenth of the oldest at most is forgotten in expectation, fewer of all; six deviations of as many coins.
    found = int(f.query(np.arange(n - f.window, n)).sum())
    assert found >= 0.9 * f.window - 6 * math.sqrt(0.09 * f.window)
    assert f.query(np.arange(n, 2 * n)).sum() <= f.fpr * n * 1.2 + 6 * math.sqrt(f.fpr * n) + 6
