"""How many instructions does a call take? Counts, not times: they hardly depend on what else a machine does.

    CARGO_PROFILE_RELEASE_STRIP=debuginfo uv run benchmarks/instructions.py [--check]

Runs the hot paths once under `valgrind --tool=callgrind` (Debian's package `valgrind`) and writes what each takes to
`results/instructions.json`; with `--check`, compares with what lies there, and fails if a path takes 3 % more and one
instruction, or if a vector instruction has become a function. Functions have names in a build that is not stripped
only. valgrind knows no AVX-512, so that batches are counted in the kernels of AVX2.
"""

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

import lately

RESULTS = Path(__file__).parent / "results" / "instructions.json"
TOLERANCE = 1.03


def paths() -> dict[str, tuple[Callable[[], object], int]]:
    """What is counted: a call and the keys of one call. The first is empty, and is taken from all others."""
    window, keys = 100_000, 20_000
    lines = lately.AgePartitionedBloomFilter(window, 0.01)
    timed = lately.TimingBloomFilter("10min", 0.01, capacity=window)
    entries, of_minutes = lately.Filter(window, 0.01), lately.Filter("10min", 0.01)
    one, ten = np.array([1]), [f"https://example.org/{i}" for i in range(10)]
    many = np.random.default_rng(1).integers(0, window, keys)
    texts = pa.array([f"https://example.org/{key}" for key in many])
    times, fresh = np.arange(keys, dtype=float), itertools.count(window)
    for filter in (lines, entries):
        filter.insert(many)
    for filter in (timed, of_minutes):
        filter.insert(many, at=times)
    return {
        "nothing": (lambda: None, 0),
        "f.add(1)": (lambda: entries.add(1), 0),
        "f.seen(1)": (lambda: entries.seen(1), 0),
        "f.seen(a new key)": (lambda: entries.seen(next(fresh)), 0),
        "f.seen(a new key), a window of time": (lambda: of_minutes.seen(next(fresh), at=30_000), 0),
        "1 in f": (lambda: 1 in entries, 0),
        "f.query(array of 1)": (lambda: entries.query(one), 0),
        "f.duplicated(array of 1)": (lambda: entries.duplicated(one), 0),
        "f.duplicated(array of 1), a window of time": (lambda: of_minutes.duplicated(one, at=30_000), 0),
        "f.query(10 URLs in a list)": (lambda: entries.query(ten), 0),
        "np.logical_not(array of 1)": (lambda: np.logical_not(one), 0),
        "f.query(int64), lines, a key": (lambda: lines.query(many), keys),
        "f.duplicated(int64), lines, a key": (lambda: lines.duplicated(many), keys),
        "f.duplicated(URLs in Arrow), lines, a key": (lambda: lines.duplicated(texts), keys),
        "f.query(int64), timing, a key": (lambda: timed.query(many, at=30_000), keys),
        "f.query(int64), aged cuckoo, a key": (lambda: entries.query(many), keys),
        "f.duplicated(int64), aged cuckoo, a key": (lambda: entries.duplicated(many), keys),
        "lately.duplicated(int64), exact, a key": (lambda: lately.duplicated(many, window), keys),
    }


def run() -> None:
    """Call each path between two calls of `getppid`, which callgrind notices."""
    for call, keys in paths().values():
        calls = 3 if keys else 1000
        for _ in range(calls):
            call()
        os.getppid()
        for _ in range(calls):
            call()
        os.getppid()


def counted() -> dict[str, float]:
    """Instructions of each path, per call or per key."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--dump-before=getppid", f"--callgrind-out-file={folder}/out"]
        command += [sys.executable, __file__, "--run"]
        # Other threads, and other orders of hash tables, would count too.
        quiet = os.environ | {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
        subprocess.run(command, check=True, capture_output=True, env=quiet)
        parts = sorted(Path(folder).glob("out.*"), key=lambda path: int(path.suffix[1:]))
        totals = [int(re.search(r"^(?:summary|totals): (\d+)", part.read_text(), re.M)[1]) for part in parts]
    counts, nothing = {}, 0.0
    # Every second part lies between the two calls of a path.
    for (name, (_, keys)), total in zip(paths().items(), totals[1::2], strict=False):
        a_call = total / (3 if keys else 1000)
        nothing = nothing or a_call
        counts[name] = round((a_call - nothing) / max(keys, 1), 1)
    return counts


def functions() -> list[str]:
    """Vector instructions that are functions in the library, since code without their features calls them.

    Such a call passes vectors through memory and takes as long as a query; those of AVX-512 show in no count here.
    """
    library = Path(lately._core.__file__).read_bytes()
    if b"process_admitted" not in library:
        sys.exit("the library has no names of functions: build it with CARGO_PROFILE_RELEASE_STRIP=debuginfo")
    names = re.findall(rb"core_arch(?:3x86|6x86_64)\w*?\d_+((?:mm\d*|pdep|pext)_\w+)", library)
    return sorted({name.decode() for name in names})


def main() -> None:
    """Print a table in Markdown, and write or check the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the file, and write nothing")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        return run()
    counts = counted()
    before = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    print("| path | instructions | before |\n|---|--:|--:|")
    for name, count in counts.items():
        print(f"| {name} | {count} | {before.get(name, '-')} |")
    if not options.check:
        RESULTS.write_text(json.dumps(counts, indent=2) + "\n")
        return None
    worse = [name for name, count in counts.items() if count > before.get(name, count) * TOLERANCE + 1]
    if worse:
        return sys.exit(f"more instructions than before: {', '.join(worse)}")
    if called := functions():
        return sys.exit(f"called, and not part of the code around them: {', '.join(called)}")
    return None


if __name__ == "__main__":
    main()
