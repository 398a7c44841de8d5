"""The run itself: records in, the filter asked, what is new out."""

import re
from argparse import Namespace
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lately
from lately._progress import progress
from lately.cli.delimited import CsvReader
from lately.cli.errors import CliError
from lately.cli.filters import contradiction, open_filter
from lately.cli.inputs import known, size
from lately.cli.lines import JsonReader, TextReader
from lately.cli.outputs import Output, compression, descriptor_of
from lately.cli.parquet import ParquetReader, ParquetSink
from lately.cli.records import Asked, Batch, LineReader, LineSink, Malformed
from lately.cli.report import Counts, Mistakes, say, summary
from lately.cli.signals import hold
from lately.cli.state import State, open_state

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
    with open_state(options.state) as state:
        if state:
            _remember(state, options)
        malformed = Malformed(options.skip_bad)
        reader = _reader(options, malformed)
        target = _check_targets(options, reader)
        seen = open_filter(options)
        expected = [known(name) for name in options.files]
        if state and target and None not in expected and state.holds(expected, [target]):
            _say_held(state, options)
            return
        counts, mistakes = Counts(), Mistakes(seen)
        try:
            with closing(Output(options.output)) as output:
                with (
                    closing(_sink(output, reader)) as sink,
                    progress(total, "B", False if options.quiet else None) as advance,
                ):
                    for name in options.files:
                        for batch in reader.batches(name, advance):
                            new = _new(seen, batch, mistakes, refresh=options.refresh)
                            sink.write(batch, new)
                            counts.kept += int(new.sum())
                            counts.dropped += len(new) - int(new.sum())
                output.finish()
                if state and target and state.holds(reader.inputs, [target]):
                    _say_held(state, options)
                    return
                _replace(output, state, seen, options, reader.inputs)
        except BrokenPipeError:
            raise
        except OSError as error:  # readers and the state name their own
            shown = "standard output" if options.output == "-" else options.output
            raise CliError(f"cannot write {shown}: {error.strerror or error}") from None
    mistakes.settle()
    counts.malformed = malformed.count
    if not options.quiet:
        say(summary(counts, mistakes, seen))
        if malformed.count:
            say(f"warning: the first malformed record is {malformed.first}")
        if reader.absent and counts.read:
            say(f"warning: no record has the key field {', '.join(sorted(reader.absent))}")


def _replace(output: Output, state: State | None, seen: lately.Filter, options: Namespace, inputs: list[Any]) -> None:
    """Put output and state in place, in the order that `State` explains; from here on no signal ends the run."""
    if state is None:
        hold()
        output.replace()
        return
    asked = {"key": options.key, "format": options.format, "time": options.time}
    try:
        state.prepare(seen, asked, inputs, [output.written()] if output.path else [])
        hold()
        state.replace_note()
        output.replace()
        state.replace_filter()
    finally:
        state.discard()


def _remember(state: State, options: Namespace) -> None:
    """Fill in what the runs before were asked, and refuse what contradicts it."""
    for option, has in state.asked.items():
        given = getattr(options, option)
        if given in (None, "auto"):
            setattr(options, option, has)
            for name in options.files if given == "auto" else ():
                guess, _ = _FORMATS.get(_extension(name), (has, ""))
                if guess != has:
                    raise CliError(f"{name} is {guess} by its name, and the state in {options.state} is of {has}")
        elif given != has:
            given, has = (",".join(value) if isinstance(value, list) else value for value in (given, has))
            raise contradiction(options.state, option, given, has)


def _say_held(state: State, options: Namespace) -> None:
    if not options.quiet:
        say(f"these inputs are in --state {state.name} already; {options.output} is as that run wrote it")


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


def _check_targets(options: Namespace, reader: LineReader | ParquetReader) -> Path | None:
    """Say now, and not after all the work, that a result has no place; give the file that is replaced, if one is."""
    descriptor = descriptor_of(options.output)
    if isinstance(reader, ParquetReader) and (descriptor is not None or compression(options.output)):
        raise CliError("Parquet needs --output FILE, and compresses by itself")
    target = Path(options.output).resolve()
    if descriptor is not None or (target.exists() and not target.is_file()):
        return None
    if options.state:
        if target == Path(options.state).resolve():
            raise CliError(f"--state and --output are the same file, {options.output}")
        if any(name != "-" and Path(name).resolve() == target for name in options.files):
            raise CliError(
                f"--output {options.output} is an input too: with --state it must be another file, so that a run that "
                "was killed can be run again"
            )
    return target


def _sink(output: Output, reader: LineReader | ParquetReader) -> LineSink | ParquetSink:
    return ParquetSink(output, reader) if isinstance(reader, ParquetReader) else LineSink(output)


def _reader(options: Namespace, malformed: Malformed) -> LineReader | ParquetReader:
    """Choose the reader that the options ask for, or the extensions of the files."""
    guesses = {_FORMATS.get(_extension(name), ("text", "")) for name in options.files}
    if options.format == "auto" and len(guesses) > 1:
        raise CliError("the names of the files speak of different formats: say which with --format and --delimiter")
    guess, delimiter = guesses.pop()
    if options.format == "auto":
        options.format = guess
    asked = Asked(
        key=options.key or [],
        time=options.time,
        encoding=options.encoding,
        longest=options.max_record,
        malformed=malformed,
        digest=options.state is not None,
    )
    if options.format == "parquet":
        return ParquetReader(asked)
    if options.format == "csv":
        return CsvReader(asked, delimiter=options.delimiter or delimiter or ",", quotes=options.quotes)
    if options.format == "jsonl":
        return JsonReader(asked)
    if asked.key or asked.time:
        raise CliError("text has no fields for --key or --time: say what it is with --format csv, jsonl or parquet")
    return TextReader(asked)


def _extension(name: str) -> str:
    path = Path(name)
    return (path.with_suffix("") if compression(name) else path).suffix.lower()
