"""Formulas of a filter over several sites, beside simulations of it."""

import numpy as np
import pytest

import lately
from lately._core import SlicedShape, slice_capacity

ARRANGED = [("horizontal", 12, 1), ("vertical", 12, 1), ("vertical", 3, 1), ("h-v", 4, 3), ("v-h", 3, 4)]
K, TRIALS = 5, 200_000
TWO_SITES = SlicedShape("vertical", 4, 2)


def sites_of_cells(rng, kind, sites, inner, partitioned):
    """The sites of the K cells of TRIALS keys, numbered through."""
    groups, spread = {"horizontal": (sites, 1), "vertical": (1, sites), "h-v": (sites, inner), "v-h": (inner, sites)}[
        kind
    ]
    place = rng.random((TRIALS, K))
    if partitioned:
        place = (np.arange(K) + place) / K
    return groups * spread, rng.integers(groups, size=(TRIALS, 1)) * spread + (place * spread).astype(int)


def assert_chance(hits, p):
    """Within 5 standard deviations of what these trials of chance p give."""
    assert abs(hits.mean() - p) <= 5 * np.sqrt(p * (1 - p) / len(hits)) + 1e-12


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize(("kind", "sites", "inner"), ARRANGED)
def test_failures_beside_a_simulation(kind, sites, inner, partitioned):
    rng = np.random.default_rng(6)
    count, at = sites_of_cells(rng, kind, sites, inner, partitioned)
    shape = SlicedShape(kind, K, sites, inner=inner, partitioned=partitioned)
    # The sites in an order of each trial: the first ones fail.
    order = np.take_along_axis(rng.permuted(np.tile(np.arange(count), (TRIALS, 1)), axis=1), at, axis=1)
    set_by_others = rng.random((TRIALS, K)) < 0.6
    for failed in (0, 1, count // 2, count - 1, count):
        lost = order < failed
        left, reported = K - lost.sum(axis=1), (lost | set_by_others).all(axis=1)
        for on_failure in ("duplicate", 1, 3, "distinct"):
            least = {"duplicate": 0, "distinct": K}.get(on_failure, on_failure)
            answered = left >= least
            fpr, fnr = shape.failure_rates(failed, 0.6, on_failure=on_failure)
            assert_chance(answered & reported, fpr)
            assert_chance(~answered, fnr)


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize(("kind", "sites", "inner"), ARRANGED)
def test_messages_beside_a_simulation(kind, sites, inner, partitioned):
    rng = np.random.default_rng(7)
    count, at = sites_of_cells(rng, kind, sites, inner, partitioned)
    seen = rng.random((TRIALS, 1)) < 0.3
    is_set = seen | (rng.random((TRIALS, K)) < 0.7)
    read = {False: np.zeros(TRIALS), True: np.zeros(TRIALS)}
    going = np.ones(TRIALS, bool)
    for j in range(K):
        new = (at[:, :j] != at[:, j : j + 1]).all(axis=1)
        read[False] += new
        read[True] += new & going
        # The site that is read tests all of the key's cells that it has.
        going &= ~(new & ((at == at[:, j : j + 1]) & ~is_set).any(axis=1))
    shape = SlicedShape(kind, K, sites, inner=inner, partitioned=partitioned)
    for pipelined, messages in read.items():
        expected = shape.messages(pipelined=pipelined, density=0.7, duplicates=0.3)
        assert abs(messages.mean() - expected) <= 5 * messages.std() / np.sqrt(TRIALS) + 1e-9
        assert 1 <= expected <= min(K, count)


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize(
    ("kind", "sites", "inner", "groups"), [("horizontal", 5, 1, 5), ("v-h", 2, 4, 4), ("vertical", 5, 1, 1)]
)
def test_rates_beside_filters(kind, sites, inner, groups, partitioned):
    rng, keys, cells = np.random.default_rng(8), 400, 2800
    expected = SlicedShape(kind, 4, sites, inner=inner, partitioned=partitioned).fpr(keys, cells)
    hits, rounds, queries = 0.0, 400, 2000
    rates = []
    for i in range(rounds):
        each = cells // groups
        given = {"slice_bits": each // 4} if partitioned else {"bits": each}
        f = lately.BloomFilter.from_parameters(capacity=keys, k=4, seed=i, **given)
        f.insert(np.arange(rng.binomial(keys, 1 / groups)))  # the keys in a fresh key's slice
        rates.append(f.query(np.arange(keys, keys + queries)).mean())
    hits = np.mean(rates)
    assert abs(hits - expected) <= 5 * np.std(rates) / np.sqrt(rounds)
    if groups > 1:  # the printed form, with n / S keys in each slice, is too low
        assert SlicedShape("vertical", 4, 1, partitioned=partitioned).fpr(keys // groups, cells // groups) < expected


def test_no_slice_is_overfull_more_often_than_stated():
    rng, keys, slices = np.random.default_rng(9), 10_000, 20
    most = rng.multinomial(keys, np.full(slices, 1 / slices), size=20_000).max(axis=1)
    for overfull in (0.3, 0.05, 0.001):
        capacity = slice_capacity(keys, slices, overfull=overfull)
        assert (most > capacity).mean() <= overfull + 5 * np.sqrt(overfull / 20_000)
        if overfull < 0.1:  # where the bound over all slices is sharp
            assert (most > capacity - 1).mean() >= overfull - 0.1 * overfull - 5 * np.sqrt(overfull / 20_000)


def test_more_sites_bear_more_failures():
    for kind, on_failure, bound in (("vertical", "duplicate", "fpr"), ("horizontal", "distinct", "fnr")):
        for partitioned in (False, True):
            shape = SlicedShape(kind, 7, 1, partitioned=partitioned)
            least = shape.least_sites(3, 0.4, **{bound: 0.1}, on_failure=on_failure)
            fewer, enough = (SlicedShape(kind, 7, sites, partitioned=partitioned) for sites in (least - 1, least))
            which = ("fpr", "fnr").index(bound)
            assert enough.failure_rates(3, 0.4, on_failure=on_failure)[which] <= 0.1
            assert fewer.failure_rates(3, 0.4, on_failure=on_failure)[which] > 0.1


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: SlicedShape("flat", 4, 2), ValueError, 'kind must be .* got "flat"'),
        (lambda: SlicedShape("vertical", 4, 2, inner=2), ValueError, "inner"),
        (lambda: SlicedShape("vertical", 4, 0), ValueError, "sites"),
        (lambda: TWO_SITES.fpr(10, 0), ValueError, "cells"),
        (lambda: TWO_SITES.failure_rates(3, 0.5), ValueError, "failed"),
        (lambda: TWO_SITES.failure_rates(1, 1.5), ValueError, "density"),
        (lambda: TWO_SITES.failure_rates(1, 0.5, on_failure="x"), ValueError, "on_failure"),
        (lambda: TWO_SITES.failure_rates(1, 0.5, on_failure=0.5), TypeError, "on_failure"),
        (lambda: TWO_SITES.failure_rates(1, 0.5, on_failure=5), ValueError, "least must be at most k"),
        (lambda: SlicedShape("h-v", 4, 2).least_sites(2, 0.5, fpr=0.1), ValueError, "kind"),
        (lambda: TWO_SITES.least_sites(2, 0.9, fpr=0.1), ValueError, "no number of sites"),
        (lambda: TWO_SITES.least_sites(2, 0.9), TypeError, "fpr or fnr"),
        (lambda: slice_capacity(10, 2, overfull=2), ValueError, "overfull"),
    ],
)
def test_impossible_arguments_are_named(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
