"""Posteriors, decisions and ages by the calls of users; tests/core/inference.rs shows that they are right."""

from functools import partial

import numpy as np
import pytest

import lately
from lately._families import EVERY
from support.planned import planned

WINDOW = 1000
NAMES = ["guarded-epoch", "guarded-epoch-transposed", "guarded-epoch-512", "age-partitioned", "age-partitioned-512"]
FILTERS = {name: partial(EVERY[name].make, WINDOW, fpr=0.01) for name in [*NAMES, "timing"]} | {
    "timing, B = 1": partial(EVERY["timing"].make, WINDOW, fpr=0.01, slack=0),
}
KEYS = np.arange(3000)


@pytest.fixture(params=FILTERS)
def filled(request):
    filled = FILTERS[request.param]()
    filled.insert(KEYS)
    return filled


class Prior:
    """A prior that knows the keys."""

    def probability(self, keys):
        return 1e-5 * (1 + np.asarray(keys) % 7)

    def rate(self, keys):
        return 0.5


def test_the_clear_cases(filled):
    posteriors = filled.posterior(KEYS, 1e-4)
    assert posteriors.dtype == np.float64
    assert posteriors.shape == KEYS.shape
    assert (posteriors[-900:] > 0.5).mean() > 0.95
    assert not posteriors[:1000][~filled.query(KEYS[:1000])].any()
    assert (filled.posterior(KEYS, 0.0) == 0).all()


def test_a_prior_is_a_number_or_one_per_key_or_an_object(filled):
    each = Prior().probability(KEYS)
    posteriors = filled.posterior(KEYS, Prior())
    np.testing.assert_array_equal(posteriors, filled.posterior(KEYS, each))
    np.testing.assert_array_equal(posteriors, filled.posterior(KEYS, each.tolist()))
    np.testing.assert_allclose(filled.posterior(KEYS, 3e-5), filled.posterior(KEYS, np.full(3000, 3e-5)), atol=1e-5)
    # Blocks of keys are cut anywhere.
    many = np.tile(KEYS, 5)
    np.testing.assert_array_equal(filled.posterior(many, np.tile(each, 5)), np.tile(posteriors, 5))


def test_a_decision_costs_least(filled):
    posteriors = filled.posterior(KEYS, 1e-5)
    rng = np.random.default_rng(0)
    false_positive, false_negative = rng.uniform(1, 10, (2, 3000))
    decided = filled.decide(KEYS, 1e-5, false_positive, false_negative)
    costs = np.where(decided, false_positive * (1 - posteriors), false_negative * posteriors)
    assert (costs <= np.minimum(false_positive * (1 - posteriors), false_negative * posteriors)).all()
    np.testing.assert_array_equal(filled.decide(KEYS, 1e-5), posteriors >= 0.5)
    # Equal costs, here none at all, are reported.
    assert filled.decide(KEYS, 1e-5, 0, 0).all()


def test_ages_add_up(filled):
    edges = [0, 10.5, 200, 1000, 2500, np.inf]
    ages = filled.age_probability(KEYS, 1e-4, edges)
    assert ages.shape == (3000, 5)
    assert (ages >= 0).all()
    np.testing.assert_allclose(ages.sum(1), 1, atol=1e-12)
    np.testing.assert_allclose(ages[:, :3].sum(1), filled.posterior(KEYS, 1e-4), atol=1e-12)
    np.testing.assert_array_equal(ages[:, :1], filled.age_probability(KEYS, 1e-4, [0, 11]))


def test_posterior_ages_are_near_the_actual_ages(filled):
    truth = 2999 - KEYS[-900:]
    for kind in ("most_likely", "expected"):
        error = np.abs(filled.age(KEYS[-900:], 1e-3, kind) - truth)
        # A generation of the largest is a ninth of the window, and some keys match older ones by chance.
        assert np.median(error) < WINDOW / 4, kind
    assert np.isinf(filled.age(KEYS[:3], 0.0)).all()


