"""Sites, before any network: answers given once, checkpoints whole or not at all, turns in order."""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lately
from lately.distributed._contents.whole import Whole
from lately.distributed._sites import memo as _memo
from lately.distributed._sites import store as _store
from lately.distributed._sites.interface import Failed, Message, Traffic
from lately.distributed._sites.local import LocalSites
from lately.distributed._sites.memo import UNKNOWN, ForgottenError, Memo, Ticket, TooManyProducersError
from lately.distributed._sites.site import CheckpointError, Site, SupersededError
from lately.distributed._sites.store import Folder, pack, store, unpack
from lately.distributed._sites.turns import Turns

HASHES = lately.hash_keys(np.arange(1000))
PLACES = 12


def bloom():
    return Whole(lately.BloomFilter(1000, fpr=1e-9))


class Counted:
    """Contents that count how often each key was written, and answer by chance, so that no answer comes twice alike."""

    writes = frozenset({"duplicated"})
    nbytes = 0

    def __init__(self):
        self.written = Counter()
        self.chance = np.random.default_rng(1)

    def duplicated(self, keys):
        self.written.update(keys.tolist())
        return self.chance.random(len(keys)) < 0.5

    def state(self):
        return {"keys": np.array(list(self.written)), "counts": np.array(list(self.written.values()))}

    def lost(self):
        self.chance = None

    def overfull(self):
        return None

    def again(self, columns):
        return columns

    def load(self, state):
        self.written = Counter(dict(zip(state["keys"].tolist(), state["counts"].tolist(), strict=True)))


class Slow:
    """A store in memory whose writes fail or wait when told to."""

    def __init__(self):
        self.kept = {}
        self.fails = False
        self.free = threading.Event()
        self.free.set()
        self.begun = threading.Event()

    def write(self, name, data):
        self.begun.set()
        assert self.free.wait(20)
        if self.fails:
            raise OSError("no space left")
        self.kept[name] = data

    def append(self, name, data):
        self.write(name, self.kept.get(name, b"") + data)
        return True

    def read(self, name):
        return self.kept.get(name)

    def remove(self, name):
        self.kept.pop(name, None)

    def checkpoint(self):
        """The bytes of the latest checkpoint of the one site."""
        return self.kept[max(name for name in self.kept if name != "site")]


def holding(data):
    """A store that has this checkpoint of a site."""
    kept = Slow()
    kept.kept["site.1"] = data
    kept.kept["site"] = json.dumps({"run": 1, "older": [], "incarnation": 1, "whole": True}).encode()
    return kept


def names(folder):
    return [path.name for path in folder.iterdir()]


def duplicated(site, hashes, **options):
    return site.call("duplicated", (hashes,), {"refresh": True}, **options)


places = st.sets(st.integers(0, PLACES - 1)).map(lambda places: np.array(sorted(places), dtype=np.int64))
# The producer, whether it is the same batch or the next, which of its keys, and whether it is saved and loaded between.
sent = st.lists(st.tuples(st.sampled_from("ab"), st.booleans(), places, st.booleans()), max_size=20)


@given(sent)
def test_a_batch_is_written_once_and_answered_the_same_in_any_parts_and_order(messages):
    kept = Slow()
    make = partial(Site, name="site", store=kept, interval=0)
    contents = Counted()
    site = make(contents)
    numbers, told = Counter(), {}
    for producer, again, index, crash in messages:
        numbers[producer] += not again
        ticket = Ticket(producer, numbers[producer], index)
        keys = (1000 * (100 * ord(producer) + numbers[producer]) + index).astype(np.uint64)
        for key, answer in zip(keys.tolist(), site.call("duplicated", (keys,), {}, ticket=ticket), strict=True):
            assert told.setdefault(key, answer) == answer
        if crash:
            site.close(save=False)
            contents = Counted()
            site = make(contents)
    assert set(contents.written.values()) <= {1}
    assert set(contents.written) == set(told)


