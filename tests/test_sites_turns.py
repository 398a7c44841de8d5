"""Sites of one process, and turns, which go to one producer at a time."""

import asyncio
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest

from lately.distributed._sites.interface import Failed, Message, Traffic
from lately.distributed._sites.local import LocalSites
from lately.distributed._sites.site import Site
from lately.distributed._sites.turns import Turns
from support.site import HASHES, Slow, bloom, fences


def test_local_sites_answer_fail_and_come_back():
    kept = Slow()
    sites = LocalSites([partial(lambda i: Site(bloom(), name=str(i), store=kept, interval=0), i) for i in range(3)])
    messages = [Message(i, "duplicated", (HASHES[i::3],), {"refresh": True}) for i in range(3)]
    traffic = Traffic.none(3)
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


def test_turns_in_process_exclude_each_other():
    found = fences(LocalSites([partial(Site, bloom(), name="0")]), producers=4, turns=50)
    assert found == sorted(set(found))
    assert len(found) == 200


def test_turns_go_to_one_at_a_time_and_end_by_themselves():
    async def taken(turns):
        # A turn comes, or nothing after a lease: then it is asked for again.
        while not (fence := (await turns.take())[0]):
            pass
        return fence

    async def story():
        turns = Turns(lease=0.2, sites=3, secret=b"")
        first, *_ = await turns.take()
        waiting = [asyncio.create_task(taken(turns)) for _ in range(2)]
        await asyncio.sleep(0.02)
        assert not any(task.done() for task in waiting)
        await turns.give(first - 1)
        await asyncio.sleep(0.02)
        assert not any(task.done() for task in waiting)
        await turns.give(first)
        await asyncio.sleep(0.02)
        assert sum(task.done() for task in waiting) == 1
        # The one that has it now never gives it back: the next has it after the lease.
        fences = sorted(await asyncio.gather(*waiting))
        assert first < fences[0] < fences[1]
        # A turn that is over ends no other.
        await turns.give(fences[0])
        late = asyncio.create_task(taken(turns))
        await asyncio.sleep(0.02)
        assert not late.done()
        assert await late > fences[1]
        assert await turns.sites() == (3, b"")

    asyncio.run(asyncio.wait_for(story(), 20))


def test_what_is_held_is_left_to_the_next_until_it_is_done():
    async def story():
        turns = Turns(lease=0.05, sites=1, secret=b"")
        fence, left, newest = await turns.take()
        assert (left, newest) == (None, None)
        assert await turns.hold(fence, 7, "begun", 1)
        # It ends by itself. What the next one came with is not kept beside it.
        after, left, newest = await turns.take("next")
        assert (left, newest) == (("begun", 1), 7)
        assert not await turns.hold(fence, 9, "late")
        await turns.give(fence, 9)
        await turns.give(after, 9, done=False)
        last, left, newest = await turns.take()
        assert (left, newest) == (("begun", 1), 7)
        await turns.give(last, 8)
        assert (await turns.take("begun", 2))[1:] == (None, 8)
        assert (await turns.take())[1:] == (("begun", 2), 8)

    asyncio.run(asyncio.wait_for(story(), 20))


def test_a_turn_lasts_while_its_producer_lives():
    async def story():
        turns = Turns(lease=0.2, sites=1, secret=b"")
        first, *_ = await turns.take()
        waiting = asyncio.create_task(turns.take())
        for _ in range(6):
            await asyncio.sleep(0.05)
            await turns.renew(first)
        # Three leases: it was asked for in vain.
        assert await waiting == (0, None, None)
        second, *_ = await turns.take()
        assert second > first
        # A turn that is over is not renewed.
        await turns.renew(first)
        third, *_ = await turns.take()
        assert third > second

    asyncio.run(asyncio.wait_for(story(), 20))


def test_turns_after_a_restart_are_later():
    async def fence():
        return (await Turns(lease=1, sites=1, secret=b"").take())[0]

    before = asyncio.run(fence())
    assert asyncio.run(fence()) > before


def test_the_room_needs_no_ray_until_it_is_used():
    code = "import lately.distributed, sys; assert not {'ray', 'fsspec'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
    code = "import lately, sys; assert 'lately.distributed' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
