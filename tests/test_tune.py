"""`tune` is compared with a slow version, key by key; what it records and rejects."""

from collections import Counter, deque
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import lately
from lately._families import FAMILIES, Family
from lately._sample import Sample
from lately.priors._distinct import of_stream

# Most tests take a number for a prior that the sample contradicts.
pytestmark = pytest.mark.filterwarnings("ignore:prior makes")
RNG = np.random.default_rng(0)
# A third of the keys is one of 40, and comes again within 50; the others hardly ever do.
KEYS = np.where(RNG.random(600) < 1 / 3, RNG.integers(40, size=600), RNG.integers(10**6, size=600))
COSTS = RNG.uniform(1, 10, (2, len(KEYS)))
FEW = KEYS[:200]
FAST = ["age-partitioned", "guarded-epoch-transposed", "timing"]


def rehearse(**given):
    request = {"window": 50, "nbytes": 64, "false_positive": 5, "false_negative": 1, "prior": 0.01, "families": FAST}
    return lately.tune(**{"sample": KEYS, **request, **given})


@cache
def of_two_sizes():
    return rehearse(nbytes=[40, 80])


def alone(**given):
    """Rehearse one family on few keys."""
    return rehearse(**{"families": "timing", "sample": FEW} | given)


def slowly(trial, prior):
    """Repeat a trial with a window of keys, key by key: chunks of a window of 50 hold one key."""
    f, window = trial.build(), deque(maxlen=50)
    hashes = lately.hash_keys(KEYS)  # a filter is given the hashes as its keys
    penalty, plain, mistakes = 0.0, 0.0, [0, 0]
    for place, key in enumerate(hashes):
        if place >= 100:
            costs = COSTS[:, place]
            p = np.atleast_1d(prior.probability(KEYS[place : place + 1]))
            seen, decided = key in window, f.decide([key], p, *costs)[0]
            penalty += costs[0] if decided and not seen else costs[1] if seen and not decided else 0
            plain += costs[0] if f.query([key])[0] and not seen else 0
            mistakes[0] += decided and not seen
            mistakes[1] += seen and not decided
        f.insert([key])
        window.append(key)
    return penalty, plain, *mistakes


def test_a_trial_equals_key_by_key_calls():
    prior = lately.Uniform(300)
    tuned = rehearse(false_positive=COSTS[0], false_negative=COSTS[1], prior=prior)
    assert tuned.decided == len(KEYS) - 100
    by_name = {trial.name: trial for trial in tuned.curve}
    assert set(by_name) == set(FAST)
    for trial in by_name.values():
        penalty, plain, *mistakes = slowly(trial, prior)
        assert [trial.false_positives, trial.false_negatives] == mistakes
        np.testing.assert_allclose([trial.penalty, trial.plain_penalty], [penalty, plain])
        assert sum(mistakes) > 0


def test_in_chunks_the_window_before_the_chunk_counts():
    keys = RNG.integers(500, size=2000)
    sample = Sample(keys, 640, 0.5, 1, 1)
    assert {len(chunk.keys) for chunk in sample.chunks[:-1]} == {10}
    start = 1280
    for chunk in sample.chunks:
        expected = [key in keys[start - 640 : start] for key in keys[start : start + len(chunk.keys)]]
        np.testing.assert_array_equal(chunk.seen, expected)
        start += len(chunk.keys)
    assert start == len(keys) == len(sample)


def test_without_a_filter_the_prior_decides():
    # Within 50 insertions a key of p = 0.02 comes with probability 1 - 0.98^50 = 0.636.
    repeats = sum(key in FEW[place - 50 : place] for place, key in enumerate(FEW) if place >= 100)
    assert alone(prior=0.02, false_positive=1, false_negative=1).prior_penalty == len(FEW) - 100 - repeats
    assert alone(prior=0.02, false_positive=2, false_negative=1).prior_penalty == repeats
    assert alone(prior=np.full(len(FEW), 0.02), false_positive=2, false_negative=1).prior_penalty == repeats


def test_shapes_that_no_plan_takes_cost_less():
    """Of a stream with repeats there are fewer keys than in the plan, so that fingerprints may be longer."""
    keys = np.random.default_rng(1).zipf(1.2, 4000)
    for bits, name in ((15, "aged-cuckoo"), (10, "age-partitioned"), (10, "timing")):
        tuned = lately.tune(keys, 1000, 125 * bits, 5, 1, families=name)
        planned = [
            FAMILIES[name].make(1000, nbytes=125 * bits, slack=slack).parameters for slack in (125, 250, 500, 1000)
        ]
        costs = [trial.cost for trial in tuned.curve if trial.parameters in planned]
        assert tuned.best.cost < 0.7 * min(costs), name
        assert tuned.build().parameters == tuned.best.parameters not in planned


