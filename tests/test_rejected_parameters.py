"""A wrong parameter of a filter raises an error that names it: one grid for all classes and constructors."""

import inspect
import math
from datetime import timedelta

import numpy as np
import pytest

import lately
from lately.baselines import CountingBloomFilter, FingerprintBuffer, GeneralizedBloomFilter, StableBloomFilter

COUNT, TIME = {"window": 1000, "fpr": 0.01}, {"window": "1min", "fpr": 0.01, "capacity": 100}
TIMERS = {"window": 100, "k": 3, "bpt": 4, "blocks": 9, "slice_timers": 500}
# Each constructor with parameters that it accepts.
MAKERS = {
    "bloom": (lately.BloomFilter, {"capacity": 1000, "fpr": 0.01}),
    "bloom from": (lately.BloomFilter.from_parameters, {"capacity": 1000, "k": 3, "bits": 500}),
    "swamp": (lately.Swamp, COUNT),
    "swamp from": (lately.Swamp.from_parameters, {"window": 100, "slots": 128, "remainder_bits": 5}),
    "buffer": (FingerprintBuffer, COUNT),
    "buffer from": (FingerprintBuffer.from_parameters, {"window": 100, "fingerprint_bits": 16}),
    "timing": (lately.TimingBloomFilter, COUNT),
    "timing of time": (lately.TimingBloomFilter, TIME),
    "timing from": (lately.TimingBloomFilter.from_parameters, TIMERS),
    "timing of time from": (lately.TimingBloomFilter.from_parameters, TIMERS | {"window": "1min", "capacity": 100}),
    "timing lines from": (
        lately.TimingBloomFilter.from_parameters,
        TIMERS | {"slice_timers": None, "pages": 5, "lines": 1},
    ),
    "generalized": (GeneralizedBloomFilter, COUNT),
    "generalized from": (GeneralizedBloomFilter.from_parameters, {"window": 1000, "bits": 5000, "k1": 3, "k0": 4}),
    "stable": (StableBloomFilter, COUNT),
    "stable from": (
        StableBloomFilter.from_parameters,
        {"window": 1000, "k": 3, "slice_cells": 500, "bits": 4, "decrements": 9},
    ),
    "counting": (CountingBloomFilter, COUNT),
    "counting from": (CountingBloomFilter.from_parameters, {"window": 1000, "k": 3, "slice_cells": 500}),
    "time-limited": (lately.TimeLimitedBloomFilter, {"window": "1min", "fpr": 0.01}),
    "time-limited from": (
        lately.TimeLimitedBloomFilter.from_parameters,
        {"window": "1min", "k": 3, "l": 5, "slice_bits": 512},
    ),
}
TIMED = {"timing of time", "timing of time from", "time-limited", "time-limited from"}
ANY_WINDOW = {name for name in MAKERS if name.startswith("timing")}

# What no constructor accepts of a parameter, for all that have it.
EVERYWHERE = {
    "fpr": [*((x, ValueError) for x in (0, 1, -0.1, math.nan, math.inf)), (None, TypeError), ("0.1", TypeError)],
    "seed": [(-1, ValueError), (2**64, ValueError)],
    "capacity": [(0, ValueError), (-1, ValueError), (2**62 + 1, ValueError), (2**64, ValueError), (1000.5, TypeError)],
}
# What `from_parameters` accepts of no number that makes a filter.
NUMBERS = [
    *("k", "l", "bits", "slice_bits", "slots", "fingerprint_bits", "bpt", "blocks", "slice_timers", "pages", "lines"),
    *("k1", "k0", "slice_cells", "decrements"),
]


def grid():
    """Give name of the constructor, change of its parameters, kind of the error and words in it."""
    for name, (make, good) in MAKERS.items():
        wrong = [0, -1, 2**64, 2**200] if name not in TIMED else []
        yield from ((name, {"window": x}, ValueError, "window") for x in wrong if "window" in good)
        if "window" in good:
            yield from ((name, {"window": x}, TypeError, "window") for x in (None, True))
            yield from ((name, {"window": x}, ValueError, "window") for x in ("x", "-1s"))
            yield (
                (name, {"window": "60000d"}, ValueError, "window")
                if name in TIMED
                else ((name, {"window": 1.5}, TypeError, "window"))
            )
            if name not in TIMED | ANY_WINDOW:
                spans = ("10min", timedelta(1), np.timedelta64(5, "s"))
                yield from ((name, {"window": x}, ValueError, "window") for x in spans)
        taken = inspect.signature(make).parameters
        for parameter in sorted(good.keys() & EVERYWHERE.keys() | taken.keys() & {"seed"}):
            yield from ((name, {parameter: x}, kind, parameter) for x, kind in EVERYWHERE[parameter])
        if "from" in name:
            for parameter in sorted(good.keys() & set(NUMBERS)):
                if good[parameter] is not None:
                    yield from ((name, {parameter: x}, ValueError, parameter) for x in (0, -1, 2**64, 2**100))
                    yield from ((name, {parameter: x}, TypeError, parameter) for x in (1.5, "1"))
        elif "nbytes" in taken:
            for x in (-1, 0, 7, 2**64):
                yield name, {"fpr": None, "nbytes": x, "window": 1000, "capacity": None}, ValueError, "nbytes"
            yield name, {"nbytes": 10_000}, TypeError, "fpr or nbytes"


