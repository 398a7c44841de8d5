"""Work on a key is done once, and remembered only when it succeeds."""

import asyncio
import fcntl
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import lately


def private(_folder):
    return lately.Filter("1d", 1e-9, capacity=400_000)


def shared(folder):
    path = folder / "seen.lately"
    if not path.exists():
        lately.AgePartitionedBloomFilter("1d", 1e-9, capacity=10_000).save(path)
    return lately.open(path, shared=True)


def exact(_folder):
    return lately.ExactFilter("1d")


@pytest.fixture(params=[private, shared, exact])
def seen(request, tmp_path):
    return request.param(tmp_path)


def state(claim):
    return (bool(claim), claim.done, claim.busy)


FIRST, DONE, BUSY = (True, False, False), (False, True, False), (False, False, True)


def come(seen, key="evt_1", **options):
    """Do the work of a key if it is to be done; return the state of the claim."""
    with seen.once(key, **options) as claim:
        return state(claim)


def test_work_that_succeeds_is_done_once(seen):
    assert [come(seen), come(seen), come(seen, "evt_2"), come(seen, "evt_2")] == [FIRST, DONE, FIRST, DONE]
    assert "evt_1" in seen
    assert seen.inserted == 2


@pytest.mark.parametrize("error", [ConnectionError, KeyboardInterrupt, asyncio.CancelledError])
def test_work_that_fails_is_done_again(seen, error):
    with suppress(error), seen.once("evt_1") as claim:
        assert state(claim) == FIRST
        raise error
    assert "evt_1" not in seen
    assert come(seen) == FIRST


def test_a_key_under_way_is_busy_and_not_done(seen):
    with seen.once("evt_1"):
        assert come(seen) == BUSY
        assert come(seen, "evt_2") == FIRST
    assert come(seen) == DONE


def test_a_busy_block_ends_nothing(seen):
    with seen.once("evt_1"):
        come(seen)
        assert come(seen) == BUSY


def test_release_ends_the_claim_without_an_exception(seen):
    with seen.once("evt_1") as claim:
        claim.release()
        assert not claim
        assert come(seen) == FIRST
    assert come(seen) == DONE


def test_commit_remembers_before_the_block_ends(seen):
    with suppress(ConnectionError), seen.once("evt_1") as claim:
        claim.commit()
        assert "evt_1" in seen
        raise ConnectionError
    assert seen.inserted == 1
    assert come(seen) == DONE


def test_commit_and_release_need_the_claim(seen):
    come(seen)
    with seen.once("evt_1") as claim:
        for call in (claim.commit, claim.release):
            with pytest.raises(RuntimeError, match="holds the claim; the state of this claim is 'done'"):
                call()
    with pytest.raises(RuntimeError, match="call once\\(\\) again"):
        claim.__enter__()


@pytest.mark.parametrize("kept", [None, "commit"])
@pytest.mark.parametrize("fails", [0, 1, 3])
def test_of_threads_with_one_new_key_one_does_the_work(seen, fails, kept):
    """If the work fails, one of the waiting threads does it next."""
    failing, done = [ConnectionError] * fails, []

    def work(_):
        with seen.once("evt_1", wait="1min") as claim:
            if claim:
                time.sleep(0.002)
                if failing:
                    raise failing.pop()
                done.append(1)
                if kept:
                    claim.commit()
            return state(claim)

    with ThreadPoolExecutor(8) as pool:
        states = [task.exception() or task.result() for task in [pool.submit(work, n) for n in range(8)]]
    assert done == [1]
    assert states.count(FIRST) == 1
    assert states.count(DONE) == 7 - fails


def test_keys_that_are_equal_in_python_are_one_claim(seen):
    for one, other in [(1, 1.0), (2, np.int64(2)), ("a", np.str_("a")), (("a", 1), ("a", 1.0))]:
        with seen.once(one):
            assert come(seen, other) == BUSY
        assert come(seen, other) == DONE


def test_a_wait_ends_with_the_claim_or_with_its_time(seen):
    with seen.once("evt_1"):
        assert come(seen, wait="20ms") == BUSY
    entered = threading.Event()

    def work():
        with seen.once("evt_2"):
            entered.set()
            time.sleep(0.05)

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait()
    assert come(seen, "evt_2", wait="1min") == DONE
    thread.join()


