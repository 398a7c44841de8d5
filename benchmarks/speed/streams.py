"""Streams in which half the events repeat a key of the last W, and the containers for their keys."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

SEED = 20_261_121
# Share of the stream that repeats a key of the last W events, each equally likely.
REPEATS = 0.5


@dataclass
class Round:
    """Keys for one timing of every operation, which continue the stream of the round before."""

    # Half of them in the window as the round begins, the others fresh.
    queried: Any
    events: Any
    # Which of the events repeat a key of the window.
    repeated: np.ndarray
    fresh: Any
    # The window as the round begins.
    window: Any


class Stream:
    """2 W different keys to fill with; then rounds of events, of which some repeat, and of fresh keys."""

    def __init__(self, kind: str, window: int, events: int, rounds: int) -> None:
        random = np.random.default_rng(SEED)
        self.kind, self.window = kind, window
        length = 2 * window + 2 * rounds * events
        names = random.integers(0, 2**63, length)
        # The place of each event's first occurrence: every repeat points back, possibly to another repeat.
        source = np.arange(length)
        starts = [2 * window + 2 * events * i for i in range(rounds)]
        repeated = random.random((rounds, events)) < REPEATS
        for start, here in zip(starts, repeated, strict=True):
            places = start + np.flatnonzero(here)
            source[places] -= random.integers(1, window + 1, len(places))
        while (source[source] != source).any():
            source = source[source]
        numbers = names[source]
        self.filling = self.form(numbers[: 2 * window])
        # Fresh keys that no stream has: negative.
        self.never = self.form(~random.integers(0, 2**63, events))
        self.rounds = []
        for start, here in zip(starts, repeated, strict=True):
            last = numbers[start - window : start]
            inside = last[random.integers(0, window, events // 2)]
            queried = random.permutation(np.concatenate([inside, ~random.integers(0, 2**63, events - events // 2)]))
            parts = queried, numbers[start : start + events], numbers[start + events : start + 2 * events], last
            queried, now, fresh, last = map(self.form, parts)
            self.rounds.append(Round(queried, now, here, fresh, last))

    def form(self, numbers: np.ndarray) -> Any:
        """Turn numbers into keys: themselves, or URLs of 40 bytes."""
        if self.kind == "int64":
            return numbers
        digits = pc.utf8_lpad(pa.array(numbers.view(np.uint64)).cast(pa.string()), 20, "0")
        return pc.binary_join_element_wise("https://example.org/", digits, "")


def give(keys: Any, takes: str) -> Any:
    """Give keys in a structure's preferred container, made anew: a Python string caches its hash."""
    if takes == "array":
        return keys
    if takes == "object":
        return np.array(keys.tolist(), object)
    if takes == "pandas":
        return pd.Series(keys) if isinstance(keys, np.ndarray) else keys.to_pandas()
    if takes == "polars":
        return pl.Series(keys) if isinstance(keys, np.ndarray) else pl.from_arrow(keys)
    return keys.tolist()