OWN = [
    *(("bloom", {"capacity": x}, TypeError, "capacity") for x in ("1min", None)),
    ("bloom", {"capacity": 2**50, "fpr": 1e-6}, ValueError, "fpr"),
    ("bloom", {"partitioned": "yes"}, TypeError, "partitioned"),
    ("bloom", {"capacity": 2**50, "fpr": 0.1}, MemoryError, "bytes"),
    ("bloom from", {"k": 129}, ValueError, "k"),
    ("bloom from", {"bits": 2**60 + 1}, ValueError, "bits"),
    *(("bloom from", {"bits": None, "slice_bits": x}, ValueError, "slice_bits") for x in (0, -1, 2**59, 2**64)),
    ("bloom from", {"slice_bits": 100}, TypeError, "bits or slice_bits"),
    ("bloom from", {"bits": None}, TypeError, "bits or slice_bits"),
    ("bloom from", {"bits": 2**58}, MemoryError, "bytes"),
    *((name, {"window": 2**32 + 1}, ValueError, "window") for name in ("swamp", "buffer", "stable", "counting")),
    *((name, {"fpr": 1e-30}, ValueError, "fpr") for name in ("swamp", "buffer", "generalized", "time-limited")),
    *((name, {"fpr": None, "nbytes": 2**60 + 1}, ValueError, "nbytes")
      for name in ("timing", "generalized", "stable", "counting")),
    *((name, {"fpr": None, "nbytes": 127}, ValueError, "nbytes") for name in ("swamp", "buffer")),
    *((name, {x: 1}, TypeError, x) for name in ("swamp", "buffer") for x in ("slack", "capacity", "lateness")),
    *(("swamp from", {"slots": x}, ValueError, "slots must") for x in (-64, 100, 64)),
    *(("swamp from", {"remainder_bits": x}, ValueError, "remainder_bits must") for x in (0, -1, 57, 2**64)),
    ("buffer from", {"fingerprint_bits": 65}, ValueError, "fingerprint_bits"),
    *((f"{name}{end}", {"window": "1h"}, ValueError, "AgePartitioned")
      for name in ("generalized", "stable", "counting") for end in ("", " from")),
    ("generalized from", {"bits": 1}, ValueError, "bits"),
    ("generalized from", {"bits": 2**60 + 1}, ValueError, "bits"),
    *(("generalized from", {x: 65}, ValueError, x) for x in ("k1", "k0")),
    ("generalized from", {"bits": 2**58}, MemoryError, "bytes"),
    *((name, {"k": 129}, ValueError, "k") for name in ("stable from", "counting from")),
    *((name, {"slice_cells": 2**60}, ValueError, "slice_cells") for name in ("stable from", "counting from")),
    *((name, {"slice_cells": 2**52}, MemoryError, "bytes") for name in ("stable from", "counting from")),
    *(("stable from", {"bits": x}, ValueError, "bits") for x in (3, 16, 2**40)),
    ("stable from", {"decrements": 501}, ValueError, "decrements"),
    ("counting", {"fpr": None, "nbytes": 8007}, ValueError, "nbytes"),
    ("counting", {"slack": 5}, TypeError, "slack"),
    *((name, {"window": x}, TypeError, "window must be a span")
      for name in ("time-limited", "time-limited from") for x in (1000, 1.5, None)),
    ("time-limited", {"window": "0s"}, ValueError, "window"),
    ("time-limited", {"capacity": "many"}, TypeError, "capacity"),
    *(("time-limited", {"capacity": x}, ValueError, "capacity") for x in (0, -1, 2**62 + 1, 2**64)),
    *(("time-limited", {"slack": x}, ValueError, "slack") for x in ("0s", "1ns", "x")),
    *(("time-limited", {x: 5}, TypeError, x) for x in ("slack", "lateness", "nbytes")),
    ("time-limited", {"lateness": "60000d"}, ValueError, "lateness"),
    ("time-limited", {"capacity": 2**50}, MemoryError, "bytes"),
    *(("time-limited from", {"slice_bits": x}, ValueError, "slice_bits") for x in (448, 513, 2**61)),
    ("time-limited from", {"k": 100, "l": 29}, ValueError, "k + l"),
    ("time-limited from", {"slice_bits": 2**52}, MemoryError, "bytes"),
    *(("timing", {"window": x}, TypeError, "window") for x in ([5], 1j)),
    *(("timing", {"slack": x}, ValueError, "slack") for x in (-1, 2**64)),
    ("timing", {"window": 2**40, "slack": 5}, ValueError, "slack"),
    ("timing", {"capacity": 5}, ValueError, "capacity"),
    ("timing", {"window": 2**50}, MemoryError, "bytes"),
    ("timing", {"window": 2**62}, ValueError, "fpr"),
    ("timing", {"grow": "density"}, ValueError, "grow is for windows of time"),
    *(("timing", {"layout": x}, ValueError, "layout") for x in ("lines", "", "transposed")),
    ("timing", {"layout": 1}, TypeError, "layout"),
    ("timing", {"fpr": None, "nbytes": 4095, "layout": "line"}, ValueError, "nbytes must be at least 4096"),
    ("timing", {"window": 2**45, "layout": "line"}, ValueError, "more than 134217727 pages"),
    ("timing of time", {"slack": "1ns"}, ValueError, "slack"),
    ("timing of time", {"slack": 100}, TypeError, "slack"),
    ("timing of time", {"capacity": None}, TypeError, "capacity"),
    *(("timing of time", {"lateness": x}, ValueError, "lateness") for x in ("x", "-1s", "60000d")),
    ("timing of time", {"grow": "size"}, ValueError, "grow must be 'cardinality' or 'density', got \"size\""),
    ("timing of time", {"grow": True}, TypeError, "grow"),
    ("timing of time", {"grow": "density", "fpr": None, "nbytes": 1000}, TypeError, "grow goes with fpr"),
    ("timing of time", {"grow": "density", "layout": "line"}, ValueError, "grow does not apply to layout='line'"),
    ("timing from", {"pages": 5}, TypeError, "slice_timers or pages, and not both"),
    ("timing from", {"k": 65}, ValueError, "k must"),
    *(("timing from", {"bpt": x}, ValueError, "bpt") for x in (1, 33)),
    ("timing from", {"blocks": 15}, ValueError, "blocks"),
    ("timing from", {"bpt": 32, "blocks": 2**24 + 1}, ValueError, "blocks"),
    ("timing from", {"bpt": 32, "blocks": 2**14 + 1, "equal_timers": 2}, ValueError, "blocks"),
    *(("timing from", {"equal_timers": x}, ValueError, "equal_timers") for x in (0, 4, -1)),
    ("timing from", {"slice_timers": 2**63}, ValueError, "slice_timers"),
    ("timing from", {"slice_timers": 2**53}, MemoryError, "bytes"),
    ("timing from", {"part_keys": 5}, ValueError, "grow is for windows of time"),
    *(("timing lines from", {"k": x}, ValueError, "k must lie in 1..=8 in lines") for x in (9, 64)),
    ("timing lines from", {"k": 1, "lines": 2}, ValueError, "k must lie in 2..=16 in lines"),
    ("timing lines from", {"lines": 3}, ValueError, "lines must lie in 1..=2"),
    ("timing lines from", {"pages": 2**27}, ValueError, "pages"),
    ("timing lines from", {"equal_timers": 2}, ValueError, "equal_timers must be 1 with pages, got 2"),
    *(("timing lines from", {x: 2}, ValueError, f"{x} does not apply") for x in ("part_keys", "part_timers")),
    *(("timing of time from", {"part_keys": x}, ValueError, "part_keys") for x in (0, -1, 2**62 + 1, 2**64)),
    *(("timing of time from", {"part_timers": x}, ValueError, "part_timers") for x in (0, 2, 3 * 512 + 1, 2**64)),
    *(("timing of time from", {x: 9.5}, TypeError, x) for x in ("part_keys", "part_timers")),
    ("timing of time from", {"part_keys": 9, "part_timers": 9}, TypeError, "part_keys or part_timers"),
    ("timing of time from", {"part_keys": 9, "equal_timers": 2}, ValueError, "equal_timers"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "kind", "words"), [*grid(), *OWN])
def test_the_error_names_the_parameter(name, change, kind, words):
    make, good = MAKERS[name]
    given = {key: value for key, value in (good | change).items() if value is not None or key in change}
    if "nbytes" in change and "window" not in good:
        given = {"capacity": 1000, "nbytes": change["nbytes"]} | ({"fpr": 0.01} if "fpr" not in change else {})
    elif "capacity" in change and change["capacity"] is None and "nbytes" in change:
        given.pop("capacity")
    with pytest.raises(kind) as caught:
        make(**given)
    assert caught.type is kind
    assert words in " ".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
