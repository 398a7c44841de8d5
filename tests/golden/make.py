"""Filters whose saved form is kept here, so that no release changes the format or a hash unnoticed.

``python tests/golden/make.py`` writes them anew. Do so only with a new version of the format or a new number of the
key scheme, or for a kind of filter that is not here yet: files that users saved do not change either. Parameters are
given, not chosen, so better sizing changes no byte. At most 4 KiB of cells each.
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

import lately

HERE = Path(__file__).parent
ANSWERS = HERE / "answers.json"

A, G, T = lately.AgePartitionedBloomFilter, lately.GuardedEpochBloomFilter, lately.TimingBloomFilter


def some_late(f: lately.Filter) -> lately.Filter:
    """Every other key comes 29 seconds late."""
    i = np.arange(700)
    f.insert(i, at=np.datetime64(1_700_000_000_123_456_789, "ns") + (4 * i - 29 * (i % 2)) * np.timedelta64(1, "s"))
    return f


def in_turns(f: lately.Filter) -> lately.Filter:
    """701 keys in turns, then text."""
    f.duplicated(np.arange(3000) % 701)
    f.insert([f"key {i}" for i in range(77)])
    return f


def then_text(f: lately.Filter) -> lately.Filter:
    """Keys that are all new, then text with repeats."""
    f.insert(np.arange(1234))
    f.duplicated([f"key {i % 50}" for i in range(177)])
    return f


def plain() -> lately.Filter:
    f = A.from_parameters(300, k=4, l=6, slice_bits=1000, seed=7)
    f.insert(np.arange(1234))
    f.insert([f"key {i}" for i in range(77)])
    return f


def blocks() -> lately.Filter:
    f = A.from_parameters(500, k=2, l=3, blocks=7, block_bits=512, parts=8, seed=2**64 - 1)
    f.duplicated(np.arange(3000) % 701)
    return f


def words() -> lately.Filter:
    f = A.from_parameters(200, k=3, l=5, blocks=37, block_bits=64, parts=4)
    f.insert([(i, str(i)) for i in range(555)])
    return f


def timed() -> lately.Filter:
    return some_late(A.from_parameters("10min", k=3, l=5, slice_bits=700, capacity=200, lateness="30s", seed=1))


def fresh() -> lately.Filter:
    return A.from_parameters("1s", k=1, l=2, blocks=1, block_bits=512, parts=1, capacity=1)


def epochs() -> lately.Filter:
    f = G.from_parameters(300, r=4, k=7, segment_bits=1001, seed=5)
    f.insert(np.arange(1234))
    f.insert([f"key {i}" for i in range(77)])
    return f


def epochs_in_blocks() -> lately.Filter:
    f = G.from_parameters(500, r=3, blocks=7, block_bits=512, parts=8, seed=2**63)
    f.duplicated(np.arange(3000) % 701)
    return f


def epochs_timed() -> lately.Filter:
    return some_late(
        G.from_parameters("10min", r=5, blocks=60, block_bits=64, parts=4, capacity=200, lateness="30s", seed=1)
    )


def side_by_side() -> lately.Filter:
    return in_turns(A.from_parameters(300, k=2, l=6, pages=1, lines=1, seed=6))


def epochs_side_by_side() -> lately.Filter:
    return some_late(G.from_parameters("10min", r=15, pages=1, lines=3, capacity=200, lateness="30s", seed=2**64 - 1))


def transposed() -> lately.Filter:
    return in_turns(G.from_parameters(300, r=7, k=6, positions=501, seed=8))


def transposed_timed() -> lately.Filter:
    return some_late(
        G.from_parameters("10min", r=15, k=9, positions=1234, capacity=200, lateness="30s", seed=2**64 - 1)
    )


def blocks_of_keys() -> lately.Filter:
    return then_text(T.from_parameters(300, k=5, bpt=3, blocks=6, slice_timers=700, seed=11))


def single_keys() -> lately.Filter:
    f = T.from_parameters(200, k=4, bpt=9, blocks=199, slice_timers=420, equal_timers=2)
    f.insert([(i, str(i)) for i in range(1100)])
    return f


def timed_blocks() -> lately.Filter:
    return some_late(
        T.from_parameters(
            "10min", k=6, bpt=5, blocks=20, slice_timers=500, capacity=200, lateness="30s", seed=2**64 - 1
        )
    )


def aged_cuckoo() -> lately.Filter:
    """Twice as many keys as it has slots: entries that moved, and keys that were rejected."""
    size = {"fingerprint_bits": 13, "epochs": 7, "pages": 2, "lines": 6}
    f = lately.AgedCuckooFilter.from_parameters(700, **size, distinct=250, seed=16)
    f.insert(np.arange(2000) % 1301)
    return f


def aged_cuckoo_chain() -> lately.Filter:
    """A burst at the end, for which the first table has no room: two tables; some keys late."""
    size = {"fingerprint_bits": 16, "epochs": 20, "pages": 1, "lines": 4, "chain": 1}
    f = lately.AgedCuckooFilter.from_parameters("10min", **size, capacity=40, lateness="30s", seed=2**64 - 1)
    some_late(f).insert(np.arange(2700, 3000), at=1_700_002_800)
    return f


def grow(**limit: int) -> lately.Filter:
    """A trickle; a burst that opens parts, during which the first are dropped; a trickle; some keys late."""
    f = T.from_parameters("10min", k=3, bpt=4, blocks=9, slice_timers=200, capacity=50, lateness="30s", seed=6, **limit)
    tenths = np.cumsum(np.repeat([100, 1, 150], [200, 300, 35])) - 290 * (np.arange(535) % 2)
    at = np.datetime64(1_700_000_000_123_456_789, "ns") + tenths * np.timedelta64(100, "ms")
    f.insert(np.arange(535), at=at)
    return f


def grown() -> lately.Filter:
    return grow(part_keys=60)


def grown_dense() -> lately.Filter:
    return grow(part_timers=160)


def limited() -> lately.Filter:
    """The rate rises 30 times and falls again; gaps of a third and of three times the window; some keys late."""
    f = lately.TimeLimitedBloomFilter.from_parameters("10min", k=3, l=4, slice_bits=512, lateness="30s", seed=3)
    steps = np.repeat([20, 18000, 30, 2000, 1, 50], [100, 1, 100, 1, 1500, 40])
    tenths = np.cumsum(steps) - 290 * (np.arange(len(steps)) % 2)
    at = np.datetime64(1_699_999_999_876_543_211, "ns") + tenths * np.timedelta64(100, "ms")
    f.insert(np.arange(len(steps)), at=at)
    return f


def fingerprints() -> lately.Filter:
    return in_turns(lately.baselines.FingerprintBuffer.from_parameters(500, fingerprint_bits=21, seed=3))


def swamp() -> lately.Filter:
    f = lately.Swamp.from_parameters(500, slots=576, remainder_bits=9, seed=4)
    f.insert(np.arange(2500) % 701)
    f.insert([f"key {i % 19}" for i in range(300)])
    return f


def counting() -> lately.Filter:
    f = lately.baselines.CountingBloomFilter.from_parameters(150, k=3, slice_cells=501, seed=3)
    f.insert(np.arange(300) % 8)  # counters that stick
    f.insert(np.arange(333))
    f.insert([f"key {i}" for i in range(70)])
    return f


def stable() -> lately.Filter:
    f = lately.baselines.StableBloomFilter.from_parameters(200, k=3, slice_cells=601, bits=2, decrements=17, seed=11)
    f.insert(np.arange(900))
    f.duplicated([f"key {i}" for i in range(60)])
    return f


def bloom() -> lately.Filter:
    f = lately.BloomFilter.from_parameters(capacity=700, k=5, bits=7001, seed=12)
    f.insert(np.arange(650))
    f.duplicated([f"key {i}" for i in range(60)])
    return f


def bloom_in_slices() -> lately.Filter:
    f = lately.BloomFilter.from_parameters(capacity=500, k=7, slice_bits=777, seed=13)
    f.insert([(i, str(i)) for i in range(300)])
    f.duplicated(np.arange(900) % 401)
    return f


def generalized() -> lately.Filter:
    f = lately.baselines.GeneralizedBloomFilter.from_parameters(300, bits=9001, k1=4, k0=3, seed=14)
    f.insert(np.arange(1500))
    f.duplicated([f"key {i}" for i in range(60)])
    return f


def exact() -> lately.Filter:
    f = lately.ExactFilter(200, seed=15)
    f.insert(np.arange(650))
    f.duplicated([f"key {i}" for i in range(60)])
    return f


def exact_timed() -> lately.Filter:
    f = lately.ExactFilter("10min", lateness="30s", missing="distinct", seed=16, max_ahead=None)
    f.insert(np.arange(700), at=1_700_000_000 + 4 * np.arange(700))
    f.insert(["late", None], at=1_700_000_000 + 4 * 695)
    return f


AGE_PARTITIONED = (plain, blocks, words, timed, fresh)
EPOCHS = (epochs, epochs_in_blocks, epochs_timed)
TIMING = (blocks_of_keys, single_keys, timed_blocks, grown, grown_dense)
TIME_LIMITED = (limited,)
EXACT = (fingerprints, swamp, counting, exact, exact_timed)
DECAYING = (stable, generalized)
ENDLESS = (bloom, bloom_in_slices)
IN_LINES = (side_by_side, epochs_side_by_side)
TRANSPOSED = (transposed, transposed_timed)
AGED = (aged_cuckoo, aged_cuckoo_chain)
MADE = AGE_PARTITIONED + EPOCHS + TIMING + TIME_LIMITED + EXACT + DECAYING + ENDLESS + IN_LINES + TRANSPOSED + AGED
FILTERS: dict[str, Callable[[], lately.Filter]] = {f.__name__: f for f in MADE}


def answers(f: lately.Filter) -> str:
    """Which of 2000 keys the filter holds, one bit each: half of them inserted, some of every kind, and half not."""
    probes: list[object] = [*range(800), *(f"key {i}" for i in range(400)), *((i, str(i)) for i in range(400))]
    probes += range(2700, 3100)
    at = {} if f.lateness is None else {"at": 1_700_000_000 + 4 * 700 + 60}
    return np.packbits(f.query(probes, **at)).tobytes().hex()


if __name__ == "__main__":
    made = {name: make() for name, make in FILTERS.items()}
    for name, f in made.items():
        f.save(HERE / f"{name}.lately")
    ANSWERS.write_text(json.dumps({name: answers(f) for name, f in made.items()}, indent=1) + "\n")
