"""The learned prior: calibrated where keys are independent and where they burst, kept in the memory it states."""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lately
from support.learned import CASES, load, oracle, present, run
from support.real_streams import EXAMPLES
from support.threads import together


def taught(keys, half_life, **options):
    prior = lately.Learned(half_life, **options)
    prior.insert(keys)
    return prior


def bursts(n, rng):
    """Keys that come 1 to 20 times within some 500 insertions, and never again: no p is the key's own."""
    keys = np.repeat(np.arange(n), rng.integers(1, 21, n))[:n]
    return keys[np.argsort(np.arange(n) + rng.uniform(0, 500, n))]


def test_independent_keys_have_their_own_probability():
    ranks = lately.Zipf(100)
    rng = np.random.default_rng(5)
    chances = ranks.probability(np.arange(1, 101))
    keys = rng.choice(np.arange(1, 101), 200_000, p=chances / chances.sum())
    prior = taught(keys, 5000)
    # A count of n sightings, which fade over 5000 / ln 2 insertions, is known to sqrt(1 / 2 n): it sums squares of
    # their weights. A class is half an octave wide, 19 % to either side, and at p = 0.19 ln(1 - p) is 10 % from -p.
    # The hottest key has 1390 sightings, the 100th 14.
    sightings = chances * 5000 / np.log(2)
    learned = prior.probability(np.arange(1, 101))
    assert np.all(np.abs(learned / chances - 1) < 0.3 + 5 * np.sqrt(0.5 / sightings))
    assert np.all(np.diff(learned[[0, 3, 9, 30, 99]]) < 0)
    assert 0 < prior.probability(["never"])[0] < 1e-5


