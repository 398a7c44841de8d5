"""Other ways to find duplicates, without a line of Python per key where possible."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from time import sleep
from typing import Any

import fastbloom_rs
import numpy as np
import pandas as pd
import polars as pl
import redis
from abloom import BloomFilter
from rbloom import Bloom

from speed.ours import Make, Structure
from support.exact import ExactWindow


def truths(answers: Iterable[bool], n: int) -> np.ndarray:
    """Collect n answers; with `map` it is the fastest way to query a peer."""
    return np.fromiter(answers, bool, n)


class OneFilter(Structure):
    """A classical Bloom filter for W keys: no window."""

    operations = ("query", "insert")
    renewed = True

    def __init__(self, window: int, fpr: float, kind: type) -> None:
        self.filter, self.fullest = kind(window, fpr), window
        self.insert = self.filter.update
        self.bits = self.filter.bit_count if kind is BloomFilter else self.filter.size_in_bits

    def query(self, keys: list) -> np.ndarray:
        return truths(map(self.filter.__contains__, keys), len(keys))


class FastBloom(Structure):
    """Another, by its calls for batches."""

    operations = ("query", "insert")
    renewed = True

    def __init__(self, window: int, fpr: float, kind: str) -> None:
        made = fastbloom_rs.FilterBuilder(window, fpr).build_bloom_filter()
        form = "int" if kind == "int64" else "str"
        self.insert, self.contains = getattr(made, f"add_{form}_batch"), getattr(made, f"contains_{form}_batch")
        self.bits, self.fullest = len(made.get_bytes()) * 8, window

    def query(self, keys: list) -> np.ndarray:
        return truths(self.contains(keys, check_type=False), len(keys))


class TwoFilters(Structure):
    """Two abloom filters that keep a window together; the older is emptied every W keys."""

    def __init__(self, window: int, capacity: int, fpr: float) -> None:
        self.window, self.inserted, self.fullest = window, 0, 2 * window
        self.current, self.other = BloomFilter(capacity, fpr), BloomFilter(capacity, fpr)
        self.bits = 2 * self.current.bit_count

    def batches(self, keys: list) -> Iterable[list]:
        """Cut the keys where the filters swap roles, and swap them."""
        start = 0
        while start < len(keys):
            if self.inserted and self.inserted % self.window == 0:
                self.rotate()
            room = self.window - self.inserted % self.window
            batch = keys[start : start + room]
            yield batch
            self.inserted += len(batch)
            start += len(batch)

    def duplicated(self, keys: list) -> np.ndarray:
        return np.concatenate([self.batch_duplicated(batch) for batch in self.batches(keys)])


class Rotated(TwoFilters):
    """Insert into the current filter, query both. Each may err half as often, so that both together keep to `fpr`."""

    def __init__(self, window: int, fpr: float) -> None:
        super().__init__(window, window, fpr / 2)

    def rotate(self) -> None:
        self.current, self.other = self.other, self.current
        self.current.clear()

    def insert(self, keys: list) -> None:
        for batch in self.batches(keys):
            self.current.update(batch)

    def query(self, keys: list) -> np.ndarray:
        answers = [truths(map(each.__contains__, keys), len(keys)) for each in (self.current, self.other)]
        return answers[0] | answers[1]

    def batch_duplicated(self, keys: list) -> np.ndarray:
        # `add` returns whether the key was new, so repeats within the batch are seen.
        new = truths(map(self.current.add, keys), len(keys))
        return truths(map(self.other.__contains__, keys), len(keys)) | ~new


class Overlapping(TwoFilters):
    """Insert into both filters, query the one that began earlier: twice the memory, but only one call per key."""

    def __init__(self, window: int, fpr: float) -> None:
        super().__init__(window, 2 * window, fpr)

    def rotate(self) -> None:
        self.current.clear()
        self.current, self.other = self.other, self.current

    def insert(self, keys: list) -> None:
        for batch in self.batches(keys):
            self.current.update(batch)
            self.other.update(batch)

    def query(self, keys: list) -> np.ndarray:
        return truths(map(self.current.__contains__, keys), len(keys))

    def batch_duplicated(self, keys: list) -> np.ndarray:
        self.other.update(keys)
        return ~truths(map(self.current.add, keys), len(keys))


class WholeColumn(Structure):
    """A frame's own method on all events of a round at once: exact, without a window, and without later queries."""

    operations = ("duplicated",)
    promise = False

    def __init__(self, takes: str) -> None:
        self.takes = takes

    def duplicated(self, keys: pd.Series | pl.Series) -> np.ndarray:
        return keys.duplicated().to_numpy() if self.takes == "pandas" else (~keys.is_first_distinct()).to_numpy()


