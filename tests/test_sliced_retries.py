"""A batch that is sent to a sliced filter again, after its producer died, counts once."""

import time
from types import SimpleNamespace

import numpy as np
import pytest

from lately.distributed import SlicedFilter
from lately.distributed._slices import cells as _cells
from support.sliced import Halting, cells_of_keys, every_kind, state, timers


@every_kind
def test_the_latest_batch_can_be_retried_without_numbers_from_the_caller(shape):
    with SlicedFilter(**shape, filter=timers(), sites=Halting) as sliced:
        sliced.sites.halt = True
        with pytest.raises(ConnectionError) as dies:
            sliced.duplicated(np.arange(100), at=0)
        assert "number=1" in dies.value.__notes__[0]
        assert sliced.number == 1
        assert not sliced.duplicated(np.arange(100), at=0, number=1).any()
        assert sliced.duplicated(np.arange(100), at=0).all()
        sliced.insert(np.arange(100, 120), at=0)
        sliced.insert(np.arange(100, 120), at=0, number=3)
        with pytest.raises(ValueError, match="number must be at least 3"):
            sliced.duplicated(np.arange(100), at=0, number=2)


@cells_of_keys
def test_the_first_answers_stand_whatever_others_have_brought_since(shape):
    """Answers are as of the time when the batch came first; none of its keys is too late at the retry."""
    with SlicedFilter(**shape, filter=timers(lateness="90s")) as sliced:
        other = sliced.handle()
        sliced.insert(np.arange(100), at=0)
        answers = sliced.duplicated(np.arange(200), at=600)
        assert answers.tolist() == [True] * 100 + [False] * 100
        other.insert(np.arange(1000, 1500), at=5000)
        before = state(sliced)
        assert (sliced.duplicated(np.arange(200), at=600, number=2) == answers).all()
        assert state(sliced) == before


@cells_of_keys
def test_without_times_the_first_answers_stand_too(shape, monkeypatch):
    with SlicedFilter(**shape, filter=timers()) as sliced:
        now = [time.time_ns()]
        monkeypatch.setattr(_cells, "time", SimpleNamespace(time_ns=lambda: now[0]))
        sliced.insert(np.arange(100))
        now[0] += 600 * 10**9
        answers = sliced.duplicated(np.arange(200))
        now[0] += 600 * 10**9
        assert (sliced.duplicated(np.arange(200), number=2) == answers).all()
        assert answers.tolist() == [True] * 100 + [False] * 100
        # The clock of this producer is behind those of others: its keys are set as late as theirs.
        now[0] -= 3600 * 10**9
        assert sliced.duplicated(np.arange(100)).all()


@cells_of_keys
def test_a_batch_that_is_retried_by_another_method_is_rejected(shape):
    with SlicedFilter(**shape, filter=timers()) as sliced:
        for first, then in (({}, {"refresh": False}), ({"refresh": False}, {}), ({}, {"offsets": np.arange(9)})):
            sliced.duplicated(np.arange(9), at=0, **first)
            with pytest.raises(ValueError, match="comes again in another way: with other `refresh` or `offsets`"):
                sliced.duplicated(np.arange(9), at=0, number=sliced.number, **then)
        sliced.duplicated(np.arange(9), at=0)
        with pytest.raises(ValueError, match="comes again with other keys"):
            sliced.duplicated(np.arange(20, 29), at=0, number=sliced.number)
        # No other producer has to wait for a rejected batch.
        assert sliced.handle().duplicated(np.arange(9), at=0).all()


def test_a_named_producer_numbers_its_batches():
    with SlicedFilter("vertical", 2, timers(), producer="p") as sliced:
        with pytest.raises(TypeError, match="producer 'p' has a name, so each batch needs its number"):
            sliced.insert(["a"], at=0)
        with pytest.raises(TypeError, match="whole number"):
            sliced.insert(["a"], at=0, number="1")
        with pytest.raises(ValueError, match="at least 1"):
            sliced.insert(["a"], at=0, number=0)
        sliced.insert(["a"], at=0, number=5)
        assert sliced.producer == "p"