@given(sent)
def test_memo_knows_what_it_was_told_of_the_latest_batch(messages):
    memo, chance = Memo(), np.random.default_rng(2)
    numbers, told = Counter(), {}
    for producer, again, index, saved in messages:
        if not again:
            numbers[producer] += 1
            told[producer] = {}
        ticket = Ticket(producer, numbers[producer], index)
        answers = chance.random(len(index)) < 0.5
        memo.keep(ticket, answers, index.astype(np.uint64))
        # The first answer stands.
        told[producer] = dict(zip(index.tolist(), answers.tolist(), strict=True)) | told.get(producer, {})
        if saved:
            memo = Memo.from_state(unpack(pack(memo.state())))
        for each, number in numbers.items():
            known = memo.known(Ticket(each, number, np.arange(PLACES)))
            assert known.tolist() == [told.get(each, {}).get(place, UNKNOWN) for place in range(PLACES)]
            assert set(memo.known(Ticket(each, number + 1, np.arange(PLACES)))) == {UNKNOWN}


def remember(memo, producer, number, keys, *, lasting=False):
    keys = np.asarray(keys, dtype=np.uint64)
    ticket = Ticket(producer, number, np.arange(len(keys)), lasting)
    memo.admit(ticket)
    memo.keep(ticket, np.ones(len(keys), dtype=bool), keys)
    return memo


def test_an_earlier_batch_is_refused():
    memo = remember(Memo(), "a", 5, range(3))
    with pytest.raises(ValueError, match="batch 4 of producer 'a' comes after its batch 5"):
        memo.known(Ticket("a", 4, np.arange(3)))


def test_a_number_that_is_used_again_for_other_keys_is_found_out():
    memo = remember(Memo(), "a", 5, HASHES[:100])
    same = np.array(HASHES[:100])
    # Part of the keys, and keys that follow after them, are the same batch.
    assert memo.known(Ticket("a", 5, np.arange(50, 100)), same[50:]).all()
    assert memo.known(Ticket("a", 5, np.arange(200)), HASHES[:200]).tolist() == [1] * 100 + [UNKNOWN] * 100
    for i in range(100):
        other = same.copy()
        other[i] = HASHES[500]
        with pytest.raises(ValueError, match="batch 5 of producer 'a' comes again with other keys"):
            memo.known(Ticket("a", 5, np.arange(100)), other)


def test_a_site_refuses_other_keys_before_any_effect():
    site = Site(bloom(), name="site")
    duplicated(site, HASHES[:50], ticket=Ticket("a", 1, np.arange(50)))
    with pytest.raises(ValueError, match="comes again with other keys"):
        duplicated(site, HASHES[20:100], ticket=Ticket("a", 1, np.arange(80)))
    assert not site.call("query", (HASHES[50:],), {}).any()


def test_answers_that_had_to_go_are_not_guessed(monkeypatch):
    monkeypatch.setattr(_memo, "KEYS", 10)
    memo = Memo()
    for producer in "abcde":
        remember(memo, producer, 1, range(3))
    memo = Memo.from_state(unpack(pack(memo.state())))
    for producer in "ab":
        with pytest.raises(ForgottenError, match=r"batch 1 of producer .* comes again, and .* is forgotten"):
            memo.known(Ticket(producer, 1, np.arange(3)))
        # Its next one is new, and an earlier one is refused as ever.
        assert (memo.known(Ticket(producer, 2, np.arange(3))) == UNKNOWN).all()
        with pytest.raises(ValueError, match="comes after its batch 1"):
            memo.known(Ticket(producer, 0, np.arange(3)))
    for producer in "cde":
        assert memo.known(Ticket(producer, 1, np.arange(3))).all()
    # Answers to producers with names go last; a batch larger than all that is kept is kept by itself.
    remember(memo, "n", 1, range(3), lasting=True)
    remember(memo, "f", 1, range(7))
    assert memo.known(Ticket("n", 1, np.arange(3), True)).all()
    assert memo.known(Ticket("f", 1, np.arange(7))).all()
    remember(memo, "g", 1, range(50))
    assert memo.known(Ticket("g", 1, np.arange(50))).all()
    with pytest.raises(ForgottenError):
        memo.known(Ticket("n", 1, np.arange(3), True))
    remember(memo, "g", 2, range(1))
    assert memo._keys == 1


