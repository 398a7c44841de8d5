"""Sites of one process, and the lease, which one producer has at a time."""

import asyncio
import selectors
import subprocess
import sys
import time
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from lately.distributed._sites import actors as _actors
from lately.distributed._sites import lease as _lease
from lately.distributed._sites.actors import LEASE_ACTOR, LeaseActor, Spec
from lately.distributed._sites.errors import ReplacedError
from lately.distributed._sites.interface import Failed, Message, Traffic
from lately.distributed._sites.lease import LeaseServer
from lately.distributed._sites.local import LocalSites
from lately.distributed._sites.site import Site
from support.site import HASHES, Slow, bloom, fences


class Clock(selectors.DefaultSelector):
    """A clock of a loop that goes on to the next timer at once: no lease ends because the machine is busy."""

    now = 0.0

    def select(self, timeout=None):
        self.now += timeout or 0
        return super().select(0)


@pytest.fixture
def run(monkeypatch):
    """Run a coroutine on a loop whose clock goes on to its next timer at once."""
    clock = Clock()
    monkeypatch.setattr(_lease, "time", SimpleNamespace(monotonic=lambda: clock.now))

    def new_loop():
        loop = asyncio.SelectorEventLoop(clock)
        loop.time = lambda: clock.now
        return loop

    def run(story):
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(asyncio.wait_for(story(), 20))

    return run


def test_local_sites_answer_fail_and_come_back():
    kept = Slow()
    sites = LocalSites([partial(lambda i: Site(bloom(), name=str(i), store=kept, interval=0), i) for i in range(3)])
    messages = [Message(i, "duplicated", (HASHES[i::3],), {"refresh": True}) for i in range(3)]
    traffic = Traffic(0, 0, 0, 0, np.zeros(3, dtype=int))
    answers = sites.call(messages)
    traffic.count(messages, answers)
    assert not np.concatenate(answers).any()
    sites.kill(1)
    answers = sites.call(messages)
    traffic.count(messages, answers)
    assert [isinstance(answer, Failed) for answer in answers] == [False, True, False]
    assert answers[1] == Failed(1, "killed")
    assert time.time() - 60 < answers[1].since == sites.status()[1].since
    assert (traffic.messages, traffic.failures, traffic.sent) == (6, 1, 2 * HASHES.nbytes)
    assert traffic.received == len(HASHES) + len(HASHES[::3]) + len(HASHES[2::3])
    assert traffic.keys.tolist() == [2 * len(HASHES[i::3]) for i in range(3)]
    sites.restart(1)
    assert sites.status()[1]["restored"]
    assert np.concatenate(sites.call(messages)).all()
    sites.close()


def test_an_error_is_raised_once_all_sites_have_answered():
    sites = LocalSites([partial(Site, bloom(), name=str(i)) for i in range(2)])
    bad = Message(0, "duplicated", (HASHES, np.arange(3)), {"refresh": True})
    with pytest.raises(ValueError, match="3 times for 1000 keys"):
        sites.call([bad, Message(1, "insert", (HASHES,))])
    assert sites.call([Message(1, "query", (HASHES,))])[0].all()


def test_leases_in_process_exclude_each_other():
    found = fences(LocalSites([partial(Site, bloom(), name="0")]), producers=4, leases=50)
    assert found == sorted(set(found))
    assert len(found) == 200


def test_the_lease_goes_to_one_producer_at_a_time_and_ends_by_itself(run):
    async def taken(server):
        # It is granted, or 0 comes after a while: then the call is repeated.
        while not (fence := (await server.take())[0]):
            pass
        return fence

    async def story():
        server = LeaseServer(seconds=0.2)
        first, *_ = await server.take()
        waiting = [asyncio.create_task(taken(server)) for _ in range(2)]
        await asyncio.sleep(0.02)
        assert not any(task.done() for task in waiting)
        assert not await server.give(first - 1, None, True)
        await asyncio.sleep(0.02)
        assert not any(task.done() for task in waiting)
        assert await server.give(first, None, True)
        await asyncio.sleep(0.02)
        assert sum(task.done() for task in waiting) == 1
        # The one that has it now never gives it back: the next has it after a lease.
        fences = sorted(await asyncio.gather(*waiting))
        assert first < fences[0] < fences[1]
        # A lease that is over ends no other.
        assert not await server.give(fences[0], None, True)
        late = asyncio.create_task(taken(server))
        await asyncio.sleep(0.02)
        assert not late.done()
        assert await late > fences[1]

    run(story)


def test_a_batch_under_way_passes_to_the_next_holder_until_it_is_done(run):
    async def story():
        server = LeaseServer(seconds=0.05)
        fence, left, newest, doubtful = await server.take()
        assert (left, newest, doubtful) == (None, None, False)
        assert await server.hold(fence, 7, "begun", 1)
        # It ends by itself. What the next one came with is not kept beside it.
        after, left, newest, _ = await server.take("next")
        assert (left, newest) == (("begun", 1), 7)
        assert not await server.hold(fence, 9, "late")
        await server.give(fence, 9, True)
        await server.give(after, 9, False)
        last, left, newest, _ = await server.take()
        assert (left, newest) == (("begun", 1), 7)
        await server.give(last, 8, True)
        assert (await server.take("begun", 2))[1:] == (None, 8, False)
        assert (await server.take())[1:] == (("begun", 2), 8, False)

    run(story)


