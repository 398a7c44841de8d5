"""Many producers share a sliced filter: each key is new to one of them, also if a producer stops half way."""

import copy
import pickle
import threading
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest

import lately
from lately.distributed import LocalSites, SlicedFilter
from lately.distributed._sites.errors import SupersededError
from support.sliced import Halting, cells_of_keys, every_kind, timers, wide


@every_kind
def test_exactly_one_of_many_producers_sees_a_key_as_new(shape):
    keys, threads = np.arange(2000), 4
    with SlicedFilter(**shape, filter=lately.BloomFilter(20_000, 1e-6)) as sliced:
        verdicts = [None] * threads
        begin = threading.Barrier(threads)

        def produce(i):
            handle = sliced.handle()
            begin.wait()
            seen = [handle.duplicated(batch, refresh=False) for batch in np.split(keys, 40)]
            verdicts[i] = np.concatenate(seen)

        running = [threading.Thread(target=produce, args=(i,)) for i in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        assert ((~np.array(verdicts)).sum(axis=0) == 1).all()


class Slow(LocalSites):
    """Sites whose lease ends before its producer has sent its writes, or when it is about to write."""

    meanwhile, before = None, "set"

    def __init__(self, makers):
        super().__init__(makers)
        # A turn may begin during another.
        self._lock = nullcontext()

    @contextmanager
    def lease(self, record=None):
        with super().lease(record) as lease:
            keep = lease.keep

            def interrupted(*held):
                self.interrupt("hold")
                keep(*held)

            lease.keep = interrupted
            yield lease

    def interrupt(self, where):
        if self.meanwhile and where == self.before:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()

    def call(self, messages):
        self.interrupt(messages[0].method)
        return super().call(messages)


@cells_of_keys
@pytest.mark.parametrize(("before", "refresh"), [("hold", False), ("set", False), ("touch", True)])
def test_a_producer_that_lost_its_lease_had_answered_or_retries(shape, before, refresh):
    with SlicedFilter(**shape, filter=wide(), sites=Slow) as sliced:
        other, answers = sliced.handle(), []
        sliced.sites.before = before
        sliced.sites.meanwhile = lambda: answers.append(other.duplicated(range(100), at=0, refresh=refresh))
        seen = sliced.duplicated(range(50, 150), at=0, refresh=refresh)
        # Of the keys of both, 50 to 99, they are new to the one that wrote first.
        assert (answers[0] == (before != "hold") * (np.arange(100) >= 50)).all()
        assert (seen == (before == "hold") * (np.arange(50, 150) < 100)).all()


@cells_of_keys
@pytest.mark.parametrize("refresh", [True, False])
def test_a_key_is_not_new_for_a_producer_that_stops_half_way_and_for_another(shape, refresh):
    """A producer died, or lost its lease, when half of the sites had its batch; the next one completes it."""
    keys = np.arange(1000)
    with SlicedFilter(**shape, filter=wide(), sites=Halting) as sliced:
        other = sliced.handle()
        sliced.sites.halt = True
        with pytest.raises(ConnectionError):
            sliced.duplicated(keys, at=0, refresh=refresh)
        theirs = other.duplicated(keys, at=0, refresh=refresh)
        ours = sliced.duplicated(keys, at=0, refresh=refresh, number=1)
        assert (ours ^ theirs).all()
        # The unfinished batch stands, and is complete.
        assert not ours.any()
        assert sliced.sites._left is None
        assert sliced.handle().duplicated(keys, at=0).all()


@cells_of_keys
@pytest.mark.parametrize(("refresh", "write"), [(True, "touch"), (False, "set")])
def test_a_producer_that_loses_its_lease_between_two_writes_gets_the_answers_of_the_first(shape, refresh, write):
    class CellStore(Slow):
        """Sites of which half get what is written before another producer has its lease."""

        def call(self, messages):
            if self.meanwhile and messages[0].method == write:
                LocalSites.call(self, messages[::2])
            return super().call(messages)

    keys = np.arange(1000)
    with SlicedFilter(**shape, filter=wide(), sites=CellStore) as sliced:
        other, answers = sliced.handle(), []
        sliced.sites.before = write
        sliced.sites.meanwhile = lambda: answers.append(other.duplicated(keys, at=0, refresh=refresh))
        seen = sliced.duplicated(keys, at=0, refresh=refresh)
        assert (seen ^ answers[0]).all()


@cells_of_keys
def test_a_producer_that_always_loses_its_lease_gets_an_error(shape):
    with SlicedFilter(**shape, filter=timers(), sites=Slow) as sliced:
        other, sliced.sites.before = sliced.handle(), "touch"

        def again():
            other.duplicated(np.arange(100), at=0)
            sliced.sites.meanwhile = again

        sliced.sites.meanwhile = again
        with pytest.raises(SupersededError, match="is over"):
            sliced.duplicated(np.arange(50, 150), at=0)


def test_a_handle_of_sites_of_this_process_does_not_travel():
    with SlicedFilter("vertical", 2, timers()) as sliced:
        with pytest.raises(TypeError, match="sites of this process cannot be pickled"):
            pickle.dumps(sliced)
        other = copy.copy(sliced)
        assert other.producer != sliced.producer
        other.insert(["a"], at=0)
        assert sliced.query(["a"], at=0).all()
