"""Cases by the thousand, in child processes: what ends one of them is found, and the rest goes on.

    python fuzz/arrow_that_lies.py [--cases N] [--seed S]

A child takes a thousand cases of one seed and is told of none. If it does not end well, the seed is printed, by which
it can be run again.
"""

import argparse
import os
import random
import sys
import time
from collections.abc import Callable

EACH = 1000


def run(case: Callable[[random.Random], object]) -> None:
    """Try so many cases as the arguments say; end with 1 if a child did not end well."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    begun, found = time.monotonic(), []
    seeds = range(asked.seed, asked.seed + max(1, asked.cases // EACH))
    for seed in seeds:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                chance = random.Random(seed)
                for _ in range(EACH):
                    case(chance)
                status = 0
            finally:
                sys.stderr.flush()
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status:
            found.append(seed)
            print(f"seed {seed} ended with {status}", flush=True)
    print(f"{len(seeds) * EACH:,} cases in {time.monotonic() - begun:.0f} s, {len(found)} children ended badly")
    sys.exit(bool(found))
