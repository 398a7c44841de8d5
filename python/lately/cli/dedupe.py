"""The run itself: records in, the filter asked, what is new out."""

import re
from argparse import Namespace
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import lately
from lately._progress import progress
from lately.cli.delimited import CsvReader
from lately.cli.errors import CliError
from lately.cli.filters import open_filter
from lately.cli.lines import JsonReader, TextReader
from lately.cli.parquet import ParquetReader, ParquetSink
from lately.cli.records import Batch, LineReader, LineSink, Malformed
from lately.cli.report import Counts, Mistakes, say, summary
from lately.cli.streams import compression, open_output, size

# Format by extension, and for CSV the delimiter.
_FORMATS = {
    ".csv": ("csv", ","),
    ".tsv": ("csv", "\t"),
    ".tab": ("csv", "\t"),
    ".jsonl": ("jsonl", ""),
    ".ndjson": ("jsonl", ""),
    ".json": ("jsonl", ""),
    ".parquet": ("parquet", ""),
    ".pq": ("parquet", ""),
}


def dedupe(options: Namespace) -> None:
    """Run ``lately dedupe``."""
    sizes = [size(name) for name in options.files]
    total = None if None in sizes else sum(filter(None, sizes))
    malformed = Malformed(options.skip_bad)
    reader = _reader(options, malformed)
    _check_targets(options, reader)
    seen = open_filter(options)
    counts, mistakes = Counts(), Mistakes(seen)
    try:
        with (
            open_output(options.output) as stream,
            closing(ParquetSink(stream, reader) if isinstance(reader, ParquetReader) else LineSink(stream)) as sink,
            progress(total, "B", False if options.quiet else None) as advance,
        ):
            for name in options.files:
                for batch in reader.batches(name, advance):
                    new = _new(seen, batch, mistakes, refresh=options.refresh)
                    sink.write(batch, new)
                    counts.kept += int(new.sum())
                    counts.dropped += len(new) - int(new.sum())
    except BrokenPipeError:
        raise
    except OSError as error:  # readers name their own
        shown = "standard output" if options.output == "-" else options.output
        raise CliError(f"cannot write {shown}: {error.strerror or error}") from None
    mistakes.settle()
    counts.malformed = malformed.count
    if options.state:
        _save(seen, options.state)
    if not options.quiet:
        say(summary(counts, mistakes, seen))
        if malformed.count:
            say(f"warning: the first malformed record is {malformed.first}")
        if reader.absent and counts.read:
            say(f"warning: no record has the key field {', '.join(sorted(reader.absent))}")


def _new(seen: lately.Filter, batch: Batch, mistakes: Mistakes, *, refresh: bool) -> NDArray[np.bool_]:
    """Which records of a batch are new; the filter then knows them all."""
    new = np.empty(len(batch.numbers), np.bool_)
    every = mistakes.every
    for start in range(0, len(new), every):
        part = slice(start, min(start + every, len(new)))
        at = None if batch.times is None else batch.times[part].view("datetime64[ns]")
        try:
            np.logical_not(seen.duplicated(batch.keys[part], at=at, refresh=refresh), out=new[part])
        except (TypeError, ValueError) as error:
            late = None if at is None else re.search(r"at\[(\d+)\]", str(error))
            if at is None or late is None:
                raise CliError(f"{batch.source}: {error}") from None
            i = int(late[1])
            raise CliError(
                f"{batch.place(start + i)}: the time {at[i]} steps back from the latest before it by more than the "
                f"--lateness of {seen.lateness:g} s: sort the records by time, or allow for more"
            ) from None
        mistakes.count(part.stop - part.start, int(new[part].sum()))
    return new


def _save(seen: lately.Filter, path: str) -> None:
    """Save the state, once the output is in place.

    A crash between the two leaves the older state: the next run over the same records gives them out again, where the
    other order would lose them.
    """
    try:
        seen.save(Path(path).resolve())  # a link stays a link
    except OSError as error:
        raise CliError(f"cannot write --state {path}: {error.strerror or error}; the output is written") from None


def _check_targets(options: Namespace, reader: LineReader | ParquetReader) -> None:
    """Say now, and not after all the work, that a result has no place."""
    if isinstance(reader, ParquetReader) and (options.output == "-" or compression(options.output)):
        raise CliError("Parquet needs --output FILE, and compresses by itself")
    if options.state:
        state = Path(options.state).resolve()
        if not state.parent.is_dir():
            raise CliError(f"--state {options.state}: there is no folder {state.parent}")
        if options.output != "-" and Path(options.output).resolve() == state:
            raise CliError(f"--state and --output are the same file, {options.output}")


def _reader(options: Namespace, malformed: Malformed) -> LineReader | ParquetReader:
    """Choose the reader that the options ask for, or the extensions of the files."""
    guesses = {_FORMATS.get(_extension(name), ("text", "")) for name in options.files}
    if options.format == "auto" and len(guesses) > 1:
        raise CliError("the names of the files speak of different formats: say which with --format and --delimiter")
    guess, delimiter = guesses.pop()
    format = guess if options.format == "auto" else options.format
    fields = options.key or []
    if format == "parquet":
        return ParquetReader(fields, options.time, malformed)
    if format == "csv":
        delimiter = options.delimiter or delimiter or ","
        return CsvReader(fields, options.time, options.encoding, malformed, delimiter=delimiter, quotes=options.quotes)
    if format == "jsonl":
        return JsonReader(fields, options.time, options.encoding, malformed)
    if fields or options.time:
        raise CliError("text has no fields for --key or --time: say what it is with --format csv, jsonl or parquet")
    return TextReader(fields, options.time, options.encoding, malformed)


def _extension(name: str) -> str:
    path = Path(name)
    return (path.with_suffix("") if compression(name) else path).suffix.lower()
