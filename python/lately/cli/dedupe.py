"""The command ``lately dedupe``: reads records, looks their keys up in the filter, and writes the new ones."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing, nullcontext, suppress
from itertools import chain
from pathlib import Path

from lately._progress import progress
from lately.cli.errors import CliError, DamagedError, UsageError
from lately.cli.filters import contradiction, open_filter
from lately.cli.inputs import BLOCK, Input, identity, identity_of, size
from lately.cli.line_reader import CsvReader, JsonReader, LineReader, span_of_words
from lately.cli.outputs import compression, descriptor_of
from lately.cli.records import Malformed, ReaderOptions, without
from lately.cli.report import Counts, print_error, summary, warnings
from lately.cli.signals import ignore_signals
from lately.cli.sinks import Sink, annotator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager
    from typing import Any

    import lately
    from lately.cli.parquet import ParquetReader
    from lately.cli.records import Batch, Marks
    from lately.cli.state import State

# Format by extension.
_FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_ZEEK = b"#separator "
# Formats in which a key is the same text as in another format.
_SAME_KEYS = {"tsv": "csv", "zeek": "csv"}


def dedupe(options: Namespace) -> None:
    """Write the records whose key was not seen lately (``lately dedupe``)."""
    sizes = [size(name) for name in options.files]
    options.sized = any(known is not None for known in sizes)
    total = None if None in sizes else sum(filter(None, sizes))
    with _state(options.state) as state:
        if state:
            _apply_recorded(state, options)
        malformed = Malformed(options.skip_bad)
        reader = _reader(options, malformed)
        targets = _check_targets(options, reader)
        seen = open_filter(options)
        identities = [identity_of(name) for name in options.files]
        if state and None not in identities and state.holds(identities, targets):
            _report_held(state, options)
            return
        # Without a report no estimates are needed.
        counts = None if options.quiet else Counts(seen)
        refresh = {"yes": True, "no": False}.get(options.refresh, options.refresh)
        with ExitStack() as stack:
            sinks = [stack.enter_context(closing(sink)) for sink in _sinks(options, reader)]
            with progress(total, "B", show=not options.quiet) as advance:
                for name in options.files:
                    fitting = (_fitting(batch, seen, malformed) for batch in reader.batches(name, advance, filter=seen))
                    batches = _read_ahead(name, chain.from_iterable(fitting))
                    for batch in batches:
                        _check_order(seen, batch, batches if size(name) else ())
                        if counts:
                            counts.span(batch.times)
                        new = _new(seen, batch, counts, refresh=refresh)
                        for sink in sinks:
                            sink.write(batch, new)
            for sink in sinks:
                sink.finish()
            if state and state.holds(reader.inputs, targets):
                _report_held(state, options)
                return
            _replace(sinks, state, seen, options, reader)
    if counts:
        counts.malformed, counts.blank = malformed.count, reader.blank
        counts.update()
        print_error(summary(counts, seen))
        for name in targets:
            if any(given != "-" and Path(given).resolve() == name for given in options.files):
                print_error(f"warning: {name} was an input, and is replaced")
        for warning in warnings(counts, seen, time_unit=options.time_unit or options.time_format):
            print_error(warning)
        if malformed.count:
            print_error(f"warning: the first malformed record is {malformed.first}")
        if reader.absent and counts.read:
            print_error(f"warning: no record has the key field {', '.join(sorted(reader.absent))}")


def _sinks(options: Namespace, reader: LineReader | ParquetReader) -> Iterator[Sink]:
    """Yield the sink of --output, and that of --dropped."""
    annotate = annotator(options.format, reader) if options.mark else None
    yield Sink(options.output, reader, annotate=annotate)
    if options.dropped is not None:
        yield Sink(options.dropped, reader, repeats=True)


def _state(name: str | None) -> AbstractContextManager[State | None]:
    if name is None:
        return nullcontext()
    from lately.cli.state import open_state

    return open_state(name)


def _read_ahead(name: str, batches: Iterator[Batch]) -> Iterator[Batch]:
    """Read ahead in files of more than one block, but not in streams: the sender may be slow."""
    if (size(name) or 0) <= BLOCK:
        return batches
    from lately.cli.readahead import read_ahead

    return read_ahead(batches)


def _replace(
    sinks: list[Sink], state: State | None, seen: lately.Filter, options: Namespace, reader: LineReader | ParquetReader
) -> None:
    """Replace outputs and state, in the order that `lately.cli.state` explains. From here on signals are ignored."""
    if state is None:
        ignore_signals()
        for sink in sinks:
            sink.replace()
        return
    recorded = {name: getattr(options, name) for name in ("key", "format", "time", "ignore_case")}
    if not isinstance(reader, LineReader):
        recorded["types"] = reader.types()
    made = [sink.output.replacement for sink in sinks]
    # The identity of a file changes with its contents.
    outputs = [[str(file.path), *identity(file.temporary.stat())] for file in made if file]
    with state.prepared(seen, recorded, reader.inputs, outputs if all(made) else []) as (note, filter):
        ignore_signals()
        note.replace()
        for sink in sinks:
            sink.replace()
        filter.replace()


def _apply_recorded(state: State, options: Namespace) -> None:
    """Complete the options by those of the state's runs. `CliError` if an option contradicts them."""
    for option, has in state.options.items():
        given = getattr(options, option, has)
        if given in (None, False, "auto"):
            setattr(options, option, has)
            for name in options.files if given == "auto" else ():
                guess = _FORMATS.get(_extension(name), has)
                if _SAME_KEYS.get(guess, guess) != _SAME_KEYS.get(has, has):
                    raise CliError(f"{name} is {guess} by its name, and the state in {options.state} is of {has}")
        elif option == "format" and _SAME_KEYS.get(given, given) == _SAME_KEYS.get(has, has):
            continue
        elif given != has:
            given, has = (",".join(value) if isinstance(value, list) else value for value in (given, has))
            raise contradiction(options.state, option, given, has)


