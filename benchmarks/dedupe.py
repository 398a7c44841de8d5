"""How fast is `lately dedupe` on a file, beside polars' `unique`, Python's readers and awk, and in how much memory?

    uv run --group bench benchmarks/dedupe.py [--rows N] [--rounds N] [--folder FOLDER]

Files are made by a seed: clicks of visitors on pages, most of them repeats by both. After a first round that does not
count, each round runs every program in turn, each in a process of its own, from its start to its end, and ratios are
taken within a round. All give the same number of records, or it fails; awk compares whole lines, so that its input has
no time. The window takes in the whole file, as the others do.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from multiprocessing import Process
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from speed.race import ratio

READERS = {"csv": "read_csv", "jsonl": "read_ndjson", "parquet": "read_parquet"}
WRITERS = {"csv": "write_csv", "jsonl": "write_ndjson", "parquet": "write_parquet"}
POLARS = """
import polars
made = polars.{read}({source!r}).unique(subset=["ip", "url"], keep="first", maintain_order=True)
made.{write}({target!r})
"""
PYTHON = {
    "csv": """
import csv
seen = set()
with open({source!r}, newline="") as file, open({target!r}, "w", newline="") as out:
    rows, write = csv.reader(file), csv.writer(out, lineterminator="\\n").writerow
    write(next(rows))
    for row in rows:
        if (key := (row[1], row[2])) not in seen:
            seen.add(key)
            write(row)
""",
    "jsonl": """
import json
seen = set()
with open({source!r}, "rb") as file, open({target!r}, "wb") as out:
    for line in file:
        record = json.loads(line)
        if (key := (record["ip"], record["url"])) not in seen:
            seen.add(key)
            out.write(line)
""",
}


def make(folder: Path, rows: int) -> None:
    """Write the files."""
    rng = np.random.default_rng(0)
    visitors, pages = rng.zipf(1.3, rows) % 200_000, rng.zipf(1.5, rows) % 5000
    ips = [f"10.{v >> 16}.{v >> 8 & 255}.{v & 255}" for v in visitors.tolist()]
    urls = [f"/page/{page}.html" for page in pages.tolist()]
    times = np.arange(1_700_000_000, 1_700_000_000 + rows)
    table = pa.table({"time": times, "ip": ips, "url": urls, "status": np.full(rows, 200)})
    options = pyarrow.csv.WriteOptions(quoting_style="none")
    pyarrow.csv.write_csv(table, folder / "clicks.csv", options)
    pyarrow.parquet.write_table(table, folder / "clicks.parquet")
    with (folder / "clicks.jsonl").open("w") as file:
        for time, ip, url in zip(times.tolist(), ips, urls, strict=True):
            file.write(f'{{"time": {time}, "ip": "{ip}", "url": "{url}", "status": 200}}\n')
    with (folder / "clicks.txt").open("w") as file:
        file.writelines(f"{ip} {url}\n" for ip, url in zip(ips, urls, strict=True))


def commands(folder: Path, rows: int) -> dict[tuple[str, str], tuple[list[str], Path]]:
    """What is run, by format and program, and where it writes."""
    found = {}
    for extension in ("txt", *READERS):
        source = str(folder / f"clicks.{extension}")
        target = folder / f"lately.{extension}"
        key = [] if extension == "txt" else ["--key", "ip,url"]
        ours = [sys.executable, "-m", "lately", "dedupe", source, *key, "--window", str(rows), "-o", str(target), "-q"]
        found[extension, "lately"] = ours, target
        if extension in READERS:
            target = folder / f"polars.{extension}"
            code = POLARS.format(read=READERS[extension], write=WRITERS[extension], source=source, target=str(target))
            found[extension, "polars"] = [sys.executable, "-c", code], target
            if extension in PYTHON:
                target = folder / f"python.{extension}"
                code = PYTHON[extension].format(source=source, target=str(target))
                found[extension, "Python"] = [sys.executable, "-c", code], target
        elif awk := shutil.which("awk"):
            target = folder / "awk.txt"
            found[extension, "awk"] = ["sh", "-c", f"exec {awk} '!seen[$0]++' {source} > {target}"], target
    return found


# An installed package has its byte code; so has a checkout after its first run, where that may write it.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def run(command: list[str]) -> tuple[float, float]:
    """Run one; give its seconds, and its peak of memory in MB."""
    start = perf_counter()
    process = subprocess.Popen(command, env=ENVIRONMENT)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    return perf_counter() - start, used.ru_maxrss / 1e3


def records(path: Path) -> int:
    """Count the records of an output, without a header."""
    if path.suffix == ".parquet":
        return pyarrow.parquet.read_metadata(path).num_rows
    with path.open("rb") as file:
        return sum(1 for _ in file) - (path.suffix == ".csv")


def main() -> None:
    """Make the files, race, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where files are made; default: a temporary one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        maker = Process(target=make, args=(folder, options.rows))  # a peak of memory of ours would count for the others
        maker.start()
        maker.join()
        programs = commands(folder, options.rows)
        for command, _ in programs.values():
            run(command)
        seconds, memory = defaultdict(list), defaultdict(float)
        for _ in range(options.rounds):
            for which, (command, _) in programs.items():
                took, peak = run(command)
                seconds[which].append(took)
                memory[which] = max(memory[which], peak)
        kept = {which: records(target) for which, (_, target) in programs.items()}
    if len(set(kept.values())) > 1:
        raise SystemExit(f"they kept different numbers of records: {kept}")
    new, own = next(iter(kept.values())), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"{options.rows:,} records, of which {new:,} are new; {options.rounds} rounds")
    print(f"A peak of memory below {own:,.0f} MB, that of this program, is not seen.\n")
    print("| records | program | seconds | its time over that of lately | peak of memory, MB |\n|---|---|--:|--:|--:|")
    for extension, program in programs:
        times = seconds[extension, program]
        shown = ratio(times, seconds[extension, "lately"])
        print(f"| {extension} | {program} | {median(times):.2f} | {shown} | {memory[extension, program]:,.0f} |")


if __name__ == "__main__":
    main()
