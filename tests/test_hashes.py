"""Hashes in place of keys: the same answers from every call, and nothing else is accepted in their place."""

import pickle

import numpy as np
import pytest

import lately
from lately._families import EVERY

KEYS = [f"key {i % 700}" for i in range(1000)]


@pytest.mark.parametrize("name", ["age-partitioned-line", "swamp"])
def test_calls_answer_as_for_the_keys(name):
    by_key, by_hash = (EVERY[name].make(1000, fpr=0.01, seed=7) for _ in range(2))
    hashes = lately.Hashes(lately.hash_keys(KEYS, seed=7), seed=7)
    assert by_hash.duplicated(hashes).tolist() == by_key.duplicated(KEYS).tolist()
    by_hash.insert(hashes)
    by_key.insert(KEYS)
    assert by_hash.to_bytes() == by_key.to_bytes()
    assert by_hash.query(hashes, threads=2).tolist() == by_key.query(KEYS).tolist()


def test_other_calls_that_take_keys():
    hashes = lately.Hashes(lately.hash_keys(KEYS))
    assert lately.duplicated(hashes, window=1000).tolist() == lately.duplicated(KEYS, window=1000, seed=0).tolist()
    timed = [lately.TimeLimitedBloomFilter("1min", 0.01) for _ in range(2)]
    answers = [
        f.duplicated(keys, at=np.arange(1000) // 30).tolist() for f, keys in zip(timed, (KEYS, hashes), strict=True)
    ]
    assert answers[0] == answers[1]
    f = lately.Swamp(window=1000, fpr=0.01)
    f.insert(hashes)
    assert f.count(hashes).tolist() == f.count(KEYS).tolist()
    assert f.posterior(hashes, lately.Uniform(1000)).tolist() == f.posterior(KEYS, lately.Uniform(1000)).tolist()


@pytest.mark.parametrize(
    "part",
    [
        lambda hashes: hashes[::-3],
        lambda hashes: hashes[:0],
        lambda hashes: hashes.astype(">u8"),
        lambda hashes: np.stack([hashes, hashes], axis=1)[:, 1],
    ],
)
def test_any_array_of_uint64(part):
    given = part(lately.hash_keys(KEYS))
    hashes = lately.Hashes(given)
    assert len(hashes) == len(given)
    assert lately.hash_keys(hashes).tolist() == given.tolist() == np.asarray(hashes).tolist()


def test_memory_is_shared_and_stays_as_it_is():
    given = lately.hash_keys(KEYS)
    hashes = lately.Hashes(given)
    array = np.asarray(hashes)
    assert np.shares_memory(array, given)
    assert not array.flags.writeable
    assert given.flags.writeable
    given.shape = (500, 2)
    assert len(hashes) == 1000
    assert lately.hash_keys(hashes).tolist() == given.ravel().tolist()
    assert np.array(hashes).flags.writeable
    assert np.asarray(hashes, dtype=np.float64).dtype == np.float64


def test_hashes_can_be_pickled():
    hashes = lately.Hashes(lately.hash_keys(KEYS, seed=3)[::2], seed=3)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        copy = pickle.loads(pickle.dumps(hashes, protocol))
        assert (copy.seed, np.asarray(copy).tolist()) == (3, np.asarray(hashes).tolist())
    assert repr(hashes) == "<Hashes seed=3 len=500>"


def test_hashes_of_a_secret_need_no_seed_in_a_single_call():
    hashes = lately.Hashes(lately.hash_keys(["a", "b", "a"], seed=b"0123456789abcdef"), seed=b"0123456789abcdef")
    for options in ({}, {"fpr": 1e-9}, {"keep": "first", "filter": "swamp"}):
        assert lately.duplicated(hashes, 5, **options).tolist() == [False, False, True]


def test_another_seed_is_rejected_before_any_effect():
    hashes = lately.Hashes(lately.hash_keys(KEYS, seed=3), seed=3)
    f = lately.AgePartitionedBloomFilter(window=1000, fpr=0.01, seed=2**64 - 1)
    for call in (f.insert, f.query, f.duplicated, lambda keys: lately.hash_keys(keys, seed=2**64 - 1)):
        with pytest.raises(ValueError, match="seed=3, but here the seed is 18446744073709551615"):
            call(hashes)
    assert f.inserted == 0


@pytest.mark.parametrize(
    ("hashes", "kind", "message"),
    [
        (KEYS, TypeError, "not list"),
        (np.arange(3), TypeError, "not an array of int64"),
        (np.zeros(3, "u4"), TypeError, "not an array of uint32"),
        (np.zeros(3, "m8[s]"), TypeError, "not an array of timedelta64"),
        (np.ma.array(np.zeros(3, "u8"), mask=[0, 1, 0]), TypeError, "masked"),
        (np.zeros((3, 2), "u8"), ValueError, "one dimension, got 2"),
        (np.uint64(5), TypeError, "not numpy.uint64"),
    ],
)
def test_bad_hashes_are_rejected(hashes, kind, message):
    with pytest.raises(kind, match=message):
        lately.Hashes(hashes)


def test_one_key_is_no_batch():
    with pytest.raises(TypeError, match="Hashes cannot be a key"):
        lately.BloomFilter(10, 0.1).add(lately.Hashes(lately.hash_keys([1])))
    with pytest.raises(ValueError, match="seed"):
        lately.Hashes(lately.hash_keys([1]), seed=-1)
