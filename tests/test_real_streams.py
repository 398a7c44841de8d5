"""On real streams the filter is the exact sliding window, except for what it promises to allow.

The streams of `examples/` always run; those of a folder named by LATELY_STREAMS, under the same names, run too.
"""

import os
from pathlib import Path

import pytest

from support import real_streams

FOLDERS = [real_streams.EXAMPLES, *map(Path, filter(None, [os.environ.get("LATELY_STREAMS")]))]


@pytest.fixture(
    scope="module",
    params=[(folder, case) for folder in FOLDERS for case in real_streams.cases(folder)],
    ids=lambda param: f"{param[0].name}: {param[1]}",
)
def stream(request):
    folder, case = request.param
    keys, times = case.load(folder)
    return keys, times, real_streams.run_exact(keys, times)


def test_every_example_is_there():
    assert real_streams.cases(real_streams.EXAMPLES) == real_streams.CASES


@pytest.mark.parametrize("refresh", [True, False], ids=["refresh", "first sighting"])
@pytest.mark.parametrize("name", ["age-partitioned", "age-partitioned-512"])
def test_equals_the_exact_window_but_for_slack_and_false_positives(stream, name, refresh):
    keys, times, exact = stream
    found = real_streams.compare(keys, times, name, refresh)

    assert found.window.reported == found.window.queried
    assert found.fresh.reported <= found.bound
    assert found.nbytes < exact.nbytes / 20
    if refresh:  # Every event is inserted, so the exact window knows the same.
        differences = [seen for seen, truth in zip(found.mask, exact.mask, strict=True) if seen != truth]
        assert all(differences)
        assert len(differences) == found.slack.reported + found.fresh.reported


def test_bound_is_the_binomial_quantile():
    # Of 10 coins, more than 9 show heads with probability 1/1024, more than 8 with 11/1024.
    assert real_streams.binomial_bound(10, 0.5, 1.01 / 1024) == 9
    assert real_streams.binomial_bound(10, 0.5, 0.99 / 1024) == 10
    assert real_streams.binomial_bound(10, 0.5, 11.01 / 1024) == 8
    assert real_streams.binomial_bound(10, 0.5, 10.99 / 1024) == 9
