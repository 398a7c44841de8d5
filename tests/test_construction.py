"""Making a filter: impossible requests are rejected by name, and attributes state what was requested."""

import copy
import itertools
import math
import os
import pickle
import subprocess
import sys
from datetime import timedelta

import numpy as np
import pytest

import lately
from support.planned import planned
from support.plans import FAMILIES, SLICED, TRANSPOSED, plan, plan_epochs


def refuses(make, given_, kind, name):
    """Check that the error is of this very kind, and names the parameter, or one of several with a bar between."""
    with pytest.raises(kind) as caught:
        make(**given_)
    message = " ".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert caught.type is kind
    assert any(word in message for word in name.split("|")), message


COUNT, TIME = {"window": 1000, "fpr": 0.01}, {"window": "1min", "fpr": 0.01, "capacity": 100}


@pytest.mark.parametrize(
    ("base", "change", "kind", "name"),
    [
        *((COUNT, {"window": w}, ValueError, "window") for w in (0, -1, 2**62 + 1, 2**64, 2**200, "x", "", "-1s")),
        *(
            (COUNT, {"window": w}, TypeError, "window")
            for w in (1000.5, math.nan, math.inf, True, None, [5], b"10", 1j)
        ),
        (COUNT, {"window": np.timedelta64("NaT", "s")}, ValueError, "window"),
        (COUNT, {"window": timedelta(seconds=-1)}, ValueError, "window"),
        *((COUNT, {"fpr": p}, ValueError, "fpr") for p in (0, 1, -0.1, 1.5, math.nan, math.inf, -math.inf, True)),
        *((COUNT, {"fpr": p}, TypeError, "fpr") for p in ("0.1", None, [0.1])),
        (COUNT, {"nbytes": 10_000}, TypeError, "nbytes"),
        *(({"window": 1000}, {"nbytes": b}, ValueError, "nbytes") for b in (-1, 0, 1, 23, 2**60 + 1, 2**64, 2**100)),
        *(({"window": 1000}, {"nbytes": b}, TypeError, "nbytes") for b in (10_000.5, "1 MiB", None)),
        *((COUNT, {"slack": s}, ValueError, "slack") for s in (-1, 0, 7, 2**64)),
        *((COUNT, {"slack": s}, TypeError, "slack") for s in (100.5, "1min", timedelta(1))),
        *((TIME, {"slack": s}, ValueError, "slack") for s in ("0s", "1ns", "x", np.timedelta64("NaT", "s"))),
        *((TIME, {"slack": s}, TypeError, "slack") for s in (100, 1.5)),
        *(
            (COUNT, SLICED | {"block_bits": b}, ValueError, "block_bits")
            for b in (0, -1, 1, 63, 128, 513, 2**32, 2**100)
        ),
        *((COUNT, SLICED | {"block_bits": b}, TypeError, "block_bits") for b in ("512", 512.5)),
        (COUNT, SLICED | {"block_bits": 64}, ValueError, "made by from_parameters"),
        *((COUNT, {"layout": x}, ValueError, "layout") for x in ("lines", "", "Line")),
        *((COUNT, {"layout": x}, TypeError, "layout") for x in (1, b"line")),
        (COUNT, {"layout": "line", "block_bits": 512}, ValueError, "block_bits"),
        ({"window": 1000}, {"nbytes": 4095, "layout": "line"}, ValueError, "nbytes"),
        (COUNT, {"layout": "line", "slack": 1}, ValueError, "slack"),
        (COUNT, {"layout": "line", "window": 2**45}, ValueError, "fpr"),
        (COUNT, TRANSPOSED | {"block_bits": 512}, ValueError, "block_bits"),
        ({"window": 1000}, TRANSPOSED | {"nbytes": 63}, ValueError, "nbytes|layout"),
        (COUNT, TRANSPOSED | {"slack": 1}, ValueError, "slack|layout"),
        *((COUNT, {"seed": s}, ValueError, "seed") for s in (-1, 2**64, 2**100)),
        *((COUNT, {"seed": s}, TypeError, "seed") for s in ("0", 0.0, None)),
        (COUNT, {"capacity": 5}, ValueError, "capacity"),
        (COUNT, {"lateness": "5s"}, ValueError, "lateness"),
        *((TIME, {"capacity": c}, ValueError, "capacity") for c in (0, -1, 2**62 + 1, 2**64, 2**100)),
        *((TIME, {"capacity": c}, TypeError, "capacity") for c in (None, 1000.5, "many")),
        *((TIME, {"lateness": x}, ValueError, "lateness") for x in ("x", "-1s", timedelta(-1), "60000d")),
        *((TIME, {"lateness": x}, TypeError, "lateness") for x in (5, 0.5, True)),
        *((TIME, {"window": w}, ValueError, "window") for w in ("0s", "60000d", "200000d", "0.1ns")),
        (COUNT, {"window": 2**50}, MemoryError, "bytes"),
        (COUNT, {"window": 2**62}, ValueError, "fpr"),
        (TIME, {"capacity": 2**50}, MemoryError, "bytes"),
    ],
)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_parameter_that_cannot_be_is_named(family, base, change, kind, name):
    refuses(family, base | change, kind, name)


