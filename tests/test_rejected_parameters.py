"""A wrong parameter of a filter raises an error that names it: one grid for all classes and constructors."""

import inspect
import math
import re
from datetime import timedelta
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest

import lately
from lately.baselines import CountingBloomFilter, FingerprintBuffer, GeneralizedBloomFilter, StableBloomFilter

COUNT, TIME = {"window": 1000, "fpr": 0.01}, {"window": "1min", "fpr": 0.01, "capacity": 100}
TIMERS = {"window": 100, "k": 3, "bpt": 4, "blocks": 9, "slice_timers": 500}
A, G, C = lately.AgePartitionedBloomFilter, lately.GuardedEpochBloomFilter, lately.AgedCuckooFilter
AGED = {"window": 100, "fingerprint_bits": 16, "epochs": 9, "pages": 1, "lines": 64}
BLOCKS = {"blocks": 5, "block_bits": 512, "parts": 8}
# Each constructor with parameters that it accepts.
MAKERS = {
    "slices": (A, COUNT),
    "slices of time": (A, TIME),
    "slices from": (A.from_parameters, {"window": 100, "k": 3, "l": 5, "slice_bits": 500}),
    "slices from blocks": (A.from_parameters, {"window": 100, "k": 3, "l": 5} | BLOCKS),
    "slices from lines": (A.from_parameters, {"window": 100, "k": 3, "l": 5, "pages": 5, "lines": 1}),
    "epochs": (G, COUNT),
    "epochs of time": (G, TIME),
    "epochs from": (G.from_parameters, {"window": 100, "r": 5, "k": 3, "segment_bits": 500}),
    "epochs from blocks": (G.from_parameters, {"window": 100, "r": 5} | BLOCKS),
    "epochs from lines": (G.from_parameters, {"window": 100, "r": 7, "pages": 5, "lines": 1}),
    "epochs from positions": (G.from_parameters, {"window": 100, "r": 7, "k": 3, "positions": 500}),
    "bloom": (lately.BloomFilter, {"capacity": 1000, "fpr": 0.01}),
    "bloom from": (lately.BloomFilter.from_parameters, {"capacity": 1000, "k": 3, "bits": 500}),
    "bloom from slices": (
        lately.BloomFilter.from_parameters,
        {"capacity": 1000, "k": 3, "slice_bits": 500},
    ),
    "swamp": (lately.Swamp, COUNT),
    "swamp from": (lately.Swamp.from_parameters, {"window": 100, "slots": 128, "remainder_bits": 5}),
    "buffer": (FingerprintBuffer, COUNT),
    "buffer from": (FingerprintBuffer.from_parameters, {"window": 100, "fingerprint_bits": 16}),
    "timing": (lately.TimingBloomFilter, COUNT),
    "timing of time": (lately.TimingBloomFilter, TIME),
    "timing from": (lately.TimingBloomFilter.from_parameters, TIMERS),
    "timing of time from": (lately.TimingBloomFilter.from_parameters, TIMERS | {"window": "1min", "capacity": 100}),
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
    "aged": (C, COUNT),
    "aged of time": (C, TIME),
    "aged from": (C.from_parameters, AGED),
    "exact": (lately.ExactFilter, {"window": 9}),
    "exact of time": (lately.ExactFilter, {"window": "1s"}),
    "chosen": (lately.Filter, COUNT),
    "chosen of time": (lately.Filter, TIME),
}
# Other calls that take parameters of a filter, with some that they accept: only rows of `OWN` change these.
CALLS = {
    "exact by preference": (partial(lately.Filter, prefer="exact"), {"window": "10min"}),
    "no parameter": (lately.Filter, {}),
    "no line": (A.from_parameters, {"window": 100, "k": 3, "l": 5, "pages": 1}),
    "no family": (lately.Filter.from_parameters, {"window": 100, "k": 3}),
    "a query": (A(1000, 0.01).query, {"keys": [1]}),
    "an insertion": (A(1000, 0.01).insert, {"keys": [1]}),
    "marks by a filter": (A(1000, 0.01).duplicated, {"keys": [1]}),
    "marks": (lately.duplicated, {"keys": [1, 2, 3], "window": 5}),
    "marks of a filter": (lately.duplicated, {"keys": [1, 2, 3], "window": 5, "fpr": 0.01}),
    "rows": (lately.drop_duplicates, {"frame": pd.Series(["a", "b"]), "window": 9}),
    "a plan": (lately.plan, {"window": 1000, "nbytes": 4096}),
    "a plan at a rate": (lately.plan, {"window": 1000, "fpr": 0.1}),
    "unique": (lately.unique, {"events": [1, 2, 3], "window": 5}),
}
RINGS = ("slices", "epochs")
TIMED = {name for name in MAKERS if "of time" in name or "time-limited" in name}
ANY_WINDOW = {name for name in MAKERS if name.startswith((*RINGS, "timing", "aged", "exact", "chosen"))}

