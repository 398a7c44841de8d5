"""`await f.aduplicated`: the answers and numbers of `duplicated`, one after the other, while the loop goes on."""

import asyncio
import os
import threading

import numpy as np
import pytest

from lately.distributed import FailedSitesError, LocalSites, NotSentError, SlicedFilter
from support.sliced import every_kind, state, timers

BATCHES = [np.random.default_rng(i).integers(0, 300, 200) for i in range(20)]


class Gate(LocalSites):
    """Sites that keep a message until they may answer, and fail the next on demand."""

    def __init__(self, makers):
        super().__init__(makers)
        self.open, self.reached, self.fails = threading.Event(), threading.Event(), False
        self.open.set()

    def call(self, messages):
        if messages[0].request is not None:
            self.reached.set()
            assert self.open.wait(30)
            if self.fails:
                self.fails = False
                super().call(messages[::2])
                raise ConnectionError("the network is away")
        return super().call(messages)


@every_kind
def test_batches_in_flight_are_answered_as_if_one_by_one(shape):
    async def gathered(f):
        return await asyncio.gather(*(f.aduplicated(keys, at=i) for i, keys in enumerate(BATCHES)))

    with SlicedFilter(**shape, filter=timers()) as f, SlicedFilter(**shape, filter=timers()) as plain:
        expected = [plain.duplicated(keys, at=i) for i, keys in enumerate(BATCHES)]
        answers = asyncio.run(gathered(f))
        assert [each.tolist() for each in answers] == [each.tolist() for each in expected]
        assert (f.number, state(f)) == (len(BATCHES), state(plain))
        # In another loop too, and sent again by its number.
        assert (asyncio.run(f.aduplicated(BATCHES[-1], at=19, number=20)) == expected[-1]).all()
        assert f.unanswered.shape == (200,)


def test_the_loop_goes_on_meanwhile():
    async def story():
        f.sites.open.clear()
        waiting = asyncio.create_task(f.aduplicated(["a"], at=0))
        while not f.sites.reached.is_set():
            await asyncio.sleep(0.001)
        assert not waiting.done()
        f.sites.open.set()
        assert not (await waiting)[0]

    with SlicedFilter("horizontal", 2, timers(), sites=Gate) as f:
        asyncio.run(asyncio.wait_for(story(), 60))


@every_kind
@pytest.mark.parametrize("how", ["fails", "cancelled"])
def test_those_behind_one_that_has_no_answer_are_given_back(shape, how):
    """Were they sent, it could not be sent again."""

    async def story():
        f.sites.open.clear()
        sent = [asyncio.create_task(f.aduplicated(keys, at=0)) for keys in BATCHES[:3]]
        while not f.sites.reached.is_set():
            await asyncio.sleep(0.001)
        if how == "fails":
            f.sites.fails = True
        else:
            sent[0].cancel()
            await asyncio.sleep(0)
        f.sites.open.set()
        first, *others = await asyncio.gather(*sent, return_exceptions=True)
        assert isinstance(first, ConnectionError if how == "fails" else asyncio.CancelledError)
        for other in others:
            assert isinstance(other, NotSentError)
            assert "batch 1 before it has no answer" in str(other)
        assert f.number == 1
        again = [await f.aduplicated(BATCHES[0], at=0, number=1)]
        return again + await asyncio.gather(*(f.aduplicated(keys, at=0) for keys in BATCHES[1:3]))

    with SlicedFilter(**shape, filter=timers(), sites=Gate) as f, SlicedFilter(**shape, filter=timers()) as plain:
        answers = asyncio.run(asyncio.wait_for(story(), 60))
        assert [each.tolist() for each in answers] == [plain.duplicated(keys, at=0).tolist() for keys in BATCHES[:3]]
        assert (f.number, state(f)) == (3, state(plain))


def test_what_is_refused_before_it_is_sent_stops_nobody():
    async def story():
        sent = (f.aduplicated(["a"], at=0), f.aduplicated([object()], at=0), f.aduplicated(["b", "a"], at=0))
        first, second, third = await asyncio.gather(*sent, return_exceptions=True)
        assert (first.tolist(), type(second), third.tolist()) == ([False], TypeError, [False, True])

    with SlicedFilter("horizontal", 2, timers()) as f:
        asyncio.run(story())


def test_sites_that_fail_are_an_error_with_the_number():
    with SlicedFilter("horizontal", 2, timers()) as f:
        f.sites.kill(0)
        with pytest.raises(FailedSitesError) as caught:
            asyncio.run(f.aduplicated(np.arange(100), at=0))
        assert caught.value.number == 1


def test_async_actor_on_ray_that_is_run_again_is_told_what_it_was_told(ray_cluster, tmp_path):
    """The batches are named after the task of the actor's method, not of the thread that sends them."""
    marker = tmp_path / "failed"

    @ray_cluster.remote(max_restarts=1, max_task_retries=1)
    class Consumer:
        async def new(self, f):
            answers = await asyncio.gather(*(f.aduplicated(keys, at=0) for keys in np.arange(3000).reshape(3, -1)))
            if not marker.exists():
                marker.touch()
                os._exit(1)
            return int(sum((~seen).sum() for seen in answers))

    with SlicedFilter("horizontal", 2, timers(slice_timers=100_000), sites="ray", deadline=60) as f:
        assert ray_cluster.get(Consumer.remote().new.remote(f), timeout=120) == 3000
