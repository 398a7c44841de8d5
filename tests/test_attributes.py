"""What a filter states of itself agrees with its request and its cells: one grid for all families.

The formulas are those of the core: `tests/core/families.rs` and `tests/core/shape`.
"""

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

import lately
from lately.baselines import CountingBloomFilter, FingerprintBuffer, GeneralizedBloomFilter, StableBloomFilter
from support.planned import planned

SPANS = {"1s": 1, "90s": 90, "2min": 120, "5min": 300, "10min": 600, "15min": 900, "50min": 3000, "1h": 3600}
LARGEST = 2**64 - 1


@dataclass(frozen=True)
class Family:
    """A class, its slack if that is fixed, and the name of the variant if it is not the class's own choice."""

    cls: type[lately.Filter]
    slack: float | None = None
    name: str = ""

    def make(self, **given: Any) -> lately.Filter:
        return planned(self.name, **given) if self.name else self.cls(**given)


def in_layout(end: str) -> list[Family]:
    """Both classes in the layout with this ending."""
    names = {lately.AgePartitionedBloomFilter: "age-partitioned", lately.GuardedEpochBloomFilter: "guarded-epoch"}
    return [Family(cls, name=f"{name}{end}") for cls, name in names.items()]


RINGS, BLOCKS, LINES = map(in_layout, ("", "-512", "-line"))
EPOCHS, TIMERS = [Family(lately.GuardedEpochBloomFilter)], [Family(lately.TimingBloomFilter)]
LIMITED, BLOOM = [Family(lately.TimeLimitedBloomFilter)], [Family(lately.BloomFilter, 0)]
FINGERPRINTS, COUNTERS = [Family(cls, 0) for cls in (FingerprintBuffer, lately.Swamp)], [Family(CountingBloomFilter, 0)]
FADING = [Family(cls, math.inf) for cls in (GeneralizedBloomFilter, StableBloomFilter)]
SPAN, SPAN64 = timedelta(minutes=10), np.timedelta64(10, "m")
GIVEN: list[tuple[list[Family], dict[str, Any]]] = [
    (RINGS + FADING + COUNTERS + FINGERPRINTS, {"window": 1, "fpr": 0.1}),
    (RINGS, {"window": 1000, "fpr": 0.001}),
    (RINGS, {"window": 1000, "fpr": 0.001, "slack": 100}),
    (BLOCKS, {"window": np.int32(5000), "fpr": np.float32(0.01), "seed": LARGEST}),
    (RINGS, {"window": 5000, "nbytes": 10_001}),
    (BLOCKS, {"window": 5000, "nbytes": 60_000, "slack": 5000}),
    (LINES, {"window": 20_000, "fpr": 0.01, "seed": 3}),
    (LINES, {"window": 50_000, "nbytes": 131_071, "slack": 9000}),
    (LINES, {"window": "10min", "fpr": 0.01, "capacity": 30_000, "lateness": "90s"}),
    (RINGS, {"window": "10min", "fpr": 0.01, "capacity": 3000}),
    (RINGS, {"window": SPAN, "fpr": 0.01, "capacity": 3000, "lateness": "90s", "slack": "15min"}),
    (EPOCHS, {"window": 1000, "fpr": 0.001, "slack": 100}),
    (EPOCHS, {"window": 5000, "nbytes": 10_001, "seed": LARGEST}),
    (EPOCHS, {"window": "10min", "fpr": 0.01, "capacity": 3000, "lateness": "90s", "slack": "15min"}),
    (TIMERS, {"window": 1, "fpr": 0.1}),
    (TIMERS, {"window": 1000, "fpr": 0.001}),
    (TIMERS, {"window": 1000, "fpr": 0.001, "slack": 0}),
    (TIMERS, {"window": 5000, "fpr": 1e-6, "slack": 300, "seed": 5}),
    (TIMERS, {"window": np.int32(5000), "fpr": np.float32(0.01), "seed": LARGEST}),
    (TIMERS, {"window": 5000, "nbytes": 10_001}),
    (TIMERS, {"window": 5000, "nbytes": 60_000, "slack": 7}),
    (TIMERS, {"window": "10min", "fpr": 0.01, "capacity": 3000}),
    (TIMERS, {"window": SPAN, "fpr": 0.01, "capacity": 3000, "lateness": "90s", "slack": "2min"}),
    *(
        (TIMERS, {"window": "10min", "fpr": 1e-4, "capacity": 300, "lateness": "90s", "slack": "2min", "grow": grow})
        for grow in ("cardinality", "density")
    ),
    (TIMERS, {"window": SPAN64, "nbytes": 5000, "capacity": 3000, "lateness": "1h"}),
    (LIMITED, {"window": "10min", "fpr": 0.01}),
    (LIMITED, {"window": "1s", "fpr": 0.3, "capacity": 5, "seed": LARGEST}),
    (LIMITED, {"window": timedelta(hours=1), "fpr": 1e-6, "capacity": 10**6, "slack": "50min"}),
    (LIMITED, {"window": np.timedelta64(60, "s"), "fpr": 0.001, "lateness": "5min"}),
    (FINGERPRINTS, {"window": np.int32(5000), "fpr": 0.001, "seed": LARGEST}),
    (FINGERPRINTS, {"window": 100_000, "fpr": 1e-9}),
    (FINGERPRINTS, {"window": 1000, "nbytes": 5003}),
    (COUNTERS, {"window": 1000, "fpr": 0.001, "seed": LARGEST}),
    (COUNTERS, {"window": np.int32(5000), "fpr": 1e-9}),
    (COUNTERS, {"window": 5000, "nbytes": 60_001}),
    (COUNTERS, {"window": 5000, "nbytes": 40_008}),
    (FADING, {"window": 3000, "fpr": 0.001, "seed": LARGEST}),
    (FADING, {"window": np.int32(5000), "fpr": 1e-6}),
    (FADING[:1], {"window": 500, "nbytes": 10_001}),
    (FADING[:1], {"window": 500, "nbytes": 40_008}),
    (FADING[1:], {"window": 5000, "nbytes": 10_001}),
    (FADING[1:], {"window": 5000, "nbytes": 40_008}),
    *(
        (BLOOM, given | {"partitioned": partitioned})
        for partitioned in (False, True)
        for given in (
            {"capacity": 1, "fpr": 0.1},
            {"capacity": 3000, "fpr": 0.001, "seed": LARGEST},
            {"capacity": np.int32(5000), "fpr": 1e-6},
            {"capacity": 5000, "nbytes": 10_001},
            {"capacity": 5000, "nbytes": 8},
        )
    ),
]


