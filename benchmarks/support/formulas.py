"""What each filter should report, from the papers' formulas as corrected, written a second time.

The core has these formulas too, in `src/family/`, for the worst phase and planned loads. Here they take the actual
keys, at any phase, and are derived differently where possible; `theory.py` compares both.

Each function named after a filter takes a filter for its parameters; `counts`, the distinct keys of each generation
from the open one back; and `ago`, how many generations ago each queried key was inserted. It gives the chance that a
fresh key is reported, and that of each of these keys.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import lately

Chances = NDArray[np.float64]
Generations = NDArray[np.int64]
Expect = Callable[[lately.Filter, Generations, Generations], tuple[float, Chances]]


def slice_fill(cells: int, keys: float) -> float:
    """1 - (1 - 1/m)^n: share of the cells that n keys set."""
    return -math.expm1(keys * math.log1p(-1 / cells))


def block_fill(blocks: int, block_bits: int, parts: int, keys: int) -> float:
    """Chance that all parts match: the mean over the keys of one block, which are binomial (erratum APBBF-1)."""
    mean = keys / blocks
    loads = range(min(keys, int(mean + 12 * math.sqrt(mean) + 40)) + 1)
    log_chosen, log_spared = -math.log(blocks), math.log1p(-1 / blocks)
    log_weights = np.array(
        [
            math.lgamma(keys + 1)
            - math.lgamma(j + 1)
            - math.lgamma(keys - j + 1)
            + j * log_chosen
            + (keys - j) * log_spared
            for j in loads
        ]
    )
    part_fill = 1 - (1 - parts / block_bits) ** np.arange(len(loads))
    return float(np.exp(log_weights) @ part_fill**parts)


def segment_match(parameters: dict[str, int], keys: int) -> float:
    """Chance that a fresh key matches a segment with this many keys."""
    if "blocks" in parameters:
        return block_fill(parameters["blocks"], parameters["block_bits"], parameters["parts"], keys)
    if "slice_bits" in parameters:
        return slice_fill(parameters["slice_bits"], keys)
    return slice_fill(parameters["segment_bits"] // parameters["k"], keys) ** parameters["k"]


def run_chance(k: int, matches: Chances) -> float:
    """Chance that k consecutive slices match, by the length of the run so far, carried from slice to slice."""
    running = np.zeros(k + 1)
    running[0] = 1
    for match in matches:
        unfinished = running[:k].sum()
        complete = running[k] + running[k - 1] * match
        running[1:k] = running[: k - 1] * match
        running[0] = unfinished * (1 - match)
        running[k] = complete
    return min(1.0, float(running[k]))  # a certain run may round beyond it


def newly_hit(cells: int, hashes: int, hit: int = 0) -> Chances:
    """Chances that n hashes hit 0, 1, 2 ... cells beside `hit` given ones, by inclusion and exclusion of cells.

    Counted in whole numbers of ways, so that nothing cancels.
    """
    ways = [
        math.comb(cells - hit, new)
        * sum((-1) ** (new - used) * math.comb(new, used) * (hit + used) ** hashes for used in range(new + 1))
        for new in range(min(hashes, cells - hit) + 1)
    ]
    return np.array([way / cells**hashes for way in ways])


def known_until(fresh: float, own: Chances, ago: Generations) -> tuple[float, Chances]:
    """Give the keys of each generation their chance, and older keys that of a fresh key."""
    return fresh, np.append(own, fresh)[np.minimum(ago, len(own))]


def age_partitioned(f: lately.Filter, counts: Generations, ago: Generations) -> tuple[float, Chances]:
    """Paper 1: slice i holds generations i - k + 1 to i, and a key of generation j lies in slices j to j + k - 1."""
    k, slices = f.parameters["k"], f.parameters["k"] + f.parameters["l"]
    matches = np.array(
        [segment_match(f.parameters, int(counts[max(0, i - k + 1) : i + 1].sum())) for i in range(slices)]
    )
    own = np.tile(matches, (slices, 1))
    for j in range(slices):
        own[j, j : j + k] = 1
    return known_until(run_chance(k, matches), np.array([run_chance(k, seen) for seen in own]), ago)


def guarded_epoch(f: lately.Filter, counts: Generations, ago: Generations) -> tuple[float, Chances]:
    """Paper 2, proposition 2, with the keys that each of the r + 1 segments holds (erratum GEBF-3)."""
    segments = f.parameters["r"] + 1
    spared = math.prod(1 - segment_match(f.parameters, int(keys)) for keys in counts[:segments])
    return known_until(1 - spared, np.ones(segments), ago)


def aged_cuckoo(f: lately.Filter, counts: Generations, ago: Generations) -> tuple[float, Chances]:
    """Follow `docs/aged-cuckoo.md`: a fresh key matches one of the live entries of its two lines.

    In a window of time the first key of a full table opens the next one, so the entries are the filter's own.
    """
    p, live = f.parameters, counts[: f.parameters["epochs"] + 1]
    places = p["pages"] * p["lines"] << p["fingerprint_bits"]
    fresh = f.false_positive_rate() if "chain" in p else slice_fill(places / 2, float(live.sum()))
    return known_until(fresh, np.ones(len(live)), ago)


def timing(f: lately.Filter, counts: Generations, ago: Generations) -> tuple[float, Chances]:
    """Papers 4 and 5: the timers of N + 1 blocks count; with equal timers, k' of the k must be of one block."""
    p = f.parameters
    k, equal, live = p["k"], p["equal_timers"], counts[: p["blocks"] + 1]
    if equal == 1:
        return known_until(slice_fill(p["slice_timers"], live.sum()) ** k, np.ones(len(live)), ago)
    # unequal[t]: t timers chosen from blocks so far, no k' of one block, as the coefficient of x^t / t!.
    factorials = np.array([math.factorial(i) for i in range(k + 1)], dtype=float)
    unequal = np.zeros(k + 1)
    unequal[0] = 1
    own, untouched = [], 1.0  # by all keys since
    for keys in live:
        # i < k' timers untouched since are of its own block, all others younger and no k' alike.
        missed = [math.comb(k, i) * untouched**i * unequal[k - i] * factorials[k - i] for i in range(equal)]
        own.append(1 - sum(missed))
        before = untouched
        untouched *= (1 - 1 / p["slice_timers"]) ** int(keys)
        share = np.where(np.arange(k + 1) < equal, (before - untouched) ** np.arange(k + 1), 0) / factorials
        unequal = np.convolve(unequal, share)[: k + 1]
    all_live = (1 - untouched) ** k
    return known_until(all_live - unequal[k] * factorials[k], np.array(own), ago)


