"""Posteriors are calibrated, measured as in `benchmarks/inference/`, at a smaller size."""

import numpy as np
import pytest

from support.inference.printed import SimpleBuffer
from support.inference.streams import CHUNK, CONDITIONS, UNIVERSE, Condition, ages
from support.inference.trials import BINS, EverySecond, Outcome, as_planned, timers

FILTERS = 3
UNIFORM, POWER = CONDITIONS[0], CONDITIONS[2]
FAMILIES = {
    "timers, G corrected": lambda of, bits: timers(of, bits, 4, corrected=True),
    "simple buffer": lambda of, bits: SimpleBuffer(of.window, bits, 16, of.law.distinct),
    "time-limited": lambda of, _: EverySecond(of),
    **{
        name: lambda of, bits, name=name: as_planned(of, bits, name)
        for name in ["timing", "age-partitioned", "age-partitioned-512", "guarded-epoch", "guarded-epoch-512"]
    },
}


def run_trials(condition, made):
    """Query several filters for every key of the universe once, each at a phase of its own: 2**16 trials a filter."""
    keys = np.arange(1, UNIVERSE + 1)
    outcomes = []
    for seed in range(FILTERS):
        stream = condition.draw(2 * condition.window + seed * condition.window // 7 + 99, seed)
        subject = made()
        subject.insert(stream)
        last = np.full(UNIVERSE + 1, -(2**62))
        last[stream] = np.arange(len(stream))
        truth = len(stream) - 1 - last[keys] < condition.window
        penalties = np.random.default_rng(seed).uniform(1, 10, (2, len(keys)))
        posterior = subject.posterior(keys, condition.prior(keys))
        outcomes.append((subject.query(keys), posterior, truth, *penalties))
    return Outcome(*(np.concatenate(each) for each in zip(*outcomes, strict=True)))


def bound(outcome):
    """Return a bound that is exceeded by chance once in a million, if every posterior is right as often as it states.

    Given the bits, keys are independent but for sharing the window's insertions, which makes them scatter less. So what
    is true in a bin has the variance V_b = sum of P (1 - P); the mean of sum |.| over bins is at most sqrt(BINS V) by
    Cauchy and Schwarz, and its deviation at most sqrt(V), of which five are added.
    """
    variance = np.sum(outcome.posterior * (1 - outcome.posterior))
    return (np.sqrt(BINS * variance) + 5 * np.sqrt(variance)) / len(outcome.truth)


@pytest.mark.parametrize("bits", [5, 15])
@pytest.mark.parametrize("condition", [UNIFORM, POWER], ids=lambda condition: condition.stream)
@pytest.mark.parametrize("family", FAMILIES)
def test_posteriors_are_true_as_often_as_they_say(family, condition, bits):
    outcome = run_trials(condition, lambda: FAMILIES[family](condition, bits * condition.window))
    assert bound(outcome) < 0.01  # as close as is wanted
    assert outcome.calibration_error < bound(outcome)


@pytest.mark.parametrize("bits", [15, 30])
@pytest.mark.parametrize("family", ["age-partitioned-line", "guarded-epoch-line", "timing", "aged-cuckoo"])
def test_lanes_are_true_as_often_as_they_say(family, bits):
    # A window of the power law's 2**11 is less than a page.
    outcome = run_trials(UNIFORM, lambda: as_planned(UNIFORM, bits * UNIFORM.window, family))
    assert outcome.calibration_error < bound(outcome) < 0.01


@pytest.mark.parametrize("bits", [5, 10, 20])
@pytest.mark.parametrize("family", ["stable", "generalized"])
@pytest.mark.parametrize("condition", [UNIFORM, POWER], ids=lambda condition: condition.stream)
def test_posteriors_of_filters_that_forget_at_random_are_calibrated(condition, family, bits):
    # One prior for all keys states their number, and the share of zeros how many share a cell.
    outcome = run_trials(condition, lambda: as_planned(condition, bits * condition.window, family))
    assert bound(outcome) < 0.01
    assert outcome.calibration_error < bound(outcome)
    if condition is UNIFORM:
        # Half of what the bound allows, and a fifth of what was the matter.
        assert outcome.calibration_error < 0.004


def test_the_printed_g_is_seen():
    outcome = run_trials(UNIFORM, lambda: timers(UNIFORM, 10 * UNIFORM.window, 4, corrected=False))
    assert outcome.calibration_error > bound(outcome)


@pytest.mark.parametrize("factor", [0.7, 1.4])
def test_a_prior_that_is_off_is_seen(factor):
    class Off(Condition):
        def prior(self, keys):
            return factor * super().prior(keys)

    off = Off(UNIFORM.stream, UNIFORM.window, UNIFORM.law)
    outcome = run_trials(off, lambda: as_planned(off, 10 * off.window, "guarded-epoch"))
    assert outcome.calibration_error > bound(outcome)


@pytest.mark.parametrize("family", ["timing", "age-partitioned-512", "guarded-epoch"])
def test_inference_costs_less_than_the_answers_of_the_filter(family):
    outcome = run_trials(UNIFORM, lambda: FAMILIES[family](UNIFORM, 10 * UNIFORM.window))
    # Where answers differ, a query costs up to 10 more or less.
    deviation = 10 * np.sqrt(np.count_nonzero(outcome.decided != outcome.standard)) / len(outcome.truth)
    assert outcome.penalty < outcome.standard_penalty - 5 * deviation


def test_ages_are_those_of_the_moment_when_the_chunk_began():
    keys = np.append(np.arange(1, 50), np.random.default_rng(0).integers(1, 50, 3000))
    starts = np.array([100, 100 + CHUNK + 7])
    found = ages(keys, starts)
    for chunk, start in enumerate(starts.tolist()):
        seen = keys[:start][::-1].tolist()
        assert found[chunk].tolist() == [seen.index(key) for key in keys[start : start + CHUNK].tolist()]
