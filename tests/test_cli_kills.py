"""Runs with a state are killed at any moment, and restarted as by a scheduler. Nothing is lost or comes twice."""

import random
import signal

import pytest

from support.forked import Forked

# Ends itself with a signal at the n-th thing it does to files from the first output on (as counted by the interpreter:
# open, rename, remove, lock, close down), before it does it. No n: never.
COMMAND = """
import os, signal, sys
strike, number = map(int, sys.argv[1:3])
del sys.argv[1:3]
for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(each, signal.default_int_handler if each == signal.SIGINT else signal.SIG_DFL)
from lately.cli import main
steps = 0
def watch(event, arguments):
    global steps
    if event in ("open", "os.rename", "os.remove", "os.chmod", "fcntl.flock", "cpython._PySys_ClearAuditHooks"):
        steps += 1
        if steps == strike:
            os.kill(os.getpid(), number)
if strike:
    sys.addaudithook(watch)
status = main()
print("ended", steps, file=sys.stderr)
sys.exit(status)
"""
PARTS = 4
LINES = 3000


def lines(seed):
    rng = random.Random(seed)
    return [f"{rng.randrange(LINES * PARTS // 2)}\n".encode() for _ in range(LINES * PARTS)]


class Chain:
    """Runs that share a state, one after the other; each is started again until it ends well."""

    def __init__(self, folder, seed, *, pipe, standard):
        self.folder, self.pipe, self.standard = folder, pipe, standard
        self.all = lines(seed)
        self.struck = 0
        self.given = []

    def run(self, part, strike=0, number=signal.SIGKILL):
        """Run once; return whether it ended well."""
        source, target = self.folder / f"{part}.txt", self.folder / f"{part}.new"
        if not source.exists():
            source.write_bytes(b"".join(self.all[part * LINES : (part + 1) * LINES]))
        arguments = ["-" if self.pipe else source, "-o", "-" if self.standard else target, "--state", self.folder / "s"]
        arguments = [*arguments, "--window", 10**6, "--fpr", 1e-9, "--quiet"]
        process = Forked(COMMAND, strike, int(number), "dedupe", *arguments)
        before = self.state()
        out, err = process.communicate(source.read_bytes() if self.pipe else b"")
        self.given.append((part, out))
        assert process.returncode in (0, -number, 128 + number), err
        if process.returncode and number != signal.SIGKILL:
            assert self.state() == before
        self.steps = int(err.split()[-1]) if b"ended" in err else None
        self.struck += process.returncode != 0
        return process.returncode == 0

    def state(self):
        path = self.folder / "s"
        return path.read_bytes() if path.exists() else None

    def check(self):
        """Compare the output with the lines that are new."""
        expected = list(dict.fromkeys(self.all))
        if self.standard:  # what is struck may come again, and is not lost
            assert set(b"".join(out for _, out in self.given).splitlines(keepends=True)) >= set(expected)
            return
        outputs = [(self.folder / f"{part}.new").read_bytes() for part in range(PARTS)]
        assert b"".join(outputs) == b"".join(expected)
        assert not [path for path in self.folder.iterdir() if path.suffix == ".lock"]


def aimed(folder, seed, *, pipe, standard):
    """Strike each run at a step of its own, at every signal in turn."""
    rng = random.Random(seed)
    chain = Chain(folder, seed, pipe=pipe, standard=standard)
    for part in range(PARTS):
        number = rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
        if not chain.run(part, strike=rng.randrange(1, 24), number=number):
            while not chain.run(part):
                pass
        elif rng.random() < 0.5 and not standard:
            assert chain.run(part)  # it ended well, and is started again for nothing
    chain.check()
    return chain.struck


@pytest.mark.parametrize("standard", [False, True])
@pytest.mark.parametrize("pipe", [False, True])
def test_struck_runs_lose_nothing(tmp_path, pipe, standard):
    assert aimed(tmp_path, 1, pipe=pipe, standard=standard) > 0


def test_every_step_of_a_run(tmp_path):
    """A run is killed at each step in turn; the last is the end of the interpreter."""
    chain = Chain(tmp_path, 0, pipe=False, standard=False)
    chain.run(0)
    step = 0
    while chain.steps is None or chain.steps >= step:
        step += 1
        chain.run(1, strike=step)
    assert chain.run(1)
    assert all(chain.run(part) for part in range(2, PARTS))
    chain.check()
    assert chain.struck >= 10


@pytest.mark.campaign
def test_a_campaign_of_kills(tmp_path, capsys):
    struck = seed = 0
    while struck < 500:
        seed += 1
        folder = tmp_path / str(seed)
        folder.mkdir()
        struck += aimed(folder, seed, pipe=seed % 4 == 1, standard=seed % 8 == 2)
    with capsys.disabled():
        print(f"\n{struck} kills in {seed} chains of {PARTS} runs: nothing lost, nothing twice")
