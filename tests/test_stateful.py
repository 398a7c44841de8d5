"""Any calls of the public interface in any order, against an exact window: Hypothesis looks for the shortest that fail.

A filter takes batches in any container, is saved, opened, pickled, copied and united. Its twin takes the same keys one
by one. Both must answer alike, end with the same bytes, and miss no key of the window.
"""

import copy
import pickle
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import lately
from lately._families import EVERY

BEGIN = 1_700_000_000

# Equal keys in other clothes. Of the texts some are equal to none of the numbers, and none is.
CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "int64": lambda keys: np.array(keys, "i8"),
    "float64": lambda keys: np.array(keys, "f8"),
    "uint16": lambda keys: np.array(keys, "u2"),
    "objects": lambda keys: np.array([*keys, None], object)[:-1],
    "pandas": lambda keys: pd.Series(keys, dtype="int32"),
    "polars": lambda keys: pl.Series(keys, dtype=pl.Int64),
    "arrow": lambda keys: pa.chunked_array([keys[:1], keys[1:]], type=pa.int64()),
    "strided": lambda keys: np.repeat(np.array(keys, "i8"), 3)[::3],
}
ALL = np.arange(41)
KEYS = st.lists(st.integers(0, 40), max_size=30)
CONTAINER = st.sampled_from(sorted(CONTAINERS))
THREADS = st.sampled_from([1, 1, 2, 3])
STEP = st.sampled_from([0, 0, 0.01, 0.3, 1, 2.5, 9, 10, 10.001, 11, 40, 1e4, -0.2, -1, -1.5])


KINDS = [
    *[(name, "insertions") for name in sorted(EVERY) if EVERY[name].windows in ("any", "insertions")],
    *[(name, "time") for name in sorted(EVERY) if EVERY[name].windows != "insertions"],
    ("bloom", "none"),
]


def make(name, kind, size, fpr):
    """Return a filter for a window of insertions, or of 10 s with a lateness of a second."""
    if kind == "none":
        return lately.BloomFilter(size, fpr)
    if kind == "insertions":
        return EVERY[name].make(size, fpr=fpr)
    given = {} if EVERY[name].windows == "unknown rate" else {"capacity": size}
    return EVERY[name].make("10s", fpr=fpr, lateness="1s", max_ahead=None, **given)


class Exact:
    """Where each key was last: the number of its insertion, or its time."""

    def __init__(self, kind, size, promise):
        self.kind, self.promise = kind, promise
        self.reach = {"insertions": size - 1, "time": 10.0, "none": float("inf")}[kind]
        self.last, self.inserted, self.latest = {}, 0, None

    def promised(self, key, at):
        """Whether a filter must report the key, queried at this time."""
        if not self.promise or key not in self.last:
            return False
        now = self.inserted if self.kind != "time" else max(at, self.latest)
        return now - self.last[key] <= self.reach

    def take(self, key, at, taken, counted):
        """Note a key that was inserted or not, and that the window goes on with or not."""
        self.inserted += counted
        if self.kind == "time":
            self.latest = at if self.latest is None else max(at, self.latest)
        if taken:
            came = at if self.kind == "time" else self.inserted
            self.last[key] = max(came, self.last.get(key, came))