def test_departed_producers_make_room_and_others_are_never_forgotten(monkeypatch):
    now = 1e9
    monkeypatch.setattr(_memo, "PRODUCERS", 4)
    monkeypatch.setattr(_memo.time, "time", lambda: now)
    memo = Memo()
    for producer in "abcd":
        remember(memo, producer, 1, range(2), lasting=producer == "a")
        now += 600
    with pytest.raises(TooManyProducersError, match="remembers 4 producers"):
        remember(memo, "e", 1, range(2))
    remember(memo, "b", 2, range(2))
    now = 1e9 + 1200 + _memo.HOUR + 1
    remember(memo, "e", 1, range(2))
    assert [len(memo), memo._keys] == [4, 8]
    assert memo.known(Ticket("b", 2, np.arange(2))).all()
    assert (memo.known(Ticket("c", 1, np.arange(2))) == UNKNOWN).all()
    now += _memo.WEEK - 10_000
    remember(memo, "f", 1, range(2))
    assert memo.known(Ticket("a", 1, np.arange(2), True)).all()
    now += 10_000
    for producer in "ghij":
        remember(memo, producer, 1, range(2))
    with pytest.raises(TooManyProducersError):
        remember(memo, "k", 1, range(2))
    assert (memo.known(Ticket("a", 1, np.arange(2), True)) == UNKNOWN).all()


@pytest.mark.parametrize(
    ("number", "index", "message"),
    [
        (-1, [0], "not -1"),
        (2**63, [0], str(2**63)),
        (1, [1, 0], "ascend"),
        (1, [0, 0], "ascend"),
        (1, [2**31], str(2**31)),
        (1, [-1], "-1"),
    ],
)
def test_bad_tickets(number, index, message):
    with pytest.raises(ValueError, match=message):
        Ticket("a", number, np.array(index))


def test_what_came_in_shared_memory_is_not_kept():
    index, memo = np.arange(4), Memo()
    answers = np.ones(4, dtype=bool)
    memo.keep(Ticket("a", 1, index), answers, HASHES[:4])
    index[:], answers[:] = 0, False
    assert memo.known(Ticket("a", 1, np.arange(4))).tolist() == [1] * 4


def test_reading_with_a_ticket_tells_what_was_written_under_it():
    site = Site(bloom(), name="site")
    assert not duplicated(site, HASHES[:5], ticket=Ticket("a", 1, np.arange(5))).any()
    answer, known = site.call("query", (HASHES[3:8],), {}, ticket=Ticket("a", 1, np.arange(3, 8)))
    assert answer.tolist() == [True] * 2 + [False] * 3
    assert known.tolist() == [0] * 2 + [UNKNOWN] * 3


def test_a_message_of_an_earlier_turn_is_refused_and_one_of_no_turn_is_not():
    site = Site(bloom(), name="site")
    duplicated(site, HASHES[:5], fence=7)
    with pytest.raises(SupersededError, match="turn 6 is over: 7 has begun"):
        duplicated(site, HASHES[5:9], fence=6)
    assert site.call("query", (HASHES[:9],), {}).tolist() == [True] * 5 + [False] * 4


def test_with_no_interval_every_answer_is_safe(tmp_path):
    make = partial(Site, name="site", store=Folder(tmp_path), interval=0)
    site = make(bloom())
    for part in np.split(HASHES, 10):
        assert not duplicated(site, part).any()
        site.close(save=False)
        site = make(bloom())
        assert site.status()["restored"]
        assert site.call("query", (part,), {}).all()
    assert site.call("query", (HASHES,), {}).all()


def test_a_change_is_saved_within_the_interval_and_only_a_change(tmp_path):
    site = Site(bloom(), name="site", store=Folder(tmp_path), interval=0.02)
    time.sleep(0.1)
    assert site.status()["checkpoints"] == 0
    duplicated(site, HASHES)
    until = time.monotonic() + 10
    while site.status()["changed"]:
        assert time.monotonic() < until
        time.sleep(0.01)
    time.sleep(0.1)
    assert site.status()["checkpoints"] == 1
    assert abs(site.status()["saved"] - time.time()) < 10
    site.close()
    assert site.status()["checkpoints"] == 1


def test_no_checkpoint_after_a_kill():
    kept = Slow()
    sites = LocalSites([partial(Site, bloom(), name="of this test", store=kept, interval=0.01)])
    sites.call([Message(0, "duplicated", (HASHES,), {"refresh": True})])
    sites.kill(0)
    assert not [thread for thread in threading.enumerate() if thread.name == "checkpoints of of this test"]
    kept.kept.clear()
    time.sleep(0.1)
    assert not kept.kept


