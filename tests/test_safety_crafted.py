"""Crafted cells in the memory that a filter is read from: legal answers or errors, never a panic."""

import contextlib
import random

import numpy as np
import pytest

import lately

KEYS = np.arange(300)

FILTERS = {
    "swamp of one block": lambda: lately.Swamp(10, 0.01),
    "swamp of two blocks": lambda: lately.Swamp(70, 0.01),
    "swamp of many": lambda: lately.Swamp(500, 0.1),
    "fingerprints": lambda: lately.baselines.FingerprintBuffer(10, 0.1),
    "fingerprints of two groups": lambda: lately.baselines.FingerprintBuffer(100, 0.2),
    "counting": lambda: lately.baselines.CountingBloomFilter(10, 0.01),
    "stable": lambda: lately.baselines.StableBloomFilter(10, 0.1),
    "generalized": lambda: lately.baselines.GeneralizedBloomFilter(10, nbytes=64),
    "grows": lambda: lately.TimingBloomFilter(10, 0.1),
}


def crafted(f, chance):
    """Return the filter with other cells than it had, which it has lent."""
    data = bytearray(f.to_bytes())
    start = len(data) - f.nbytes
    f = lately.from_bytes(memoryview(data).toreadonly())
    words = f.nbytes // 8
    for _ in range(chance.choice([1, 3, 20, words])):
        word = start + 8 * chance.randrange(words)
        few, many = chance.choice([0, 1, 1 << 63, 1 << 62]), bytes([chance.randrange(256)] * 8)
        data[word : word + 8] = chance.choice([few.to_bytes(8, "little"), many, chance.randbytes(8)])
    return f


CALLS = {
    "query": lambda f: f.query(KEYS),
    "fill": lambda f: f.fill,
    "rate": lambda f: f.false_positive_rate(),
    "posterior": lambda f: f.posterior(KEYS, 0.1),
    "age": lambda f: f.age(KEYS[:20], 0.1),
    "insert": lambda f: f.insert(KEYS[:20]),
    "duplicated": lambda f: f.duplicated(KEYS),
    "distinct": lambda f: f.distinct() if hasattr(f, "distinct") else None,
}


@pytest.mark.parametrize("name", FILTERS)
def test_crafted_cells_are_answered_by(name):
    chance = random.Random(name)
    full = FILTERS[name]()
    full.insert(KEYS[: chance.choice([3, 8, 300])])
    for _ in range(500):
        f = crafted(full, chance)
        for call in [*CALLS, *chance.sample(sorted(CALLS), 4)]:
            with contextlib.suppress(ValueError):
                CALLS[call](f)


def test_few_bytes_for_a_ring_are_an_error_or_enough():
    for nbytes in range(1, 600):
        for make in (lately.AgePartitionedBloomFilter, lately.GuardedEpochBloomFilter, lately.BloomFilter):
            try:
                assert make(10, nbytes=nbytes).nbytes <= nbytes
            except ValueError as error:
                assert "nbytes" in str(error)  # noqa: PT017
    lately.plan(window=10, nbytes=292)