def test_a_lease_lasts_while_its_producer_lives(run):
    async def story():
        server = LeaseServer(seconds=0.2)
        first, *_ = await server.take()
        waiting = asyncio.create_task(server.take())
        for _ in range(12):
            await asyncio.sleep(0.05)
            assert await server.renew(first)
        # After three times as long the call ends in vain.
        assert await waiting == (0, None, None, False)
        second, *_ = await server.take()
        assert second > first
        # A lease that is over is not renewed.
        assert not await server.renew(first)
        third, *_ = await server.take()
        assert third > second

    run(story)


async def taken(server):
    while not (answer := await server.take())[0]:
        pass
    return answer


def test_a_holder_goes_on_when_the_actor_of_the_lease_restarts(monkeypatch, run):
    monkeypatch.setattr(_lease, "GRACE", 0.3)

    async def story():
        fence, *_ = await LeaseServer(seconds=0.3).take("batch", 1)
        server = LeaseServer(incarnation=2, seconds=0.3)
        waiting = asyncio.create_task(taken(server))
        # It does not know of the lease, until the holder registers it again.
        assert not await server.renew(fence)
        assert await server.hold(fence, 7, "batch", 1)
        for _ in range(8):
            await asyncio.sleep(0.05)
            assert await server.renew(fence)
        assert not waiting.done()
        # The holder dies now: what it had started is left to the next.
        after, left, newest, doubtful = await waiting
        assert after > fence
        assert (left, newest, doubtful) == (("batch", 1), 7, False)
        assert not await server.hold(fence, 9, "batch", 1)

    run(story)


def test_a_holder_that_does_not_come_back_to_a_restarted_actor_is_announced(monkeypatch, run):
    monkeypatch.setattr(_lease, "GRACE", 0.1)

    async def story():
        fence, *_ = await LeaseServer(seconds=0.1).take("batch", 1)
        server = LeaseServer(incarnation=2, seconds=0.1)
        after, left, _, doubtful = await taken(server)
        assert after > fence
        assert (left, doubtful) == (None, True)
        # Once. A lease from before is not accepted any more.
        assert not await server.hold(fence, 7, "batch", 1)
        await server.give(after, 1, True)
        assert (await taken(server))[3] is False

    run(story)


def test_a_batch_that_was_finished_meanwhile_is_not_announced(monkeypatch, run):
    monkeypatch.setattr(_lease, "GRACE", 0.1)

    async def story():
        first, *_ = await LeaseServer(seconds=0.1).take("batch", 1)
        server = LeaseServer(incarnation=2, seconds=0.1)
        assert await server.give(first, 5, True)
        assert (await taken(server))[1:] == (None, 5, False)

    run(story)


class CutOff:
    """The incarnation of a process that another replaces while a call waits."""

    number, replaced = 1, False

    def __init__(self, actor):
        pass

    def publish(self, port):
        pass

    def check(self):
        if self.replaced:
            raise ReplacedError


def test_a_producer_that_waits_for_the_lease_does_not_get_it_from_an_actor_that_was_replaced(monkeypatch, run):
    """Else two producers would write, as a successor may have granted one meanwhile."""
    monkeypatch.setattr(_actors, "Incarnation", CutOff)

    async def story():
        actor = LeaseActor(Spec("f", b"", False, ()), LEASE_ACTOR)
        [(first, *_)], _ = await actor.call("take")
        waiting = asyncio.create_task(actor.call("take"))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        actor._incarnation.replaced = True
        await actor._lease.give(first, None, True)
        await asyncio.sleep(0.05)
        # By Ray it waits, until this process ends and Ray sends it to the successor; by the port it goes there at once.
        assert not waiting.done()
        waiting.cancel()
        with pytest.raises(ReplacedError):
            await actor._of("take")

    run(story)


def test_of_two_holders_of_before_the_later_one_has_the_lease(monkeypatch, run):
    monkeypatch.setattr(_lease, "GRACE", 0.1)

    async def story():
        before = LeaseServer(seconds=0.01)
        early, late = (await taken(before))[0], (await taken(before))[0]
        server = LeaseServer(incarnation=2, seconds=0.1)
        assert await server.hold(early, 1, "early")
        assert await server.give(early, 1, True)
        waiting = asyncio.create_task(taken(server))
        await asyncio.sleep(0)
        assert await server.hold(late, 2, "late")
        assert not await server.renew(early)
        assert (await waiting)[1:3] == (("late",), 2)

    run(story)


def test_the_distributed_part_is_not_imported_until_it_is_used_and_needs_no_ray_then():
    code = "import sys, lately; assert 'lately.distributed' not in sys.modules; import lately.distributed; "
    code += "assert not {'ray', 'fsspec'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