@pytest.mark.parametrize("save", [True, False])
def test_a_closed_site_takes_nothing(save):
    site = Site(bloom(), name="site")
    site.close(save=save)
    for method in ("query", "insert"):
        with pytest.raises(RuntimeError, match="site is closed"):
            site.call(method, (HASHES,), {})


def test_a_checkpoint_is_not_replaced_by_an_earlier_one():
    kept = Slow()
    site = Site(bloom(), name="site", store=kept, interval=0.01)
    kept.free.clear()
    duplicated(site, HASHES[:500])
    # The thread has taken the state of now, and is writing.
    assert kept.begun.wait(10)
    duplicated(site, HASHES[500:])
    last = threading.Thread(target=site.close)
    last.start()
    time.sleep(0.1)
    kept.free.set()
    last.join(10)
    again = Site(bloom(), name="site", store=kept)
    assert again.call("query", (HASHES,), {}).all()


def test_a_late_write_of_a_site_taken_for_dead_replaces_nothing():
    """Its successor has started, and saved, while it hung in the middle of a write."""
    kept = Slow()
    dead = Site(bloom(), name="site", store=kept, interval=0)
    duplicated(dead, HASHES[:100])
    write = kept.write

    def hangs(name, data):
        kept.write = write
        successor = Site(bloom(), name="site", store=kept, interval=0)
        assert successor.call("query", (HASHES[:100],), {}).all()
        assert not duplicated(successor, HASHES[200:300]).any()
        write(name, data)

    kept.write = hangs
    with pytest.raises(CheckpointError, match="another site of this name has started since"):
        duplicated(dead, HASHES[100:200])
    last = Site(bloom(), name="site", store=kept, interval=0)
    assert last.call("query", (HASHES[:300],), {}).tolist() == [True] * 100 + [False] * 100 + [True] * 100


@pytest.mark.parametrize("interval", [0, 0.02])
def test_a_site_that_cannot_be_saved_says_so_and_recovers(interval):
    kept = Slow()
    site = Site(bloom(), name="site", store=kept, interval=interval)
    kept.fails = True
    with suppress(CheckpointError):
        duplicated(site, HASHES[:10], ticket=Ticket("a", 1, np.arange(10)))
    until = time.monotonic() + 10
    while site.status()["failure"] is None:
        assert time.monotonic() < until
        time.sleep(0.01)
    for _ in range(2):
        with pytest.raises(CheckpointError, match="site cannot be saved: no space left"):
            duplicated(site, HASHES[10:20], ticket=Ticket("a", 2, np.arange(10)))
    assert site.call("query", (HASHES[:20],), {}).tolist() == [True] * 10 + [False] * 10
    kept.fails = False
    while interval and site.status()["failure"] is not None:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert not duplicated(site, HASHES[:10], ticket=Ticket("a", 1, np.arange(10))).any()
    assert not duplicated(site, HASHES[10:20], ticket=Ticket("a", 2, np.arange(10))).any()
    site.close()
    assert Site(bloom(), name="site", store=kept).call("query", (HASHES[:20],), {}).all()


