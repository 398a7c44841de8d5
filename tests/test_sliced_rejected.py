"""Arguments that sliced filters reject, by name; and empty batches."""

import numpy as np
import pytest

import lately
from lately.distributed import LocalSites, SlicedFilter
from support.sliced import every_kind, state, timers


def holding():
    """A filter that is not empty."""
    full = timers()
    full.insert(["a"], at=0)
    return full


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kind": "sideways"}, ValueError, "kind must be 'horizontal', 'vertical' or 'diced', got 'sideways'"),
        ({"slices": 0}, ValueError, "slices must be at least 1"),
        ({"slices": 70_000}, ValueError, "at most 65536"),
        ({"slices": (2, 3)}, TypeError, "slices of a vertical filter must be one number"),
        ({"slices": 2.0}, TypeError, "must be one number, got 2.0"),
        ({"kind": "diced", "slices": 6}, ValueError, "dice must be 'h-v' or 'v-h', got None"),
        ({"dice": "h-v"}, ValueError, "dice is for diced filters"),
        ({"kind": "horizontal", "pipelined": True}, ValueError, "pipelined is for"),
        ({"on_failure": 7}, ValueError, r"on_failure must lie in 0 \.\. 6"),
        ({"on_failure": "forget"}, ValueError, "on_failure must be"),
        ({"sites": "moon"}, ValueError, "sites must be 'local', 'ray'"),
        ({"interval": -1}, ValueError, "interval must be at least 0"),
        ({"deadline": 0}, ValueError, "deadline must be above 0"),
        ({"sites": LocalSites, "deadline": 5}, ValueError, "deadline is for sites='ray'"),
        ({"sites": LocalSites, "name": "clicks"}, ValueError, "name is for sites='ray'"),
        ({"filter": holding()}, ValueError, "filter must be empty, it holds 1 insertions"),
        ({"filter": None}, TypeError, "filter must be a filter of lately, got NoneType"),
        (
            {"filter": lately.TimingBloomFilter(1000, 0.01)},
            ValueError,
            "window of 1000 insertions, but sites",
        ),
        ({"filter": lately.TimeLimitedBloomFilter("1min", 0.01)}, ValueError, "not a TimeLimitedBloomFilter"),
        ({"filter": lately.TimingBloomFilter("1min", 0.1, capacity=9, grow="density")}, ValueError, "grows"),
        ({"filter": lately.BloomFilter.from_parameters(capacity=9, k=2, bits=64)}, ValueError, "parts must lie in 1"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        SlicedFilter(**{"kind": "vertical", "slices": 3, "filter": timers(), **options})


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


def test_bloom_filters_take_no_times():
    with (
        SlicedFilter("vertical", 3, lately.BloomFilter(100, 0.1)) as sliced,
        pytest.raises(ValueError, match="this filter has no window"),
    ):
        sliced.insert(["a"], at=0)


def test_representation():
    with SlicedFilter("diced", (2, 3), timers(), dice="h-v") as sliced:
        assert repr(sliced).startswith("<SlicedFilter diced h-v slices=(2, 3) of <TimingBloomFilter window=600")
        assert (sliced.window, sliced.kind, sliced.slices) == (600.0, "diced", (2, 3))
