"""ExactFilter: an object with the calls of a filter, and right answers."""

import numpy as np
import pytest

import lately

KEYS = np.random.default_rng(4).integers(0, 700, 20_000)


@pytest.mark.parametrize("refresh", [True, False, "delivered"])
@pytest.mark.parametrize("window", [1, 100, 1000, 10**6])
def test_batches_and_single_keys_give_the_mask_of_the_one_liner(window, refresh):
    expected = lately.duplicated(KEYS, window, refresh=refresh)
    whole, parts, single = (lately.ExactFilter(window) for _ in range(3))
    assert np.array_equal(whole.duplicated(KEYS, refresh=refresh), expected)
    marks = [parts.duplicated(part, refresh=refresh, threads=2) for part in np.array_split(KEYS, 13)]
    assert np.array_equal(np.concatenate(marks), expected)
    assert [single.seen(key, refresh=refresh) for key in KEYS[:3000].tolist()] == expected[:3000].tolist()


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