GIVEN = {"window": 100, "k": 3, "l": 5, "slice_bits": 500}
GIVEN_EPOCHS = {"window": 100, "r": 5, "k": 3, "segment_bits": 500}


@pytest.mark.parametrize(
    ("change", "kind", "name"),
    [
        *(({name: x}, ValueError, name) for name in ("k", "l", "slice_bits") for x in (0, -1, 2**64, 2**100)),
        *(({name: x}, TypeError, name) for name in ("k", "l", "slice_bits") for x in (1.5, "1")),
        ({"k": 100, "l": 29}, ValueError, "k + l"),
        ({"slice_bits": None}, ValueError, "slice_bits, blocks and pages"),
        ({"blocks": 5}, ValueError, "slice_bits, blocks and pages"),
        ({"slice_bits": None, "blocks": 0}, ValueError, "blocks"),
        ({"slice_bits": None, "blocks": 5, "block_bits": 100}, ValueError, "block_bits"),
        ({"slice_bits": None, "blocks": 5, "parts": 3}, ValueError, "parts"),
        ({"slice_bits": None, "blocks": 5, "parts": 16}, ValueError, "parts"),
        ({"slice_bits": None, "pages": 0}, ValueError, "pages"),
        ({"slice_bits": None, "pages": 2**27}, ValueError, "pages must lie in 1..=134217727"),
        ({"slice_bits": None, "pages": 5, "l": 4}, ValueError, "k + l must be 8, 16 or 32"),
        ({"slice_bits": None, "pages": 5, "k": 5, "l": 11}, ValueError, "k must lie in 1..=4"),
        ({"slice_bits": None, "pages": 5, "lines": 5}, ValueError, "lines must lie in 1..=4"),
        ({"slice_bits": None, "pages": 5, "lines": "1"}, TypeError, "lines"),
        ({"pages": 5}, ValueError, "slice_bits, blocks and pages"),
        ({"slice_bits": 2**63}, ValueError, "slice_bits|2**60 bytes"),
        ({"slice_bits": 2**50}, MemoryError, "bytes"),
        ({"window": 0}, ValueError, "window"),
        ({"window": 5.5}, TypeError, "window"),
        ({"seed": -1}, ValueError, "seed"),
    ],
)
def test_a_parameter_of_the_paper_that_cannot_be_is_named(change, kind, name):
    refuses(plan, GIVEN | change, kind, name)


