"""The generalized filter for its users: what it states, how it fades."""

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
        {"window": 500, "nbytes": 10_001},
        {"window": 500, "nbytes": 40_008},
    ],
)
def test_attributes_agree_with_parameters_and_cells(given_):
    f = lately.baselines.GeneralizedBloomFilter(**given_)
    p = f.parameters
    assert (f.window, f.capacity, f.slack, f.lateness) == (given_["window"], given_["window"], math.inf, None)
    assert f.fpr <= given_.get("fpr", 1)
    assert f.nbytes == 8 * -(-p["bits"] // 64) <= given_.get("nbytes", 2**60)
    assert f.cache_lines["hit"] == f.cache_lines["insert"] == p["k0"] + p["k1"]
    assert f.npws > 0
    again = lately.baselines.GeneralizedBloomFilter.from_parameters(f.window, **p, seed=f.seed)
    assert again.to_bytes() == f.to_bytes()
    assert repr(f).startswith(f"<GeneralizedBloomFilter window={f.window} fpr=")
    missed = f.false_negative_rates([f.window - 1])[0]
    assert missed <= 0.1
    n = 20 * f.window + 1000
    f.insert(np.arange(n))
    assert n - 1 in f
    found = int(f.query(np.arange(n - f.window, n)).sum())
    expected = f.window - f.false_negative_rates(np.arange(f.window)).sum()
    # A bit that a later key changes rarely belongs to more than one key of the window, so misses are nearly coins.
    assert abs(found - expected) <= 8 * math.sqrt(f.window - expected) + 8
    rate = f.false_positive_rate()
    assert f.query(np.arange(n, 2 * n)).sum() <= rate * n + 6 * math.sqrt(rate * n) + 6
    assert rate <= 1.2 * f.fpr


def test_false_negatives_rise_with_age_to_what_chance_leaves():
    f = lately.baselines.GeneralizedBloomFilter(1000, 0.01)
    ages = [0, 1, 10, 999, 10**4, 10**9, 2**64 - 1]
    rates = f.false_negative_rates(ages)
    assert rates.dtype == np.float64
    assert rates[0] == 0
    assert (np.diff(rates) >= 0).all()
    assert rates[3] == pytest.approx(0.1, abs=1e-4)
    assert rates[-1] == pytest.approx(1 - f.fpr)
    assert (f.false_negative_rates(np.array(ages[:4])) == rates[:4]).all()
    assert f.false_negative_rates([]).shape == (0,)
    for ages, kind in (([-1], ValueError), ([2**64], ValueError), ([0.5], TypeError), (5, TypeError)):
        with pytest.raises(kind, match="ages"):
            f.false_negative_rates(ages)


def test_generalized_filters_are_not_united():
    f = lately.baselines.GeneralizedBloomFilter(1000, 0.01)
    with pytest.raises(ValueError, match="cannot merge these filters"):
        f.union(f)