def test_many_threads_lose_nothing():
    kept = Slow()
    site = Site(bloom(), name="site", store=kept, interval=0)
    new = []

    def produce(name):
        for number, part in enumerate(np.split(HASHES, 20)):
            new.append(~duplicated(site, part, ticket=Ticket(name, number, np.arange(50))))

    threads = [threading.Thread(target=produce, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert np.sum(new) == len(HASHES)
    assert Site(bloom(), name="site", store=kept).call("query", (HASHES,), {}).all()


@pytest.mark.parametrize("address", ["{folder}", "file://{folder}", "memory://{folder}"])
def test_stores(tmp_path, address):
    kept = store(address.format(folder=tmp_path / "a" / "b"))
    assert kept.read("site") is None
    for data in (b"one", b"two", b""):
        kept.write("site", data)
        assert kept.read("site") == data
    assert kept.read("sit") is None
    if not address.startswith("memory"):
        assert names(tmp_path / "a" / "b") == ["site"]


def test_a_write_that_fails_leaves_the_old_bytes_and_nothing_else(tmp_path, monkeypatch):
    kept = Folder(tmp_path)
    kept.write("site", b"old")
    monkeypatch.setattr(os, "fsync", lambda file: (_ for _ in ()).throw(OSError("no space left")))
    with pytest.raises(OSError, match="no space left"):
        kept.write("site", b"new")
    assert kept.read("site") == b"old"
    assert names(tmp_path) == ["site"]


@pytest.mark.parametrize("address", ["{folder}", "file://{folder}"])
def test_a_crash_before_the_rename_leaves_the_old_checkpoint(tmp_path, address):
    address = address.format(folder=tmp_path)
    site = Site(bloom(), name="site", store=store(address), interval=0)
    duplicated(site, HASHES[:10])
    crash = f"""
import os
from lately.distributed._sites.store import store
os.replace = os.rename = lambda *names: os._exit(7)
store({address!r}).write("site", b"half a checkpoint")
"""
    assert subprocess.run([sys.executable, "-c", crash], timeout=60).returncode == 7
    # Its claim, its checkpoint, and the half.
    assert len(names(tmp_path)) == 3
    again = Site(bloom(), name="site", store=store(address), interval=0)
    assert again.call("query", (HASHES[:20],), {}).tolist() == [True] * 10 + [False] * 10


def test_without_fsspec_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ImportError, match=r"pip install lately\[distributed\]"):
        store("s3://bucket/path")


def checkpoint():
    kept = Slow()
    site = Site(Whole(lately.BloomFilter(50, fpr=0.1)), name="site", store=kept, interval=0)
    duplicated(site, HASHES[:50], ticket=Ticket("producer", 3, np.arange(50)))
    return kept.checkpoint()


def refused(data):
    try:
        unpack(data)
    except ValueError:
        return True
    return False


def test_no_damaged_checkpoint_is_read():
    data = checkpoint()
    assert unpack(data)
    assert all(refused(data[:length]) for length in range(len(data)))
    assert all(refused(data + more) for more in (b"\0", b"x" * 100, data))
    for place in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[place] ^= 1 << bit
            assert refused(bytes(damaged)), (place, bit)


@given(st.binary(max_size=200))
def test_other_bytes_are_no_checkpoint(data):
    assert refused(data)
    assert refused(_store._MAGIC + data)


@given(st.binary(max_size=200))
def test_bytes_with_the_right_hash_are_no_checkpoint_either(data):
    hashed = _store.blake2b(data, digest_size=16).digest()
    assert refused(_store._MAGIC + hashed + data)


def forged(change):
    state = unpack(checkpoint())
    change(state)
    return holding(pack(state))


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.pop("manifest"),
        lambda s: s.update({"manifest": np.array("another")}),
        lambda s: s.pop("memo/index"),
        lambda s: s.pop("contents/filter"),
        lambda s: s.update({"memo/index": s["memo/index"][::-1]}),
        lambda s: s.update({"memo/marks": s["memo/marks"][:-1]}),
        lambda s: s.update({"memo/lengths": s["memo/lengths"] + 1}),
        lambda s: s.update({"memo/lengths": -s["memo/lengths"]}),
        lambda s: s.update({"memo/numbers": s["memo/numbers"][:0]}),
        lambda s: s.update({"memo/producers": np.frombuffer(b"[[], []]", np.uint8)}),
        lambda s: s.update({"contents/filter": s["contents/filter"][:-1]}),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused_by_its_name(change):
    with pytest.raises(ValueError, match="site cannot be restored: "):
        Site(Whole(lately.BloomFilter(50, fpr=0.1)), name="site", store=forged(change))
    assert Site(Whole(lately.BloomFilter(50, fpr=0.1)), name="site", store=forged(lambda s: None)).status()["restored"]


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
    sites, inside, fences = LocalSites([partial(Site, bloom(), name="0")]), [], []

    def produce():
        for _ in range(50):
            with sites.turn() as turn:
                inside.append(1)
                assert len(inside) == 1
                fences.append(turn.fence)
                inside.pop()

    threads = [threading.Thread(target=produce) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert fences == sorted(set(fences))
    assert len(fences) == 200


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
