"""Theory beside measurement, for a filter: live keys missed, fresh keys reported, reported keys by age, bytes.

What should come out is in `formulas.py`. `benchmarks/theory.py` prints tables of it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

import lately
from support import formulas
from support.families import TICK, Case

FILTERS = 16  # each of its own seed
PHASES = 8  # of a generation, the worst last
# Student's t with 15 degrees of freedom exceeds this with a chance of 4e-6; some 200 figures are compared with it.
BOUND = 7.0
EPOCH = 1_700_000_000_000_000_000


@dataclass
class Figure:
    """A share of keys that are reported, beside the chance it should have; keys of several filters, one after another.

    Keys queried in one filter share its bits, so only the filters are independent: the deviation of the mean is theirs,
    from their scatter. It is never taken below that of coins with the expected chances, the part of the variance that
    is known: else few reports, by chance equal for all filters, would look exact.
    """

    shares: list[tuple[float, float]] = field(default_factory=list)  # measured, expected; of each filter
    coins: float = 0.0  # sum of their variances

    def add(self, reported: NDArray[np.bool_], chances: formulas.Chances) -> None:
        if reported.size:
            self.shares.append((float(reported.mean()), float(chances.mean())))
            self.coins += float((chances * (1 - chances)).sum()) / reported.size**2

    @property
    def measured(self) -> float:
        return float(np.mean(self.shares, axis=0)[0]) if self.shares else math.nan

    @property
    def expected(self) -> float:
        return float(np.mean(self.shares, axis=0)[1]) if self.shares else math.nan

    @property
    def deviation(self) -> float:
        """Standard deviation of what is measured, about what is expected where that is known."""
        n = len(self.shares)
        if n < 2:
            return math.nan
        measured, expected = np.transpose(self.shares)
        scatter = np.std(measured - np.nan_to_num(expected), ddof=1) / math.sqrt(n)
        return float(np.fmax(math.sqrt(self.coins) / n, scatter))

    @property
    def z(self) -> float:
        """Deviations between the two; infinite if a certain event did not happen."""
        off, deviation = self.measured - self.expected, self.deviation
        if off == 0:
            return 0.0
        return off / deviation if deviation else math.copysign(math.inf, off)


@dataclass
class Found:
    """The findings for one case."""

    filter: lately.Filter
    missed: int = 0  # live keys
    queried: int = 0
    saved: int = 0  # bytes of cells in the saved form
    worst: Figure = field(default_factory=Figure)  # fresh keys
    average: Figure = field(default_factory=Figure)
    peak: Figure = field(default_factory=Figure)  # keys of the slack at the worst phase
    ages: dict[str, Figure] = field(default_factory=dict)  # over all phases
    window: int = 0
    slack: int = 0  # keys of the slack that were looked at

    @property
    def npws(self) -> float:
        """Reported keys of the slack over the window; where the slack has no end, those beyond what fresh keys give."""
        if not self.slack:
            return 0.0
        endless = self.worst.measured if self.filter.slack > self.slack else 0.0
        return (self.peak.measured - endless) * self.slack / self.window

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Give those that theory predicts, with their names."""
        all_ = {
            "fresh, worst phase": self.worst,
            "fresh, average": self.average,
            "slack, worst phase": self.peak,
            **self.ages,
        }
        return ((name, figure) for name, figure in all_.items() if math.isfinite(figure.expected))