class Exact(Structure):
    """The exact window. So slow that it gets a tenth of the events."""

    operations = ("duplicated",)
    share = 10
    renewed = True

    def __init__(self, window: int) -> None:
        self.exact, self.fullest, self.position = ExactWindow(window), window, 0

    def duplicated(self, keys: list) -> np.ndarray:
        first, self.position = self.position, self.position + len(keys)
        return np.array(self.exact.duplicated(keys, range(first, self.position)))

    insert = duplicated

    @property
    def bits(self) -> int:
        return self.exact.nbytes() * 8


class Redis(Structure):
    """A server of its own on this machine, queried by pipelines of 10,000 commands: a window of time, here a day."""

    share = 50
    # It sees a fiftieth of the stream; keys that only the others have seen are not in it.
    promise = False
    SECONDS = 86_400

    def __init__(self, window: int) -> None:
        self.fullest = window
        # The process removes the folder with itself.
        self.folder = tempfile.TemporaryDirectory()
        socket = Path(self.folder.name, "redis")
        options = {"port": "0", "unixsocket": str(socket), "save": "", "appendonly": "no", "dir": self.folder.name}
        command = ["redis-server", *(word for name, value in options.items() for word in (f"--{name}", value))]
        self.server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while not socket.exists():
            assert self.server.poll() is None, "redis-server did not start"
            sleep(0.01)
        self.client = redis.Redis(unix_socket_path=str(socket))
        self.empty = self.client.info("memory")["used_memory"]

    def pipelined(self, command: str, keys: list, **options: Any) -> np.ndarray:
        answers: list[Any] = []
        for start in range(0, len(keys), 10_000):
            pipeline = self.client.pipeline(transaction=False)
            for key in keys[start : start + 10_000]:
                getattr(pipeline, command)(key, **options)
            answers += pipeline.execute()
        return np.array([bool(answer) for answer in answers])

    def insert(self, keys: list) -> None:
        self.pipelined("set", keys, value=1, ex=self.SECONDS)

    def query(self, keys: list) -> np.ndarray:
        return self.pipelined("exists", keys)

    def duplicated(self, keys: list) -> np.ndarray:
        return self.pipelined("set", keys, value=1, get=True, ex=self.SECONDS)

    @property
    def bits(self) -> int:
        return (self.client.info("memory")["used_memory"] - self.empty) * 8

    def close(self) -> None:
        self.client.close()
        self.server.terminate()
        self.server.wait()
        self.folder.cleanup()


def frames() -> dict[str, Make]:
    """Make those that take a whole column."""
    return {f"{name}, whole column": lambda name=name: WholeColumn(name) for name in ("pandas", "polars")}


def peers(window: int, fpr: float, kind: str) -> dict[str, Make]:
    """Make all of them."""
    made: dict[str, Make] = {
        "two ablooms, rotated": lambda: Rotated(window, fpr),
        "two ablooms, overlapping": lambda: Overlapping(window, fpr),
        "OrderedDict, exact": lambda: Exact(window),
    }
    if shutil.which("redis-server"):
        made["Redis"] = lambda: Redis(window)
    return made | {
        "abloom, no window": lambda: OneFilter(window, fpr, BloomFilter),
        "rbloom, no window": lambda: OneFilter(window, fpr, Bloom),
        "fastbloom-rs, no window": lambda: FastBloom(window, fpr, kind),
        **frames(),
    }