def _report_held(state: State, options: Namespace) -> None:
    if not options.quiet:
        print_error(f"--state {state.name} contains these inputs already; {options.output} is as that run wrote it")


def _fitting(batch: Batch, seen: lately.Filter, malformed: Malformed) -> Iterator[Batch]:
    """Yield parts of a batch without the records whose times lie too far ahead of the system's clock.

    These are malformed. The filter would reject them, because one would end the window of all records before it.
    """
    faults: list[tuple[int, str]] = []
    if batch.times is not None and seen.max_ahead is not None:
        limit = time.time_ns() + int(seen.max_ahead * 1e9)
        for i in (batch.times > limit).nonzero()[0].tolist():
            shown = batch.times[i].view("datetime64[ns]")
            reason = f"the time {shown} lies more than {seen.max_ahead:g} s ahead of this machine's clock"
            faults.append((i, reason))
    yield from without(batch, faults, malformed)


def _check_order(seen: lately.Filter, batch: Batch, following: Iterable[Batch]) -> None:
    """Raise `CliError` for a time that steps back by more than the lateness.

    The error states the furthest step back in this batch and those that follow it.
    """
    if batch.times is None or not len(batch.times):
        return
    import numpy as np

    from lately._moments import seconds

    latest = np.int64(-(2**63)) if seen.latest is None else seen.latest.view(np.int64)

    def steps(times: Any) -> Any:
        nonlocal latest
        before = np.maximum.accumulate(np.concatenate([[latest], times]))
        latest = before[-1]
        return np.maximum(before[:-1], times) - times

    found, lateness = steps(batch.times), round((seen.lateness or 0) * 1e9)
    if (late := found > lateness).any():
        i, furthest = late.argmax(), found.max()
        with suppress(CliError):
            furthest = max([furthest, *(steps(more.times).max(initial=0) for more in following)])
        raise CliError(
            f"{batch.place(i)}: the time {batch.times[i].view('datetime64[ns]')} steps back by "
            f"{seconds(int(found[i]))} s from the latest before it, more than the --lateness of {seconds(lateness)} s: "
            f"sort the records by time, or raise --lateness to the furthest step back, {seconds(int(furthest))}s"
        )


def _new(seen: lately.Filter, batch: Batch, counts: Counts | None, *, refresh: Any) -> Marks:
    """Return which records of a batch are new, and insert their keys."""
    parts = []
    every = counts.every if counts else max(len(batch.keys), 1)
    for start in range(0, len(batch.keys), every):
        part = slice(start, start + every)
        at = None if batch.times is None else batch.times[part].view("datetime64[ns]")
        try:
            new = batch.keys[part].new_to(seen, at=at, refresh=refresh)
        except (TypeError, ValueError) as error:
            raise CliError(f"{batch.source}: {error}") from None
        if counts:
            counts.count(len(new), new.count(1))
        parts.append(new)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _check_targets(options: Namespace, reader: LineReader | ParquetReader) -> list[Path]:
    """Return the files that the run will replace, or none if it also writes to a stream.

    An output that cannot be written raises `CliError` now, not after all the work. A stream gets the records of an
    earlier run again.
    """
    targets = []
    direct = False
    for option, name in (("output", options.output), ("dropped", options.dropped)):
        if name is None:
            continue
        descriptor, target = descriptor_of(name), Path(name).resolve()
        if options.format == "parquet" and (descriptor is not None or compression(name)):
            raise UsageError(
                f"Parquet needs --{option} FILE, and is compressed itself: take a name without .gz and the like"
            )
        if descriptor is not None or (target.exists() and not target.is_file()):
            direct = True
            continue
        if target in targets:
            raise UsageError(f"--output and --dropped are the same file, {name}")
        targets.append(target)
        if options.state:
            from lately.cli.state import files_of

            if target in files_of(Path(options.state).resolve()):
                raise UsageError(f"--{option} {name} is a file of --state {options.state}: choose another name")
            if any(given != "-" and Path(given).resolve() == target for given in options.files):
                raise UsageError(
                    f"--{option} {name} is an input too: with --state it must be another file, so that the run can be "
                    "repeated after it was killed"
                )
    return [] if direct else targets