class Stream:
    """Distinct keys 0, 1, 2 … and the generations they fall into: by number, or one each tick."""

    def __init__(self, case: Case, f: lately.Filter, window: int) -> None:
        self.timed = case.timed
        p = f.parameters
        keys = window if case.timed or f.window is None else int(f.window)
        # Full generations.
        self.kept = next(iter([p[name] for name in ("l", "r", "blocks", "epochs") if name in p]), keys)
        ticks = window * TICK if case.timed else keys - 1
        self.length = max(1, -(-ticks // self.kept))
        per_generation = -(-self.length // TICK) if case.timed else self.length
        # After this many generations slices and timestamps have gone round; epochs need even fewer.
        self.turn = per_generation * (2 ** p["bpt"] - 1 if "bpt" in p else self.kept + p.get("k", 1))
        # What has no generations, like the stable filter, has settled after eight windows; the generalized filter has a
        # fill within e^-9 of the steady one after 9 m / (k0 + k1) keys, here 300 windows.
        self.least = max(3 * self.turn, 8 * window, 9 * p["bits"] // (p["k0"] + p["k1"]) if "k0" in p else 0)
        stamps = np.arange(self.least + 2 * per_generation + 2)
        self.generations = (EPOCH + stamps * TICK if case.timed else stamps) // self.length
        ends = np.flatnonzero(np.diff(self.generations)) + 1
        last = int(np.searchsorted(ends, self.least))
        begin, end = int(ends[last - 1]), int(ends[last])
        if end - begin < PHASES:  # every phase is alike
            begin = end - window
        self.phases = [begin + -(-i * (end - begin) // PHASES) for i in range(1, PHASES + 1)]

    def at(self, begin: int, end: int) -> dict[str, NDArray[np.datetime64]]:
        return {"at": (EPOCH + np.arange(begin, end) * TICK).astype("M8[ns]")} if self.timed else {}

    def now(self, n: int) -> dict[str, np.datetime64]:
        """Give the moment of the n-th key."""
        return {"at": self.at(n - 1, n)["at"][0]} if self.timed else {}

    def ago(self, n: int, ages: int) -> tuple[formulas.Generations, formulas.Generations]:
        """Give the keys of each generation, and the generation of this many keys, both back from the n-th key."""
        ago = self.generations[n - 1] - self.generations[n - 1 :: -1]
        return np.bincount(ago), ago[:ages]


def measure(case: Case, window: int, filters: int = FILTERS, fresh: int = 20_000) -> Found:
    """After three rounds query each filter, through the phases of a generation, for fresh keys and keys of all ages."""
    f = case.new(window, 0)
    stream = Stream(case, f, window)
    found = Found(f, window=window)
    scale = 1e9 / TICK if case.timed else 1
    live = window + case.timed  # a key that is exactly a span old is live
    if f.window is not None:
        found.slack = int(np.clip(math.ceil((f.window + min(f.slack, 2 * f.window)) * scale) - window, 0, 2 * window))
    edges = np.linspace(live, live + found.slack, 5).astype(int)
    bands = {f"slack {i}/4": slice(edges[i - 1], edges[i]) for i in range(1, 5)} if found.slack else {}
    bands |= {"window": slice(0, live), "beyond": slice(edges[4], edges[4] + window // 2)}
    found.ages = {name: Figure() for name in bands}

    ask_the_oldest(case, stream, f, found)
    predicted: dict[int, tuple[float, formulas.Chances]] = {}
    for seed in range(filters):
        f = case.new(window, seed)
        shares, chances, fresh_shares, fresh_chances = [], [], [], []
        done = 0
        for n in stream.phases:
            f.insert(np.arange(done, n), **stream.at(done, n))
            now, done = stream.now(n), n
            if n not in predicted or case.bounds:  # the bits give the expected values
                counts, ago = stream.ago(n, bands["beyond"].stop)
                predicted[n] = case.expect(f, counts, ago)
            chance, by_age = predicted[n]
            shares.append(f.query(np.arange(n - 1, n - 1 - len(by_age), -1), **now))
            chances.append(by_age)
            fresh_shares.append(f.query(2**40 + n * fresh + np.arange(fresh), **now))
            fresh_chances.append(np.full(fresh, chance))
        found.worst.add(fresh_shares[-1], fresh_chances[-1])
        found.average.add(np.stack(fresh_shares), np.stack(fresh_chances))
        reported, theory = np.stack(shares), np.stack(chances)
        found.peak.add(reported[-1, live : edges[4]], theory[-1, live : edges[4]])
        for name, band in bands.items():
            found.ages[name].add(reported[:, band], theory[:, band])
        found.missed += int((~reported[:, :live]).sum())
        found.queried += reported[:, :live].size
    preamble, _ = f.__reduce_ex__(5)[1]
    found.filter, found.saved = f, len(f.to_bytes()) - len(preamble)
    return found


def ask_the_oldest(case: Case, stream: Stream, f: lately.Filter, found: Found) -> None:
    """Query the oldest key of the window before each insertion, for three rounds of the same W keys."""
    if not case.promised:
        return
    window, n = found.window, stream.least + found.window
    seen = f.duplicated(np.arange(n) % window, **stream.at(0, n))[window:]
    found.missed += int((~seen).sum())
    found.queried += len(seen)
