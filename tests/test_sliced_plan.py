"""Sliced filters that are planned before any cell exists, and what they send."""

import json

import numpy as np
import pytest

import lately
from lately._core import Ranges, SlicedShape, slice_capacity
from lately.distributed import SlicedFilter
from lately.distributed._slices.slicing import Slicing
from support.sliced import sites_of_cells

KINDS = {
    "horizontal": {"kind": "horizontal", "slices": 12},
    "vertical": {"kind": "vertical", "slices": 12},
    "h-v": {"kind": "diced", "slices": (4, 3), "dice": "h-v"},
    "v-h": {"kind": "diced", "slices": (4, 3), "dice": "v-h"},
}


def timing(**request):
    """Return the timing filter in the plan of a request."""
    return next(choice for choice in lately.plan("10min", slack="5min", **request).choices if choice.name == "timing")


@pytest.mark.parametrize("name", KINDS)
def test_a_key_takes_as_many_messages_and_bytes_as_are_computed(name):
    timers = timing(fpr=0.01, capacity=20_000)
    k = timers.parameters["k"]
    with SlicedFilter(**KINDS[name], filter=timers) as sliced:
        assert len(sliced.sites) == 12
        sliced.duplicated(np.arange(1000), at=np.zeros(1000))
        # A hash, its place and its moment; or the numbers of its cells, and its hash in the record.
        assert sliced.traffic.sent == 1000 * (8 + 4 + 8 if name == "horizontal" else 4 * k + 8)
        before, alone = sliced.traffic.messages, 300
        for key in range(alone):
            sliced.duplicated([key], at=0)
        # One to each site that has a cell of the key.
        sites = np.sort(sites_of_cells(sliced, np.arange(alone))) if name != "horizontal" else np.zeros((alone, 1))
        assert sliced.traffic.messages - before == alone + np.count_nonzero(np.diff(sites))


def test_pipelining_reads_as_few_cells_as_are_needed():
    timers = timing(fpr=0.01, capacity=20_000)
    k = timers.parameters["k"]
    with SlicedFilter("vertical", 12, timers, pipelined=True) as sliced:
        sliced.insert(np.arange(20_000), at=np.linspace(0, 599, 20_000))
        before, queried = sliced.traffic.keys.sum(), np.arange(20_000, 40_000)
        sliced.query(queried, at=599)
        cells = (sliced.traffic.keys.sum() - before) / len(queried)
        fill = sliced.fill.mean()
        sites = sites_of_cells(sliced, queried)
    # A site is queried for its cells of a key where all those at sites before it are set. At most k, so that their
    # variance is at most k times as many as are expected.
    first = (sites[:, :, None] == sites[:, None, :]).argmax(axis=2)
    before = (first[:, :, None] > first[:, None, :]).sum(axis=2)
    expected = (fill**before).sum(axis=1).mean()
    assert abs(cells - expected) < 5 * np.sqrt(k * expected / len(queried))
    assert cells < k


def test_a_filter_larger_than_a_machine_is_planned_cut_and_routed_without_its_cells():
    """Hundreds of gigabytes: a site makes its own share of them, and a producer none."""
    timers = timing(fpr=0.001, capacity=10**11)
    assert timers.nbytes > 2 * 10**11
    slicing = Slicing.of("vertical", 10_000, timers, dice=None, on_failure="raise", pipelined=False)
    makers = slicing.contents()
    first, last = makers[0](), makers[-1]()
    assert last.nbytes <= first.nbytes <= timers.nbytes // 10_000 + 8 < 10**8
    like = slicing.empty.spec()
    mine = dict(Ranges(like, slicing.parts).scatter(lately.hash_keys(np.arange(10_000))).shares())[9999]
    assert len(mine) > 0
    assert mine.dtype == np.uint32
    now = int(like.generations(None, 1)[0])
    assert last.set(mine, np.zeros(len(mine), bool), refresh=False, newest=now, latest=0).shape == mine.shape
    ages, read = last.read(mine)
    assert not ages.any()
    assert read[0] == now
    again = Slicing.of_manifest(json.loads(json.dumps(slicing.manifest)), on_failure="raise", pipelined=False)
    assert again == slicing


@pytest.mark.parametrize("kind", ["horizontal", "vertical"])
def test_a_planned_filter_is_the_one_that_is_made(kind):
    timers = timing(fpr=0.01, capacity=1000, lateness="1s")
    keys, times = np.random.default_rng(1).integers(0, 900, 3000), np.linspace(0, 2000, 3000)
    with SlicedFilter(kind, 3, timers) as planned, SlicedFilter(kind, 3, timers.build()) as made:
        assert repr(planned) == repr(made)
        assert (planned.fpr, planned.slack, planned.lateness) == (made.fpr, made.slack, made.lateness)
        assert (planned.duplicated(keys, at=times) == made.duplicated(keys, at=times)).all()


def test_arguments_are_those_of_the_formulas():
    shape = SlicedShape("vertical", 5, 10)
    assert shape.failure_rates(3, 0.45) == pytest.approx(((0.3 + 0.7 * 0.45) ** 5, 0))
    assert shape.failure_rates(3, 0.45, on_failure="distinct") == pytest.approx(((0.7 * 0.45) ** 5, 1 - 0.7**5))
    assert shape.failure_rates(3, 0.45, on_failure=5) == shape.failure_rates(3, 0.45, on_failure="distinct")
    for kind, on_failure, bound in (("vertical", "duplicate", "fpr"), ("horizontal", "distinct", "fnr")):
        least = SlicedShape(kind, 7, 1).least_sites(3, 0.4, **{bound: 0.1}, on_failure=on_failure)
        for sites, enough in ((least - 1, False), (least, True)):
            rates = SlicedShape(kind, 7, sites).failure_rates(3, 0.4, on_failure=on_failure)
            assert (rates[("fpr", "fnr").index(bound)] <= 0.1) == enough
    assert slice_capacity(11, 2) == 10