@pytest.mark.parametrize("name", ["guarded-epoch", "age-partitioned", "timing", "time-limited"])
def test_time(name):
    timed = EVERY[name].make("1h", fpr=0.01, capacity=1000)
    timed.insert(KEYS, at=np.linspace(0, 10800, 3000))
    posteriors = timed.posterior(KEYS, Prior(), at=10800)
    assert (posteriors[-900:] > 0.9).all()
    np.testing.assert_array_equal(posteriors, timed.posterior(KEYS, 0.5, at=np.full(3000, 10800)))
    # Nothing has come since: what was seen 50 minutes before has been 60 minutes before ten minutes later.
    later = timed.posterior(KEYS, 0.5, at=10800 + 600)
    np.testing.assert_array_equal(later, timed.posterior(KEYS, 0.5, "50min", at=10800))
    ages = [timed.age(KEYS, 0.5, at=at) for at in (10800, 11400)]
    np.testing.assert_allclose(ages[1], ages[0] + 600)
    # The latest key, at the very beginning of a generation.
    assert timed.posterior([2999], 1e-3, "10s", at=10800) > 0.9


def test_a_time_limited_filter_has_no_keys_of_a_time_without_insertions():
    f = lately.TimeLimitedBloomFilter("1000s", 1e-6, max_ahead=None)
    f.insert(["old"], at=0)
    f.insert(["new"], at=600)
    assert not f.decide(["absent"], 1e-3, at=600)[0]  # before the first key there was none
    assert f.posterior(["old", "new", "absent"], 1e-3, at=1200) == pytest.approx([0, 1, 0], abs=1e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: f.posterior([1], 1.5), "prior must be a probability, in 0 ..= 1, got 1.5"),
        (lambda f: f.posterior([1, 2], [0.1, np.nan]), r"prior\[1\] must be a probability, in 0 ..= 1, got NaN"),
        (lambda f: f.posterior([1, 2], [0.1]), "prior has 1 values for 2 keys"),
        (lambda f: f.posterior([1], [0.1, 0.2]), "prior has 2 values for 1 keys"),
        (lambda f: f.posterior(range(5000), [0.1] * 4097), "prior has 4097 values for 5000 keys"),
        (lambda f: f.posterior([1], 0.1, -1), "window must lie in 0"),
        (lambda f: f.decide([1], 0.1, -1), "false_positive must be a penalty, finite and not negative, got -1"),
        (lambda f: f.decide([1], 0.1, 1, [np.inf]), r"false_negative\[0\] must be a penalty"),
        (lambda f: f.decide([1], 0.1, 1, [1, 2]), "false_negative has 2 values for 1 keys"),
        (lambda f: f.age([1], 0.1, "mean"), "kind must be 'most_likely' or 'expected', got 'mean'"),
        (lambda f: f.age_probability([1], 0.1, [1]), "edges must be at least 2 ages"),
        (lambda f: f.age_probability([1], 0.1, [2, 1]), "edges must be at least 2 ages"),
        (lambda f: f.age_probability([1], 0.1, [0, np.nan]), "edges must be at least 2 ages"),
    ],
)
def test_bad_values_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(FILTERS["timing"]())


def test_a_prior_that_is_no_number_is_a_type_error():
    for prior in ("often", None, [["a"]], [[0.1, 0.2]]):
        with pytest.raises(TypeError, match="prior must be a number or an array with one for each key, got"):
            FILTERS["timing"]().posterior([1, 2], prior)


def test_in_a_window_of_time_negative_rates_are_errors():
    timed = lately.AgePartitionedBloomFilter("1h", fpr=0.01, capacity=1000)
    with pytest.raises(ValueError, match="prior must be a rate per second, finite and not negative, got -1"):
        timed.posterior(["a"], -1.0, at=0)


