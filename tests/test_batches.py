"""A batch of any size answers as single calls do. A batch with a bad key, or an empty one, changes nothing."""

from itertools import pairwise

import numpy as np
import pytest

import lately
from support.plans import COUNTED, TIMED, stream, times

N = 4500
SIZES = [1, 2, 3, 15, 16, 17, 4095, 4096, 4097, N, "mixed"]


def parts(n, size):
    """Yield the parts of n keys in batches of a size, or of sizes in turn, some of them empty."""
    ends = np.arange(size, n, size) if size != "mixed" else np.cumsum(MIXED)
    for start, end in pairwise([0, *ends[ends < n], n]):
        yield slice(start, end)


MIXED = np.random.default_rng(11).choice([0, 1, 2, 10, 63, 64, 65, 200], 1000)


@pytest.mark.parametrize("refresh", [True, False, "delivered"])
@pytest.mark.parametrize("name", COUNTED)
def test_a_batch_is_its_single_calls(name, refresh):
    keys = stream(N)
    one_by_one = COUNTED[name]()
    seen = []
    for key in keys.tolist():
        seen.append(key in one_by_one)
        if refresh is True or not seen[-1]:
            one_by_one.add(key)
        elif not refresh:
            one_by_one.duplicated([key], refresh=False)  # the window goes on without an insertion
    assert 0.2 < np.mean(seen) < 0.8
    for size in SIZES:
        f, inserting = COUNTED[name](), COUNTED[name]()
        got = []
        for part in parts(N, size):
            got.append(f.duplicated(keys[part], refresh=refresh))
            if refresh is True:
                inserting.insert(keys[part])
        assert np.concatenate(got).tolist() == seen, size
        assert f.to_bytes() == one_by_one.to_bytes(), size
        if refresh is True:
            assert inserting.inserted == N
            assert inserting.to_bytes() == f.to_bytes(), size
        queried = np.concatenate([f.query(keys[part]) for part in parts(N, size)])
        assert queried.tolist() == f.query(keys).tolist(), size


@pytest.mark.parametrize("refresh", [True, False])
@pytest.mark.parametrize("name", TIMED)
def test_a_batch_with_times_is_its_single_calls(name, refresh):
    keys, at = stream(N), times(N)
    one_by_one = TIMED[name]()
    seen = []
    for key, moment in zip(keys.tolist(), at.tolist(), strict=True):
        present = bool(one_by_one.query([key], at=moment)[0])
        seen.append(present)
        if refresh or not present:
            one_by_one.insert([key], at=[moment])
        else:
            one_by_one.duplicated([key], at=moment, refresh=False)  # time goes on without an insertion
    assert 0.2 < np.mean(seen) < 0.8
    for size in SIZES:
        f, inserting = TIMED[name](), TIMED[name]()
        got = []
        for part in parts(N, size):
            got.append(f.duplicated(keys[part], at=at[part], refresh=refresh))
            if refresh:
                inserting.insert(keys[part], at=at[part])
        assert np.concatenate(got).tolist() == seen, size
        assert f.to_bytes() == one_by_one.to_bytes(), size
        if refresh:
            assert inserting.to_bytes() == f.to_bytes(), size


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in [*COUNTED.items(), *TIMED.items()]])
def test_a_batch_of_three_pieces_of_4096_is_its_single_calls(make):
    keys, f, inserting, one_by_one = stream(8300), make(), make(), make()
    at = None if f.lateness is None else times(8300)
    moments = [None] * 8300 if at is None else at.tolist()
    seen = [one_by_one.seen(key, at=moment) for key, moment in zip(keys.tolist(), moments, strict=True)]
    assert f.duplicated(keys, at=at).tolist() == seen
    inserting.insert(keys, at=at)
    assert f.to_bytes() == inserting.to_bytes() == one_by_one.to_bytes()


@pytest.mark.parametrize("name", TIMED)
def test_a_batch_of_queries_is_its_single_queries_at_any_times(name):
    f = TIMED[name]()
    at = np.arange(400) / 5
    f.insert(np.arange(400), at=at)
    keys = np.tile(np.arange(500), 20)
    moments = 73 + np.random.default_rng(1).choice([0, 3, 20, 70, 150, 1e6, 9e9], len(keys))
    before = f.to_bytes()
    one_by_one = [
        bool(f.query([key], at=moment)[0]) for key, moment in zip(keys.tolist(), moments.tolist(), strict=True)
    ]
    for size in SIZES:
        queried = [f.query(keys[part], at=moments[part]) for part in parts(len(keys), size)]
        assert np.concatenate(queried).tolist() == one_by_one
    assert f.to_bytes() == before
    assert 0.1 < np.mean(one_by_one) < 0.9


@pytest.mark.parametrize(("f", "at"), [(COUNTED["plain"](), {}), (TIMED["timers"](), {"at": 2000})])
def test_a_bad_key_in_a_batch_changes_nothing(f, at):
    before = f.to_bytes()
    for keys in ([1, 1j], [*range(5000), 1j]):
        for call in (f.insert, f.duplicated, f.query):
            with pytest.raises(TypeError, match="complex"):
                call(keys, **at)
    with pytest.raises(TypeError, match="complex"):
        f.add(1j, **at)
    with pytest.raises(TypeError, match="complex"):
        1j in f  # noqa: B015
    assert f.to_bytes() == before


def test_empty_batches_are_nothing():
    for f, at in ((COUNTED["plain"](), {}), (TIMED["plain"](), {"at": []})):
        before = f.to_bytes()
        f.insert([], **at)
        assert f.query([], **at).shape == f.duplicated([], **at).shape == (0,)
        assert f.query([], **at).dtype == bool
        assert f.to_bytes() == before
    # A consumer that polls and gets nothing: no key is late, or ahead.
    f = lately.TimingBloomFilter("10min", 0.01, capacity=100)
    f.insert(["a"], at=1_700_000_000)
    before = f.to_bytes()
    for at in (0, 1_699_999_000, 1_700_009_000, 4_000_000_000):
        f.insert([], at=at)
        assert f.query([], at=at).shape == f.duplicated([], at=at).shape == (0,)
        assert f.to_bytes() == before
