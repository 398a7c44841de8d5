"""Plots show the figures that they are given."""

from itertools import pairwise

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import lately
from lately import plot
from lately._families import EVERY
from lately._styles import INK, line_style

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def tuned():
    keys = np.random.default_rng(0).zipf(1.3, 4000)
    return lately.tune(keys, 1000, [300, 600, 900], 5, 1, families=["timing", "guarded-epoch-transposed"])


def test_calibration():
    posteriors = np.array([0.01, 0.02, 0.32, 0.33, 0.34, 1.0])
    axes = plot.calibration(posteriors, [False, False, True, False, True, True])
    points = axes.containers[0].lines[0]
    np.testing.assert_allclose(points.get_xdata(), [0.015, 0.33, 1.0])
    np.testing.assert_allclose(points.get_ydata(), [0, 2 / 3, 1])
    # Two standard deviations, of a sum of variances p (1 - p).
    (_, middle, last) = axes.containers[0].lines[2][0].get_segments()
    spread = 2 * np.sqrt(0.32 * 0.68 + 0.33 * 0.67 + 0.34 * 0.66) / 3
    np.testing.assert_allclose(middle[:, 1], [2 / 3 - spread, 2 / 3 + spread])
    np.testing.assert_allclose(last[:, 1], [1, 1])
    # Most keys are decided, and hide nothing: the title counts the three others.
    assert axes.get_title() == f"calibration: off by {2 / 3 - 0.33:.2g} where undecided"
    assert plot.calibration([0.0, 1.0], [False, True]).get_title() == "calibration: none undecided"
    axes.figure.draw_without_rendering()


@pytest.mark.parametrize(
    ("posteriors", "truth", "message"),
    [([], [], "one per key"), ([0.5], [True, False], "one per key"), ([1.5], [True], "lie in"), ([np.nan], [1], "lie")],
)
def test_bad_posteriors_are_errors(posteriors, truth, message):
    with pytest.raises(ValueError, match=message):
        plot.calibration(posteriors, truth)


def test_penalty(tuned):
    axes = plot.penalty(tuned)
    steps = {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}
    assert set(steps) == {"timing", "guarded-epoch-transposed", "the prior alone"}
    assert set(steps["the prior alone"].get_ydata()) == {tuned.prior_penalty}
    for name in ("timing", "guarded-epoch-transposed"):
        bits, least = steps[name].get_data()
        assert all(fewer <= more for fewer, more in pairwise(bits))
        ran = [trial for trial in tuned.curve if trial.name == name]
        assert least[-1] == min(trial.penalty for trial in ran)
        assert len(least) == len(ran)
        for place, cost in zip(bits, least, strict=True):
            assert cost >= min(trial.penalty for trial in ran if trial.bits_per_key <= place)
    axes.figure.draw_without_rendering()


def test_of_many_families_the_six_of_least_penalty_are_drawn():
    table = {"filter": [f"family {i}" for i in range(9)], "bits per key": range(9), "penalty": range(9, 0, -1)}
    axes = plot.penalty(pd.DataFrame(table))
    legend = axes.get_legend()
    assert {text.get_text() for text in legend.get_texts()} == {f"family {i}" for i in range(3, 9)}
    axes.figure.draw_without_rendering()
    assert not legend.get_window_extent().overlaps(axes.get_window_extent()), "the legend covers no point"


def test_penalty_of_a_table(tuned):
    _, axes = plt.subplots()
    assert plot.penalty(pd.concat([tuned.to_pandas()] * 2), axes=axes) is axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["timing", "guarded-epoch-transposed"]
    for wrong in (5, pd.DataFrame({"filter": ["timing"]})):
        with pytest.raises(TypeError, match="bits per key and penalty"):
            plot.penalty(wrong)


@pytest.mark.parametrize("timed", [False, True])
def test_posterior(timed):
    keys, at = np.arange(5000), {"at": 5000} if timed else {}
    window = {"window": "1000s", "capacity": 1000} if timed else {"window": 1000}
    f = lately.GuardedEpochBloomFilter(fpr=0.01, **window)
    f.insert(keys, **({"at": keys} if timed else {}))
    axes = plot.posterior(f, 4200, lately.Uniform(5000, rate=1), **at)
    (after, edges, _), (before, _, _) = (patch.get_data() for patch in axes.patches)
    # The area within the window is what `posterior` returns; the window ends at an edge of bins.
    widths, within = np.diff(edges), edges[1:] <= 1000
    probable = f.posterior([4200], 1 / 5000, **at)[0]
    np.testing.assert_allclose((after * widths)[within].sum(), probable, atol=1e-9)
    assert axes.get_title() == f"inserted within the window: {100 * probable:.1f} %"
    lost = np.exp(-2000 / 5000) if timed else (1 - 1 / 5000) ** 2000
    np.testing.assert_allclose((before * widths).sum(), 1 - lost)
    assert ("seconds" in axes.get_xlabel()) is timed
    axes.figure.draw_without_rendering()
    for prior in (1 / 5000, [1 / 5000]):
        again, _, _ = plot.posterior(f, 4200, prior, **at).patches[1].get_data()
        np.testing.assert_allclose(again, before, rtol=1e-9)


def test_a_window_of_few_insertions():
    f = lately.TimingBloomFilter(5, fpr=0.01)
    f.insert(range(5))
    after, edges, _ = plot.posterior(f, 3, 0.1).patches[0].get_data()
    np.testing.assert_array_equal(edges, np.arange(11))
    assert after.argmax() == 1


def test_without_a_window():
    with pytest.raises(ValueError, match="filter must have a window"):
        plot.posterior(lately.BloomFilter(10, 0.1), 1, 0.1)


def test_no_two_families_look_alike():
    looks = [tuple(sorted(line_style(name).items())) for name in [*EVERY, "bloom"]]
    assert len(set(looks)) == len(looks) == len(EVERY) + 1
    colours = {name: line_style(name)["color"] for name in EVERY if EVERY[name].promise}
    kinds = {name: EVERY[name].kind for name in colours}
    assert all((colours[a] == colours[b]) == (kinds[a] is kinds[b]) for a in colours for b in colours)
    assert INK not in colours.values()