OTHERS = ["counting", "fingerprint-buffer", "swamp", "stable", "generalized"]
OTHERS += ["age-partitioned-line", "guarded-epoch-line", "aged-cuckoo", "bloom"]


@pytest.mark.parametrize("name", OTHERS)
def test_every_family_computes_posteriors_or_rejects_the_call(name):
    other = lately.BloomFilter(3000, fpr=0.01) if name == "bloom" else EVERY[name].make(WINDOW, fpr=0.01)
    assert other.posterior([1, 2], [0.5, 1.0]).tolist() == [0, 0]
    other.insert(KEYS)
    posteriors = other.posterior(KEYS, 1e-4, WINDOW)
    assert posteriors[-1000:].mean() > 3 * other.posterior(-1 - KEYS, 1e-4, WINDOW).mean()
    assert (other.posterior(KEYS, 0.0) == 0).all()
    ages = other.age_probability(KEYS, 1e-4, [0, 1000, np.inf])
    np.testing.assert_allclose(ages.sum(1), 1, atol=1e-12)
    np.testing.assert_allclose(ages[:, 0], posteriors, atol=1e-9)
    np.testing.assert_array_equal(other.decide(KEYS, 1e-4, window=WINDOW), posteriors >= 0.5)


# Of timers there are a few blocks, dozens, and more than are distinguished.
@pytest.mark.parametrize(
    "make",
    [
        lately.AgePartitionedBloomFilter,
        lately.AgedCuckooFilter,
        partial(planned, "timing"),
        partial(planned, "timing", slack=5),
        partial(planned, "timing", slack=0),
    ],
)
@pytest.mark.parametrize("window", [300, 200_000])
def test_a_key_alone_gets_the_answers_it_gets_among_many(make, window):
    """Of few keys only the pages that they lie in are looked at, of which there may be one or hundreds."""
    f = make(window, 0.01)
    f.insert(np.arange(5 * window // 2))
    keys = np.r_[np.linspace(0, 5 * window // 2 - 1, 80, dtype=int), -5:0]
    many, ages = f.posterior(keys, 1e-6), f.age(keys, 1e-6)
    assert len(keys) > 64
    for few in (1, 7):
        parts = [keys[i : i + few] for i in range(0, len(keys), few)]
        np.testing.assert_array_equal(np.concatenate([f.posterior(part, 1e-6) for part in parts]), many)
        np.testing.assert_array_equal(np.concatenate([f.age(part, 1e-6) for part in parts]), ages)
    f.insert(np.arange(-window // 8, 0))
    later = f.posterior(keys, 1e-6)
    assert (later != many).any()
    np.testing.assert_array_equal(np.concatenate([f.posterior([key], 1e-6) for key in keys]), later)


class Repeating:
    """Keys that are few, as the curve states."""

    def probability(self, keys):
        return 1 / 500

    def distinct(self, insertions):
        return 500 * -np.expm1(insertions * np.log1p(-1 / 500))


def test_a_curve_of_distinct_keys_is_used_or_unknown_or_broken():
    filled = lately.baselines.GeneralizedBloomFilter(WINDOW, fpr=0.01)
    filled.insert(KEYS % 500)
    by_curve, without = (filled.posterior(KEYS, prior, 200) for prior in (Repeating(), np.full(3000, 1 / 500)))
    assert np.abs(by_curve - without).max() > 0.01
    # One number for all keys states the same: 500 keys, equally frequent.
    assert filled.posterior(KEYS, 1 / 500, 200) == pytest.approx(by_curve, abs=1e-5)

    class Unknown(Prior):
        def distinct(self, insertions):
            raise ValueError("not given")

    class Broken(Prior):
        def distinct(self, insertions):
            raise RuntimeError("broken")

    np.testing.assert_array_equal(filled.posterior(KEYS, Unknown()), filled.posterior(KEYS, Prior()))
    with pytest.raises(RuntimeError, match="broken"):
        filled.posterior(KEYS, Broken())


def test_growing_timers_after_a_burst_of_other_keys():
    f = lately.TimingBloomFilter("1h", fpr=0.01, capacity=1000, grow="cardinality", max_ahead=None)
    f.insert(KEYS[:2000], at=np.linspace(0, 7200, 2000))
    f.insert(10**6 + np.arange(20_000), at=np.linspace(7200, 7201, 20_000))
    f.insert(KEYS[2000:], at=np.linspace(7202, 9000, 1000))
    # Of the keys that came within the window, and as many that did not, half are there.
    live = KEYS[1500:]
    keys = np.concatenate([live, -1 - live])
    posteriors = f.posterior(keys, np.log(2) / 3600, at=9000)
    undecided = (posteriors > 0.02) & (posteriors < 0.98)
    assert undecided.sum() > 100
    assert abs((posteriors - (keys >= 0))[undecided].mean()) < 0.06


def test_live_keys_are_probable_in_more_slices_than_evidence_has_bits():
    f = lately.TimeLimitedBloomFilter("60s", 1e-8, max_ahead=None)
    for second in range(90):
        f.insert(100 * second + np.arange(100), at=second)
    assert len(f.fill) > 256
    for later in (0, 20):
        live = np.arange(100 * (30 + later), 9000)
        assert (f.posterior(live, 1e-3, at=89 + later) > 0.9).all()
        assert f.decide(live, 1e-3, at=89 + later).all()
        assert (f.posterior(-1 - live, 1e-3, at=89 + later) < 0.1).all()
        assert (f.age(live, 1e-3, at=89 + later) < 62).all()


def test_an_empty_batch_and_an_empty_filter(filled):
    assert filled.posterior([], 0.1).shape == (0,)
    assert filled.age_probability([], 0.1, [0, 1, 2]).shape == (0, 2)
    for make in FILTERS.values():
        assert make().posterior([1, 2], [0.5, 1.0]).tolist() == [0, 0]


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_answer_as_one(filled, threads):
    keys = np.random.default_rng(threads).integers(0, 6000, 20_001)
    each = Prior().probability(keys)
    calls = [
        lambda **shared: filled.posterior(keys, 1e-4, 700, **shared),
        lambda **shared: filled.posterior(keys, each, **shared),
        lambda **shared: filled.decide(keys, each, 3.0, 1 + keys / 1000, **shared),
        lambda **shared: filled.age(keys, each, "expected", **shared),
        lambda **shared: filled.age_probability(keys, each, [0, 300, 2000], **shared),
    ]
    for call in calls:
        alone = call()
        assert len(np.unique(alone)) > 1, "an answer in the wrong place would be wrong"
        np.testing.assert_array_equal(call(threads=threads), alone)
    with pytest.raises(ValueError, match="threads must be at least 1"):
        filled.posterior(keys, 0.1, threads=0)


@pytest.mark.parametrize("prior", [1e-3, lately.Uniform(800), np.full(30, 3e-3)])
@pytest.mark.parametrize("name", ["stable", "generalized", "many bits"])
def test_the_most_likely_age_is_as_probable_as_any(name, prior):
    if name == "many bits":
        f = lately.baselines.GeneralizedBloomFilter.from_parameters(300, bits=6000, k1=12, k0=12)
    else:
        f = EVERY[name].make(300, fpr=0.05)
    f.insert(np.random.default_rng(1).integers(0, 800, 1200))
    keys = np.arange(30)
    ages = f.age(keys, prior)
    keys, ages = keys[ages < 1200], ages[ages < 1200].astype(int)
    # A query of single ages gets answers for single ages.
    each = f.age_probability(keys, prior if np.ndim(prior) == 0 else prior[keys], np.arange(1201))
    assert len(set(ages.tolist())) > 1
    assert (each[np.arange(len(keys)), ages] > 0.95 * each.max(axis=1)).all()
