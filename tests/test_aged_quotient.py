"""The aged quotient filter for its users: memory, distinct keys, bursts beyond the plan, ages."""

import numpy as np
import pytest

import lately

WINDOW = 20_000


def test_small_windows_take_small_pages():
    for window in (1, 10, 100, 1000):
        f = lately.AgedQuotientFilter(window, 0.01)
        assert f.nbytes <= 256 + 4 * window
        keys = np.arange(5 * window)
        f.insert(keys)
        assert f.query(keys[-window:]).all()


@pytest.mark.parametrize("repeats", [1, 5])
def test_distinct_keys_are_counted_and_are_what_memory_follows(repeats):
    f = lately.AgedQuotientFilter(WINDOW, 0.001, distinct=WINDOW // repeats)
    assert f.bits_per_key < 25 / repeats  # whole pages, of which there are three
    # Each key comes `repeats` times, in places that lie a hundred apart.
    number = np.arange(3 * WINDOW)
    keys = (number // (100 * repeats)) * 100 + number % 100
    f.insert(keys)
    assert f.query(keys[-WINDOW:]).all()
    true = len(np.unique(keys[-WINDOW:]))
    # Keys that share an entry, and the oldest epoch taken as even.
    assert abs(f.distinct() / true - 1) < 0.01
    fresh = np.arange(1 << 40, (1 << 40) + 1_000_000)
    assert f.query(fresh).sum() < 1000 + 6 * np.sqrt(1000)


def test_a_tenth_more_keys_than_planned_hold_the_rate_and_more_never_shorten_the_window():
    fresh = np.arange(1 << 40, (1 << 40) + 200_000)
    for load in (1.0, 1.1, 1.5, 4.0):
        f = lately.AgedQuotientFilter("1s", 0.01, capacity=int(WINDOW / load))
        at = np.arange(3 * WINDOW) / WINDOW
        f.insert(np.arange(3 * WINDOW), at=at)
        now = at[-1]
        assert f.query(np.arange(2 * WINDOW, 3 * WINDOW), at=now).all()
        assert f.query(fresh, at=now).mean() < 0.0105 or load > 1.1
        assert not f.query(np.arange(WINDOW), at=now + 3).any() or load > 1.1


GROWING = {
    "1 %": {"fpr": 0.01},
    "0.1 %": {"fpr": 0.001},
    "a thousand keys": {"fpr": 0.01, "capacity": 1000},
    "distinct": {"fpr": 0.01, "window": WINDOW * 12, "distinct": WINDOW // 2},
}


@pytest.mark.parametrize("given", GROWING.values(), ids=GROWING)
def test_a_burst_costs_memory_and_as_much_accuracy_as_it_is_large_and_no_key(given):
    """A shop on its busiest day: ten times the planned orders, and then the day after."""
    fresh = np.arange(1 << 40, (1 << 40) + 100_000)
    f = lately.AgedQuotientFilter(
        **{"window": "60s", "grow": True} | ({} if "window" in given else {"capacity": WINDOW}) | given
    )
    planned, timed = given.get("distinct", given.get("capacity", WINDOW)), "window" not in given
    before = f.nbytes
    number, levels, rates = 0, [], []
    for second in range(300):
        burst = 1 if not 120 <= second < 200 else 10
        orders = np.arange(number, number + burst * planned // 60)
        # A window of insertions goes on with repeats: of a few orders, queried again and again.
        repeats = np.resize(orders[:50], 0 if timed else WINDOW * 12 // 60 - len(orders))
        at = second + np.arange(len(orders)) / len(orders) if timed else None
        f.insert(orders, at=at)
        if not timed:
            f.insert(repeats)
        number = orders[-1] + 1
        if second in (119, 190, 299):
            now = second + 1 if timed else None
            live = np.arange(number - (planned * (10 if second == 190 else 1)) * 59 // 60, number)
            assert f.query(live, at=now).all()
            rates.append(f.query(fresh, at=now).mean())
            levels.append(f.nbytes // before)
            assert abs(f.false_positive_rate() - rates[-1]) < 6 * np.sqrt(rates[-1] / len(fresh))
    assert levels in ([1, 8, 1], [1, 16, 1]), levels
    noise = 6 * np.sqrt(given["fpr"] / len(fresh))
    assert max(rates[0], rates[2]) < given["fpr"] + noise, rates
    assert rates[1] < 10.5 * given["fpr"], rates


def test_a_grown_filter_is_saved_merged_and_queried_like_any_other():
    def make(first, count):
        f = lately.AgedQuotientFilter("1min", 0.001, capacity=500, grow=True)
        f.insert(np.arange(first, first + count), at=np.linspace(0, 50, count))
        return f

    large, small = make(0, 8000), make(10_000, 300)
    assert large.nbytes > 8 * small.nbytes
    for a, b in [(large, small), (small, large)]:
        both = a.union(b)
        assert both.query(np.r_[:8000, 10_000:10_300], at=55).all()
        assert both.nbytes >= large.nbytes
    again = lately.from_bytes(large.to_bytes())
    assert (again.family, again.nbytes) == ("aged-quotient-growing", large.nbytes)
    probes = np.arange(20_000)
    assert np.array_equal(again.query(probes, at=55), large.query(probes, at=55))
    for f in (again, large):
        f.insert(probes, at=60)
    assert again.to_bytes() == large.to_bytes()
    assert large.query(probes, at=68, window="8s").all()
    assert abs(large.distinct() / 20_000 - 1) < 0.02
    # Gone with the window, and with the next keys the memory too.
    large.insert(np.arange(2000), at=np.linspace(1000, 1300, 2000))
    assert large.nbytes == small.nbytes
    halved = lately.AgedQuotientFilter("1min", 0.001, capacity=500)
    with pytest.raises(ValueError, match="family is aged-quotient here"):
        halved.union(large)


def test_counts_find_a_card_that_is_used_five_times_in_ten_minutes():
    """A velocity check: how often each card was used within ten minutes, and within one, beside the exact numbers."""
    rng = np.random.default_rng(3)
    swipes = 60_000
    # Some cards are used by a machine, the others now and then.
    cards = np.where(rng.random(swipes) < 0.1, rng.integers(0, 50, swipes), rng.integers(50, 20_000, swipes))
    at = np.sort(rng.random(swipes)) * 3600
    f = lately.AgedQuotientFilter("10min", 1e-4, capacity=10_000, counts=4)
    known = f.copy()
    longer = 0.0
    for start in range(0, swipes, 997):
        now, last = slice(start, start + 997), at[min(start + 996, swipes - 1)]
        f.insert(cards[now], at=at[now])
        for minutes in (10, 1):
            live = cards[: start + 997][at[: start + 997] > last - 60 * minutes]
            card, true = np.unique(live, return_counts=True)
            estimates = f.count(card, at=last, window=f"{minutes}min")
            assert (estimates >= np.minimum(true, 16)).all()
            # A few counts are higher: where lines are full, occurrences of several epochs are counted together.
            early = cards[: start + 997][at[: start + 997] > last - 60 * minutes - 600 / 7 - 1]
            longer += (estimates > np.bincount(early, minlength=20_000)[card]).mean()
    assert longer / (2 * len(range(0, swipes, 997))) < 0.05
    assert not f.count(np.arange(1 << 40, (1 << 40) + 10_000), at=at[-1]).mean() > 0.001
    assert not f.count(cards[:1000], at=at[-1] + 700).any()
    known.duplicated(["card"] * 7, at=np.arange(7.0))
    known.duplicated(["card"] * 7, at=np.arange(7.0, 14.0), refresh=False)
    for g in (known, lately.from_bytes(known.to_bytes()), known.copy()):
        assert g.count(["card"], at=14).tolist() == [7]
        assert g.parameters["count_bits"] == 4
    assert known.union(known).count(["card"], at=14).tolist() == [14]
    with pytest.raises(ValueError, match="this filter does not count: make it with counts=4"):
        lately.AgedQuotientFilter(1000, 0.01).count(["a"])
    with pytest.raises(ValueError, match=r"bits of a count must lie in 1\.\.=8, got 9"):
        lately.AgedQuotientFilter(1000, 0.01, counts=9)


def test_counts_cost_as_many_bits_as_they_have_and_none_where_there_are_none():
    plain, counting = (lately.AgedQuotientFilter(1_000_000, 0.001, counts=counts) for counts in (None, 4))
    assert plain.nbytes == lately.AgedQuotientFilter(1_000_000, 0.001).nbytes
    assert 4 < counting.bits_per_key - plain.bits_per_key < 6
    assert (plain.family, counting.family) == ("aged-quotient", "aged-quotient-counting")


def test_counts_go_on_in_a_burst():
    f = lately.AgedQuotientFilter("1min", 0.001, capacity=500, grow=True, counts=3)
    before = f.nbytes
    for second in range(120):
        f.insert(["card", *range(second * 200, second * 200 + 200)], at=second + np.arange(201) / 201)
        assert f.count(["card"], at=second + 1).tolist()[0] >= min(second + 1, 8)
    assert f.nbytes > 8 * before
    assert f.count(["card"], at=120, window="5s").tolist()[0] >= 5


def test_a_query_in_the_future_sees_what_will_be_left():
    f = lately.AgedQuotientFilter("70s", 1e-5, capacity=1000)
    f.insert(["a"], at=0)
    later = f.copy()
    answers = [f.query(["a"], at=t)[0] for t in range(200)]
    last = max(t for t, seen in enumerate(answers) if seen)
    assert 70 <= last <= 70 + f.slack
    assert all(answers[:last])
    later.insert(["b"], at=last + 1)
    assert not later.query(["a"], at=last + 1)[0]


def test_ages_are_right_to_an_epoch():
    f = lately.AgedQuotientFilter(WINDOW, 1e-5)
    keys = np.arange(3 * WINDOW)
    f.insert(keys)
    ages = f.age(keys[-WINDOW:], 1e-5)
    true = np.arange(WINDOW)[::-1]
    assert np.abs(ages - true).max() <= 2 * WINDOW / 7 + 1
    assert (f.posterior(keys[-WINDOW:], 1e-3) > 0.9).mean() > 0.8
    assert f.posterior(np.arange(1 << 40, (1 << 40) + 1000), 1e-3).max() < 0.9


def test_a_slack_of_a_four_thousandth_takes_a_few_bits():
    """In a window of a day a key is reported for the day, and gone 23 seconds later."""
    day, keys = 86_400, 50_000
    f = lately.AgedQuotientFilter("1 d", 0.001, capacity=keys, slack="23s", counts=2)
    assert f.family == "aged-quotient-counting"
    assert f.parameters["epochs"]
    assert 8 * f.nbytes / keys < 43
    at = np.linspace(0, 3 * day, 3 * keys)
    f.insert(np.arange(3 * keys), at=at)
    age = 3 * day - at
    present, counted = f.query(np.arange(3 * keys), at=3 * day), f.count(np.arange(3 * keys), at=3 * day)
    assert present[age <= day].all()
    assert counted[age <= day].min() == 1
    gone = age > day + 23
    assert present[gone].sum() < 0.001 * gone.sum() + 6 * np.sqrt(0.001 * gone.sum())
    for window in (60, 3600, 43_200):
        seen = f.query(np.arange(3 * keys), at=3 * day, window=f"{window}s")
        assert seen[age <= window].all()
        assert seen[age > window + 23].mean() < 0.001
    later = f.query(np.arange(3 * keys), at=3.5 * day)
    assert later[age <= day / 2].all()
    assert not later[(age > day / 2 + 23) & (age <= day)].mean() > 0.001


def test_ages_are_right_to_a_four_thousandth_of_the_window():
    f = lately.AgedQuotientFilter(WINDOW, 1e-5, slack=WINDOW // 2000)
    keys = np.arange(5 * WINDOW)
    f.insert(keys)
    ages = f.age(keys[-WINDOW:], 1e-5)
    assert np.abs(ages - np.arange(WINDOW)[::-1]).max() <= 2 * f.slack
    assert abs(f.distinct() / WINDOW - 1) < 0.001
    assert abs(f.distinct(777) / 777 - 1) < 0.01
    again = lately.from_bytes(f.to_bytes())
    assert np.array_equal(again.query(keys), f.query(keys))
    assert again.family == f.family == "aged-quotient"
    assert again.parameters["epochs"] == f.parameters["epochs"] > 0
    both = f.union(again)
    assert np.array_equal(both.query(keys), f.query(keys))


def test_fine_tags_grow_in_a_burst_and_shrink_again():
    f = lately.AgedQuotientFilter("1min", 0.001, capacity=500, slack="1s", grow=True)
    assert f.family == "aged-quotient-growing"
    assert f.parameters["epochs"]
    before = f.nbytes
    for second in range(240):
        keys = np.arange(second * 1000, second * 1000 + (100 if 60 <= second < 120 else 8))
        f.insert(keys, at=second + np.arange(len(keys)) / len(keys))
        assert f.query(keys, at=second + 59).all()
        if second == 119:
            assert f.nbytes > 8 * before
    assert f.nbytes == before


def test_absent_keys_of_a_page_that_rejected_few_keys_have_low_posteriors():
    """Some of 30 pages are too full for good, and a tenth of the absent keys lie in lines that rejected keys."""
    window = 2**16
    f = lately.AgedQuotientFilter.from_parameters(
        window, fingerprint_bits=11, tag_bits=8, pages=30, lines=63, epochs=255
    )
    stream = np.random.default_rng(5).integers(0, window, 4 * window)
    f.insert(stream)
    keys = np.arange(window)
    inserted = np.isin(keys, stream[-window:])
    posteriors = f.posterior(keys, 1 / window)
    # They are queried with a prior of 0.63, and not one in twenty was inserted.
    unsure = f.query(keys) & (posteriors < 0.7) & (posteriors > 0.01)
    assert unsure.sum() > 0.05 * (~inserted).sum()
    share = inserted[unsure].mean()
    assert share / 2 < posteriors[unsure].mean() < 3 * share
    assert ((posteriors >= 0.5) != inserted).mean() < 0.002
    np.testing.assert_allclose(f.posterior(keys, np.full(window, 1 / window)), posteriors, atol=1e-9)
