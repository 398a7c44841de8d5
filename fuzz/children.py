"""Run cases by the thousand in child processes, so that a case that ends its process is found and the rest go on.

    python fuzz/arrow_that_lies.py [--cases N] [--seed S]

A child runs a thousand cases of one seed. If it ends with an error, the seed is printed, and `--seed` runs it again.
"""

import argparse
import os
import random
import sys
import time
from collections.abc import Callable

EACH = 1000


def run(case: Callable[[random.Random], object]) -> None:
    """Run the cases that the arguments request; exit with 1 if a child ended with an error."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    start, found = time.monotonic(), []
    seeds = range(arguments.seed, arguments.seed + max(1, arguments.cases // EACH))
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
    print(f"{len(seeds) * EACH:,} cases in {time.monotonic() - start:.0f} s, {len(found)} children ended with an error")
    sys.exit(bool(found))
