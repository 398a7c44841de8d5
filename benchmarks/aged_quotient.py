"""The aged quotient filter beside the filters it has to beat: memory, rates, repeats, overload and time.

    uv run benchmarks/aged_quotient.py [--window 1000000] [--trials 10000000] [--rounds 7] [--only overload]

Prints the tables of `docs/aged-quotient.md`. Seeds are fixed. Rates are of keys that were never inserted, once the
filter has turned twice. Times are medians over rounds in which the filters take turns; only their ratios mean anything.
"""

import argparse
import statistics
import time

import numpy as np
from tqdm import tqdm

import lately

BLOCK = 1 << 20


def hashed(keys: np.ndarray) -> lately.Hashes:
    """Hash keys beforehand, so that the filters alone are measured."""
    return lately.Hashes(lately.hash_keys(keys))


def hashes(start: int, count: int) -> lately.Hashes:
    """Keys `start` and on, hashed."""
    return hashed(np.arange(start, start + count, dtype=np.uint64))


def filled(f: lately.Filter, keys: int) -> int:
    """Insert `keys` distinct keys."""
    for start in range(0, keys, BLOCK):
        f.insert(hashes(start, min(BLOCK, keys - start)))
    return keys


def reported(f: lately.Filter, trials: int) -> float:
    """Share of fresh keys that is reported."""
    fresh = range(1 << 50, (1 << 50) + trials, BLOCK)
    return sum(int(f.query(hashes(start, BLOCK)).sum()) for start in fresh) / (len(fresh) * BLOCK)


def missed(f: lately.Filter, last: int) -> int:
    """Count the keys of the window that are missed."""
    live = hashes(last - f.window, f.window)
    return int((~f.query(live)).sum())