def test_the_least_penalty_is_taken():
    tuned = of_two_sizes()
    assert tuned.best.cost == min(trial.cost for trial in tuned.curve)
    assert max(trial.nbytes for trial in tuned.curve) <= 80
    assert len({(trial.name, *trial.parameters.items()) for trial in tuned.curve}) == len(tuned.curve)
    for trial in tuned.curve:
        made = trial.build()
        assert (made.nbytes, made.parameters, made.slack) == (trial.nbytes, trial.parameters, trial.slack)
    assert tuned.build().parameters == tuned.best.parameters


def test_a_baseline_is_listed_and_not_taken():
    curve = [replace(trial, penalty=1.0) for trial in rehearse(families=["timing"]).curve]
    curve.append(replace(curve[0], name="stable", penalty=0.0))
    tuned = lately.Tuned(curve, {}, 2.0, 100)
    assert tuned.best.name == "timing"
    assert repr(tuned).splitlines()[1].startswith("stable")
    assert lately.Tuned(curve[-1:], {}, 2.0, 100).best.name == "stable"


def test_mistakes_of_higher_cost_are_made_less_often():
    seen, new = rehearse(false_positive=9, nbytes=20), rehearse(false_negative=45, nbytes=20)
    for wary, bold in zip(seen.curve, new.curve, strict=True):
        assert wary.false_positives < bold.false_positives
        assert wary.false_negatives > bold.false_negatives


def test_tables_agree():
    tuned = of_two_sizes()
    frame = tuned.to_pandas()
    assert list(frame["filter"]) == [trial.name for trial in tuned.curve]
    assert list(frame["penalty"]) == [trial.penalty for trial in tuned.curve]
    # Read by people: a line for each family, its best.
    least = frame[["penalty", "plain penalty"]].min(axis=1)
    for shown in (repr(tuned), tuned._repr_html_()):
        assert all(shown.count(name) >= 1 for name in FAST)
        assert tuned.reason in shown
    assert len(repr(tuned).splitlines()) == 1 + len(FAST) + 1
    assert tuned.best.cost == least.min()


def test_plain_answers_are_recommended_where_the_prior_makes_decisions_cost_more():
    with pytest.warns(UserWarning, match=r"prior makes 0\.00% of the keys repeats .* leave it out"):
        tuned = rehearse(prior=1e-6, false_negative=100)
    assert tuned.best.plain_penalty < tuned.best.penalty
    assert "its plain answers cost least" in tuned.reason
    assert "call query, not decide" in repr(tuned)


def test_any_container_and_one_cost_for_all():
    expected = alone().to_pandas()
    for sample in (
        FEW.tolist(),
        (key for key in FEW.tolist()),
        pd.Series(FEW, index=np.linspace(5, 0, len(FEW))),
    ):
        pd.testing.assert_frame_equal(alone(sample=sample).to_pandas(), expected)
    # A row of a frame is a key, and so is a tuple.
    rows = alone(sample=pd.DataFrame({"key": FEW}, index=np.linspace(5, 0, len(FEW)))).to_pandas()
    pd.testing.assert_frame_equal(rows, alone(sample=[(key,) for key in FEW.tolist()]).to_pandas())
    each = alone(false_positive=np.full(len(FEW), 5), false_negative=np.ones(len(FEW)))
    pd.testing.assert_frame_equal(each.to_pandas(), expected)


def test_the_default_prior_is_how_often_keys_came_in_the_first_two_windows():
    warm = Counter(KEYS[:100].tolist())
    of_all = 100 + len(warm) / 2
    chances = lately.Probabilities(
        lambda keys: np.array([(warm[key] + 0.5) / of_all for key in np.asarray(keys).tolist()]),
        distinct=of_stream(lately.hash_keys(KEYS[:100])),
    )
    pd.testing.assert_frame_equal(alone(prior=None).to_pandas(), alone(prior=chances).to_pandas())
    costs = {"sample": KEYS[:400], "false_positive": 1, "false_negative": 5}
    by_default, rare = (alone(prior=prior, **costs).prior_penalty for prior in (None, 1e-9))
    assert by_default == alone(prior=chances, **costs).prior_penalty < rare