def growing(f: lately.Filter, counts: Generations, ago: Generations) -> tuple[float, Chances]:
    """Paper 4, "dynamic size": any part may report a key, as its slices are filled (erratum OIE-10).

    A false report of a part changes where parts begin, so that is random: the fills are the filter's own.
    """
    parts = f.fill.reshape(-1, f.parameters["k"])
    return known_until(float(1 - np.prod(1 - parts.prod(axis=1))), np.ones(f.parameters["blocks"] + 1), ago)


def fingerprints(f: lately.Filter, counts: Generations, ago: Generations) -> tuple[float, Chances]:
    """SWAMP and the fingerprint buffer: one of the W fingerprints kept is the key's."""
    p, kept = f.parameters, int(f.window)
    different = p["slots"] << p["remainder_bits"] if "slots" in p else 2 ** p["fingerprint_bits"] - 1
    return known_until(slice_fill(different, kept), np.ones(kept), ago)


def counting(f: lately.Filter, counts: Generations, ago: Generations) -> tuple[float, Chances]:
    """The Bloom filter of the last W keys; that a counter of 4 bits sticks is too rare to be seen."""
    kept = int(f.window)
    return known_until(slice_fill(f.parameters["slice_cells"], kept) ** f.parameters["k"], np.ones(kept), ago)


def bloom(f: lately.Filter, counts: Generations, ago: Generations) -> tuple[float, Chances]:
    """The Bloom filter of all keys: none of a fresh key's different positions is free, which nothing forgets.

    In one array by inclusion and exclusion of free positions, which leaves a rate of 1e-2 some 13 digits.
    """
    p, keys = f.parameters, int(counts.sum())
    if "slice_bits" in p:
        fresh = slice_fill(p["slice_bits"], keys) ** p["k"]
    else:
        fresh = sum(
            chance * (-1) ** free * math.comb(different, free) * (1 - free / p["bits"]) ** (keys * p["k"])
            for different, chance in enumerate(newly_hit(p["bits"], p["k"]))
            for free in range(different + 1)
        )
    return fresh, np.ones(len(ago))


def generalized(f: lately.Filter, counts: Generations, ago: Generations) -> tuple[float, Chances]:
    """Laufer and others, at the steady fill: each different cell of a key is untouched since, or matches by chance.

    Paper 5, equations 31 and 32, over the numbers of different cells (erratum INF-7).
    """
    p = f.parameters
    spared = (1 - 1 / p["bits"]) ** p["k0"]  # by all hashes of a key that reset
    set_ = (1 - (1 - 1 / p["bits"]) ** p["k1"]) * spared
    ones = set_ / (set_ + 1 - spared)
    untouched = np.append((1 - 1 / p["bits"]) ** ((p["k0"] + p["k1"]) * ago), 0.0)
    zero, one = untouched + (1 - untouched) * (1 - ones), untouched + (1 - untouched) * ones
    matches = np.zeros(len(untouched))
    for zeros, chance in enumerate(newly_hit(p["bits"], p["k0"])):
        of_ones = newly_hit(p["bits"], p["k1"], zeros) @ one ** np.arange(p["k1"] + 1)[:, None]
        matches += chance * zero**zeros * of_ones
    return float(matches[-1]), matches[:-1]


def stable(f: lately.Filter, counts: Generations, ago: Generations) -> tuple[float, Chances]:
    """Deng and Rafiei: a cell is empty if its last Max events were decrements and, if set, there were as many."""
    p = f.parameters
    top, set_, taken = 2 ** p["bits"] - 1, 1 / p["slice_cells"], p["decrements"] / p["slice_cells"]
    event = set_ + (1 - set_) * taken
    empty = ((1 - set_) * taken / event) ** top
    # P(Bin(age, event) >= Max), by the age at which the Max-th event comes.
    ages = np.arange(int(ago.max()) + 1)
    log_choose = np.array(
        [math.lgamma(a) - math.lgamma(top) - math.lgamma(a - top + 1) if a >= top else -np.inf for a in ages]
    )
    comes = np.exp(log_choose + top * math.log(event) + np.maximum(ages - top, 0) * math.log1p(-event))
    return (1 - empty) ** p["k"], ((1 - empty * np.cumsum(comes)) ** p["k"])[ago]


def time_limited(f: lately.Filter, counts: Generations, ago: Generations) -> tuple[float, Chances]:
    """Paper 3: slices go by the rate, so fresh keys have the chance its bits give; the slack is not predicted."""
    fresh, kept = f.false_positive_rate(), f.parameters["l"]
    return fresh, np.select([ago < kept, ago >= kept + f.parameters["k"]], [1.0, fresh], np.nan)