def _reader(options: Namespace, malformed: Malformed) -> LineReader | ParquetReader:
    """Return the reader for the format in the options, or in the names of the files."""
    options.format = format = _format(options)
    if format not in ("csv", "tsv"):
        given = {"delimiter": options.delimiter, "quotes": options.quotes, "no-header": not options.header or None}
        for option, value in given.items():
            if value is not None:
                raise UsageError(f"--{option} is for CSV and TSV, but the records are {format}: add --format csv")
    if format == "parquet" and options.encoding is not None:
        raise UsageError("--encoding is for text, and Parquet has none but UTF-8: leave it out")
    times = None
    if options.time is not None:
        from lately.cli.times import Times

        times = Times(options.time, options.time_unit or "s", options.time_format)
    reading = ReaderOptions(
        key=options.key or [],
        time=times,
        encoding=options.encoding or "utf-8",
        strict=options.encoding is not None,
        ignore_case=options.ignore_case,
        longest=options.max_record,
        malformed=malformed,
        digest=options.state is not None,
    )
    if format == "parquet":
        from lately.cli.parquet import ParquetReader

        return ParquetReader(reading)
    if format == "jsonl":
        return JsonReader(reading)
    if format in ("csv", "tsv", "zeek"):
        tabs = format != "csv" or {_FORMATS.get(_extension(name)) for name in options.files} == {"tsv"}
        delimiter = options.delimiter or ("\t" if tabs else ",")
        head = "zeek" if format == "zeek" else "names" if options.header else "none"
        quotes = delimiter != "\t" if options.quotes is None else options.quotes
        return CsvReader(reading, delimiter=delimiter, quotes=quotes and head != "zeek", head=head)
    if reading.time is not None:
        raise UsageError(
            "text has no field for --time: for other formats add --format csv, tsv, zeek, jsonl or parquet"
        )
    return LineReader(reading, words=[span_of_words(field) for field in reading.key])


def _format(options: Namespace) -> str:
    """Return the format of the records: by the options, the names of the files, or for a pipe that of the output."""
    named = [name for name in options.files if name not in ("-", "/dev/stdin")]
    guesses = {_FORMATS.get(_extension(name), "text") for name in named or [options.output]}
    if options.format == "auto" and len(guesses) > 1:
        raise UsageError("the files have different formats by their names: choose one by --format and --delimiter")
    format = str(guesses.pop() if options.format == "auto" else options.format)
    if options.format == "auto" and format == "text" and named and all(map(_is_zeek, named)):
        format = "zeek"
    if options.mark and format == "zeek":
        raise UsageError("--mark is not for Zeek logs, whose header has a type for each field")
    for name in filter(None, (options.dropped, options.output)):
        goes = _FORMATS.get(_extension(name))
        as_read: set[str | None] = {format, "tsv" if format == "csv" and options.delimiter == "\t" else format}
        # What is read as text may be anything, so that an output of an input's format is right.
        as_read |= {_FORMATS.get(_extension(given)) for given in named if format == "text"}
        if goes and goes not in as_read:
            raise UsageError(
                f"{name} is {goes} by its name, but records are written as they were read: as {format}; rename it, or "
                "correct --format"
            )
    return format


def _is_zeek(name: str) -> bool:
    """Whether a file is a Zeek log, by its first line. (Its name does not show the format)."""
    if not Path(name).is_file():
        return False  # bytes that are read from a pipe are lost
    try:
        with closing(Input(name, lambda _: None)) as file:
            head = b""
            while len(head) < len(_ZEEK) and (more := file.read(len(_ZEEK) - len(head))):
                head += more
            return head == _ZEEK
    except (OSError, DamagedError):
        return False  # the reader reports the error


def _extension(name: str) -> str:
    path = Path(name)
    return (path.with_suffix("") if compression(name) else path).suffix.lower()
