"""Sites and producers are killed again and again: what is lost, and what is reported new twice.

In one process, and on Ray by SIGKILL. ``uv run pytest -m campaign -n0 -s tests/test_kills.py`` prints the counts.
"""

import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest

import lately
from lately.distributed import LocalSites, SlicedFilter

KINDS = {
    "horizontal": {"kind": "horizontal", "slices": 4},
    "vertical": {"kind": "vertical", "slices": 4},
    "h-v": {"kind": "diced", "slices": (2, 2), "dice": "h-v"},
    "v-h": {"kind": "diced", "slices": (2, 2), "dice": "v-h"},
}
KILLS, KEYS = 60, 300
# Of each kind and interval: 208 in all.
ON_RAY = 26
# Most seconds that a checkpoint takes on a machine that is busy: it has what came before it began.
SAVING = 2


class Mortal(LocalSites):
    """Sites of which some get a batch before its producer dies, or before one of them does."""

    rng = np.random.default_rng(0)
    dies = ""

    def call(self, messages):
        if not self.dies or messages[0].method not in ("set", "touch", "insert", "duplicated"):
            return super().call(messages)
        dies, self.dies = self.dies, ""
        heard = [message for message in messages if self.rng.random() < 0.5]
        super().call(heard)
        if dies == "site":
            site = int(self.rng.integers(len(self)))
            self.kill(site)
            self.restart(site)
        raise ConnectionError("the producer dies")


@pytest.mark.campaign
@pytest.mark.parametrize("interval", [0, 1])
@pytest.mark.parametrize("name", KINDS)
def test_kills(name, interval, tmp_path):
    """With `interval=0` no key is lost or new twice; else unsaved keys may be new twice, and are counted."""
    rng = np.random.default_rng(3)
    like = lately.BloomFilter(200_000, 1e-9)
    made = {**KINDS[name], "filter": like, "sites": Mortal, "checkpoint": tmp_path, "interval": interval}
    new = np.zeros(KILLS * KEYS, dtype=int)
    with SlicedFilter(**made, producer="p") as sliced, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f = sliced
        for number in range(1, KILLS + 1):
            # Half of them have come before.
            first = (number - 1) * KEYS
            batch = np.concatenate([np.arange(first, first + KEYS), rng.integers(0, first + 1, KEYS)])
            sliced.sites.dies = ("site", "producer")[number % 2]
            with pytest.raises(ConnectionError):
                f.duplicated(batch, number=number)
            # It is started again, and knows nothing but its name and the batch.
            f = sliced.handle("p")
            np.add.at(new, batch[~f.duplicated(batch, number=number)], 1)
    lost, doubled = int((new == 0).sum()), int((new > 1).sum())
    print(f"{name}, interval {interval}: {KILLS} kills, {len(new)} keys, {lost} lost, {doubled} new twice")
    if interval == 0:
        assert (lost, doubled) == (0, 0)
    assert lost == 0


class Sink:
    """How often each key was reported new."""

    def __init__(self, batches):
        self.times_new = np.zeros(batches * KEYS, dtype=int)
        self.first = np.full(batches * KEYS, np.inf)
        # Keys that a site may have forgotten, by what is documented: those that came after its last checkpoint.
        self.risked = np.zeros(batches * KEYS, dtype=bool)
        # Keys that were decided without an answer, and announced.
        self.marked = np.zeros(batches * KEYS, dtype=bool)

    def take(self, batch, seen, marked):
        self.marked[batch[marked]] = True
        np.add.at(self.times_new, batch[~seen], 1)
        self.first[batch[~seen]] = np.minimum(self.first[batch[~seen]], time.time())

    def counts(self):
        return int((self.times_new == 0).sum()), int((self.times_new > 1).sum())


def killed(process, delay):
    """Kill a process a moment from now."""
    timer = threading.Timer(delay, os.kill, (process, signal.SIGKILL))
    timer.start()
    return timer


@pytest.mark.campaign
@pytest.mark.parametrize("interval", [0, 1])
@pytest.mark.parametrize("name", KINDS)
def test_kills_by_signals_on_ray(ray_cluster, name, interval, tmp_path):
    """Every other kill is a site's; the others are of a sending process, and its answer is lost."""

    @ray_cluster.remote(max_restarts=0, num_cpus=0)
    class Producer:
        def __init__(self, f):
            self.f = f.handle("p")

        def process(self):
            return os.getpid()

        def send(self, batch, number):
            return self.f.duplicated(batch, number=number)

    rng = np.random.default_rng(5)
    made = {**KINDS[name], "filter": lately.BloomFilter(200_000, 1e-9), "sites": "ray", "deadline": 120}
    sink, batches, dead, answered = Sink(3 * ON_RAY), 0, 0, 0
    with (
        SlicedFilter(**made, checkpoint=tmp_path, interval=interval, producer="p") as f,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        # Until when each site is known to have saved what came.
        safe = np.full(len(f.sites), time.time())
        for kill in range(ON_RAY):
            for quiet in (True, True, False):
                # Half of them have come before.
                first, batches = batches * KEYS, batches + 1
                batch = np.concatenate([np.arange(first, first + KEYS), rng.integers(0, first + 1, KEYS)])
                delay = float(rng.uniform(0, 0.02))
                if not quiet and kill % 2:
                    producer = Producer.remote(f)
                    process = ray_cluster.get(producer.process.remote(), timeout=120)
                    sent = producer.send.remote(batch, batches)
                    time.sleep(delay)
                    os.kill(process, signal.SIGKILL)
                    try:
                        ray_cluster.get(sent, timeout=120)
                        answered += 1
                    except ray_cluster.exceptions.RayActorError:
                        dead += 1
                elif not quiet:
                    # Every other one dies when all is saved but the batch that comes now.
                    while kill % 4 and any(site["changed"] for site in f.status()):
                        time.sleep(0.1)
                    now, status, victim = time.time(), f.status(), int(rng.integers(len(f.sites)))
                    # One that has not saved since it was restored has what it had saved before.
                    saved = [site["saved"] - SAVING if site["changed"] else now for site in status]
                    safe = np.maximum(safe, saved)
                    # Those that have not come yet have no time.
                    sink.risked |= (sink.first > safe[victim]) & (sink.first < np.inf)
                    sink.risked[first : first + KEYS] = True
                    timer = killed(status[victim]["process"], delay)
                # The process after it has only its name and the batch.
                anew = f.handle("p")
                sink.take(batch, anew.duplicated(batch, number=batches), anew.unanswered)
                if not quiet and not kill % 2:
                    # It is killed by now, and perhaps only missed by the next batch.
                    timer.join()
                    dead += 1
        (lost, doubled), restarts = sink.counts(), sum(site["restored"] for site in f.status())
    print(
        f"\n{name}, interval {interval}, Ray: {ON_RAY} kills ({answered} of them after the answer), {restarts} sites "
        f"restored, {len(sink.times_new)} keys, {lost} lost, {doubled} new twice; "
        f"{int(sink.marked.sum())} marked as unanswered, {int(sink.risked.sum())} came after the "
        "last checkpoint of a site that was killed, or with the kill"
    )
    assert dead + answered == ON_RAY
    assert restarts > 0
    assert lost == 0
    if interval == 0:
        assert doubled == 0
    else:
        assert not (sink.times_new > 1)[~sink.risked].any()
        assert 0 < sink.risked.sum() < len(sink.times_new)
