"""Any family, with any options, on any path that keys can take: no key of the window is missed.

``LIVE_KEYS=1e10 uv run pytest -m campaign -n0 -s tests/test_live_keys.py`` looks up that many live keys.
"""

import contextlib
import os
import pickle
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

import lately
from lately._families import EVERY
from lately.distributed import SlicedFilter

C, T = lately.AgedCuckooFilter, lately.TimingBloomFilter
# Families that promise to miss no key, and more of their options.
FAMILIES: dict[str, Callable[..., Any]] = {name: family.make for name, family in EVERY.items() if family.promise} | {
    "timing, no slack": partial(T, slack=0),
    "timing, by cardinality": partial(T, grow="cardinality"),
    "aged cuckoo, little slack": lambda window, **more: C(window, slack=part_of(window, 64), **more),
    "aged cuckoo, distinct": lambda window, **more: C(window, distinct=distinct(window, more), **more),
    "Bloom": lately.BloomFilter,
    "Bloom, partitioned": partial(lately.BloomFilter, partitioned=True),
    "chosen": lately.Filter,
    "chosen for speed": partial(lately.Filter, prefer="speed"),
}
KINDS: list[dict[str, Any]] = [
    {"kind": "horizontal", "slices": 3},
    {"kind": "vertical", "slices": 3},
    {"kind": "diced", "slices": (2, 2), "dice": "h-v"},
    {"kind": "diced", "slices": (2, 2), "dice": "v-h"},
]


def part_of(window, share):
    return f"{int(window[:-1]) // share + 1}s" if isinstance(window, str) else window // share + 1


