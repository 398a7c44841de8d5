"""The generalized filter for its users: how it fades."""

import numpy as np
import pytest

import lately


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
