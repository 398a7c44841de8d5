"""What a secret costs, and what it is worth: hashing scheme 1 (a public seed) beside scheme 2 (16 secret bytes).

    uv run --group bench benchmarks/keyed.py [--keys 2000000] [--rounds 15] [--out FILE]

Both in turn, by the processor time of the one thread, which others on the machine hardly change; given are the least of
all rounds and the median difference within a round. `duplicated` with a window of a million keys at 1 %, in batches of
65,536; and `hash_keys` alone. Then the attack: 10,000 integers chosen for as many victims, inserted by an attacker who
knows the scheme and takes the seed to be 0.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

import lately
from support.chosen import integers_with

BATCH = 2**16
SEEDS: tuple[Any, Any] = (0, b"sixteen secret b")


def seconds(work: Callable[[Any], Any], batches: list[Any]) -> float:
    """Processor time of the work on all batches."""
    begin = time.thread_time()
    for batch in batches:
        work(batch)
    return time.thread_time() - begin


def mask(seed: Any) -> Callable[[Any], Any]:
    """`duplicated` of a filter whose window is full."""
    f = lately.Filter(1_000_000, 0.01, seed=seed)
    f.insert(np.arange(2_000_000))
    return f.duplicated


def hashes(seed: Any) -> Callable[[Any], Any]:
    return lambda batch: lately.hash_keys(batch, seed=seed)


def main() -> None:
    """Print two tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, help="write the tables to this file as well")
    options = parser.parse_args()
    numbers = np.random.default_rng(4).integers(0, options.keys, options.keys) + 2**40
    texts = pa.array([f"https://example.org/articles/{number:x}.html" for number in numbers.tolist()])
    lines = ["| keys | what | scheme 1: ns a key | scheme 2: ns a key | a secret costs |", "|---|---|--:|--:|--:|"]
    for name, keys in (("int64", numbers), (f"URLs of {len(texts[0].as_py())} bytes, Arrow", texts)):
        batches = [keys[start : start + BATCH] for start in range(0, len(keys) - BATCH + 1, BATCH)]
        queried = len(batches) * BATCH
        for what, make in (("`hash_keys`", hashes), ("`duplicated`", mask)):
            public, secret = (make(seed) for seed in SEEDS)
            times = [(seconds(public, batches), seconds(secret, batches)) for _ in range(options.rounds)]
            one, two = (min(each) / queried * 1e9 for each in zip(*times, strict=True))
            more = median(second - first for first, second in times) / queried * 1e9
            lines.append(f"| {name} | {what} | {one:.2f} | {two:.2f} | {more:.2f} ns |")
    lines += ["", "| seed | victims reported, of 10,000 | beyond the rate of .001 |", "|---|--:|--:|"]
    victims = [f"https://example.org/{i}" for i in range(10_000)]
    chosen = integers_with(lately.hash_keys(victims))
    for name, seed in (("public", 0), ("secret", SEEDS[1])):
        f = lately.AgePartitionedBloomFilter(100_000, 0.001, seed=seed)
        f.insert(chosen)
        reported = int(f.query(victims).sum())
        lines.append(f"| {name} | {reported:,} | {max(0, reported - 10):,} |")
    print("\n".join(lines))
    if options.out:
        head = "# What a secret costs, and what it is worth\n\nBy `benchmarks/keyed.py`.\n\n"
        options.out.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
