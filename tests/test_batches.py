"""A batch is cut into pieces of 4096 keys. One with a bad key, or an empty one, changes nothing.

That batches of any size answer as single calls do is in `tests/core/batches.rs`.
"""

import numpy as np
import pytest

import lately
from support.plans import COUNTED, TIMED, stream, times


@pytest.mark.parametrize(
    "make", [COUNTED["plain"], COUNTED["bloom"], TIMED["lines"], TIMED["aged, in a chain"], TIMED["time-limited"]]
)
def test_a_batch_of_three_pieces_of_4096_is_its_single_calls(make):
    keys, f, inserting, one_by_one = stream(8300), make(), make(), make()
    at = None if f.lateness is None else times(8300)
    moments = [None] * 8300 if at is None else at.tolist()
    seen = [one_by_one.seen(key, at=moment) for key, moment in zip(keys.tolist(), moments, strict=True)]
    assert f.duplicated(keys, at=at).tolist() == seen
    inserting.insert(keys, at=at)
    assert f.to_bytes() == inserting.to_bytes() == one_by_one.to_bytes()
    later = None if at is None else at.max() + np.arange(8300) % 90
    moments = [None] * 8300 if at is None else later.tolist()
    alone = [f.query([key], at=moment)[0] for key, moment in zip(keys.tolist(), moments, strict=True)]
    assert f.query(keys, at=later).tolist() == alone


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