@pytest.mark.parametrize("nbytes", [1 << 20, 1 << 14])
@pytest.mark.parametrize("kind", ["independent", "bursts"])
def test_the_share_of_recent_keys_is_that_of_the_prior(kind, nbytes):
    """Calibrated at one half-life, with 20 keys to a cell of the smaller sketch just as with plenty of room."""
    rng = np.random.default_rng(11)
    n, half_life, batch = 120_000, 5000, 50
    keys = rng.integers(0, 20_000, n) if kind == "independent" else bursts(n, rng)
    prior = lately.Learned(half_life, nbytes=nbytes)
    p = np.empty(n)
    for start in range(0, n, batch):
        p[start : start + batch] = prior.probability(keys[start : start + batch])
        prior.insert(keys[start : start + batch])
    expected = -np.expm1(half_life * np.log1p(-p))[n // 4 :]
    truth = present(keys, half_life, batch)[n // 4 :]
    # A share of n trials is known to 5 sqrt(1 / 4 n). The prior of a class comes from about as many again,
    # and with the smaller one from the 128 to 192 keys of its sample.
    sampled = 0 if nbytes == 1 << 20 else 5 * np.sqrt(0.25 / 128)
    for value in np.unique(expected.round(2)):
        alike = np.abs(expected - value) <= 0.005
        if alike.sum() > 1000:
            slack = 5 * np.sqrt(0.5 / alike.sum()) + sampled
            assert abs(truth[alike].mean() - expected[alike].mean()) < slack
    assert abs(truth.mean() - expected.mean()) < 5 * np.sqrt(0.5 / len(truth)) + sampled


@pytest.mark.parametrize("nbytes", [1 << 20, 1 << 15])
def test_distinct_counts_are_those_of_the_stream(nbytes):
    rng = np.random.default_rng(13)
    for keys in (rng.integers(0, 5000, 100_000), bursts(100_000, rng)):
        prior = taught(keys, 10_000, nbytes=nbytes)
        j = np.array([0, 1, 2, 10, 100, 1000, 10_000, 50_000])
        counted = lately.DistinctCurve.from_stream(keys)(j)
        np.testing.assert_allclose(prior.distinct(j), counted, rtol=0.05 if nbytes == 1 << 20 else 0.15)


@given(st.lists(st.integers(0, 9), max_size=300), st.integers(1, 50))
def test_distinct_counts_have_the_shape_of_some(keys, half_life):
    distinct = taught(keys, half_life, nbytes=8192).distinct
    j = np.concatenate([[0, 0.5, 1], np.geomspace(1, 1e12, 100)])
    d = distinct(j)
    assert d[0] == 0
    assert d[2] == 1
    assert np.all(d <= j * (1 + 1e-12))
    assert np.all(np.diff(d) >= 0)
    assert distinct(3).shape == ()
    assert distinct([[1, 2]]).shape == (1, 2)


@given(st.lists(st.integers(0, 30), max_size=200), st.lists(st.integers(0, 40), max_size=5), st.integers(1, 20))
def test_a_batch_is_its_single_calls(keys, cuts, half_life):
    whole, parts = taught(keys, half_life, nbytes=8192), lately.Learned(half_life, nbytes=8192)
    cuts = [0, *sorted(min(cut, len(keys)) for cut in cuts), len(keys)]
    for start, end in pairwise(cuts):
        parts.insert(keys[start:end])
    assert whole.to_bytes() == parts.to_bytes()
    assert whole.inserted == len(keys)


def test_old_frequencies_are_forgotten():
    prior = taught(["old"] * 1000, 1000)
    before = prior.probability(["old"])[0]
    prior.insert(np.arange(20_000))
    assert prior.probability(["old"])[0] < before / 100


def test_memory_is_what_is_stated():
    for nbytes in (8192, 10_000, 1 << 20):
        prior = lately.Learned(100, nbytes=nbytes)
        assert nbytes - 64 < prior.nbytes <= nbytes
        # The saved form adds a header and nothing else, full or empty.
        empty = len(prior.to_bytes())
        prior.insert(np.arange(50_000))
        assert len(prior.to_bytes()) == empty == prior.nbytes + 96


def test_rates_are_probabilities_times_insertions_per_second():
    keys, times = ["a", "b", "a", "c"] * 500, np.arange(2000) / 4
    prior = lately.Learned(1000)
    with pytest.raises(ValueError, match="at"):
        prior.rate(["a"])
    prior.insert(keys, at=times)
    p = prior.probability(["a", "b", "new"])
    np.testing.assert_allclose(prior.rate(["a", "b", "new"]), -np.log1p(-p) * 4, rtol=1e-9)
    # Time does not run back, and a lull counts.
    prior.insert(["a"], at=0.0)
    prior.insert(["a"], at=times[-1] + 500.25)
    np.testing.assert_allclose(prior.rate(["b"]) / -np.log1p(-prior.probability(["b"])), 2001 / 1000, rtol=1e-3)


def test_windows_of_time_need_a_rate():
    made, prior = lately.AgePartitionedBloomFilter("100s", 0.01, capacity=1000), lately.Learned(1000)
    keys, times = np.arange(4000) % 3000, np.arange(4000) / 10
    made.insert(keys, at=times)
    with pytest.raises(ValueError, match="rate"):
        made.posterior([5], prior, at=400)
    prior.insert(keys, at=times)
    posterior = made.posterior([999, 1500, "never"], prior, at=400)
    assert posterior[0] > 0.5 > posterior[1]
    assert posterior[2] < 0.01


def test_a_prior_can_be_saved():
    prior = taught([*range(3000), "text", None] * 2, 500, nbytes=1 << 15, seed=9)
    for other in (pickle.loads(pickle.dumps(prior)), copy.deepcopy(prior), lately.Learned.from_bytes(prior.to_bytes())):
        assert repr(other) == repr(prior) == "Learned(half_life=500, nbytes=32768, seed=9)"
        assert other.inserted == 6004
        other.insert(["text"])
        assert other.inserted == prior.inserted + 1
    assert other.to_bytes() != prior.to_bytes()


def test_bytes_that_are_no_prior_are_rejected():
    data = taught(range(100), 50, nbytes=8192).to_bytes()
    rng = np.random.default_rng(17)
    for place in [*range(96), *rng.integers(96, len(data), 100)]:
        damaged = bytearray(data)
        damaged[place] ^= 1 << rng.integers(8)
        with pytest.raises(lately.FormatError):
            lately.Learned.from_bytes(bytes(damaged))
    for cut in (b"", data[:8], data[:50], data[:-1], data + b"\0", b"nonsense" * 100):
        with pytest.raises(lately.FormatError):
            lately.Learned.from_bytes(cut)


def test_nothing_is_learned_from_a_bad_batch():
    prior = lately.Learned(10)
    with pytest.raises(TypeError, match="object"):
        prior.insert([1, object()])
    with pytest.raises(ValueError, match="at"):
        prior.insert([1, 2], at=[1.0])
    with pytest.raises(ValueError, match="missing"):
        prior.insert([1, 2], at=[1.0, np.nan])
    for wrong in (-1, np.nan):
        with pytest.raises(ValueError, match="insertions"):
            prior.distinct(wrong)
    assert prior.inserted == 0


def test_threads():
    prior = lately.Learned(1000)

    def learn():
        for _ in range(20):
            prior.insert(np.arange(1000))
            assert np.all(prior.probability(np.arange(100)) > 0)

    together(*[learn] * 4)
    assert prior.inserted == 80_000


def test_on_a_real_stream_a_learned_prior_costs_less_than_no_inference():
    keys = load(CASES[1], EXAMPLES)
    for bits in (5, 15):
        learned = run(keys, 300, bits, lately.Learned(300, nbytes=1 << 16), 3)
        assert learned.ratio < 1.01
        assert learned.errors[1] < 0.05
    # As in paper 5, section 6.4.2: where keys burst, their true frequencies can cost more than no prior.
    assert run(keys, 300, 5, oracle(keys), 3).ratio > 1
