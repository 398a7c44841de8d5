"""Making a filter: attributes state what was requested, and classes of the user's own stay what they are."""

import copy
import itertools
import os
import pickle
import subprocess
import sys
from datetime import timedelta

import numpy as np
import pytest

import lately
from support.planned import planned
from support.plans import FAMILIES, TRANSPOSED


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
