"""Simulated days of a service beside an exact model in time that never steps.

Clocks are set by a second or by years, machines sleep and start again, workers restart, are killed, stopped, forked and
sent signals: no live key is missed, no key is new longer than it may be, no call outlasts its deadline, and memory
follows the keys. ``uv run pytest -m campaign -n0 -s tests/test_soak.py`` runs for ten minutes and prints the counts.
"""

import math
import os
import pickle
import random
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy  # noqa: F401
import pytest

import lately
from support.clocks import Clocks, machine
from support.forked import Forked
from support.layouts import LAYOUTS
from test_clocks import WINDOW, filters

DAY = 86_400
WORKERS, TIMEOUT, CAPACITY, FPR = 3, 10, 5000, 1e-4
SPAN = 300
WORKER = "import sys, test_soak; test_soak.worker(*sys.argv[1:])"
SHARED = {f"shared, {name}": layout for name, layout in LAYOUTS.items()}


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def worker(folder, names):
    """Open filters, and do what is requested: a line of the pipe is a pickle of a call."""
    warnings.simplefilter("ignore")
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    folder, make, opened = Path(folder), dict(filters(CAPACITY, FPR)), {}
    for name in names.split("|"):
        path = folder / name
        if name in SHARED:
            opened[name] = lately.open(path, shared=True, timeout=f"{TIMEOUT}s")
        else:
            opened[name] = lately.open(path) if path.exists() else make[name]()

    def work(_number, _frame):
        """A handler of signals that works on keys itself."""
        for f in opened.values():
            with f.once("signal"):
                pass

    signal.signal(signal.SIGUSR1, work)

    def call(method, keys):
        return {name: one(f, method, keys) for name, f in opened.items()}

    def one(f, method, keys):
        began, lasted = now(), time.monotonic()
        if method == "once":
            states = []
            for key in keys:
                with f.once(key) as claim:
                    states.append(claim.busy or claim.done)
            found = states
        elif method == "seen":
            found = [f.seen(key) for key in keys]
        elif method == "contains":
            found = [key in f for key in keys]
        elif method == "insert":
            found = f.insert(keys)
        else:
            found = getattr(f, method)(keys).tolist()
        return found, began, now(), time.monotonic() - lasted, f.nbytes

    while True:
        what, *request = pickle.load(requests)
        if what == "call":
            answer = call(*request)
        elif what == "fork":
            # The child has the keys of its parent, and what it inserts into a private filter is its own.
            reading, writing = os.pipe()
            if (child := os.fork()) == 0:
                os.write(writing, pickle.dumps(call(*request)))
                os._exit(0)
            os.close(writing)
            with os.fdopen(reading, "rb") as pipe:
                answer = pickle.load(pipe)
            os.waitpid(child, 0)
        elif what == "end":
            for name, f in opened.items():
                if name not in SHARED:
                    f.save(folder / name)
            answer = None
        else:
            answer = {name: (f.slack if hasattr(f, "slack") else 0.0, f.lateness or 0.0) for name, f in opened.items()}
        pickle.dump(answer, answers)
        answers.flush()
        if what == "end":
            return


class Worker:
    """A process that has filters."""

    def __init__(self, folder, environment, names):
        given = {"imports": ("test_soak",), "environment": environment, "stderr": 2}
        self.process = Forked(WORKER, folder, "|".join(names), **given)
        self.limits = self.result_of("limits")

    def send(self, *request):
        pickle.dump(request, self.process.stdin)
        self.process.stdin.flush()

    def answer(self):
        return pickle.load(self.process.stdout)

    def result_of(self, *request):
        self.send(*request)
        return self.answer()

    def end(self):
        self.result_of("end")
        self.process.communicate()
        assert self.process.returncode == 0

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()


class Model:
    """When keys of a filter were last inserted: surely, and perhaps."""

    def __init__(self, name, slack, lateness):
        self.name, self.most = name, SPAN + slack + lateness
        self.sure, self.perhaps = {}, {}
        self.counts = dict.fromkeys(("live", "missed", "old", "reported"), 0)

    def check(self, keys, found, began, ended):
        for key, reported in zip(keys, found, strict=True):
            inserted, returned = self.sure.get(key, (-math.inf, -math.inf))
            if ended - inserted <= SPAN and returned <= began:
                self.counts["live"] += 1
                self.counts["missed"] += not reported
            # Each start of the machine may lose a second.
            elif began - self.perhaps.get(key, -math.inf) > self.most + 10:
                self.counts["old"] += 1
                self.counts["reported"] += reported

    def insert(self, keys, began, ended, *, surely=True):
        for key in keys:
            if surely:
                self.sure[key] = (began, ended)
            self.perhaps[key] = ended