def interrupted(step, error, block):
    """Run a block that raises at this step of the code of claims. Return whether it got so far."""
    left = step

    def trace(frame, event, _argument):
        nonlocal left
        if not frame.f_code.co_filename.endswith("_once.py"):
            return None
        left -= event == "line"
        if left == 0:
            sys.settrace(None)
            raise error
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        block()
    except error:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError])
def test_an_interrupt_at_any_step_leaves_no_key_that_stays_busy(seen, tmp_path, error, fails):
    """As by Ctrl-C in a notebook, or by a signal handler that ends tasks that take too long."""
    other = shared(tmp_path) if (tmp_path / "seen.lately").exists() else seen
    come(seen), come(other)
    for step in range(1, 1000):

        def block(key=step):
            with seen.once(key):
                if fails:
                    raise ConnectionError

        reached = False
        with suppress(ConnectionError):
            reached = interrupted(step, error, block)
        left = come(other, step)
        assert left == FIRST or (left == DONE and not fails)
        if not reached:
            break
    assert 20 < step < 999


def test_a_claim_that_is_dropped_without_a_block_has_ended():
    seen = lately.ExactFilter("1d")
    claim = seen.once("evt_1").__enter__()
    assert (bool(claim), come(seen)) == (True, BUSY)
    del claim
    assert come(seen) == FIRST


def test_coroutines_wait_without_blocking_the_loop(seen):
    async def work(fails):
        async with seen.once("evt_1", wait="1min") as claim:
            if claim:
                await asyncio.sleep(0.01)
                if fails:
                    raise ConnectionError
            return state(claim)

    async def main():
        return await asyncio.gather(*[work(n == 0) for n in range(10)], return_exceptions=True)

    first, *others = asyncio.run(main())
    assert isinstance(first, ConnectionError)
    assert sorted(others) == sorted([FIRST] + [DONE] * 8)


def test_a_coroutine_that_is_cancelled_ends_its_claim(seen):
    async def main():
        async def work():
            async with seen.once("evt_1"):
                await asyncio.sleep(60)

        task = asyncio.ensure_future(work())
        await asyncio.sleep(0)
        assert come(seen) == BUSY
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    assert come(seen) == FIRST


def test_a_decorated_function_is_called_once_for_each_key(seen):
    shipped = []

    @lately.once(seen, key=lambda order, **_: order["id"])
    def ship(order, fails=False):
        """Ship an order."""
        if fails:
            raise ConnectionError
        shipped.append(order["id"])
        return "shipped"

    with pytest.raises(ConnectionError):
        ship({"id": 1}, fails=True)
    assert [ship({"id": 1}), ship({"id": 1}), ship({"id": 2})] == ["shipped", None, "shipped"]
    assert shipped == [1, 2]
    assert (ship.__name__, ship.__doc__) == ("ship", "Ship an order.")


def test_a_decorated_coroutine_waits_or_raises(seen):
    async def ship(order):
        await asyncio.sleep(0.005)
        return order

    async def all_of(decorated):
        return await asyncio.gather(*[decorated("A7") for _ in range(3)], return_exceptions=True)

    results = asyncio.run(all_of(lately.once(seen, wait="1min")(ship)))
    assert results.count("A7") == 1
    assert results.count(None) == 2
    impatient = lately.once(seen, key=lambda order: order + "!")(ship)
    results = asyncio.run(all_of(impatient))
    assert [type(result) for result in results] == [str, TimeoutError, TimeoutError]


@pytest.mark.parametrize(
    "lazy",
    [
        staticmethod(lambda order: asyncio.sleep(0)),
        lambda order: asyncio.sleep(0),
        lambda order: (line for line in order),
    ],
)
def test_a_call_whose_work_is_not_done_when_it_returns_is_not_remembered(seen, lazy):
    """A coroutine that a plain function returns was never awaited within the block."""
    with pytest.raises(TypeError, match=r"returned a \w+: its work is not done when the call returns"):
        lately.once(seen)(lazy)("A7")
    assert "A7" not in seen
    assert come(seen, "A7") == FIRST


