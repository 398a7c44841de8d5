"""Priors of known laws and given chances: eq. 15 and 16 of paper 5, and bad values."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lately
from lately.priors._distinct import of_stream


def roots(insertions):
    return np.minimum(insertions, np.sqrt(insertions))


PRIORS = [
    lately.Uniform(1000, rate=2.5),
    lately.Uniform(1),
    lately.Zipf(70_000),
    lately.Zipf(10, 0.0),
    lately.Zipf(5000, 2.5, rate=10),
    lately.Probabilities({"a": 0.5, "b": 0.25}, default=0.001),
    lately.Probabilities(np.array([0.5, 0.1]), distinct=roots),
]


def eq15(p, j):
    """Sum over all keys, with no short cut."""
    p = np.asarray(p, np.float64)
    with np.errstate(divide="ignore"):
        return np.array([np.sum(-np.expm1(length * np.log1p(-p))) for length in j])


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_every_prior_can_be_sent_to_another_process(prior):
    other = pickle.loads(pickle.dumps(prior))
    assert repr(other) == repr(prior)
    np.testing.assert_array_equal(other.distinct([1, 30]), prior.distinct([1, 30]))


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_distinct_counts_begin_at_nothing_grow_and_never_exceed_the_insertions(prior):
    j = np.concatenate([[0, 1e-9, 0.5, 1], np.geomspace(1, 1e15, 500)])
    distinct = prior.distinct(j)
    assert distinct.dtype == np.float64
    assert distinct[0] == 0
    assert distinct[3] == pytest.approx(1)
    assert np.all(distinct <= j)
    assert np.all(np.diff(distinct[np.argsort(j, kind="stable")]) >= 0)
    assert prior.distinct(7).shape == ()
    assert prior.distinct([[1, 2], [3, 4]]).shape == (2, 2)
    for wrong in (-1, [1, np.nan]):
        with pytest.raises(ValueError, match="insertions"):
            prior.distinct(wrong)


def test_uniform_is_eq_16():
    prior = lately.Uniform(65_536)
    j = [1, 10, 65_536, 2**20]
    np.testing.assert_allclose(prior.distinct(j), [65_536 * (1 - (1 - 2**-16) ** n) for n in j], rtol=1e-11)
    # Where 1 - (1 - 1/U)^j would be all rounding.
    np.testing.assert_allclose(lately.Uniform(10**18).distinct([1, 1e6]), [1, 1e6], rtol=1e-9)
    assert prior.probability(["a"]) == 2**-16
    assert lately.Uniform(4, rate=8).rate(["a"]) == 2


@pytest.mark.parametrize(("universe", "exponent"), [(1, 1.0), (3, 0.5), (65_536, 1.0), (100_000, 0.7), (100_000, 2.5)])
def test_zipf_is_eq_15(universe, exponent):
    weights = np.arange(1.0, universe + 1) ** -exponent
    p = weights / weights.sum()
    prior = lately.Zipf(universe, exponent)
    np.testing.assert_allclose(prior.probability(np.arange(1, universe + 1)), p, rtol=1e-8)
    j = [1, 2, 7, 100, 12_345, universe, 16 * universe, 10**7]
    np.testing.assert_allclose(prior.distinct(j), eq15(p, j), rtol=1e-4)


def test_zipf_gives_nothing_to_what_is_no_rank():
    prior = lately.Zipf(10, rate=3)
    p = prior.probability([0, -1, 11, 1.5, np.nan, np.inf, 1])
    assert np.count_nonzero(p) == 1
    np.testing.assert_allclose(prior.rate([1, 2, 99]), [3 * p[-1], 1.5 * p[-1], 0])
    for keys in (["a"], [True], [None]):
        with pytest.raises(TypeError, match="ranks"):
            prior.probability(keys)


def test_keys_of_a_mapping_are_compared_as_filters_do():
    prior = lately.Probabilities({5: 0.5, "5": 0.25, ("a", 1): 0.125, None: 0.01}, default=1e-3, rate=100)
    keys = [5.0, np.int8(5), "5", b"5", ("a", 1), float("nan"), "else"]
    expected = [0.5, 0.5, 0.25, 1e-3, 0.125, 0.01, 1e-3]
    assert prior.probability(keys).tolist() == expected
    np.testing.assert_allclose(prior.rate(keys), 100 * np.array(expected))
    assert prior.probability([]).tolist() == []
    assert lately.Probabilities({}, default=0.5).probability(["a", "b"]).tolist() == [0.5, 0.5]


def test_a_series_and_a_callable():
    counts = pd.Series(["x", "y", "x", "x"]).value_counts(normalize=True)
    assert lately.Probabilities(counts).probability(["y", "x", "z"]).tolist() == [0.25, 0.75, 0]
    assert lately.Probabilities(lambda keys: [0.5] * len(keys)).probability(["a", "b"]).tolist() == [0.5, 0.5]
    assert lately.Probabilities(lambda _: 0.25).probability(["a", "b"]) == 0.25
    with pytest.raises(ValueError, match=r"p\(keys\)\[1\]"):
        lately.Probabilities(lambda _: [0.5, -1]).probability(["a", "b"])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(1e-6, 1))
def test_the_curve_of_a_mapping_is_eq_15_with_the_rest_at_the_default(weights, default):
    p = np.array(weights) / (sum(weights) + 1)
    prior = lately.Probabilities(dict(enumerate(p)), default=default)
    j = np.array([1, 3, 100, 1e4])
    expected = eq15(p, j) + (1 - p.sum()) / default * eq15([min(default, 1 - 1e-16)], j)
    np.testing.assert_allclose(prior.distinct(j), np.minimum(expected, j), rtol=2e-4)


def test_a_key_outside_a_mapping_without_default_never_repeats():
    np.testing.assert_allclose(lately.Probabilities({"a": 0.5}).distinct([1, 100]), [1, 1 + 50], rtol=1e-3)


def test_a_measured_curve():
    rng = np.random.default_rng(3)
    curve = of_stream(lately.hash_keys(rng.integers(0, 1000, 100_000)))
    j = np.array([1, 2, 30, 500, 5000, 100_000])
    np.testing.assert_allclose(curve(j), lately.Uniform(1000).distinct(j), rtol=0.02)
    prior = lately.Probabilities(np.full(3, 1e-3), distinct=curve)
    assert prior.distinct(30) == curve(30)
    burst = of_stream(lately.hash_keys(np.repeat(np.arange(1000), 10)))
    np.testing.assert_allclose(burst([10_000]), [1000])
    # 100 insertions touch 10 bursts, and one more unless they begin where one does.
    assert 10 <= burst(100) <= 11
    assert of_stream(lately.hash_keys(["a"]))([0, 1, 1000]).tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lately.Uniform(0), "universe"),
        (lambda: lately.Zipf(-3), "universe"),
        (lambda: lately.Zipf(3, -0.1), "exponent"),
        (lambda: lately.Zipf(3, np.nan), "exponent"),
        (lambda: lately.Uniform(3, rate=0), "rate"),
        (lambda: lately.Uniform(3, rate=np.nan), "rate"),
        (lambda: lately.Uniform(3).rate(["a"]), "rate"),
        (lambda: lately.Zipf(3).rate([1]), "rate"),
        (lambda: lately.Probabilities({"a": 0.1}).rate(["a"]), "rate"),
        (lambda: lately.Probabilities([0.5, np.nan]), r"p\[1\]"),
        (lambda: lately.Probabilities([-0.1]), r"p\[0\]"),
        (lambda: lately.Probabilities({"a": 1.5}), r"p\[0\]"),
        (lambda: lately.Probabilities({"a": 0.6, "b": 0.6}), "sum"),
        (lambda: lately.Probabilities(pd.Series([0.1, 0.2], index=[1, 1.0])), "one chance per key"),
        (lambda: lately.Probabilities({"a": 0.1}, default=2), "default"),
        (lambda: lately.Probabilities([[0.1]]), "1-d array, got 2-d"),
        (lambda: lately.Probabilities([0.1]).distinct(5), "distinct"),
    ],
)
def test_bad_values_of_priors_are_rejected(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lately.Uniform(2.5), "universe"),
        (lambda: lately.Zipf("many"), "universe"),
        (lambda: lately.Probabilities([0.1], default=0.1), "default"),
        (lambda: lately.Probabilities([0.1], distinct=5), "distinct"),
        (lambda: lately.Probabilities({object(): 0.1}), "object"),
    ],
)
def test_bad_types_of_priors_are_rejected(make, message):
    with pytest.raises(TypeError, match=message):
        make()


def test_filters_take_every_prior():
    made = lately.AgePartitionedBloomFilter(1000, 0.01)
    made.insert(range(1, 1001))
    keys = [1000, 1, 5000]
    for prior in (lately.Uniform(10_000), lately.Zipf(10_000), lately.Probabilities({1000: 0.1, 1: 1e-3})):
        posterior = made.posterior(keys, prior)
        assert posterior[0] > 0.9
        assert posterior[2] < 0.2
