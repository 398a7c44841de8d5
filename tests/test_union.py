"""Two filters merged: no key is lost, and filters that cannot be merged are rejected with the reason."""

from functools import partial

import numpy as np
import pytest

import lately

LAYOUTS = {
    "plain": {"slice_bits": 4000},
    "lines": {"blocks": 60, "block_bits": 512, "parts": 8},
    "words": {"blocks": 400, "block_bits": 64, "parts": 4},
    "side by side": {"pages": 3, "lines": 2},
}


def timed(layout, **change):
    given = {"window": "10min", "k": 3, "l": 5, "capacity": 400, **LAYOUTS[layout], **change}
    return lately.AgePartitionedBloomFilter.from_parameters(**given)


def counted(layout, **change):
    given = {"window": 301, "k": 3, "l": 5, **LAYOUTS[layout], **change}
    return lately.AgePartitionedBloomFilter.from_parameters(**given)


def bloom(**change):
    given = {"capacity": 1000, "k": 6, **change}
    return lately.BloomFilter.from_parameters(**given)


FADING = lately.baselines.GeneralizedBloomFilter(1000, 0.01)


@pytest.mark.parametrize("gap", [0, 200, 2000])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_machines_together_are_one_machine_that_saw_all(layout, gap):
    """Bit for bit, wherever each machine's stream ends: in the same generation, in another, or long before."""
    rng = np.random.default_rng(1)
    at = np.sort(rng.integers(0, 3000, 2000)) + 1_700_000_000
    keys = np.arange(2000)
    here = (rng.random(2000) < 0.5) & (at < at[-1] - gap)
    paris, tokyo, both = timed(layout), timed(layout), timed(layout)
    paris.insert(keys[here], at=at[here])
    tokyo.insert(keys[~here], at=at[~here])
    both.insert(keys, at=at)
    before = paris.to_bytes(), tokyo.to_bytes()
    for union in (paris.union(tokyo), tokyo.union(paris)):
        # Steps of lines end by count too, at each machine after other keys.
        assert layout == "side by side" or union.to_bytes() == both.to_bytes()
        assert union.query(keys[at >= at[-1] - 600]).all()
    assert (paris.to_bytes(), tokyo.to_bytes()) == before


def test_an_empty_filter_changes_nothing():
    full = timed("plain")
    full.insert(np.arange(300), at=np.arange(300))
    assert full.union(timed("plain")).to_bytes() == full.to_bytes()
    assert timed("plain").union(full).to_bytes() == full.to_bytes()
    assert full.union(full).query(np.arange(300), at=300).all()
    for ahead, seconds in (("0 s", 0.0), ("90 s", 90.0), (None, None)):
        for make in (partial(timed, "plain"), partial(lately.GuardedEpochBloomFilter, "10min", 0.01, capacity=400)):
            assert make(max_ahead=ahead).union(make(max_ahead="3 d")).max_ahead == seconds


def test_merging_counts_of_different_generations_is_rejected():
    a, b = counted("plain"), counted("plain")
    a.insert(np.arange(60))
    b.insert(np.arange(61))
    before = a.to_bytes()
    with pytest.raises(ValueError, match="same generation, but inserted is 60 and 61: generations 0 and 1"):
        a.union(b)
    assert a.to_bytes() == before


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (timed("plain"), timed("plain", seed=5), "seed is 0 here and 5 there"),
        (timed("plain"), timed("plain", capacity=401), r"window is 600 s \(.*capacity 400\) here"),
        (timed("plain"), timed("plain", lateness="1s"), r"window is .* and 600 s \(lateness 1 s"),
        (timed("plain"), counted("plain"), "window is 600 s .* here and 301 insertions there"),
        (timed("plain"), timed("plain", k=4), "k is 3 here and 4 there"),
        (timed("plain"), timed("plain", l=6), "l is 5 here and 6 there"),
        (timed("plain"), timed("plain", slice_bits=4001), "slice_bits is 4000 here and 4001 there"),
        (timed("lines"), timed("lines", parts=4), "parts is 8 here and 4 there"),
        (timed("plain"), timed("lines"), "slice_bits is 4000 here and 0 there"),
        (bloom(bits=9), bloom(bits=9, capacity=1001), "capacity is 1000 insertions here and 1001 insertions there"),
        (FADING, FADING, "cannot merge these filters"),
    ],
)
def test_an_error_names_the_difference(a, b, words):
    with pytest.raises(ValueError, match=words):
        a.union(b)


def test_only_filters_are_merged():
    with pytest.raises(TypeError):
        timed("plain").union([1, 2])