@pytest.mark.parametrize(
    ("change", "kind", "name"),
    [
        *(({name: x}, ValueError, name) for name in ("r", "k", "segment_bits") for x in (0, -1, 2**64, 2**100)),
        *(({name: x}, TypeError, name) for name in ("r", "k", "segment_bits") for x in (1.5, "1")),
        ({"r": 128}, ValueError, "r must lie in 1..=127"),
        ({"k": 65}, ValueError, "k must lie in 1..=64"),
        ({"segment_bits": 2}, ValueError, "segment_bits must be at least k=3"),
        ({"k": None}, ValueError, "k and segment_bits, blocks, pages, and k and positions"),
        ({"segment_bits": None}, ValueError, "k and segment_bits, blocks, pages, and k and positions"),
        ({"blocks": 5}, ValueError, "k and segment_bits, blocks, pages, and k and positions"),
        ({"k": None, "segment_bits": None, "blocks": 0}, ValueError, "blocks"),
        ({"k": None, "segment_bits": None, "blocks": 5, "block_bits": 100}, ValueError, "block_bits"),
        ({"k": None, "segment_bits": None, "blocks": 5, "parts": 3}, ValueError, "parts"),
        ({"k": None, "segment_bits": None, "pages": 5}, ValueError, "r must be 7, 15 or 31"),
        ({"k": None, "segment_bits": None, "pages": 0, "r": 7}, ValueError, "pages"),
        ({"k": None, "segment_bits": None, "pages": 5, "r": 7, "lines": 0}, ValueError, "lines"),
        ({"pages": 5}, ValueError, "k and segment_bits, blocks, pages, and k and positions"),
        ({"positions": 500}, ValueError, "k and segment_bits, blocks, pages, and k and positions"),
        ({"segment_bits": None, "positions": 500}, ValueError, "r must be 7, 15, 31 or 63"),
        ({"segment_bits": None, "positions": 2, "r": 7}, ValueError, "positions must be at least k=3, got 2"),
        ({"segment_bits": None, "positions": 500, "r": 7, "k": None}, ValueError, "k and positions"),
        ({"segment_bits": None, "positions": -1, "r": 7}, ValueError, "positions"),
        ({"segment_bits": None, "positions": "500", "r": 7}, TypeError, "positions"),
        ({"segment_bits": None, "positions": 2**50, "r": 7}, MemoryError, "bytes"),
        ({"segment_bits": 2**63}, ValueError, "2**60 bytes"),
        ({"segment_bits": 2**50}, MemoryError, "bytes"),
        ({"window": 0}, ValueError, "window"),
        ({"seed": -1}, ValueError, "seed"),
    ],
)
def test_a_parameter_of_paper_2_that_cannot_be_is_named(change, kind, name):
    refuses(plan_epochs, GIVEN_EPOCHS | change, kind, name)


def test_the_base_class_is_not_constructed():
    with pytest.raises(TypeError):
        lately.Filter()


def test_plain_guarded_epochs_are_made_by_from_parameters_alone():
    with pytest.raises(ValueError, match="made by from_parameters"):
        lately.GuardedEpochBloomFilter(1000, 0.01, layout="sliced")
    with pytest.raises(ValueError, match="block_bits does not apply"):
        lately.GuardedEpochBloomFilter(1000, 0.01, block_bits=512)
    assert "positions" in lately.GuardedEpochBloomFilter(1000, 0.01).parameters


class Named(lately.AgePartitionedBloomFilter):
    """A subclass as a user may write it."""


@pytest.mark.parametrize("protocol", range(6))
def test_a_class_of_the_user_stays_what_it_is(protocol):
    f = Named(1000, 0.01)
    f.name = "clicks"
    f.add("a")
    again = pickle.loads(pickle.dumps(f, protocol=protocol))
    for one in (again, f.copy(), copy.deepcopy(f)):
        assert type(one) is Named
        assert (one.name, one.to_bytes()) == ("clicks", f.to_bytes())
    assert type(f.union(again)) is type(Named.from_parameters(100, k=2, l=2, slice_bits=64)) is Named
    assert repr(again).startswith("<Named window=1000")


BUILT = [
    {"window": 1, "fpr": 0.1},
    {"window": 1000, "fpr": 0.001},
    {"window": 1000, "fpr": 0.001, "slack": 100},
    {"window": 5000, "fpr": 1e-6, "block_bits": 64, "seed": 5},
    {"window": np.int32(5000), "fpr": np.float32(0.01), "block_bits": np.int64(512), "seed": 2**64 - 1},
    {"window": 5000, "nbytes": 10_001},
    {"window": 5000, "nbytes": 60_000, "block_bits": 512, "slack": 5000},
    {"window": 20_000, "fpr": 0.01, "layout": "line", "seed": 3},
    {"window": 50_000, "nbytes": 131_071, "layout": "line", "slack": 9000},
    {"window": "10min", "fpr": 0.01, "capacity": 30_000, "lateness": "90s", "layout": "line"},
    {"window": "10min", "fpr": 0.01, "capacity": 3000},
    {"window": timedelta(minutes=10), "fpr": 0.01, "capacity": 3000, "lateness": "90s", "slack": "15min"},
    {"window": np.timedelta64(10, "m"), "nbytes": 5000, "capacity": 3000, "lateness": "1h", "block_bits": 64},
]