def test_methods_name_their_key(seen):
    class Shop:
        def __init__(self):
            self.shipped = []

        @lately.once(seen, key=lambda shop, order: order)
        def ship(self, order):
            self.shipped.append(order)

        @lately.once(seen, key=lambda shop, order: order)
        async def later(self, order):
            self.shipped.append(order)

        @lately.once(seen)
        def forgotten(self, order):
            pytest.fail("the work must not begin")

    shop = Shop()
    for order in ("A7", "B3", "A7"):
        shop.ship(order)
        asyncio.run(shop.later(order))
    assert shop.shipped == ["A7", "B3"]
    with pytest.raises(TypeError, match=r"Shop cannot be a key.* for a method, pass key= to once\(\)"):
        shop.forgotten("C9")


def test_event_times_of_a_decorated_function_are_its_arguments():
    seen = lately.Filter("10min", 1e-9, capacity=1000)
    done = []

    @lately.once(seen, key=lambda key, at: key, at=lambda key, at: at)
    def work(key, at):
        done.append(at)

    for at in (0, 599, 1500):
        work("a", at)
    assert done == [0, 1500]


@pytest.mark.parametrize("make", [lambda **options: lately.Filter("10min", 1e-9, **options), lately.ExactFilter])
def test_a_claim_that_other_keys_overtake_is_remembered_as_of_the_latest_time(make):
    """Never for less than the window from its own time."""
    seen = make("10min") if make is lately.ExactFilter else make(capacity=1000)
    with seen.once("slow", at=1000) as claim:
        assert come(seen, "fast", at=1500) == FIRST
        assert claim
    assert seen.query(["slow"], at=1600).tolist() == [True]
    assert come(seen, "slow", at=2099) == DONE


def test_a_time_that_could_not_be_inserted_is_rejected_before_the_work(seen):
    """Of the first key too."""
    with pytest.raises(ValueError, match="ahead"), seen.once("evt_1", at=time.time() + 10**6):
        pytest.fail("the work must not begin")
    come(seen, at=time.time())
    for at in (time.time() + 10**6, time.time() - 10**6):
        with pytest.raises(ValueError, match=r"ahead|before"), seen.once("evt_2", at=at):
            pytest.fail("the work must not begin")
    assert come(seen, "evt_2") == FIRST


def test_bad_requests_are_named(seen):
    def generator():
        yield

    for call, error, message in [
        (lambda: come(seen, object()), TypeError, "cannot be a key"),
        (lambda: come(seen, ["a"]), TypeError, "key must be one key, got a list"),
        (lambda: come(seen, wait="soon"), ValueError, "wait"),
        (lambda: come(seen, lease=None), TypeError, "lease"),
        (lambda: come(seen, lease="0s"), ValueError, "lease must be longer than zero"),
        (lambda: come(seen, missing="raise"), ValueError, "missing must be 'same' or 'distinct', got 'raise'"),
        (lambda: lately.once("seen"), TypeError, "filter must be a filter of lately, got str"),
        (lambda: lately.once(seen, key="id"), TypeError, "key must be callable, got str"),
        (lambda: lately.once(seen, at=5), TypeError, "at must be callable, got int"),
        (lambda: lately.once(seen, lease="never"), ValueError, "lease"),
        (lambda: lately.once(seen)(generator), TypeError, "is a generator"),
        (lambda: lately.once(seen)(partial(generator)), TypeError, "is a generator"),
        (lambda: lately.once(seen)("ship"), TypeError, "function must be callable, got str"),
        (lambda: lately.once(seen)(print)(), TypeError, "the first argument is the key"),
    ]:
        with pytest.raises(error, match=message):
            call()


def test_a_copy_and_a_pickle_have_claims_of_their_own(tmp_path):
    seen = private(tmp_path)
    with seen.once("evt_1"):
        for other in (seen.copy(), pickle.loads(pickle.dumps(seen))):
            assert come(other) == FIRST


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors")
def test_a_filter_and_its_claims_end_without_the_garbage_collector(seen, tmp_path):
    gc.disable()
    try:
        come(seen)
        before = len(list(Path("/proc/self/fd").iterdir()))
        for key in range(5):
            f = shared(tmp_path)
            come(f, key)
            end = weakref.finalize(f, lambda: None)
            del f
            assert not end.alive
        assert len(list(Path("/proc/self/fd").iterdir())) == before
    finally:
        gc.enable()