def memory(window: int, trials: int) -> None:
    """Bits per key and rates, each beside the filter that took the fewest bits before."""
    print("| fpr requested | filter | bits per key | slack | fpr stated | reported | missed |")
    print("|--:|---|--:|--:|--:|--:|--:|")
    for fpr in tqdm([1e-2, 1e-3, 1e-4, 1e-5], leave=False):
        slack = window // 6
        for f in (
            lately.AgedQuotientFilter(window, fpr, slack=slack),
            lately.AgedQuotientFilter(window, fpr, slack=window // 12),
            lately.GuardedEpochBloomFilter(window, fpr, slack=slack),
            lately.AgePartitionedBloomFilter(window, fpr),
        ):
            last = filled(f, 2 * window + window // 3)
            name = type(f).__name__.removesuffix("Filter").removesuffix("Bloom")
            print(
                f"| {fpr:g} | {name} | {f.bits_per_key:.2f} | {f.slack / window:.3f} | {f.fpr:.3e} "
                f"| {reported(f, trials):.3e} | {missed(f, last)} of {window:,} |"
            )


def repeats(window: int) -> None:
    """Four keys in five are repeats: memory by insertions, and by distinct keys."""
    print("\n| planned by | bits per insertion | fpr stated | reported | distinct(), true | missed |")
    print("|---|--:|--:|--:|--:|--:|")
    distinct = window // 5
    rng = np.random.default_rng(1)
    # A key comes again at a random place of the same fifth of a million keys, which go on by one key in five.
    number = np.arange(3 * window)
    keys = number // 5 + rng.integers(0, distinct, len(number)) * (number % 5 > 0)
    live = keys[-window:]
    true = len(np.unique(live))
    for name, f in (
        ("insertions", lately.AgedQuotientFilter(window, 0.001)),
        ("distinct keys", lately.AgedQuotientFilter(window, 0.001, distinct=true)),
    ):
        f.insert(hashed(keys))
        lost = int((~f.query(hashed(live))).sum())
        print(
            f"| {name} | {f.bits_per_key:.2f} | {f.fpr:.3e} | {reported(f, 1 << 23):.3e} "
            f"| {f.distinct():,.0f}, {true:,} | {lost} of {window:,} |"
        )


def overload(window: int) -> None:
    """More keys than planned: a window of time whose capacity is short, and what is left of the rate."""
    loads = [1.0, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0]
    print("\n| planned for | " + " | ".join(f"x{load:g}" for load in loads) + " |\n|---|" + "--:|" * len(loads))
    for fpr in (1e-2, 1e-3):
        for headroom, grow in ((1.0, False), (1.25, False), (1.0, True)):
            rates, memory = [], []
            for load in loads:
                f = lately.AgedQuotientFilter("1s", fpr, capacity=int(headroom * window / load), grow=grow)
                bare = f.nbytes
                at = np.arange(3 * window) / window
                for start in range(0, 3 * window, BLOCK):
                    end = min(start + BLOCK, 3 * window)
                    f.insert(hashes(start, end - start), at=at[start:end])
                live = hashes(2 * window + 1, window - 1)
                assert f.query(live, at=3.0 - 1 / window).all()
                fresh = hashes(1 << 50, BLOCK)
                rates.append(f.query(fresh, at=3.0 - 1 / window).mean())
                memory.append(f.nbytes // bare)
            shown = " | ".join(f"{rate:.2g}" for rate in rates)
            print(f"| {fpr:g}, {headroom:g} times the keys{', grow' if grow else ''} | {shown} |")
            if grow:
                print("| its memory | " + " | ".join(f"x{times}" for times in memory) + " |")


def clock(work: object) -> float:
    start = time.thread_time_ns()
    work()  # type: ignore[operator]
    return (time.thread_time_ns() - start) / BLOCK


def speed(window: int, rounds: int) -> None:
    """Nanoseconds per key, and ratios within a round to the transposed layout."""
    print(f"\nW = {window:,}, {rounds} rounds\n")
    print("| fpr | filter | absent | new | mask, half repeats | by the transposed layout's |")
    print("|--:|---|--:|--:|--:|--:|")
    for fpr in (1e-2, 1e-3):
        filters = {
            "guarded epochs, transposed": lately.GuardedEpochBloomFilter(window, fpr),
            "aged quotient": lately.AgedQuotientFilter(window, fpr),
            "age-partitioned, line": lately.AgePartitionedBloomFilter(window, fpr),
        }
        last = 0
        for f in filters.values():
            last = filled(f, 2 * window)
        times: dict[str, list[list[float]]] = {name: [] for name in filters}
        rng = np.random.default_rng(2)
        for turn in tqdm(range(rounds), leave=False):
            absent = hashes((1 << 52) + turn * BLOCK, BLOCK)
            new = hashes(last, BLOCK)
            numbers = last + BLOCK + np.arange(BLOCK, dtype=np.uint64)
            again = rng.random(BLOCK) < 0.5
            numbers[again] = last - rng.integers(0, window // 4, int(again.sum()), dtype=np.uint64)
            mixed = hashed(numbers)
            for name, f in filters.items():
                works = (lambda: f.query(absent), lambda: f.insert(new), lambda: f.duplicated(mixed))  # noqa: B023
                times[name].append([clock(work) for work in works])
            last += 2 * BLOCK
        base = np.array(times["guarded epochs, transposed"])
        for name, taken in times.items():
            shown = " | ".join(f"{statistics.median(column):.1f}" for column in zip(*taken, strict=True))
            ratios = np.median(np.array(taken) / base, axis=0)
            print(f"| {fpr:g} | {name} | {shown} | {', '.join(f'{ratio:.2f}' for ratio in ratios)} |")


def edges(window: int, rounds: int) -> None:
    """How bits and the time of a new key follow the slack; ratios within a round to a seventh."""
    print(f"\nW = {window:,}, {rounds} rounds, fpr 0.01\n")
    print("| slack | bits per key | new key, ns | by a seventh's |\n|--:|--:|--:|--:|")
    slacks = [window // of for of in (6, 14, 29, 59, 118, 235, 919, 1785, 3600)]
    filters = [lately.AgedQuotientFilter(window, 0.01, slack=slack) for slack in slacks]
    last = max(filled(f, 2 * window) for f in filters)
    times = []
    for turn in tqdm(range(rounds), leave=False):
        new = hashes(last + turn * BLOCK, BLOCK)
        times.append([clock(lambda f=f: f.insert(new)) for f in filters])  # noqa: B023
    ratios = np.median(np.array(times) / np.array(times)[:, :1], axis=0)
    for f, taken, ratio in zip(filters, np.median(times, axis=0), ratios, strict=True):
        print(f"| 1/{window // f.slack} | {f.bits_per_key:.1f} | {taken:.1f} | {ratio:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--window", type=int, default=1_000_000)
    parser.add_argument("--trials", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    tables = {
        "memory": lambda given: memory(given.window, given.trials),
        "repeats": lambda given: repeats(given.window),
        "overload": lambda given: overload(given.window),
        "edges": lambda given: edges(given.window, given.rounds),
        "speed": lambda given: speed(given.window, given.rounds),
    }
    parser.add_argument("--only", choices=tables, help="one table of them")
    given = parser.parse_args()
    for table in [given.only] if given.only else tables:
        tables[table](given)


if __name__ == "__main__":
    main()