BUILT_TRANSPOSED = [
    TRANSPOSED | {"window": 1000, "fpr": 0.001, "slack": 100},
    TRANSPOSED | {"window": 5000, "nbytes": 10_001, "seed": 2**64 - 1},
    TRANSPOSED | {"window": "10min", "fpr": 0.01, "capacity": 3000, "lateness": "90s", "slack": "15min"},
]


@pytest.mark.parametrize(
    ("family", "given_"),
    [*itertools.product(FAMILIES, BUILT), *itertools.product([lately.GuardedEpochBloomFilter], BUILT_TRANSPOSED)],
    ids=lambda x: " ".join(f"{k}={v}" for k, v in x.items()) if isinstance(x, dict) else x.__name__,
)
def test_attributes_agree_with_parameters_and_cells(family, given_):
    f = planned(family, **given_)
    p = f.parameters
    written, full = (p["k"], p["l"]) if "l" in p else (1, p["r"])
    timed = f.lateness is not None
    generation = f.slack + f.window
    kept = f.window + f.lateness if timed else f.window - 1
    assert generation / (written + full) >= kept / full * (1 - 1e-12)
    assert f.window == (600 if timed else given_["window"])
    assert f.capacity == given_.get("capacity", f.window)
    assert f.lateness == ({None: 0, "90s": 90, "1h": 3600}[given_.get("lateness")] if timed else None)
    assert f.seed == given_.get("seed", 0)
    assert f.fpr <= given_.get("fpr", 1)
    if timed:
        allowed = {None: f.lateness + (600 + f.lateness) / 2, "15min": 900}[given_.get("slack")]
    else:
        allowed = given_.get("slack", max(64, f.window / 2))
    assert f.slack <= allowed
    assert f.nbytes <= given_.get("nbytes", 2**60)
    assert f.bits_per_key == 8 * f.nbytes / f.capacity
    assert f.npws > 0
    assert set(f.cache_lines) == {"insert", "hit", "miss"}
    preamble, cells = f.__reduce_ex__(5)[1]
    assert f.nbytes == memoryview(cells).nbytes == len(f.to_bytes()) - len(preamble)
    assert f.fill.tolist() == [0.0] * (written + full)
    assert (f.inserted, f.false_positive_rate()) == (0, 0.0)
    assert repr(f).startswith(f"<{family.__name__} window={f.window}")
    assert f"nbytes={f.nbytes} inserted=0>" in repr(f)

    how = {k: v for k, v in given_.items() if k in ("window", "capacity", "lateness", "seed")}
    again = family.from_parameters(**how, **p)
    assert again.to_bytes() == f.to_bytes()
    assert (again.fpr, again.slack, repr(again)) == (f.fpr, f.slack, repr(f))

    at = {"at": 5.0} if timed else {}
    f.insert(np.arange(3), **at)
    assert f.inserted == 3
    assert f.fill[0] > 0
    assert (f.fill[written:] == 0).all() or f.window <= 3


def test_memory_that_cannot_be_had_is_a_memory_error_with_the_size():
    for window in (2**50, 2**52):  # beyond the 2**47 bytes that a process can address, however generous the system is
        with pytest.raises(MemoryError, match=r"cannot allocate [0-9]{16,17} bytes"):
            lately.AgePartitionedBloomFilter(window, 0.01)


def test_seeds_make_filters_differ_and_processes_do_not():
    code = "import lately; f = {}; f.insert(range(500)); print(f.to_bytes().hex())"
    form = "lately.AgePartitionedBloomFilter(1000, 0.01, seed={})"
    here = {}
    for seed in (0, 1, 2**63):
        f = lately.AgePartitionedBloomFilter(1000, 0.01, seed=seed)
        f.insert(range(500))
        here[seed] = f.to_bytes()
    assert len({data[192:] for data in here.values()}) == 3, "the cells differ, not the header alone"
    for hash_seed, seed in (("1", 0), ("2", 2**63)):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        there = subprocess.run(
            [sys.executable, "-c", code.format(form.format(seed))], capture_output=True, text=True, env=environment
        )
        assert bytes.fromhex(there.stdout) == here[seed], there.stderr