# What no constructor accepts of a parameter, for all that have it.
EVERYWHERE = {
    "fpr": [
        *((x, ValueError) for x in (0, 1, -0.1, 1.5, math.nan, math.inf, -math.inf, True)),
        *((x, TypeError) for x in (None, "0.1", [0.1])),
    ],
    "seed": [*((x, ValueError) for x in (-1, 2**64, 2**100, b"short")), *((x, TypeError) for x in ("0", 0.0, [5]))],
    "capacity": [*((x, ValueError) for x in (0, -1, 2**62 + 1, 2**64, 2**100)), (1000.5, TypeError)],
}
# What constructors from parameters accept of no number that makes a filter.
NUMBERS = [
    *("k", "l", "bits", "slice_bits", "slots", "fingerprint_bits", "bpt", "blocks", "slice_timers", "pages", "lines"),
    *("k1", "k0", "slice_cells", "decrements", "r", "segment_bits", "positions"),
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
                yield from ((name, {parameter: x}, ValueError, parameter) for x in (0, -1, 2**64, 2**100))
                yield from ((name, {parameter: x}, TypeError, parameter) for x in (1.5, "1", None))
        elif "nbytes" in taken and "time-limited" not in name:
            for x in (-1, 0, 7, 2**64):
                yield name, {"fpr": None, "nbytes": x, "window": 1000, "capacity": None}, ValueError, "nbytes"
            yield name, {"nbytes": 10_000}, TypeError, "fpr or nbytes"


# Of exact marks and of those of a filter.
MARKS = [
    ({"window": "10min"}, TypeError, "needs at"),
    ({"window": timedelta(1)}, TypeError, "needs at"),
    ({"window": 10, "at": [1, 2, 3]}, TypeError, "window must be a span of time"),
    ({"window": 1.5, "at": [1, 2, 3]}, TypeError, "window must be a span of time"),
    ({"window": 1.5}, TypeError, "window"),
    ({"window": True}, TypeError, "window"),
    ({"window": None}, TypeError, "window"),
    ({"window": 0}, ValueError, "window must be at least 1"),
    ({"window": -1}, ValueError, "window must lie in 0"),
    ({"window": -(2**200)}, ValueError, "window"),
    ({"window": "0s", "at": [1, 2, 3]}, ValueError, "window must be longer than 0"),
    ({"window": "ten", "at": [1, 2, 3]}, ValueError, "window"),
    ({"window": "1s", "at": [1, 2]}, ValueError, "at has 2 times for 3 keys"),
    ({"window": "1s", "at": [1]}, ValueError, "at has 1 times for 3 keys"),
    ({"window": "1s", "at": [1, math.nan, 3]}, ValueError, "at[1] is missing"),
    ({"window": "1s", "at": ["a", "b", "c"]}, ValueError, "at[0] is 'a'; a time is"),
    ({"fpr": 0}, ValueError, "fpr"),
    ({"fpr": 1}, ValueError, "fpr"),
    ({"fpr": math.nan}, ValueError, "fpr"),
    ({"seed": -1}, ValueError, "seed"),
    ({"missing": "none"}, ValueError, "missing must be 'same' or 'distinct', got 'none'"),
    ({"missing": None}, TypeError, "missing must be 'same' or 'distinct', got None"),
    ({"refresh": "never"}, ValueError, "refresh"),
    ({"threads": 0}, ValueError, "threads must be at least 1"),
    ({"window": "1s", "at": [1, 2, 3], "filter": lately.Swamp}, ValueError, "window must be a number"),
    ({"filter": lately.TimeLimitedBloomFilter}, TypeError, "window must be a span of time"),
    ({"filter": lately.Swamp(5, 0.1)}, TypeError, "got a filter: call its own method duplicated"),
    ({"filter": "Swamp"}, ValueError, "^filter must be one of .*, swamp, .*; got 'Swamp'"),
    ({"filter": lately.plan(5, 0.1)}, TypeError, "a row of lately.plan; got Plan"),
    ({"filter": lately.Filter}, TypeError, "^.*a class, such as lately.Swamp.*; got Filter"),
    ({"filter": lately.Swamp, "fpr": 2}, ValueError, "fpr"),
    ({"keys": [1, 2j, 3]}, TypeError, "key 1: complex"),
    ({"keys": "abc"}, TypeError, "keys must be"),
    ({"keys": {"a": 1}}, TypeError, "keys must be"),
]  # fmt: skip

# Words that begin with "^" are a pattern. That ranges are those of a family is in `core/shape/errors.rs`.
OWN = [
    *((name, *row) for name in ("marks", "marks of a filter") for row in MARKS),
    *((name, {"seed": None}, TypeError, "not NoneType") for name in MAKERS if not name.startswith("exact")),
    ("slices", {"seed": b"short"}, ValueError, "16 bytes if it is secret, got 5"),
    ("slices", {"seed": "randon"}, TypeError, "'randon'"),
    ("slices", {"seed": 1.5}, TypeError, "not float"),
    ("slices", {"seed": -1}, ValueError, "2**64"),
    ("slices", {"window": 1.5}, TypeError, "^window must be a whole number, got 1.5$"),
    *(("slices", {"window": x}, TypeError, f"^window must be a whole number of keys, or a span of time, .* got {kind}$")
      for x, kind in ((None, "NoneType"), (True, "bool"))),
    ("slices", {"nbytes": "4KB", "fpr": None}, TypeError,
     "^nbytes must be a whole number of bytes, such as 4096, got '4KB'$"),
    ("slices", {"fpr": "1%"}, TypeError, '^fpr must be a number between 0 and 1, got "1%"$'),
    ("slices", {"fpr": 1e-30}, ValueError, "^fpr must be above 5.* got 1e-30"),
    ("slices of time", {"window": "1000"}, ValueError, "^window must be a span of time .* '1000', which has no unit$"),
    ("slices of time", {"window": "1 month"}, ValueError, "^window must be a span of time such as '10min', '1 hour'"),
    ("slices of time", {"window": "1H"}, ValueError, "^window must be a span of time such as"),
    *(("slices of time", {"capacity": x}, TypeError, f"^capacity must be a whole number, got {x!r}$")
      for x in ("many", 1.5)),
    ("slices from", {"k": 1.5}, TypeError, "^k must be a whole number, got 1.5$"),
    ("no parameter", {}, TypeError, "window"),
    *((name, {"threads": x}, TypeError, f"^threads must be a whole number, got {x!r}")
      for name in ("a query", "an insertion", "marks", "marks by a filter") for x in ("auto", None, 1.5)),
    *((name, {"threads": x}, ValueError, "threads")
      for name in ("a query", "an insertion", "marks", "marks by a filter") for x in (0, -1, 2**64, 2**200)),
    *((name, {"keep": x}, ValueError, f"keep must be 'first', 'last' or False, got {x!r}")
      for name in ("marks", "rows") for x in ("none", None, True, 0)),
    *((name, {"keep": x} | more, ValueError, f"keep={x!r} needs {words}") for name in ("marks", "rows")
      for x, more, words in (("last", {"fpr": 0.01}, "the exact answer: leave out fpr and filter"),
                             (False, {"filter": "swamp"}, "the exact answer"),
                             ("last", {"refresh": False}, "refresh=True, got refresh=False"))),
    *(("marks", {"window": "5"} | more, ValueError, "^window must be a span of time .* '5', which has no unit$")
      for more in ({}, {"fpr": 0.1})),
    ("marks by a filter", {"refresh": "never"}, ValueError,
     '^refresh must be True, False or \'delivered\', got "never"'),
    ("marks by a filter", {"refresh": 3}, TypeError, "^refresh must be True, False or 'delivered', got 3"),
    ("marks", {"keys": None}, TypeError, "^keys must be an array, .* not NoneType"),
    ("a plan", {"nbytes": "4KB"}, TypeError, "^nbytes must be a whole number of bytes"),
    ("a plan", {"nbytes": None}, TypeError, "fpr or nbytes"),
    ("a plan", {"fpr": 0.1}, TypeError, "fpr or nbytes"),
    ("a plan", {"nbytes": 1}, ValueError,
     "^no family meets this request\n(  .*\n)*  age-partitioned: nbytes must be at least 24 .*\n  age-partitioned-512"),
    ("a plan", {"window": "1h"}, ValueError, "needs fpr, and no nbytes"),
    ("a plan at a rate", {"window": "1h", "nbytes": 1 << 20}, TypeError, "fpr or nbytes must be given, and not both"),
    ("a plan at a rate", {"window": "1h", "slack": 5}, TypeError, "slack"),
    ("a plan at a rate", {"slack": "1s"}, TypeError, "slack"),
    ("a plan at a rate", {"slack": -1}, ValueError, "slack must lie in 0"),
    ("a plan at a rate", {"fpr": 2}, ValueError, "fpr must lie between 0 and 1"),
    ("a plan at a rate", {"capacity": 5}, ValueError, "capacity and lateness are for windows of time"),
    ("unique", {"window": 0}, ValueError, "window must be at least 1"),
    ("unique", {"window": None}, TypeError, "window"),
    ("unique", {"missing": "no"}, ValueError, "missing must be"),
    ("unique", {"refresh": "no"}, ValueError, "refresh must be"),
    ("unique", {"fpr": 2}, ValueError, "fpr"),
    ("unique", {"capacity": 2}, ValueError, "capacity is for filters"),
    ("unique", {"window": "5s", "lateness": "1s"}, ValueError, "lateness needs at="),
    ("unique", {"filter": "nope"}, ValueError, "filter must be one of"),
    ("unique", {"events": 3}, TypeError, "not iterable"),
    *(("unique", {"events": x}, TypeError, "call lately.drop_duplicates")
      for x in (pd.DataFrame({"a": [1]}), pl.LazyFrame({"a": [1]}))),
    *((name, {"window": x}, ValueError, "window") for name in RINGS
      for x in (2**62 + 1, "", np.timedelta64("NaT", "s"), timedelta(seconds=-1))),
    *((name, {"window": x}, TypeError, "window") for name in RINGS for x in (math.nan, math.inf, [5], b"10", 1j)),
    *((name, {"nbytes": 10_000}, TypeError, "nbytes") for name in RINGS),
    *((name, {"fpr": None, "nbytes": x}, ValueError, "nbytes") for name in RINGS for x in (1, 23, 2**60 + 1, 2**100)),
    *((name, {"fpr": None, "nbytes": x}, TypeError, "nbytes") for name in RINGS for x in (10_000.5, "1 MiB", None)),
    *((name, {"slack": x}, ValueError, "slack") for name in RINGS for x in (-1, 0, 7, 2**64)),
    *((name, {"slack": x}, TypeError, "slack") for name in RINGS for x in (100.5, "1min", timedelta(1))),
    ("epochs", {"slack": 1}, ValueError, "slack"),
    *((name, {"capacity": 5}, ValueError, "capacity") for name in RINGS),
    *((name, {"lateness": "5s"}, ValueError, "lateness") for name in RINGS),
    *((name, {"window": x}, MemoryError, "^cannot allocate [0-9]{16,17} bytes")
      for name in RINGS for x in (2**50, 2**52)),
    *((name, {"window": 2**62}, ValueError, "fpr") for name in RINGS),
    *((f"{name} of time", {"slack": x}, ValueError, "slack") for name in RINGS
      for x in ("0s", "1ns", "x", np.timedelta64("NaT", "s"))),
    *((f"{name} of time", {"slack": x}, TypeError, "slack") for name in RINGS for x in (100, 1.5)),
    *((f"{name} of time", {"capacity": x}, TypeError, "capacity") for name in RINGS for x in (None, "many")),
    *((f"{name} of time", {"lateness": x}, ValueError, "lateness") for name in RINGS
      for x in ("x", "-1s", timedelta(-1), "60000d")),
    *((f"{name} of time", {"lateness": x}, TypeError, "lateness") for name in RINGS for x in (5, 0.5, True)),
    *((f"{name} of time", {"window": x}, ValueError, "window") for name in RINGS for x in ("0s", "200000d", "0.1ns")),
    *((f"{name} of time", {"capacity": 2**50}, MemoryError, "bytes") for name in RINGS),
    *((name, {x: 5}, TypeError, x) for name, x in (
        ("slices from", "blocks"), ("slices from blocks", "slice_bits"),
        ("epochs from", "blocks"), ("epochs from lines", "k"),
        ("bloom from", "slice_bits"), ("bloom from slices", "bits"))),
    ("slices from", {"slices": 5}, TypeError,
     "^AgePartitionedBloomFilter has no parameter .slices.; its parameters are k .consecutive slices"),
    ("slices from", {"r": 5}, TypeError, "AgePartitionedBloomFilter has no parameter"),
    ("slices from", {"pages": 5, "lines": 1}, TypeError,
     "slice_bits=500 does not go with k, l, pages, lines: it is bits of each slice"),
    ("no line", {}, TypeError, "AgePartitionedBloomFilter needs lines: cache lines of a page"),
    ("no family", {}, TypeError, "from_parameters needs the class of a family, such as Swamp, got Filter"),
    ("slices from", {"slice_bits": 2**50}, MemoryError, "bytes"),
    ("slices from", {"window": 5.5}, TypeError, "window"),
    ("epochs from positions", {"positions": 2**50}, MemoryError, "bytes"),
    ("epochs from", {"segment_bits": 2**50}, MemoryError, "bytes"),
    *(("bloom", {"capacity": x}, TypeError, "capacity") for x in ("1min", None)),
    ("bloom", {"partitioned": "yes"}, TypeError, "partitioned"),
    ("bloom", {"capacity": 2**50, "fpr": 0.1}, MemoryError, "bytes"),
    ("bloom from", {"bits": 2**58}, MemoryError, "bytes"),
    *((name, {x: 1}, TypeError, x) for name in ("swamp", "buffer") for x in ("slack", "capacity", "lateness")),
    *((f"{name}{end}", {"window": "1h"}, ValueError, "AgePartitioned")
      for name in ("generalized", "stable", "counting") for end in ("", " from")),
    ("generalized from", {"bits": 2**58}, MemoryError, "bytes"),
    *((name, {"slice_cells": 2**52}, MemoryError, "bytes") for name in ("stable from", "counting from")),
    ("counting", {"slack": 5}, TypeError, "slack"),
    *((name, {"window": x}, TypeError, "window must be a span")
      for name in ("time-limited", "time-limited from") for x in (1000, 1.5, None)),
    *((name, {"window": "10min"}, ValueError, "^.*this filter has room.* take AgePartitionedBloomFilter")
      for name in ("swamp", "buffer")),
    ("time-limited", {"window": "0s"}, ValueError, "window"),
    ("time-limited", {"capacity": "many"}, TypeError, "capacity"),
    *(("time-limited", {"capacity": x}, ValueError, "capacity") for x in (0, -1, 2**62 + 1, 2**64)),
    *(("time-limited", {"slack": x}, ValueError, "slack") for x in ("0s", "1ns", "x")),
    *(("time-limited", {x: 5}, TypeError, x) for x in ("slack", "lateness", "nbytes")),
    ("time-limited", {"lateness": "60000d"}, ValueError, "lateness"),
    ("time-limited", {"capacity": 2**50}, MemoryError, "bytes"),
    ("time-limited from", {"slice_bits": 2**52}, MemoryError, "bytes"),
    *(("timing", {"window": x}, TypeError, "window") for x in ([5], 1j)),
    *(("timing", {"slack": x}, ValueError, "slack") for x in (-1, 2**64)),
    ("timing", {"capacity": 5}, ValueError, "capacity"),
    ("timing", {"window": 2**50}, MemoryError, "bytes"),
    ("timing", {"grow": "density"}, ValueError, "grow is for windows of time"),
    ("timing of time", {"slack": "1ns"}, ValueError, "slack"),
    ("timing of time", {"slack": 100}, TypeError, "slack"),
    ("timing of time", {"capacity": None}, TypeError, "capacity"),
    *(("timing of time", {"lateness": x}, ValueError, "lateness") for x in ("x", "-1s", "60000d")),
    ("timing of time", {"grow": "size"}, ValueError, "grow must be 'cardinality' or 'density', got \"size\""),
    ("timing of time", {"grow": True}, TypeError, "grow"),
    ("timing of time", {"grow": "density", "fpr": None, "nbytes": 1000}, TypeError, "grow goes with fpr"),
    ("timing from", {"slice_timers": 2**53}, MemoryError, "bytes"),
    ("timing from", {"part_keys": 5}, ValueError, "grow is for windows of time"),
    *(("timing of time from", {x: 9.5}, TypeError, x) for x in ("part_keys", "part_timers")),
    ("timing of time from", {"part_keys": 9, "part_timers": 9}, ValueError, "part_keys or part_timers"),
    ("aged", {"window": 100, "distinct": 101}, ValueError, "distinct must lie in 1..=100"),
    ("aged", {"fpr": None}, TypeError, "fpr or nbytes"),
    ("aged of time", {"distinct": 5}, ValueError, "distinct is for windows of insertions"),
    ("aged of time", {"grow": True}, TypeError, "grow"),
    ("aged from", {"chain": 3}, ValueError, "chain must be 0, 1 or 2"),
    ("exact", {"lateness": "1s"}, ValueError, "lateness"),
    ("exact", {"missing": "none"}, ValueError, "missing must be 'same' or 'distinct', got 'none'"),
    ("exact", {"seed": "dice"}, TypeError, "seed must be"),
    ("exact of time", {"lateness": -1}, TypeError, "lateness"),
    ("exact of time", {"max_ahead": 5}, TypeError, "max_ahead"),
    *((name, {"max_ahead": "1s"}, ValueError, "^max_ahead is for windows of time, got '1s' for one of insertions")
      for name in ("exact", "aged from", "chosen")),
    *(("exact by preference", {name: x}, kind, f"{name} does not apply to an exact window")
      for name, x, kind in (("fpr", 0.1, TypeError), ("nbytes", 5000, TypeError), ("capacity", 5, TypeError),
                            ("slack", "0s", ValueError), ("distinct", 5, ValueError))),
    ("chosen", {"fpr": None}, TypeError, "^fpr or nbytes must be given: "),
    ("chosen", {"nbytes": 5000}, TypeError, "not both"),
    ("chosen", {"prefer": "small"}, ValueError, "prefer must be 'speed', 'memory' or 'exact', got 'small'"),
    ("chosen", {"capacity": 5}, ValueError, "capacity and lateness are for windows of time"),
    ("chosen", {"lateness": "5s"}, ValueError, "capacity and lateness are for windows of time"),
    ("chosen", {"slack": "1s"}, TypeError, "slack must be a whole number"),
    ("chosen", {"fpr": 2}, ValueError, "fpr must lie between 0 and 1"),
    ("chosen", {"fpr": 1e-30}, ValueError, "fpr must be above"),
    ("chosen", {"window": 0}, ValueError, "window must be at least 1"),
    ("chosen", {"window": "soon"}, ValueError, "window must be a span of time"),
    ("chosen", {"seed": "red"}, TypeError, "seed must be"),
    ("chosen of time", {"distinct": 5}, ValueError, "distinct is for windows of insertions"),
    ("chosen of time", {"max_ahead": 5}, TypeError, "max_ahead must be a span of time"),
    ("chosen of time", {"capacity": None, "fpr": None, "nbytes": 5000}, ValueError,
     "a window of time without capacity needs fpr, and no nbytes"),
]  # fmt: skip


def raised(make, given):
    """Return the type of the error and its text with all notes."""
    try:
        make(**given)
    except Exception as error:
        return type(error), " ".join([str(error), *getattr(error, "__notes__", [])])
    return None, ""


@pytest.mark.parametrize("name", MAKERS | CALLS)
def test_the_error_names_the_parameter(name):
    make, good = (MAKERS | CALLS)[name]
    wrong = []
    for change, kind, words in [row[1:] for row in [*grid(), *OWN] if row[0] == name]:
        given = good | change
        if "nbytes" in change and "window" not in good and "capacity" in good:
            given = {"capacity": 1000, "nbytes": change["nbytes"]} | ({"fpr": 0.01} if "fpr" not in change else {})
        elif "capacity" in change and change["capacity"] is None and "nbytes" in change:
            given.pop("capacity")
        found, text = raised(make, given)
        if found is not kind or not (re.search(words, text) if words.startswith("^") else words in text):
            wrong.append((change, found, text))
    assert not wrong


@pytest.mark.parametrize("thousand", [1e3, np.float64(1000), np.int16(1000)])
def test_whole_floats_are_whole_numbers(thousand):
    assert A(thousand, 0.01).window == 1000
    assert A("1 hour", 0.01, capacity=thousand).capacity == 1000
    assert A(1000, nbytes=4 * thousand).nbytes <= 4000
    assert A(1000, 0.01, slack=thousand / 2).slack <= 500
    assert A(thousand, 0.01).query([1], threads=thousand / 500).tolist() == [False]
    assert lately.plan(thousand, 0.01).best.name == lately.plan(1000, 0.01).best.name
    for options in ({}, {"fpr": 0.01}):
        assert lately.duplicated([1, 1], thousand, **options).tolist() == [False, True]
        assert list(lately.unique([1, 1], thousand, **options)) == [1]
