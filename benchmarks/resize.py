"""How long a batch waits while sites move: four actors become eight, and four again, under one producer.

Run ``uv run benchmarks/resize.py``. The pace is that of batches of 1,000 keys, each of which goes to all sites.
"""

import os
import threading
import time

os.environ |= {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0", "RAY_USAGE_STATS_ENABLED": "0"}

import numpy as np
import ray

import lately
from lately.distributed import SlicedFilter

SITES, BATCH = 32, 1000


def measure(capacity: int) -> None:
    """Print how long a batch takes before a resize and during it, where a site has `capacity` keys."""
    like = lately.BloomFilter(capacity, 1e-6)
    with SlicedFilter("horizontal", SITES, like, sites="ray", actors=4, deadline=120) as f:
        phase, over, waits = "before", threading.Event(), {}

        def produce() -> None:
            number, handle = 0, f.handle()
            while not over.is_set():
                began = time.perf_counter()
                handle.duplicated(np.arange(number * BATCH, (number + 1) * BATCH))
                waits.setdefault(phase, []).append(time.perf_counter() - began)
                number += 1

        producer = threading.Thread(target=produce)
        producer.start()
        time.sleep(3)
        print(f"{SITES} sites of {like.nbytes / 1e6:.1f} MB")
        for actors in (8, 4, 8):
            phase, began = f"to {actors}", time.perf_counter()
            f.resize(actors)
            phase, took = "between", time.perf_counter() - began
            time.sleep(2)
            print(f"  {actors} actors after {took:.1f} s")
        over.set()
        producer.join()
        for name, each in waits.items():
            waits = np.array(each) * 1e3
            print(f"  {name:8} {len(waits):6} batches: {np.median(waits):6.1f} ms, the slowest {waits.max():6.0f} ms")


if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    for keys in (200_000, 1_000_000):
        measure(keys)
