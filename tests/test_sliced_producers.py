"""Many producers share a sliced filter: each key is new to one of them."""

import copy
import pickle
import threading

import numpy as np
import pytest

import lately
from lately.distributed import SlicedFilter
from support.sliced import every_kind, timers


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


def test_a_handle_of_sites_of_this_process_does_not_travel():
    with SlicedFilter("vertical", 2, timers()) as sliced:
        with pytest.raises(TypeError, match="sites of this process cannot be pickled"):
            pickle.dumps(sliced)
        other = copy.copy(sliced)
        assert other.producer != sliced.producer
        other.insert(["a"], at=0)
        assert sliced.query(["a"], at=0).all()
