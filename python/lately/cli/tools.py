"""The commands ``lately plan``, ``info``, ``query`` and ``merge``."""

from __future__ import annotations

import csv
import json
import shutil
import sys
from contextlib import suppress
from itertools import product
from pathlib import Path

import lately
from lately.cli.errors import CliError, UsageError
from lately.cli.filters import FPR, load
from lately.cli.state import locked, note_of, recorded, replacements
from lately.cli.times import Times

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any


def plan(options: Namespace) -> None:
    """Print the filters that meet a request (``lately plan``)."""
    given = {name: getattr(options, name) for name in ("nbytes", "slack", "capacity", "lateness")}
    fpr = FPR if options.fpr is None and options.nbytes is None else options.fpr
    try:
        plan = lately.plan(options.window, fpr, **given)
    except (ValueError, TypeError, OverflowError) as error:
        raise UsageError(str(error)) from None
    print(plan.to_text(shutil.get_terminal_size().columns))


def info(options: Namespace) -> None:
    """Print what the filter in each file is and holds (``lately info``)."""
    for i, path in enumerate(options.files):
        f = load(path)
        unit = "s" if isinstance(f.window, float) else "keys"
        exact = isinstance(f, lately.ExactFilter)
        rows = {
            "file": path,
            "filter": f.family,
            "window": f"{f.window:,} {unit}",
            "slack": f"{f.slack:,} {unit}",
            "lateness": None if f.lateness is None else f"{f.lateness:,} s",
            "capacity": f"{f.capacity:,} keys" if unit == "s" and not exact else None,
            "inserted": f"{f.inserted:,} keys",
            "mistakes": "none" if exact else f"rate {f.false_positive_rate():.3g} now, planned for {f.fpr:.3g}",
            "memory": f"{f.nbytes:,} bytes",
            "parameters": " ".join(f"{name}={value}" for name, value in f.parameters.items()) or None,
        }
        run = _recorded(path)
        rows |= {name: ",".join(has) if isinstance(has, list) else has for name, has in run.items()}
        rows["ignore_case"] = "yes" if run.get("ignore_case") else None
        print("\n" * (i > 0) + "\n".join(f"{name:<10} {value}" for name, value in rows.items() if value is not None))


def query(options: Namespace) -> None:
    """Print for each key whether a saved filter contains it (``lately query``)."""
    f = load(options.file)
    timed = isinstance(f.window, float)
    if options.at is not None and not timed:
        raise CliError(f"--at is for windows of time, and that of {options.file} counts keys: leave it out")
    at: Any = None
    if options.at is not None:
        try:
            at = Times("--at").read(options.at) / 1e9
        except ValueError as error:
            raise CliError(str(error).removeprefix("the time ")) from None
    run = _recorded(options.file)
    fields = run.get("key") or []
    rows = len(fields) > 1 or any(field.strip("0123456789") == "-" for field in fields)
    for text in options.keys or _lines():
        given = text.lower() if run.get("ignore_case") else text
        parts = next(csv.reader([given]), []) if rows and run.get("format") != "text" else [given]
        if len(fields) > 1 and len(parts) != len(fields) and "-" not in "".join(fields):
            raise CliError(
                f"a key of {options.file} is {','.join(fields)}: expected {len(fields)} values between commas, "
                f"got {text}"
            )
        try:
            if types := run.get("types"):
                from lately.cli.parquet import typed

                batches = typed(parts, types)
            elif run.get("format") == "jsonl":
                # Keys of JSON have types. Which one a text stands for is unknown.
                batches = iter([[key if rows else key[0] for key in product(*map(_values, parts))]])
            else:
                batches = iter([[tuple(parts) if len(parts) > 1 else parts[0]]])
            seen = any(f.query(keys, at=at).any() for keys in batches)
        except (ValueError, TypeError) as error:
            raise CliError(f"{text}: {error}") from None
        print("seen" if seen else "new", text, sep="\t", flush=not options.keys)


def merge(options: Namespace) -> None:
    """Merge saved filters into one file (``lately merge``)."""
    with locked(options.output, "output") as target:
        merged, run = _merged(options.files)
        try:
            with replacements(target, merged, lambda _: {"options": run, "runs": []}) as (note, filter):
                note.replace()
                filter.replace()
        except OSError as error:
            raise CliError(f"cannot write {options.output}: {error.strerror or error}") from None


def _merged(files: list[str]) -> tuple[lately.Filter, dict[str, Any]]:
    """Return the union of states, and the options of their runs."""
    merged = load(files[0])
    run: dict[str, Any] = {}
    for path in files:
        for name, has in (other := _recorded(path)).items():
            if name != "types" and (run or other).get(name) != has:
                raise CliError(f"{path}: its {name} is {has}, and that of the states before it {run.get(name)}")
        run = run or other
    for path in files[1:]:
        try:
            merged = merged.union(load(path))
        except ValueError as error:
            instead = "; make both with --capacity" if merged.family == "time-limited" else ""
            raise CliError(f"{path}: {error}{instead}") from None
    return merged, run


def _values(text: str) -> list[Any]:
    """Return the values that a text stands for: itself, and a number, true, false or null."""
    with suppress(ValueError, RecursionError):
        value = json.loads(text)
        if not isinstance(value, str | list | dict):
            return [text, value]
    return [text]


def _lines() -> Iterator[str]:
    try:
        yield from (line.removesuffix("\n").removesuffix("\r") for line in sys.stdin)
    except UnicodeDecodeError as error:
        raise CliError(f"standard input: {error}") from None


def _recorded(path: str) -> dict[str, Any]:
    """Return the options that a run of ``lately dedupe`` recorded beside its state: key, format and time."""
    try:
        return recorded(json.loads(note_of(Path(path).resolve()).read_bytes()))
    except (OSError, ValueError):
        return {}