def seconds(span):
    """Return a span in seconds, and a number of keys as it is."""
    if isinstance(span, np.timedelta64):
        span = span.item()
    return span.total_seconds() if isinstance(span, timedelta) else SPANS.get(span, span)


@pytest.mark.parametrize(
    ("family", "given"),
    [(family, given) for families, given in GIVEN for family in families],
    ids=lambda x: x.cls.__name__ if isinstance(x, Family) else " ".join(f"{k}={v}" for k, v in x.items()),
)
def test_attributes_agree_with_the_request_and_the_cells(family, given):
    f = family.make(**given)
    window, timed = seconds(given.get("window")), f.lateness is not None
    lateness = seconds(given.get("lateness", 0))
    # What was requested.
    assert (f.window, f.lateness) == (window, lateness if timed else None)
    expected = 10_000 * window // (window + lateness) if family in LIMITED else f.window
    assert f.capacity == given.get("capacity", expected)
    assert f.seed == given.get("seed", 0)
    assert f.fpr <= given.get("fpr", 1)
    assert f.nbytes <= given.get("nbytes", 2**60)
    if family.slack is not None:
        assert f.slack == family.slack
    elif "slack" in given:
        assert f.slack <= seconds(given["slack"])
    else:
        assert f.slack <= (lateness + (window + lateness) / 2 if timed else max(64, window / 2))
    # Its cells.
    preamble, cells = f.__reduce_ex__(5)[1]
    assert f.nbytes == memoryview(cells).nbytes == len(f.to_bytes()) - len(preamble)
    assert f.bits_per_key == 8 * f.nbytes / f.capacity
    assert f.npws > 0 if 0 < f.slack < math.inf else f.npws >= 0
    assert f.inserted == 0
    assert (f.false_positive_rate() == 0) == (family.cls is not GeneralizedBloomFilter), "which has bits set at random"
    size = "capacity" if window is None else "window"
    assert repr(f).startswith(f"<{family.cls.__name__} {size}={given[size] if window is None else f.window}")
    assert f"nbytes={f.nbytes} inserted=0>" in repr(f)
    # Its parameters make another.
    how = {k: v for k, v in given.items() if k in ("window", "capacity", "lateness", "seed")}
    again = family.cls.from_parameters(**({"capacity": f.capacity} if timed else {}) | how, **f.parameters)
    assert again.to_bytes() == f.to_bytes()
    assert (again.fpr, again.slack, repr(again)) == (f.fpr, f.slack, repr(f))
    # With a key.
    f.insert(np.arange(1), **({"at": 5.0} if timed else {}))
    assert f.inserted == 1
    assert (f.latest is None) == (f.max_ahead is None) == (not timed)
    assert f.fill[0] > 0


def test_the_memory_of_a_filter_that_follows_the_keys_is_what_is_saved():
    f = lately.TimeLimitedBloomFilter("60s", 0.01)
    for n in (0, 10, 1000, 100_000):
        f.insert(np.arange(n), at=100 + n + 10 * np.arange(n) / max(n, 1))
        preamble, cells = f.__reduce_ex__(5)[1]
        assert f.nbytes == memoryview(cells).nbytes == len(f.to_bytes()) - len(preamble)
