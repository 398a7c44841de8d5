"""The stable filter for its users: what it states, and invalid parameters."""

import math
from datetime import timedelta

import numpy as np
import pytest

import lately


@pytest.mark.parametrize(
    "given_",
    [
        {"window": 1, "fpr": 0.1},
        {"window": 3000, "fpr": 0.001, "seed": 2**64 - 1},
        {"window": np.int32(5000), "fpr": 1e-6},
        {"window": 5000, "nbytes": 10_001},
        {"window": 5000, "nbytes": 40_008},
    ],
)
def test_what_a_filter_says_of_itself_holds_together(given_):
    f = lately.baselines.StableBloomFilter(**given_)
    p = f.parameters
    assert (f.window, f.capacity, f.slack, f.lateness) == (given_["window"], given_["window"], math.inf, None)
    assert f.fpr <= given_.get("fpr", 1)
    assert f.nbytes == 8 * -(-p["k"] * p["slice_cells"] * p["bits"] // 64) <= given_.get("nbytes", 2**60)
    assert f.cache_lines["hit"] == p["k"]
    assert f.npws >= 0
    again = lately.baselines.StableBloomFilter.from_parameters(f.window, **p, seed=f.seed)
    assert again.to_bytes() == f.to_bytes()
    assert repr(f).startswith(f"<StableBloomFilter window={f.window} fpr=")
    n = 20 * f.window + 1000
    f.insert(np.arange(n))
    assert n - 1 in f
    # A tenth of the oldest at most is forgotten in expectation, fewer of all; six deviations of as many coins.
    found = int(f.query(np.arange(n - f.window, n)).sum())
    assert found >= 0.9 * f.window - 6 * math.sqrt(0.09 * f.window)
    assert f.query(np.arange(n, 2 * n)).sum() <= f.fpr * n * 1.2 + 6 * math.sqrt(f.fpr * n) + 6


COUNT = {"window": 1000, "fpr": 0.01}
GIVEN = {"window": 1000, "k": 3, "slice_cells": 500, "bits": 4, "decrements": 9}


@pytest.mark.parametrize(
    ("make", "base", "change", "kind", "name"),
    [
        *((0, COUNT, {"window": w}, ValueError, "window") for w in (0, -1, 2**32 + 1, 2**64, 2**200, "x")),
        *((0, COUNT, {"window": w}, TypeError, "window") for w in (1.5, True, None, [5])),
        *((0, COUNT, {"window": w}, ValueError, "AgePartitioned") for w in ("10min", timedelta(1))),
        *((0, COUNT, {"fpr": p}, ValueError, "fpr") for p in (0, 1, -0.1, math.nan, math.inf)),
        (0, COUNT, {"fpr": None}, TypeError, "fpr or nbytes"),
        *((0, {"window": 1000}, {"nbytes": b}, ValueError, "nbytes") for b in (-1, 0, 7, 2**60, 2**64)),
        (0, COUNT, {"seed": -1}, ValueError, "seed"),
        *((1, GIVEN, {"k": k}, ValueError, "k") for k in (0, -1, 129, 2**64)),
        *((1, GIVEN, {"slice_cells": m}, ValueError, "slice_cells") for m in (0, -1, 2**60, 2**64)),
        *((1, GIVEN, {"bits": b}, ValueError, "bits") for b in (0, 3, 16, -1, 2**40)),
        *((1, GIVEN, {"decrements": d}, ValueError, "decrements") for d in (0, 501, -1, 2**64)),
        (1, GIVEN, {"slice_cells": 2**52}, MemoryError, "bytes"),
        (1, GIVEN, {"window": "1h"}, ValueError, "AgePartitioned"),
    ],
)
def test_a_parameter_that_cannot_be_is_named(make, base, change, kind, name):
    makers = lately.baselines.StableBloomFilter, lately.baselines.StableBloomFilter.from_parameters
    with pytest.raises(kind) as caught:
        makers[make](**base | change)
    assert caught.type is kind
    assert name in " ".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
