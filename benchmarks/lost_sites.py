"""How often is a sliced filter on Ray wrong while a fifth of its sites hangs, beside the formulas?

    uv run benchmarks/lost_sites.py

prints a row for each way to answer. The process of one actor is stopped, as if its machine hung.
"""

import os
import signal
import warnings

# Under `uv run`, Ray would start its workers by `uv run` too.
os.environ |= {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0", "RAY_USAGE_STATS_ENABLED": "0"}

import numpy as np
import ray

import lately
from lately.distributed import FailedSitesWarning, SlicedFilter, SlicedShape

KEYS, BITS, K, SITES = 20_000, 200_000, 8, 5
WAYS = [
    ("horizontal", "duplicate"),
    ("horizontal", "distinct"),
    ("vertical", "duplicate"),
    ("vertical", "distinct"),
    ("vertical", 4),
]


def main() -> None:
    """Fill each filter, stop one site of five, query what was inserted and what was not."""
    warnings.simplefilter("ignore", FailedSitesWarning)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    print("| slicing | on_failure | false positives | formula | false negatives | formula |")
    print("|---|---|--:|--:|--:|--:|")
    for kind, answer in WAYS:
        share = 1 if kind == "vertical" else SITES
        like = lately.BloomFilter.from_parameters(capacity=KEYS // share, k=K, bits=BITS // share)
        f = SlicedFilter(kind, SITES, like, on_failure=answer, sites="ray", deadline=3)
        f.insert(np.arange(KEYS))
        density = float(np.mean(f.fill))
        process = f.status()[2]["process"]
        os.kill(process, signal.SIGSTOP)
        negatives = 1 - f.query(np.arange(KEYS)).mean()
        positives = f.query(np.arange(10 * KEYS, 11 * KEYS)).mean()
        fpr, fnr = SlicedShape(kind, k=K, sites=SITES).failure_rates(1, density, on_failure=answer)
        print(f"| {kind} | {answer} | {positives:.4f} | {fpr:.4f} | {negatives:.4f} | {fnr:.4f} |")
        os.kill(process, signal.SIGCONT)
        f.close()


if __name__ == "__main__":
    main()