class Soak:
    """A machine with workers: one has private filters of every family, the others share files."""

    def __init__(self, folder, seed):
        self.folder, self.chance = folder, random.Random(seed)
        self.environment = machine(folder)
        self.clocks = Clocks(folder / "clocks")
        for name, made in SHARED.items():
            made(WINDOW, FPR, capacity=CAPACITY, seed="random").save(folder / name)
        self.private = [name for name, _ in filters(CAPACITY, FPR)]
        self.earlier = self.wall = 0.0  # time of earlier starts of the machine; how far its clock is off
        self.workers = [self.started(i) for i in range(WORKERS)]
        limits = self.workers[0].limits | self.workers[1].limits
        self.models = {name: Model(name, *limit) for name, limit in limits.items()}
        self.events, self.number, self.longest, self.bytes, self.calls = {}, 0, 0.0, {}, 0

    def started(self, i):
        return Worker(self.folder, self.environment, self.private if i == 0 else list(SHARED))

    def keys(self):
        """Some keys: new ones, those of a moment ago, and old ones."""
        more = self.chance.choice([1, 1, 3, 20])
        self.number += more
        fresh = range(self.number - more, self.number)
        back = [self.number - 1 - int(10 ** self.chance.uniform(0, 3)) for _ in range(12)]
        return list(dict.fromkeys([*fresh, *[key for key in back if key >= 0]]))

    def call(self, worker, what="call", *, method=None, killed=False, stopped=False):
        """Let a worker look up or insert keys in all its filters, and compare its answers."""
        keys = self.keys()
        method = method or self.chance.choice(["duplicated", "insert", "query", "seen", "contains", "once"])
        began = self.time()
        worker.send(what, method, keys)
        if killed:
            time.sleep(self.chance.random() * 0.004)
            worker.kill()
        for name in SHARED if killed or stopped else ():
            # Another worker may find them before this one answers.
            self.models[name].insert(keys, began, self.time(), surely=False)
        if killed:
            return lambda: None

        def compare():
            for name, (found, began, ended, lasted, nbytes) in worker.answer().items():
                began, ended, model = began + self.earlier, ended + self.earlier, self.models[name]
                self.longest = max(self.longest, lasted)
                self.calls += len(keys)
                self.bytes[name] = max(self.bytes.get(name, 0), nbytes)
                if method != "insert":
                    model.check(keys, found, began, ended)
                if method not in ("query", "contains") and not (what == "fork" and name not in SHARED):
                    # A key that is done stays as it is.
                    done = found if method == "once" else [False] * len(keys)
                    model.insert([key for key, seen in zip(keys, done, strict=True) if not seen], began, ended)

        return compare

    def time(self):
        return self.earlier + now() + self.clocks.since_start()

    def event(self):
        """Let something happen."""
        kinds = {"call": 60, "pause": 12, "wall": 6, "sleep": 1, "kill": 6, "stop": 3, "signal": 4, "fork": 4}
        kinds |= {"restart": 0.5, "machine": 0.3}
        kind = self.chance.choices(list(kinds), list(kinds.values()))[0]
        self.events[kind] = self.events.get(kind, 0) + 1
        i = self.chance.randrange(1, WORKERS) if kind in ("kill", "stop") else self.chance.randrange(WORKERS)
        worker = self.workers[i]
        if kind == "pause":
            self.clocks.pass_time(10 ** self.chance.uniform(-2, 2.3))
        elif kind == "sleep":
            self.clocks.pass_time(10 ** self.chance.uniform(2, 5))
        elif kind == "wall":
            step = self.chance.choice([-1, 1]) * 10 ** self.chance.uniform(0, 8.1)
            step = step if abs(self.wall + step) < 10 * 365 * DAY else -step
            self.wall += step
            self.clocks.set_wall(step)
        elif kind == "restart":
            worker.end()
            self.workers[i] = self.started(i)
        elif kind == "machine":
            # The file notes the wall clock with each insertion: before, and after, from when on it may be set again.
            self.call(self.workers[1], method="insert")()
            for each in self.workers:
                each.end()
            self.earlier = self.time()
            (self.folder / "boot").write_text(str(self.earlier))
            self.clocks.start_again(off := self.chance.uniform(0, 200))
            self.earlier += off
            self.workers = [self.started(i) for i in range(WORKERS)]
            self.call(self.workers[1], method="insert")()
        elif kind == "kill":
            self.call(worker, killed=True)
            self.workers[i] = self.started(i)
        elif kind == "stop":
            answered = self.call(worker, stopped=True)
            worker.process.send_signal(signal.SIGSTOP)
            other = self.workers[WORKERS - i]
            other_answered = self.call(other)
            time.sleep(0.01)
            worker.process.send_signal(signal.SIGCONT)
            other_answered()
            answered()
        else:
            answered = self.call(worker, "fork" if kind == "fork" else "call")
            if kind == "signal":
                worker.process.send_signal(signal.SIGUSR1)
            answered()

    def run(self, events, seconds):
        end, began = time.monotonic() + seconds, self.time()
        while events and time.monotonic() < end:
            self.event()
            events -= 1
        for each in self.workers:
            each.end()
        return (self.time() - began) / DAY


def soak(folder, seed, events=-1, seconds=math.inf):
    soaked = Soak(folder, seed)
    days = soaked.run(events, seconds)
    counts = {name: model.counts for name, model in soaked.models.items()}
    counted = f"{soaked.number} keys in {soaked.calls} calls, longest {soaked.longest:.3f} s"
    print(f"\n{days:.1f} days, {counted}, {soaked.events}")
    for name, count in counts.items():
        print(f"{name:<40} {count}, at most {soaked.bytes.get(name, 0):,} bytes")
    assert {name: count["missed"] for name, count in counts.items() if count["missed"]} == {}
    old = sum(count["old"] for count in counts.values())
    reported = sum(count["reported"] for count in counts.values())
    expected = old * FPR
    assert reported <= expected + 5 * math.sqrt(expected) + 3, (reported, old)
    assert sum(count["live"] for count in counts.values()) > old / 100
    assert soaked.longest < TIMEOUT
    assert max(soaked.bytes.values()) < 4 << 20


def test_days_of_a_service(tmp_path):
    soak(tmp_path, 1, events=250)


@pytest.mark.campaign
def test_weeks_of_a_service(tmp_path):
    soak(tmp_path, 2, seconds=600)
