"""Each site of a filter holds the filter that the user has made, with every option: as if it had been copied there."""

import json
import pickle
from itertools import product

import numpy as np
import pytest

import lately
from lately.baselines import CountingBloomFilter, GeneralizedBloomFilter, StableBloomFilter
from lately.distributed import SlicedFilter
from lately.distributed._contents.empty_filter import EmptyFilter
from support.sliced import every_kind, state, timers

SPAN = {"fpr": 0.001, "capacity": 2000}
FAMILIES = {
    "age-partitioned": (
        lately.AgePartitionedBloomFilter,
        {"slack": [None, "1min"]},
    ),
    "aged cuckoo": (lately.AgedCuckooFilter, {"slack": [None, "1min"]}),
    "aged cuckoo, in bytes": (lately.AgedCuckooFilter, {"fpr": [None], "nbytes": [8192]}),
    "guarded epochs": (
        lately.GuardedEpochBloomFilter,
        {"slack": [None, "1min"]},
    ),
    "time-limited": (lately.TimeLimitedBloomFilter, {"slack": [None, "3min"]}),
    "timing": (lately.TimingBloomFilter, {}),
    "timing that grows": (lately.TimingBloomFilter, {"grow": ["cardinality", "density"]}),
    "stable": (StableBloomFilter, {}),
    "generalized": (GeneralizedBloomFilter, {}),
    "counting": (CountingBloomFilter, {}),
}
COMMON = {"lateness": [None, "30s"], "max_ahead": ["1 d", None, "1h"], "seed": [0, 7]}


def made():
    """Yield filters of all families with a window of time, of every combination of options that they accept."""
    for name, (family, options) in FAMILIES.items():
        every = options | COMMON
        for values in product(*every.values()):
            given = dict(zip(every, values, strict=True))
            try:
                yield name, given, family("10min", **SPAN | given)
            except (TypeError, ValueError):
                # Not a filter of a window of time, or options that exclude each other.
                continue
    for partitioned, seed in product([False, True], [0, 7]):
        given = {"partitioned": partitioned, "seed": seed}
        yield "bloom", given, lately.BloomFilter(2000, 0.001, **given)


def test_a_filter_that_travels_without_its_cells_is_the_same_filter():
    seen = set()
    for name, given, f in made():
        seen.add(name)
        empty = EmptyFilter.of(f)
        # As it lies beside checkpoints, and as it is pickled.
        for again in (
            empty,
            EmptyFilter(json.loads(json.dumps(empty.manifest))),
            pickle.loads(pickle.dumps(empty)),
        ):
            made_again = again.make()
            assert type(made_again) is type(f), (name, given)
            assert made_again.to_bytes() == f.to_bytes(), (name, given)
            assert repr(again.spec()) == repr(empty.spec())
        assert len(pickle.dumps(empty)) < 1000
    assert seen >= {"age-partitioned", "aged cuckoo", "guarded epochs", "time-limited", "timing", "bloom"}


def test_every_filter_that_is_planned_is_built_on_sites_as_planned():
    choices = [choice for choice in lately.plan("10min", 0.001, capacity=50_000).choices if choice._family.promise]
    assert len(choices) > 4
    for choice in choices:
        with SlicedFilter("horizontal", 2, choice) as sliced:
            for site in sliced.sites._sites:
                assert site._contents._filter.to_bytes() == choice.build().to_bytes(), choice.name


def test_a_slice_of_a_filter_that_grows_answers_as_the_filter_alone_when_ten_times_as_many_keys_come():
    new, rates = np.arange(10**6, 10**6 + 10_000), {}
    for grows, budget in ((False, {"nbytes": 8192}), (True, {"fpr": 0.001})):
        alone = lately.AgedCuckooFilter("10min", **budget, capacity=1000)
        with SlicedFilter("horizontal", 1, alone) as sliced:
            for part in np.split(np.arange(10_000), 10):
                assert (sliced.duplicated(part, at=100) == alone.duplicated(part, at=100)).all()
            assert (sliced.query(new, at=101) == alone.query(new, at=101)).all()
        rates[grows] = alone.query(new, at=101).mean()
    assert rates[True] < 0.02 < rates[False]


def test_sites_that_hold_another_filter_are_rejected():
    with SlicedFilter("vertical", 3, timers()) as sliced:
        joined = SlicedFilter("vertical", 3, timers(), sites=lambda makers: sliced.sites)
        joined.insert(["a"], at=0)
        assert sliced.query(["a"], at=0).all()
        with pytest.raises(ValueError, match="this filter has 4 sites, but 3 were given"):
            SlicedFilter("vertical", 4, timers(), sites=lambda makers: sliced.sites)


@every_kind
def test_bad_keys_and_empty_batches(shape):
    with SlicedFilter(**shape, filter=timers()) as sliced:
        before = state(sliced)
        with pytest.raises(TypeError, match="object"):
            sliced.duplicated(["a", object()], at=0)
        for call in (sliced.duplicated, sliced.query):
            answer = call([], at=[])
            assert (answer.dtype, answer.shape) == (np.bool_, (0,))
        sliced.insert([], at=0)
        assert (state(sliced), sliced.traffic.messages, sliced.number) == (before, 0, 0)


def test_representation():
    with SlicedFilter("diced", (2, 3), timers(), dice="h-v") as sliced:
        assert repr(sliced).startswith("<SlicedFilter diced h-v slices=(2, 3) of <TimingBloomFilter window=600")
        assert (sliced.window, sliced.kind, sliced.slices) == (600.0, "diced", (2, 3))
