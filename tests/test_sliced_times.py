"""Sliced filters at the worst moments: late keys, times that step back, and the ends of a generation."""

import numpy as np
import pytest

from lately.distributed import LocalSites, SlicedFilter
from support.sliced import cells_of_keys, every_kind, retained, state, timers


@every_kind
def test_no_key_of_the_window_is_missed_at_the_worst_phase(shape):
    """Keys come at the last and the first nanosecond of a generation, and again when the window is just over."""
    like = timers()
    window, generation = 600 * 10**9, 600 * 10**9 // 12
    assert retained(like) == 12
    with SlicedFilter(**shape, filter=like) as sliced:
        start = 10**18 // generation * generation
        for i in range(200):
            first = start + i * 30 * generation + i % 2 * (generation - 1)
            last = first + window
            assert not sliced.duplicated([i], at=np.datetime64(first, "ns"))[0]
            # What comes meanwhile opens generations, and sweeps.
            sliced.insert(-np.arange(1, 13), at=np.arange(first, last, window // 12).view("M8[ns]"))
            assert sliced.query([i], at=np.datetime64(last, "ns"))[0]
            assert sliced.duplicated([i], at=np.datetime64(last, "ns"))[0]
            # Counted from the second sighting, and queried while nothing else comes.
            assert sliced.query([i], at=np.datetime64(last + window, "ns"))[0]


@cells_of_keys
def test_late_cells_never_lower_younger_ones(shape):
    """Erratum OIE-8: set to its own generation, a late key would lower a younger timer, and be missed later."""
    with SlicedFilter(**shape, filter=timers(lateness="90s")) as sliced:
        sliced.insert(["a"], at=690)
        sliced.insert(["a"], at=600)
        assert sliced.query(["a"], at=1290).all()
        # A late key itself stays for the window from its own time on, and what is kept beyond.
        sliced.insert(["late"], at=[610])
        assert sliced.query(["late"], at=1210).all()
        assert not sliced.query(["late"], at=610 + 600 + 90 + 60).any()


@pytest.mark.parametrize("pipelined", [False, True])
@pytest.mark.parametrize("refresh", [False, True])
def test_a_vertical_filter_differs_from_the_whole_one_by_the_windows_of_late_keys_alone(refresh, pipelined):
    """The whole filter counts the window of a late key from the latest time; a vertical one from the key's own."""
    rng, like, differ, newest = np.random.default_rng(7), timers(lateness="90s"), 0, 0
    whole = like.copy()
    with (
        SlicedFilter("vertical", 2, like, pipelined=pipelined) as own,
        SlicedFilter("vertical", 2, like, pipelined=pipelined) as latest,
    ):
        for i in range(300):
            keys, late = rng.integers(40, size=5), 60 * i + rng.integers(60, size=5) - rng.choice([0, 30], 5)
            expected = whole.duplicated(keys, at=late, refresh=refresh)
            raised = np.maximum(np.maximum.accumulate(late), newest)
            assert (latest.duplicated(keys, at=raised, refresh=refresh) == expected).all()
            differ += (own.duplicated(keys, at=late, refresh=refresh) != expected).sum()
            newest = raised[-1]
        assert differ


@every_kind
def test_times_that_step_back_too_far_are_rejected_before_any_effect(shape):
    with SlicedFilter(**shape, filter=timers(lateness="90s")) as sliced:
        sliced.insert(np.arange(50), at=1000)
        before, messages = state(sliced), sliced.traffic.messages
        for call in (sliced.insert, sliced.duplicated):
            with pytest.raises(
                ValueError, match=r"at\[1\] lies 91 s before the latest time seen, but lateness is 90 s"
            ):
                call(["x", "y"], at=[1001, 910])
            with pytest.raises(ValueError, match=r"at lies 90.5 s before"):
                call(["x"], at=909.5)
        with pytest.raises(ValueError, match=r"at\[1\] lies 91 s before"):
            sliced.query(["x", "y"], at=[2000, 909])
        with pytest.raises(ValueError, match="3 times for 2 keys"):
            sliced.query(["x", "y"], at=[1, 2, 3])
        assert (state(sliced), sliced.traffic.messages) == (before, messages)
        # It still takes what is in time.
        assert sliced.duplicated([3, "x"], at=[910, 1000]).tolist() == [True, False]


@every_kind
@pytest.mark.parametrize("options", [{}, {"refresh": False}, {"offsets": True}], ids=["refresh", "once", "offsets"])
def test_a_batch_that_is_late_for_other_producers_is_rejected_before_any_effect(shape, options):
    """At the start and in the middle of a generation, also on sites that lack the latest keys."""
    for phase in (0, 25):
        with SlicedFilter(**shape, filter=timers(lateness="60s")) as sliced:
            other, start = sliced.handle(), 10_000 + phase
            sliced.insert(np.arange(200), at=start - 1)
            other.insert([*range(500, 540)] if shape["kind"] == "horizontal" else ["new"], at=start)
            sliced = sliced.handle()
            before = state(sliced)
            # One of them is late; "early" is not.
            late = {"keys": [*range(40), "early"], "at": [start - 61] * 40 + [start - 60]}
            where = {"offsets": np.arange(41)} if "offsets" in options else options
            for number in (None, 1):
                with pytest.raises(ValueError, match=r"at\[\d+\] lies more than .*before what other"):
                    sliced.duplicated(**late, **where, number=number)
            if shape["kind"] != "horizontal":
                with pytest.raises(ValueError, match="before what other"):
                    sliced.query(**late)
            assert state(sliced) == before
            where = {"offsets": np.arange(40)} if "offsets" in options else options
            assert sliced.duplicated(range(40), at=start - 60, **where, number=1).all()


def test_a_batch_that_becomes_late_while_it_is_sent_to_some_sites_is_inserted_whole():
    class Overtaken(LocalSites):
        meanwhile = None

        def call(self, messages):
            if self.meanwhile and messages[0].method == "duplicated":
                meanwhile, self.meanwhile = self.meanwhile, None
                meanwhile()
            return super().call(messages)

    with SlicedFilter("horizontal", 6, timers(lateness="60s"), sites=Overtaken) as sliced:
        other = sliced.handle()
        sliced.insert(np.arange(200), at=10_000)
        sliced.sites.meanwhile = lambda: other.insert(np.arange(500, 700), at=10_300)
        assert not sliced.duplicated(np.arange(1000, 1040), at=10_000)[:5].any()
        assert sliced.query(np.arange(1000, 1040), at=10_600).all()


@every_kind
def test_without_at_it_is_now(shape):
    with SlicedFilter(**shape, filter=timers()) as sliced:
        sliced.insert(["a"])
        assert sliced.duplicated(["a", "b", "b"]).tolist() == [True, False, True]
        assert sliced.query(["a", "c"]).tolist() == [True, False]
        with pytest.raises(ValueError, match="before the latest time seen"):
            sliced.insert(["a"], at=0)