def test_filters_of_one_shared_file_have_one_set_of_claims(tmp_path):
    """A link to the file leads to them too, and so does a pickle, which is the path."""
    seen = shared(tmp_path)
    (tmp_path / "link.lately").symlink_to(tmp_path / "seen.lately")
    others = [shared(tmp_path), lately.open(tmp_path / "link.lately", shared=True), pickle.loads(pickle.dumps(seen))]
    with seen.once("evt_1"):
        assert [come(other) for other in others] == [BUSY] * 3
    assert [come(other) for other in others] == [DONE] * 3


def test_claims_of_a_shared_filter_are_in_its_file_alone(tmp_path):
    """The owner and the mode of that file hold for them, and a file that is mounted alone is enough."""
    come(shared(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["seen.lately"]


@pytest.mark.parametrize("missing", [None, float("nan"), np.datetime64("NaT")])
def test_a_missing_key_is_never_a_repeat(seen, missing):
    """The second message without an id is handled too."""
    assert [come(seen, missing) for _ in range(3)] == [FIRST] * 3
    with seen.once(missing) as claim:
        assert come(seen, missing) == FIRST
        claim.commit()
    assert seen.inserted == 0
    assert [come(seen, missing, missing="same") for _ in range(2)] == [FIRST, DONE]
    done = []
    for _ in range(2):
        lately.once(seen)(done.append)(missing)
    assert len(done) == 2


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="signals")
def test_a_signal_handler_may_use_once_within_any_call(seen):
    """Each key's work is done once, whatever the handler interrupts."""
    worked: list[int] = []
    handled = 0

    def work(key):
        with seen.once(key) as claim:
            if claim:
                worked.append(key)

    def handle(*_):
        nonlocal handled
        handled += 1
        work(-handled)
        work(handled % 50)

    before = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        for key in range(3000):
            work(key)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert handled > 10
    assert len(worked) == len(set(worked))
    assert set(worked) >= set(range(3000)) | {-n for n in range(1, handled + 1)}


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="stopped processes")
def test_a_stopped_process_with_the_lock_does_not_stop_the_event_loop(tmp_path):
    """The file's `timeout` ends the wait, and other tasks go on meanwhile."""
    path = tmp_path / "seen.lately"
    shared(tmp_path)
    seen = lately.open(path, shared=True, timeout="300ms")
    with seen.once("renewed") as held, path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # as a process that is stopped within a call
        ticks = []

        async def tick():
            while True:
                ticks.append(time.monotonic())
                await asyncio.sleep(0.005)

        async def main():
            ticking = asyncio.ensure_future(tick())
            await asyncio.sleep(0)
            with pytest.raises(TimeoutError, match=r"has held the lock of the file for 0\.3 s"):
                async with seen.once("evt_1"):
                    pytest.fail("the work must not begin")
            ticking.cancel()

        asyncio.run(main())
        assert len(ticks) > 10
        held.renew()  # needs no lock
        assert not held.lost
        held.release()
        fcntl.flock(file, fcntl.LOCK_UN)
    assert come(seen, "renewed") == FIRST


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_is_forked_within_a_block_neither_ends_the_claim_nor_inserts_the_key(seen):
    with seen.once("evt_1") as claim:
        child = os.fork()
        if child == 0:
            with suppress(BaseException):
                claim.__exit__(None, None, None)
                with suppress(RuntimeError):
                    claim.commit()
                claim.release()
            os._exit("evt_1" in seen)
        assert os.waitpid(child, 0)[1] == 0
        assert come(seen) == BUSY
    assert come(seen) == DONE


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a fork")
@pytest.mark.parametrize("kind", ["private", "shared"])
def test_a_child_of_a_fork_has_no_claims_that_nothing_would_end(tmp_path, kind):
    """Of a private filter it has none; of a shared one it sees its parent's, while these last."""
    script = f"""
import os, sys, threading
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from test_once import come, {kind}, BUSY, FIRST, DONE
seen = {kind}(Path({str(tmp_path)!r}))
entered, leave = threading.Event(), threading.Event()
def work():
    with seen.once("evt_1"):
        entered.set()
        leave.wait()
thread = threading.Thread(target=work)
thread.start()
entered.wait()
child = os.fork()
if child == 0:
    os._exit([FIRST, DONE, BUSY].index(come(seen)))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
leave.set()
thread.join()
print(come(seen) == DONE)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0" if kind == "private" else "2", "True"]
