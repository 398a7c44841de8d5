"""What a killed process leaves of a claim at each step: a test for each row of docs/how-to/once.md."""

import signal
import sys
import time

import pytest

from support.forked import Forked
from test_once import BUSY, DONE, FIRST, come, shared

KILLED = """
import os, signal, sys
import lately
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
    _once.Claim._insertion = lambda claim: die()
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
    ("step", "works", "left"),
    [
        ("before the claim", 0, FIRST),
        ("during the work", 1, FIRST),
        ("before the insertion", 1, FIRST),
        ("before the claim ends", 1, DONE),
        ("after the block", 1, DONE),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the lease ends the claim")
def test_killed(tmp_path, step, works, left):
    """The system shows that the process has died: no block waits for its lease."""
    assert kill(tmp_path, step) == works
    assert come(shared(tmp_path)) == left


HOLDS = """
import sys, lately
seen = lately.open(sys.argv[1], shared=True)
with seen.once("evt_1", lease="1s"):
    print("holds", flush=True)
    sys.stdin.read()
"""


def test_a_process_that_is_stopped_holds_its_claim_until_its_lease_is_over(tmp_path):
    """Then another block may claim the key; the first raises an error at its end."""
    seen = shared(tmp_path)
    process = Forked(HOLDS, tmp_path / "seen.lately")
    assert process.stdout.readline() == b"holds\n"
    process.send_signal(signal.SIGSTOP)
    assert come(seen) == BUSY
    with seen.once("evt_1", wait="1min") as claim:
        assert claim
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate()
        assert b"RuntimeError: the lease of this claim ended and another block has claimed the key" in err
        assert not claim.lost
    assert come(seen) == DONE


def test_work_that_outlasts_its_lease_ends_no_claim_but_its_own(tmp_path):
    slow, quick = shared(tmp_path), shared(tmp_path)
    # No other block has claimed the key: nothing is lost.
    with slow.once("evt_1", lease="1ms") as first:
        time.sleep(0.2)
        assert first
        assert not first.lost
        first.renew()
    assert come(quick, "evt_1") == DONE
    for call in ("renew", "commit", "__exit__"):
        first = slow.once(call, lease="1ms").__enter__()
        time.sleep(0.2)
        with quick.once(call) as second:
            assert second
            assert first.lost
            assert not second.lost
            with pytest.raises(RuntimeError, match="lease of this claim ended"):
                getattr(first, call)(*[None] * 3 * (call == "__exit__"))
            first.__exit__(ConnectionError, None, None)
            assert call not in quick
            assert not second.lost
        assert come(slow, call) == DONE


def test_a_lease_that_is_renewed_lasts(tmp_path):
    one, other = shared(tmp_path), shared(tmp_path)
    with one.once("evt_1", lease="500ms") as claim:
        for _ in range(6):
            time.sleep(0.2)
            claim.renew()
            assert come(other) == BUSY
    assert come(other) == DONE


def test_of_several_processes_with_the_same_keys_each_key_is_worked_on_once(tmp_path):
    """All open the file at the same time, and wait for one another."""
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
