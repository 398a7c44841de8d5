"""ExactFilter: an object with the calls of a filter, and right answers."""

import numpy as np
import pytest

import lately

KEYS = np.random.default_rng(4).integers(0, 700, 20_000)
TIMES = np.sort(np.random.default_rng(5).integers(0, 10**5, 20_000))
LATE = TIMES - np.random.default_rng(6).integers(0, 50, 20_000)


@pytest.mark.parametrize("refresh", [True, False, "delivered"])
@pytest.mark.parametrize("window", [1, 100, 1000, 10**6])
def test_batches_and_single_keys_give_the_mask_of_the_one_liner(window, refresh):
    expected = lately.duplicated(KEYS, window, refresh=refresh)
    whole, parts, single = (lately.ExactFilter(window) for _ in range(3))
    assert np.array_equal(whole.duplicated(KEYS, refresh=refresh), expected)
    marks = [parts.duplicated(part, refresh=refresh, threads=2) for part in np.array_split(KEYS, 13)]
    assert np.array_equal(np.concatenate(marks), expected)
    assert [single.seen(key, refresh=refresh) for key in KEYS[:3000].tolist()] == expected[:3000].tolist()


@pytest.mark.parametrize("refresh", [True, False])
def test_event_times_give_the_mask_of_the_one_liner(refresh):
    """The one-liner has all rows and sorts them, so that only rows in order are compared with it."""
    for times, lateness in ((TIMES + 1_700_000_000, None), (LATE + 1_700_000_000, "50s")):
        expected = lately.duplicated(KEYS, "1h", at=times, refresh=refresh)
        whole, single = (lately.ExactFilter("1h", lateness=lateness) for _ in range(2))
        found = whole.duplicated(KEYS, at=times, refresh=refresh)
        if lateness is None:
            assert np.array_equal(found, expected)
        pairs = list(zip(KEYS.tolist(), times.tolist(), strict=True))[:2000]
        assert [single.seen(key, at=at, refresh=refresh) for key, at in pairs] == found[:2000].tolist()


@pytest.mark.parametrize("window", [1, 7, 300, 5000])
def test_a_query_answers_what_the_next_key_would_be_and_changes_nothing(window):
    seen = lately.ExactFilter(window, seed=1)
    seen.insert(KEYS[:4000])
    lately_seen = set(KEYS[:4000][-window:].tolist())
    before = seen.to_bytes()
    assert seen.query(range(700)).tolist() == [key in lately_seen for key in range(700)]
    assert [key in seen for key in range(700)] == [key in lately_seen for key in range(700)]
    assert seen.to_bytes() == before
    assert len(seen) == len(lately_seen)
    assert seen.inserted == 4000


def test_a_query_has_a_time():
    seen = lately.ExactFilter("10min")
    seen.insert(["a", "b"], at=[0, 300])
    assert [seen.query(["a", "b", "c"], at=at).tolist() for at in (300, 600, 601, 900, 901)] == [
        [True, True, False],
        [True, True, False],
        [False, True, False],
        [False, True, False],
        [False, False, False],
    ]
    # Every key came with a time of its own: without one, as of the latest.
    assert seen.query(["a", "b"]).tolist() == [True, True]
    assert "a" in seen
    assert len(seen) == 2
    seen.add("now")
    assert seen.query(["a", "now"]).tolist() == [False, True]
    assert len(seen) == 1


def test_missing_keys_are_one_or_each_its_own():
    assert lately.ExactFilter(9).duplicated([None, None, float("nan")]).tolist() == [False, True, True]
    distinct = lately.ExactFilter(9, missing="distinct")
    assert distinct.duplicated([None, None, "a", "a"]).tolist() == [False, False, False, True]
    assert None not in distinct
    assert len(distinct) == 1