class Machine(RuleBasedStateMachine):
    steps = 0

    @initialize(kind=st.sampled_from(KINDS), size=st.sampled_from([1, 2, 7, 25, 200]), fpr=st.sampled_from([0.3, 0.01]))
    def begin(self, kind, size, fpr):
        name, self.kind = kind
        promise = name == "bloom" or EVERY[name].promise
        self.pairs = []
        for _ in range(2):
            self.pairs.append([make(name, self.kind, size, fpr), Exact(self.kind, size, promise)])
        self.f, self.exact = self.pairs[0]
        self.twin, self.other = self.f.copy(), self.pairs[1][0].copy()
        self.now = BEGIN

    def times(self, step, keys, spread):
        """The time of a batch, or of each of its keys; of a filter without times none."""
        if self.kind != "time":
            return {}, [None] * len(keys)
        begin = max(self.now + step, 0)
        each = [begin + 0.05 * spread * i for i in range(len(keys))]
        return {"at": np.array(each) if spread else begin}, each

    def refused(self, each):
        """Whether one of the times lies before the latest by more than the lateness; it moves on if not."""
        latest = self.now if self.exact.latest is None else self.exact.latest
        for at in each:
            if at is not None and self.exact.latest is not None and at < latest - 1:
                return True
            latest = latest if at is None else max(latest, at)
        self.now = latest
        return False

    def teardown(self):
        if hasattr(self, "f"):
            assert self.f.to_bytes() == self.twin.to_bytes()

    # --------------------------------------------------------------------------------------------- keys in, answers out

    @rule(keys=KEYS, container=CONTAINER, step=STEP, spread=st.integers(0, 3), threads=THREADS)
    def insert(self, keys, container, step, spread, threads):
        self.count()
        at, each = self.times(step, keys, spread)
        before = self.f.to_bytes()
        if self.refused(each):
            with pytest.raises(ValueError, match="lateness"):
                self.f.insert(CONTAINERS[container](keys), **at, threads=threads)
            assert self.f.to_bytes() == before
            return
        self.f.insert(CONTAINERS[container](keys), **at, threads=threads)
        for key, moment in zip(keys, each, strict=True):
            self.twin.add(key, at=moment)
            self.exact.take(key, moment, True, True)

    @rule(
        keys=KEYS,
        container=CONTAINER,
        step=STEP,
        spread=st.integers(0, 3),
        refresh=st.sampled_from([True, False, "delivered"]),
        threads=THREADS,
    )
    def duplicated(self, keys, container, step, spread, refresh, threads):
        self.count()
        at, each = self.times(step, keys, spread)
        before = self.f.to_bytes()
        if self.refused(each):
            with pytest.raises(ValueError, match="lateness"):
                self.f.duplicated(CONTAINERS[container](keys), **at, refresh=refresh, threads=threads)
            assert self.f.to_bytes() == before
            return
        answers = self.f.duplicated(CONTAINERS[container](keys), **at, refresh=refresh, threads=threads)
        assert answers.shape == (len(keys),)
        for key, moment, answer in zip(keys, each, answers, strict=True):
            moments = {} if moment is None else {"at": moment}
            assert self.twin.duplicated([key], **moments, refresh=refresh)[0] == answer
            assert answer or not self.exact.promised(key, moment)
            taken = refresh is True or not answer
            self.exact.take(key, moment, taken, taken or refresh != "delivered")

    @rule(keys=KEYS, container=CONTAINER, step=STEP, threads=THREADS)
    def query(self, keys, container, step, threads):
        self.count()
        at, each = self.times(abs(step), keys, 0)
        answers = self.f.query(CONTAINERS[container](keys), **at, threads=threads)
        for key, moment, answer in zip(keys, each, answers, strict=True):
            assert self.twin.query([key], **at)[0] == answer
            assert answer or not self.exact.promised(key, moment)

    @invariant()
    def misses_nothing(self):
        if not hasattr(self, "f"):
            return
        at = {} if self.kind != "time" else {"at": self.now}
        missed = [key for key in ALL[~self.f.query(ALL, **at)].tolist() if self.exact.promised(key, self.now)]
        assert not missed

    @rule(key=st.integers(0, 40))
    def contains(self, key):
        self.count()
        assert key in self.f or not self.exact.promised(key, self.exact.latest)

    @rule(keys=KEYS, prior=st.sampled_from([0.0, 1e-6, 0.02, 1.0]))
    def ask_for_ages(self, keys, prior):
        self.count()
        finite = self.kind == "insertions"
        for answers in (
            self.f.posterior(keys, prior),
            self.f.age_probability(keys, prior, [0, 1, 5, 20], finite=finite).ravel(),
        ):
            assert ((answers >= 0) & (answers <= 1)).all()
        decided = self.f.decide(keys, prior, 1, 10)
        assert decided.shape == (len(keys),)
        for kind in ("most_likely", "expected"):
            assert (self.f.age(keys, prior, kind, finite=finite) >= 0).all()

    # ------------------------------------------------------------------------------------------------------- it goes on

    @rule(how=st.sampled_from(["bytes", "pickle", "copy", "deepcopy", "file", "mapped"]))
    def again(self, how):
        self.count()
        self.f = {
            "bytes": lambda: lately.from_bytes(self.f.to_bytes()),
            "pickle": lambda: pickle.loads(pickle.dumps(self.f, protocol=5)),
            "copy": self.f.copy,
            "deepcopy": lambda: copy.deepcopy(self.f),
            "file": lambda: self.by_file(mmap=False),
            "mapped": lambda: self.by_file(mmap=True),
        }[how]()
        assert self.f.to_bytes() == self.twin.to_bytes()

    def by_file(self, *, mmap):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "f.lately"
            self.f.save(path)
            return lately.open(path, mmap=mmap)

    @rule()
    def swap(self):
        """Go on with the other filter."""
        self.count()
        self.pairs = [[self.other, self.pairs[1][1]], [self.f, self.exact]]
        assert self.f.to_bytes() == self.twin.to_bytes()
        self.f, self.exact = self.pairs[0]
        self.twin, self.other = self.f.copy(), self.pairs[1][0]
        self.now = max(self.now, self.exact.latest or 0)

    @rule()
    def unite(self):
        self.count()
        theirs = self.pairs[1][1]
        try:
            united = self.f.union(self.other)
        except ValueError:
            return
        self.f, self.twin = united, self.twin.union(self.other)
        inserted = min(self.exact.inserted, theirs.inserted)
        if self.kind == "insertions":
            for exact in (self.exact, theirs):
                moved = inserted - exact.inserted
                exact.last = {key: last + moved for key, last in exact.last.items()}
                exact.inserted = inserted
            # The other filter itself has not moved.
            self.other = self.f.copy()
            self.pairs[1] = [self.other, theirs]
        for key, last in theirs.last.items():
            self.exact.last[key] = max(last, self.exact.last.get(key, last))
        if self.kind == "insertions":
            theirs.last = dict(self.exact.last)
        if self.kind == "time" and theirs.latest is not None:
            self.exact.latest = max(theirs.latest, self.exact.latest or 0)
            self.now = max(self.now, self.exact.latest)

    @rule()
    def look(self):
        self.count()
        f = self.f
        assert repr(f)
        assert f.nbytes > 0
        assert 0 <= f.false_positive_rate() <= 1
        assert ((f.fill >= 0) & (f.fill <= 1)).all()
        assert f.slack >= 0
        assert f.inserted >= 0
        for own in ("distinct", "count"):
            if hasattr(f, own):
                with suppress(TypeError):
                    assert np.all(np.asarray(getattr(f, own)()) >= 0)

    # -------------------------------------------------------------------------------------------- errors before effects

    @rule(
        call=st.sampled_from(["insert", "query", "duplicated"]),
        bad=st.sampled_from([[1, object()], [1, {}], "abc", 5, np.zeros((2, 2, 2)), [b"", 1j]]),
    )
    def bad_keys(self, call, bad):
        self.count()
        before = self.f.to_bytes()
        with pytest.raises((TypeError, ValueError)):
            getattr(self.f, call)(bad)
        assert self.f.to_bytes() == before

    @precondition(lambda self: self.kind != "time")
    @rule(call=st.sampled_from(["insert", "query", "duplicated"]))
    def times_without_a_clock(self, call):
        self.count()
        with pytest.raises(ValueError, match="at is for windows of time"):
            getattr(self.f, call)([1], at=5)

    @precondition(lambda self: self.kind == "time")
    @rule(at=st.sampled_from([[1.0], float("nan"), "yesterday", [1, 2, 3], None]))
    def bad_times(self, at):
        self.count()
        before = self.f.to_bytes()
        with pytest.raises((TypeError, ValueError)):
            self.f.insert([1, 2], at=[at, at])
        assert self.f.to_bytes() == before

    def count(self):
        type(self).steps += 1


def search(examples, steps):
    """Run state machines of a limited number of steps."""
    health = [HealthCheck.too_slow, HealthCheck.filter_too_much]
    chosen = settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=health, derandomize=True
    )
    run_state_machine_as_test(Machine, settings=chosen)


def test_any_calls_keep_the_promise():
    search(100, 20)


@pytest.mark.campaign
def test_a_campaign_of_calls(capsys):
    Machine.steps = 0
    while Machine.steps < 1_000_000:
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=2000, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
            ),
        )
    with capsys.disabled():
        print(f"\n{Machine.steps:,} steps")