def distinct(window, more):
    return max(1, more.get("capacity", window) // 2)


@dataclass
class Stream:
    """Keys with their times in a window of time, and the keys that are live by the latest of them."""

    rng: np.random.Generator
    window: int
    timed: bool
    lateness: int
    endless: bool

    def __post_init__(self):
        self.next = int(self.rng.integers(1 << 61))
        self.keys, self.times = np.empty(0, int), np.empty(0, int)
        self.latest = int(self.rng.integers(1 << 30)) if self.timed else 0

    def batch(self):
        """Return keys, new ones and some repeats, with their times."""
        size = 1 if self.rng.random() < 0.3 else int(self.rng.integers(1, max(2, self.window // 8)))
        keys = np.arange(self.next, self.next + size)
        self.next += size
        if len(self.keys) and self.rng.random() < 0.5:
            again = self.rng.random(size) < 0.3
            keys[again] = self.rng.choice(self.keys, again.sum())
        if not self.timed:
            return keys, None
        # Now and then a gap, which may be longer than the window.
        gap = int(self.rng.exponential(self.window)) if self.rng.random() < 0.05 else 0
        times = self.latest + gap + np.cumsum(self.rng.integers(0, 3, size))
        if self.lateness:
            first = self.latest
            times -= self.rng.integers(0, self.lateness + 1, size)
            times = np.maximum(times, np.maximum.accumulate(np.append(first, times))[:-1] - self.lateness)
        return keys, times

    def inserted(self, keys, times):
        """Note that a batch was inserted."""
        self.keys = np.append(self.keys, keys)
        if self.timed:
            self.times = np.append(self.times, times)
            self.latest = max(self.latest, int(times.max()))
            kept = self.times >= self.latest - self.window - self.lateness
            self.keys, self.times = self.keys[kept], self.times[kept]
        elif not self.endless:
            self.keys = self.keys[-self.window :]

    def live(self, moment, window):
        """Return the keys of a window up to a moment, or up to the last key."""
        return self.keys[self.times >= moment - window] if self.timed else self.keys[len(self.keys) - window :]


def insert(f, keys, times, rng):
    """Insert a batch by any call that does."""
    at = {} if times is None else {"at": times}
    way = rng.integers(4)
    if len(keys) == 1 and way == 0 and not isinstance(f, SlicedFilter):
        f.seen(int(keys[0]), **({} if times is None else {"at": int(times[0])}))
    elif way == 1:
        f.insert(keys, **at)
    elif way == 2 and not isinstance(f, SlicedFilter):
        f.duplicated(keys, threads=2, **at)
    else:
        f.duplicated(keys, **at)


# Paths: each returns the handles that keys are inserted by, and a function that returns the handles to look them up in.


def alone(f, rng, folder, stack):
    return [f], lambda: [f]


def reopened(f, rng, folder, stack):
    """Return a filter that is saved, pickled or copied again and again."""
    handles = [f]

    def again():
        f, path = handles[0], folder / "f.lately"
        # A save waits for the disk, and so is rare.
        way = rng.integers(60)
        if way < 3:
            f.save(path)
            handles[0] = lately.open(path, mmap=way > 0, verify=way < 2)
        elif way < 20:
            handles[0] = pickle.loads(pickle.dumps(f, protocol=int(rng.integers(2, 6))))
        else:
            handles[0] = lately.from_bytes(f.to_bytes()) if way < 40 else f.copy()
        return handles

    return handles, again


def shared(f, rng, folder, stack):
    """Return handles of a filter that processes share."""
    path = folder / "f.lately"
    f.save(path)
    handles = [lately.open(path, shared=True) for _ in range(2)]

    def look():
        way = rng.integers(4)
        if way == 0:
            handles[0] = lately.open(path, shared=True)
        return [lately.open(path)] if way == 1 else [handles[0].copy()] if way == 2 else handles[:1]

    return handles, look


def merged(f, rng, folder, stack):
    """Return two filters, each of which has some of the keys, and their union."""
    handles = [f, f.copy()]
    f.union(handles[1])
    # Windows of insertions can be merged in one generation only, and not every moment is in one.
    together = (ValueError,) if isinstance(f.window, int) else ()

    def look():
        with contextlib.suppress(*together):
            return [handles[0].union(handles[1])]
        return []

    return handles, look


def sliced(f, rng, folder, stack):
    """Return the filter cut into slices of any kind that it can be cut into."""
    for kind in rng.permutation(len(KINDS)):
        try:
            handles = [stack.enter_context(SlicedFilter(**KINDS[kind], filter=f))]
        except (TypeError, ValueError):
            continue
        return handles, handles.copy
    raise ValueError("it cannot be sliced")


PATHS = {path.__name__: path for path in (alone, reopened, shared, merged, sliced)}


def trial(family, path, timed, rng, folder, keys, longest, batches):
    """Look up about `keys` live keys in a filter made at random; return how many were looked up, and how many missed.

    A filter that cannot be made, or that cannot take the path, returns none.
    """
    small = rng.random() < 0.1
    window = int(rng.integers(1, 100) if small else np.exp(rng.uniform(np.log(100), np.log(longest))))
    late = int(rng.integers(1, window + 1)) if timed and rng.random() < 0.5 else 0
    endless = family.startswith("Bloom")
    made = {"seed": int(rng.integers(1 << 60))}
    if timed:
        made |= {"max_ahead": None} | ({"lateness": f"{late}s"} if late else {})
        if family != "time-limited":
            made["capacity"] = max(1, int(window * rng.choice([0.2, 1, 1, 1, 3])))
    with contextlib.ExitStack() as stack:
        try:
            f = FAMILIES[family](f"{window}s" if timed else window, fpr=10 ** -rng.uniform(1, 6), **made)
            shortens = path == "alone" and isinstance(f, C | T)
            handles, look = PATHS[path](f, rng, folder, stack)
        except (TypeError, ValueError):
            return 0, 0
        stream, looked_up, missed = Stream(rng, window, timed, late, endless), 0, 0
        budget = min(keys, 300 * window)
        for _ in range(batches):
            batch, times = stream.batch()
            if endless and len(stream.keys) + len(batch) > window:
                break
            insert(handles[rng.integers(len(handles))], batch, times, rng)
            stream.inserted(batch, times)
            for f in look():
                # As late as a key may be, or ahead.
                moment, shorter = stream.latest + int(rng.integers(-late, window // 4 + 1)), window
                more = {"at": moment} if timed else {}
                if shortens and rng.random() < 0.3:
                    shorter = int(rng.integers(1, window + 1))
                    more["window"] = f"{shorter}s" if timed else shorter
                live = stream.live(moment, min(shorter, len(stream.keys)) if not timed else shorter)
                if isinstance(f, SlicedFilter):
                    more.pop("window", None)
                missed += int((~f.query(live, **more)).sum())
                looked_up += len(live)
            if looked_up >= budget:
                break
    return looked_up, missed


@pytest.mark.parametrize("path", PATHS)
def test_no_live_key_is_missed_on_any_path(path, tmp_path):
    rng, looked_up = np.random.default_rng(1), Counter()
    for family in FAMILIES:
        for timed in (False, True):
            for _ in range(2):
                n, missed = trial(family, path, timed, rng, tmp_path, 8_000, 2000, 1000)
                assert missed == 0, (family, path, timed)
                looked_up[family] += n
    families = {"shared": 8, "sliced": 15, "merged": 14}.get(path, len(FAMILIES))
    assert sum(n > 1000 for n in looked_up.values()) >= families, looked_up


@pytest.mark.campaign
def test_a_campaign_of_live_keys(tmp_path, capsys):
    wanted, total = float(os.environ.get("LIVE_KEYS", 1e9)), 0
    looked_up, rng = Counter(), np.random.default_rng()
    state = rng.bit_generator.state
    while total < wanted:
        for path in PATHS:
            for family in FAMILIES:
                for timed in (False, True):
                    state = rng.bit_generator.state
                    n, missed = trial(family, path, timed, rng, tmp_path, 30_000_000, 300_000, 10_000)
                    assert missed == 0, (family, path, timed, missed, state)
                    looked_up[path] += n
                    looked_up[family] += n
                    total += n
        with capsys.disabled():
            print(f"\n{total:,} live keys looked up, 0 missed: {dict(looked_up)}", flush=True)
