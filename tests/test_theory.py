"""Every filter does what its theory predicts, measured as in `benchmarks/theory.py`, at a smaller size."""

import dataclasses
import math
from functools import partial

import numpy as np
import pytest

from support import formulas, theory
from support.families import CASES

WINDOW = 2000
measure = partial(theory.measure, window=WINDOW, fresh=5000)


@pytest.fixture(scope="module", params=CASES)
def case_and_found(request):
    # A buffer compares each key with all that it has.
    fresh = 1000 if "buffer" in request.param else 5000
    return CASES[request.param], measure(CASES[request.param], fresh=fresh)


def test_no_live_key_is_missed_where_that_is_promised(case_and_found):
    case, found = case_and_found
    turns = found.queried - theory.FILTERS * theory.PHASES * WINDOW
    if case.promised:
        assert found.missed == 0
        assert turns >= 8 * WINDOW
    else:
        assert found.missed > 0


def test_keys_are_reported_as_often_as_predicted(case_and_found):
    _, found = case_and_found
    off = {name: figure.z for name, figure in found.figures() if abs(figure.z) > theory.BOUND}
    assert not off
    assert {"fresh, worst phase", "fresh, average", "beyond"} <= dict(found.figures()).keys()


def test_the_filter_has_the_same_attributes(case_and_found):
    case, found = case_and_found
    f = found.filter
    if case.bounds:  # parts of timers have it each
        assert found.worst.expected <= 1 - (1 - f.fpr) ** getattr(f, "parts", 1)
    elif case.timed:  # planned for a key more per generation than there may be, of at least 200
        assert 0.97 * f.fpr <= found.worst.expected <= f.fpr * (1 + 1e-9)
    else:
        assert found.worst.expected == pytest.approx(f.fpr, rel=1e-9)
    if f.parameters.get("equal_timers", 1) > 1 or case.expect is formulas.generalized:  # that beyond two windows too
        assert found.npws <= f.npws
    else:  # in a window of time the key that is exactly a span old is live here
        chance = theory.BOUND * found.peak.deviation * found.slack / WINDOW if found.slack else 0
        assert found.npws == pytest.approx(f.npws, abs=case.timed / WINDOW + chance + 1e-12)
    assert f.nbytes == found.saved


def test_equal_timers_miss_keys_of_each_age_as_often_as_stated():
    f = CASES["equal timers"].new(WINDOW, 0)
    blocks = f.parameters["blocks"]
    generation = math.ceil((WINDOW - 1) / blocks)
    _, reported = formulas.timing(f, np.full(blocks + 1, generation), np.arange(blocks + 1))
    np.testing.assert_allclose(f.false_negative_rates, 1 - reported, atol=1e-12)


def test_the_generalized_filter_has_the_posterior_of_the_formula_at_each_age():
    f = CASES["generalized"].new(WINDOW, 0)
    # A cell is untouched for 65,000 insertions on average, so what is left at a million is e^-15 of the whole.
    ages = np.arange(1_000_000)
    fresh, reported = formulas.generalized(f, np.array([]), ages)
    assert f.fpr == pytest.approx(fresh, rel=1e-9)
    rates = f.false_negative_rates(ages)
    np.testing.assert_allclose(rates, 1 - reported, atol=1e-9)
    assert rates[0] == 0
    assert rates[f.window - 1] == pytest.approx(0.1, abs=1e-4)
    # From some age on chance alone reports a key.
    assert f.false_negative_rates([0, 10**9, 2**64 - 1]).tolist() == pytest.approx([0, 1 - f.fpr, 1 - f.fpr])
    assert f.false_negative_rates([]).shape == (0,)
    for wrong, kind in (([-1], ValueError), ([2**64], ValueError), ([0.5], TypeError), (5, TypeError)):
        with pytest.raises(kind, match="ages"):
            f.false_negative_rates(wrong)
    assert f.npws == pytest.approx((reported - fresh)[WINDOW:].sum() / WINDOW, rel=1e-5)


@pytest.mark.parametrize(
    "name", [name for name, case in CASES.items() if case.promised and case.expect is not formulas.bloom]
)
def test_a_generation_that_is_a_key_too_short_is_seen(name):
    case = CASES[name]
    kept = theory.Stream(case, case.new(WINDOW, 0), WINDOW).kept
    short = case.new(WINDOW - (kept if kept < WINDOW // 2 else 1), 0)  # without generations: a window a key too short
    found = theory.Found(short, window=WINDOW)
    theory.ask_the_oldest(case, theory.Stream(case, short, WINDOW), short, found)
    assert found.missed > 0


def printed_age_partitioned(f, counts, ago):
    """Paper 1, section 5.3: fills that rise in a straight line (erratum APBF-1)."""
    k, slices = f.parameters["k"], f.parameters["k"] + f.parameters["l"]
    fills = np.minimum(np.arange(1, slices + 1), k) / (2 * k)
    return formulas.known_until(formulas.run_chance(k, fills), np.ones(slices), ago)


def all_k_of_the_window(f, counts, ago):
    """Guarded epochs as if they held the window and nothing of the guard."""
    return formulas.guarded_epoch(f, np.append(counts[: f.parameters["r"]], 0), ago)


def newest_part_alone(f, counts, ago):
    """Growing timers as if a query read the newest part only."""
    fresh = float(f.fill[: f.parameters["k"]].prod())
    return formulas.known_until(fresh, np.ones(f.parameters["blocks"] + 1), ago)


@pytest.mark.parametrize(
    ("name", "expect", "figures"),
    [
        ("age-partitioned (10, 7)", printed_age_partitioned, {"slack 1/4"}),
        ("guarded epochs", all_k_of_the_window, {"fresh, average"}),
        ("five times the plan, by density", newest_part_alone, {"fresh, average"}),
        ("stable", formulas.counting, {"fresh, average"}),
    ],
)
def test_a_wrong_formula_is_seen(name, expect, figures):
    found = measure(dataclasses.replace(CASES[name], expect=expect))
    assert figures <= {name for name, figure in found.figures() if abs(figure.z) > theory.BOUND}


def test_deviation_is_that_of_independent_filters():
    figure = theory.Figure()
    rng = np.random.default_rng(1)
    chances = np.full(1000, 0.3)
    for _ in range(4000):
        # Keys of one filter share its bits, which a count of all keys as coins would miss.
        figure.add(rng.random(1000) < rng.choice([0.2, 0.4]), chances)
    exact = math.sqrt((0.1**2 + (0.2 * 0.8 + 0.4 * 0.6) / 2 / 1000) / 4000)
    assert figure.deviation == pytest.approx(exact, rel=0.05)
    assert abs(figure.z) < 5
