"""The sinks of a run: each writes the new records, the repeats, or all records with an additional field."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager, suppress

from lately.cli.errors import CliError
from lately.cli.outputs import Output
from lately.cli.records import BOM, FIELD, Batch, Marks, bools, others

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from lately.cli.line_reader import LineReader
    from lately.cli.parquet import ParquetReader


class Sink:
    """Writes the new records, the repeats, or all records with the field `repeat`, to a file or stream.

    Its errors name the file. If the reader of standard output has gone, it raises `BrokenPipeError`.
    """

    def __init__(
        self,
        name: str,
        reader: LineReader | ParquetReader,
        *,
        repeats: bool = False,
        annotate: Annotate | None = None,
    ) -> None:
        self._name = name
        self._repeats = repeats
        self._annotate = annotate
        self._finished = False
        with self._named_errors():
            self.output = Output(name)
        self._writer = reader.writer(self.output, marked=annotate is not None)

    def write(self, batch: Batch, new: Marks) -> None:
        """Write the records of a batch that belong to this sink."""
        chosen = others(new) if self._repeats else new
        if self._annotate is not None:
            batch, chosen = self._annotate(batch, new), b"\1" * len(new)
        with self._named_errors():
            self._writer.write(batch, chosen)

    def finish(self) -> None:
        """Write what is buffered, and flush it to the reader or to the disk."""
        self._finished = True
        with self._named_errors():
            self._writer.close()
            self.output.finish()

    def replace(self) -> None:
        """Replace the file, if there is one to replace."""
        if self.output.replacement:
            with self._named_errors():
                self.output.replacement.replace()

    def close(self) -> None:
        """Close what is open, and remove a temporary file that has not replaced the file."""
        if not self._finished:
            with suppress(OSError):
                self._writer.close()
        self.output.close()

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Raise an `OSError` again as a `CliError` that names the file."""
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            shown = "standard output" if self._name == "-" else self._name
            raise CliError(f"cannot write {shown}: {error.strerror or error}") from None


Annotate = Callable[[Batch, Marks], Batch]
"""Adds the field to the records of a batch. The marks state which of them are new."""

_BOM = BOM.encode()
_NAME = f'"{FIELD}"'.encode()


def annotator(format: str, reader: LineReader | ParquetReader) -> Annotate:
    """Return the function that adds the field to records of a format. In text a tab follows the field."""
    if format == "parquet":
        return _annotated_rows
    if format == "jsonl":
        return _annotated_objects
    separator = (reader.delimiter or "\t").encode()

    def lines(batch: Batch, new: Marks) -> Batch:
        head = batch.head.removeprefix(_BOM)
        if head:
            _check_free(FIELD in reader.header, batch.source)
            head = FIELD.encode() + separator + head
        head = _BOM * batch.head.startswith(_BOM) + head
        records = [b"%d%b%b" % (value, separator, line) for value, line in zip(others(new), batch.records, strict=True)]
        return batch._replace(records=records, head=head)

    return lines


def _check_free(taken: bool, name: str) -> None:
    """Raise `CliError` if records have the field already, as after another run with ``--mark``."""
    if taken:
        raise CliError(f"{name}: --mark adds the field {FIELD!r}, which its records have already: rename that field")


def _annotated_objects(batch: Batch, new: Marks) -> Batch:
    import json

    for line in batch.records:
        _check_free(_NAME in line and FIELD in json.loads(line), batch.source)
    return batch._replace(records=list(map(_annotated_object, batch.records, others(new))))


def _annotated_object(line: bytes, repeat: int) -> bytes:
    before, _, rest = line.partition(b"{")
    comma = b"" if rest.lstrip().startswith(b"}") else b", "
    return b'%b{"%b": %b%b%b' % (before, FIELD.encode(), b"true" if repeat else b"false", comma, rest)


def _annotated_rows(batch: Batch, new: Marks) -> Batch:
    _check_free(FIELD in batch.records.schema.names, batch.source)
    return batch._replace(records=batch.records.add_column(0, FIELD, bools(others(new))))
