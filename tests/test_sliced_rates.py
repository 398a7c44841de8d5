"""Rates of both mistakes while sites have failed, measured beside the formulas (paper 4, section 3.2; its errata)."""

import time
import warnings
from dataclasses import replace

import numpy as np
import pytest

import lately
from lately._core import SlicedShape
from lately.distributed import FailedSitesWarning, SlicedFilter
from lately.distributed._sites.interface import Failed

K, SITES, FAILED, KEYS, CELLS = 8, 40, 8, 60_000, 40 * 64 * 270
DRAWS, QUERIED = 30, 500
# As in the paper's experiment: 8 of 40 sites fail. Sites, and what there is of one filter.
SHAPES = {
    "horizontal": ({"kind": "horizontal", "slices": 40}, 40),
    "vertical": ({"kind": "vertical", "slices": 40}, 1),
    "h-v": ({"kind": "diced", "slices": (5, 8), "dice": "h-v"}, 5),
    "v-h": ({"kind": "diced", "slices": (10, 4), "dice": "v-h"}, 4),
}


def bloom(filters):
    return lately.BloomFilter.from_parameters(capacity=KEYS // filters, k=K, seed=7, bits=CELLS // filters)


def formulas(name):
    """Return the formulas of a shape."""
    sites, inner = SHAPES[name][0]["slices"] if name in ("h-v", "v-h") else (SITES, 1)
    return SlicedShape(name, K, sites, inner=inner)


@pytest.mark.parametrize("name", SHAPES)
def test_failed_sites_cost_what_the_formulas_say(name):
    shape, filters = SHAPES[name]
    rng = np.random.default_rng(12)
    held = np.arange(KEYS)
    with SlicedFilter(**shape, filter=bloom(filters)) as sliced:
        sliced.insert(held)
        fill = sliced.fill
        # A key of one group has all of its cells there, where the fill is as it is.
        in_one_group = shape["kind"] == "horizontal" or name == "h-v"
        density = float(np.mean(fill**K) ** (1 / K) if in_one_group else np.mean(fill))
        least = [0, K] if shape["kind"] == "horizontal" else [0, 1, 4, K - 1, K]
        handles = {
            x: SlicedFilter._over(replace(sliced._slicing, least=x, strict=False), sliced.sites, None) for x in least
        }
        mistakes = {x: [] for x in least}
        for draw in range(DRAWS):
            # Out of reach, and back with what they held.
            out = rng.choice(SITES, FAILED, replace=False).tolist()
            sliced.sites._down = {site: Failed(site, "out of reach", time.time()) for site in out}
            old = rng.choice(held, QUERIED, replace=False)
            new = KEYS + draw * QUERIED + np.arange(QUERIED)
            for x, handle in handles.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", FailedSitesWarning)
                    seen = handle.query(np.concatenate([new, old]))
                mistakes[x].append([seen[:QUERIED].mean(), 1 - seen[QUERIED:].mean()])
        sliced.sites._down = {}
    for x, rates in mistakes.items():
        expected = formulas(name).failure_rates(FAILED, density, on_failure=x)
        for measured, rate in zip(np.array(rates).T, expected, strict=True):
            # Draws differ by more than their keys do, so they are what is counted.
            deviation = max(measured.std() / np.sqrt(DRAWS), np.sqrt(rate * (1 - rate) / (DRAWS * QUERIED)))
            assert abs(measured.mean() - rate) <= 5 * deviation, (x, measured.mean(), rate)


@pytest.mark.parametrize("name", SHAPES)
def test_without_failures_the_rate_is_the_computed_one(name):
    shape, filters = SHAPES[name]
    rate = formulas(name).fpr(KEYS, CELLS)
    with SlicedFilter(**shape, filter=bloom(filters)) as sliced:
        sliced.insert(np.arange(KEYS))
        queried = 200_000
        measured = sliced.query(np.arange(KEYS, KEYS + queried)).mean()
    # Of the loads of one run too: a slice of n keys holds n +- sqrt(n), and so each run has a rate of its own.
    share = KEYS / filters
    spread = rate * K * np.sqrt(1 / share / filters)
    assert abs(measured - rate) < 5 * np.sqrt(rate / queried + spread**2)
