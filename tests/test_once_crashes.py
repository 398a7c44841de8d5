"""What a killed process leaves of a claim at each step: a test for each row of docs/how-to/once.md."""

import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

import lately
from lately._claims import SharedClaims
from support.forked import Forked
from test_once import BUSY, DONE, FIRST, come, shared, state

KILLED = """
import os, signal, sys
import lately
from lately._claims import SharedClaims
from lately import _once

def die():
    os.kill(os.getpid(), signal.SIGKILL)

seen = lately.open(sys.argv[1], shared=True)
step, lease = sys.argv[2:]
if step == "before the claim":
    die()
if step == "before the claim ends":
    _once.Claim._end = lambda claim: die()
if step == "before the insertion":
    _once._insert = lambda *claim: die()
with seen.once("evt_1", lease=lease) as claim:
    assert claim
    print("worked")
    sys.stdout.flush()
    if step == "during the work":
        die()
die()
"""


def kill(folder, step, lease="10min"):
    """Let a process claim a key and be killed at a step; return how often it did the work."""
    shared(folder)
    process = Forked(KILLED, folder / "seen.lately", step, lease)
    out, err = process.communicate()
    assert process.returncode == -signal.SIGKILL, err
    return out.count(b"worked")


pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="a kill")


@pytest.mark.parametrize(
    ("step", "works", "left", "after_lease"),
    [
        ("before the claim", 0, FIRST, FIRST),
        ("during the work", 1, BUSY, FIRST),
        ("before the insertion", 1, BUSY, FIRST),
        ("before the claim ends", 1, DONE, DONE),
        ("after the block", 1, DONE, DONE),
    ],
)
def test_killed(tmp_path, monkeypatch, step, works, left, after_lease):
    assert kill(tmp_path, step) == works
    seen = shared(tmp_path)
    with seen.once("evt_1") as claim:
        assert state(claim) == left
        if claim:
            claim.release()
    now = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: now() + 601)
    assert come(shared(tmp_path)) == after_lease


def test_a_block_waits_for_the_lease_of_a_process_that_was_killed(tmp_path):
    assert kill(tmp_path, "during the work", lease="300ms") == 1
    assert come(shared(tmp_path), wait="1min") == FIRST


def test_a_claim_from_before_the_machine_started_has_ended(tmp_path, monkeypatch):
    """The monotonic clock begins anew: the claim seems to lie in the future."""
    kill(tmp_path, "during the work")
    monkeypatch.setattr(time, "monotonic", lambda: 1.0)
    assert come(shared(tmp_path)) == FIRST


def test_work_that_outlasts_its_lease_ends_no_claim_but_its_own(tmp_path):
    slow, quick = shared(tmp_path), shared(tmp_path)
    with suppress(ConnectionError), slow.once("evt_1", lease="1ms") as first:
        time.sleep(0.01)
        assert first
        with quick.once("evt_1") as second:
            assert second
            raise ConnectionError
    with slow.once("evt_2", lease="1ms"):
        time.sleep(0.01)
        third = quick.once("evt_2")
        third.__enter__()
        assert third
    assert come(slow, "evt_2") == DONE
    third.__exit__(ConnectionError, None, None)
    assert come(slow, "evt_2") == DONE
    with suppress(ConnectionError), slow.once("evt_3", lease="1ms"):
        time.sleep(0.01)
        fourth = quick.once("evt_3")
        fourth.__enter__()
        raise ConnectionError
    assert come(slow, "evt_3") == BUSY


def test_of_several_processes_with_the_same_keys_each_key_is_worked_on_once(tmp_path):
    """All make the file of claims at the same time, and wait for one another."""
    shared(tmp_path)
    script = """
import sys, lately
seen = lately.open(sys.argv[1], shared=True)
for key in range(100):
    with seen.once(key, wait="1min") as claim:
        assert not claim.busy
        if claim:
            print(key)
"""
    workers = [Forked(script, tmp_path / "seen.lately") for _ in range(3)]
    worked = [int(key) for worker in workers for key in worker.communicate()[0].split()]
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert sorted(worked) == list(range(100))


def test_no_work_is_lost_when_workers_are_killed_over_and_over(tmp_path):
    """Each key's work is done at least once, and none is forgotten."""
    shared(tmp_path)
    script = """
import os, random, signal, sys, lately
seen = lately.open(sys.argv[1], shared=True)
chance = random.Random(int(sys.argv[2]))
for key in range(60):
    if chance.random() < 0.03:
        signal.setitimer(signal.ITIMER_REAL, chance.random() / 200)
    with seen.once(key, wait="1min", lease="50ms") as claim:
        if claim:
            os.write(1, b"%d\\n" % key)
"""
    worked = []
    for seed in range(12):
        process = Forked(script, tmp_path / "seen.lately", seed)
        out, err = process.communicate()
        worked += out.split()
        assert process.returncode in (0, -signal.SIGALRM), err
        if process.returncode == 0 and seed > 2:
            break
    for key in range(60):
        worked += [key] if come(shared(tmp_path), key) == FIRST else []
    seen = lately.open(Path(tmp_path, "seen.lately"), shared=True)
    assert {int(key) for key in worked} == {key for key in range(60) if key in seen} == set(range(60))


def test_work_that_ends_while_another_block_begins_is_not_done_twice(tmp_path, monkeypatch):
    """The work ends after that block looked into the filter, and before it looks for claims."""
    one, two = shared(tmp_path), shared(tmp_path)
    come(two, "another key")
    transaction = SharedClaims._in_transaction

    def after_the_work(claims, change):
        monkeypatch.setattr(SharedClaims, "_in_transaction", transaction)
        assert come(one) == FIRST
        return transaction(claims, change)

    monkeypatch.setattr(SharedClaims, "_in_transaction", after_the_work)
    assert come(two) == DONE