class Mute:
    """A filter without probabilities."""

    parameters = {}  # noqa: RUF012

    def __init__(self, window, fpr=None, **_):
        pass

    def posterior(self, keys, prior):
        raise ValueError("knows no probabilities")


def test_an_unsuited_family_is_rejected_with_its_reason(monkeypatch):
    monkeypatch.setitem(FAMILIES, "mute", Family(Mute))
    tuned = rehearse(families=["mute", "time-limited", "counting", "timing"])
    assert {trial.name for trial in tuned.curve} == {"timing"}
    assert tuned.refused["mute"] == "knows no probabilities"
    assert "windows of time" in tuned.refused["time-limited"]
    assert "nbytes must be at least" in tuned.refused["counting"]
    assert "not mute: knows no probabilities" in repr(tuned)
    with pytest.raises(ValueError, match=r"^no family can run\n  mute: knows no .*\n  time-limited: windows"):
        rehearse(families=["mute", "time-limited"])


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"sample": KEYS[:149]}, ValueError, "sample must have 3 windows, 150 keys or more, got 149"),
        ({"sample": [object()] * 200}, TypeError, "object"),
        ({"window": "1h"}, TypeError, "window must be a number of insertions"),
        ({"window": 0}, ValueError, "window must be 1 insertion or more, got 0"),
        ({"nbytes": []}, TypeError, "nbytes must be a whole number of bytes"),
        ({"nbytes": [40, 1.5]}, TypeError, "nbytes must be a whole number of bytes"),
        ({"nbytes": 1}, ValueError, "^no family can run\n  age-partitioned: nbytes must be at least 400 .*\n  guarded"),
        ({"nbytes": "40"}, TypeError, "nbytes"),
        ({"false_positive": -1}, ValueError, r"false_positive\[0\] must be 0 or more and finite, got -1"),
        ({"false_negative": [1, 2]}, ValueError, "false_negative must be a number or one per key of the sample, 600"),
        ({"false_negative": [1] * 599 + [np.nan]}, ValueError, r"false_negative\[599\] must be 0 or more"),
        ({"false_positive": "dear"}, TypeError, "false_positive must be a number or an array of them, got str"),
        ({"prior": object()}, TypeError, "prior must be a number or an array of them, got object"),
        ({"prior": 1.5}, ValueError, r"prior\[0\] must lie in \[0, 1\], got 1.5"),
        ({"prior": [0.1, 0.2]}, ValueError, "prior must be a number or one per key of the sample, 600"),
        ({"families": ["bloom"]}, ValueError, "families must be of aged-cuckoo, .*; got 'bloom'"),
        ({"families": []}, ValueError, "families must have one name"),
        ({"seed": -1}, ValueError, "seed"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_bad_input(given, error, message):
    with pytest.raises(error, match=message):
        rehearse(**given)


class Stream:
    """A column that only Arrow's C stream reads."""

    def __init__(self, column):
        self.column = column

    def __arrow_c_stream__(self, requested_schema=None):
        return self.column.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "held",
    [
        pytest.param(of, id=name)
        for name, of in {
            "iterator": iter,
            "deque": deque,
            "values": lambda keys: dict(enumerate(keys)).values(),
            "hashes": lambda keys: lately.Hashes(lately.hash_keys(keys)),
            "Arrow stream": lambda keys: Stream(pa.chunked_array([keys])),
            "Arrow reader": lambda keys: pa.table([keys], ["key"]).to_reader(),
        }.items()
    ],
)
def test_a_sample_may_be_any_batch(held):
    keys = list(map(int, FEW))
    sample = held(keys)
    rows = pa.table([keys], ["key"]) if isinstance(sample, pa.RecordBatchReader) else keys
    prior = lately.Probabilities(lambda keys: (lately.hash_keys(keys) % 100 + 1) / 10_000, distinct=np.asarray)
    assert alone(sample=sample, prior=prior).curve == alone(sample=rows, prior=prior).curve


def test_numbers_of_bytes_may_be_an_array():
    assert alone(nbytes=np.array([40, 80])).curve == alone(nbytes=[40, 80]).curve
    assert alone(nbytes=np.array(80)).curve == alone(nbytes=np.int64(80)).curve == alone(nbytes=80).curve
