"""The default filter, as its users meet it: waves, ticks, a busy hour, small windows, shorter windows, merges."""

import numpy as np
import pytest

import lately

RATES = [1e-2, 1e-3, 1e-6]
SPAN = 100.0


def waves(pattern, capacity, windows=6):
    """Return times of keys that never number more than `capacity` in a span: (part of the span, part of the keys)."""
    times = []
    for window in range(windows):
        start = window * SPAN
        for length, share in pattern:
            count = int(capacity * share)
            times.append(start + np.linspace(0, length * SPAN, count, endpoint=False))
            start += length * SPAN
    return np.concatenate(times)


PATTERNS = {
    "even": [(1, 1)],
    "half in the last tenth": [(0.9, 0.5), (0.1, 0.5)],
    "all at once": [(0, 1), (1, 0)],
    "half at once": [(0, 0.5), (1, 0.5)],
    "ticks": [(0, 0.1), (0.1, 0)] * 10,
    "ramp": [(0.25, 0.1), (0.25, 0.2), (0.25, 0.3), (0.25, 0.4)],
    "a busy tenth": [(0.45, 0.05), (0.1, 0.9), (0.45, 0.05)],
    "late": [(0.99, 0), (0.01, 1)],
}


@pytest.mark.parametrize("capacity", [200, 20_000])
@pytest.mark.parametrize("name", PATTERNS)
def test_waves_within_the_capacity_keep_rate_and_bytes(name, capacity):
    """Of new keys at most 1.1 times the rate is reported in any tenth of a window, beside chance."""
    times = waves(PATTERNS[name], capacity)
    keys = np.arange(len(times))
    for fpr in RATES:
        for limit in ({"capacity": capacity}, {}):
            f = lately.Filter(f"{SPAN} s", fpr, **limit, max_ahead=None)
            seen = np.concatenate(
                [
                    f.duplicated(part, at=at)
                    for part, at in zip(np.array_split(keys, 50), np.array_split(times, 50), strict=True)
                ]
            )
            tenths = np.bincount((times / (SPAN / 10)).astype(int), minlength=1)
            reported = np.bincount((times / (SPAN / 10)).astype(int), weights=seen, minlength=1)
            mean = 1.1 * fpr * tenths
            # Of some 60 sums, each exceeds its mean by 6 standard deviations and 6 with a chance below 1e-6.
            assert (reported <= mean + 6 * np.sqrt(mean) + 6).all(), (fpr, limit)
            # Keys of the slack take room, too: of waves a window apart, two are there at once.
            live = np.searchsorted(times, times, "right") - np.searchsorted(times, times - SPAN - f.slack)
            assert f.nbytes <= 2.5 * 5.3 * live.max() + 60_000
            assert f.slack <= SPAN / 64


def test_ticks_take_no_more_memory_than_even_keys():
    """One time for a batch of 1,000 keys each 10 s; then the same keys spread over the 10 s."""
    filters = []
    for spread in (0, 10):
        f = lately.Filter("10min", 0.001, max_ahead=None)
        for tick in range(200):
            at = 10 * tick + np.linspace(0, spread, 1000, endpoint=False)
            f.insert(np.arange(1000) + 1000 * tick, at=at if spread else 10 * tick)
        filters.append(f)
    ticks, even = filters
    assert ticks.nbytes <= 1.5 * even.nbytes < 1.5 * 10 * 60_000


def test_memory_comes_back_after_a_lull():
    f = lately.Filter("1min", 0.001, max_ahead=None)
    f.insert(np.arange(200_000), at=0)
    most = f.nbytes
    for second in range(1, 400):
        f.seen(-second, at=second)
    assert f.nbytes < most / 8
    # However long a gap is, it is one step.
    assert not f.seen("key", at=9 * 10**9)
    assert f.seen("key", at=9 * 10**9 + 60)


@pytest.mark.parametrize("window", [30_000, "1h"])
def test_the_few_keys_of_a_site_stay_in_a_merge(window):
    """One site was busy and the other had a handful of keys, fewer than a sample of its lines would find."""
    for few in range(1, 7):
        busy, quiet = (lately.Filter(window, 1e-4) for _ in range(2))
        busy.insert(np.arange(75_000))
        quiet.insert(-1 - np.arange(few))
        for merged in (busy | quiet, quiet | busy):
            assert merged.query(-1 - np.arange(few)).all()
            assert merged.query(np.arange(45_000, 75_000)).all()


def test_more_keys_than_bytes_cost_accuracy_and_a_warning_never_a_key():
    f = lately.Filter("1h", nbytes=10_000, capacity=2_000, max_ahead=None)
    with pytest.warns(lately.OverfullWarning):
        f.insert(np.arange(8_000), at=np.linspace(0, 3599, 8_000))
    assert f.nbytes <= 10_000
    assert f.query(np.arange(8_000), at=3600).all()


@pytest.mark.parametrize("overfull", [0.5, 1, 1.3])
def test_posteriors_are_calibrated(overfull):
    """Of keys with a posterior of p, p were there: in bursts, queried late, and overfull by 30 %; no live key has 0."""
    random, keys = np.random.default_rng(5), 20_000
    prior = 1e-3
    f = lately.Filter("1h", nbytes=20_000, capacity=10_000, max_ahead=None)
    count = int(8_500 * overfull)
    times = np.sort(np.where(random.random(count) < 0.5, 1800.0, random.uniform(0, 3600, count)))
    f.insert(np.arange(count) + keys, at=times)
    live = random.choice(keys, 20, replace=False)
    at = 3600.0
    f.insert(live, at=at)
    p = f.posterior(np.arange(keys), prior / 3600)
    present = np.isin(np.arange(keys), live)
    assert (p[present] > 0).all()
    low = p < 0.5
    assert abs(p[low].mean() - present[low].mean()) < 0.01, (p[low].mean(), present[low].mean())


@pytest.mark.parametrize("distinct", [2_000, 4_000, 6_000])
def test_a_posterior_is_near_the_truth_where_most_keys_were_rejected(distinct):
    """A window has 8,000 keys, where fewer were planned: the filter reports every key, and few of those are live."""
    random, keys = np.random.default_rng(6), 20_000
    f = lately.Filter(10_000, 0.01, distinct=distinct)
    stream = random.integers(0, keys, 40_000)
    f.insert(stream)
    p, live = f.posterior(np.arange(keys), 1 / keys), np.isin(np.arange(keys), stream[-10_000:])
    low = p < 0.9
    assert abs(p[low].mean() - live[low].mean()) < 0.03, (p[low].mean(), live[low].mean())


def test_a_slack_below_the_least_names_what_serves_instead():
    f = lately.Filter(1_000_000, 0.001, slack=5_000)
    assert type(f) is lately.AgedCuckooFilter
    assert f.slack <= 5_000
    with pytest.raises(ValueError, match="slack must be at least"):
        lately.AgedCuckooFilter(1_000_000, 0.001, slack=10)
    with pytest.raises(ValueError, match="ExactFilter"):
        lately.AgedCuckooFilter(1_000_000, 1e-12)
