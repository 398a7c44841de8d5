"""The reader and the writer of Parquet, by pyarrow."""

from __future__ import annotations

from itertools import compress, product
from pathlib import Path

from lately._core import RecordHashes
from lately.cli.errors import CliError, optional
from lately.cli.inputs import BLOCK, identity_of
from lately.cli.records import FIELD, Batch, rows_of, without

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from lately import Filter
    from lately.cli.outputs import Output
    from lately.cli.records import Marks, ReaderOptions

# Greatest number of rows read at a time.
_ROWS = 1 << 16
# Rows of a row group, as in other writers, or its bytes in memory. A group for the few new rows of each batch would
# bloat the file.
_ROW_GROUP = 1 << 20
_GROUP_BYTES = 1 << 26


class ParquetReader:
    """Reads batches of rows. Without key fields, the whole row is the key."""

    delimiter = ""
    header: Sequence[str] = ()
    blank = 0

    def __init__(self, options: ReaderOptions) -> None:
        self._arrow, self._parquet = optional("pyarrow", "Parquet"), optional("pyarrow.parquet", "Parquet")
        self._fields = options.key
        self._ignore_case = options.ignore_case
        self._clock = options.time
        self._time = None if options.time is None else options.time.field
        self._malformed = options.malformed
        self._longest = options.longest
        self._first = ""
        self.schema: Any = None
        self.absent: set[str] = set()
        self.inputs: list[Any] = []

    def batches(self, name: str, advance: Callable[[int], object], *, filter: Filter) -> Iterator[Batch]:
        """Read all rows of a file."""
        if name == "-":
            raise CliError("Parquet is read from its end: pass a file instead of standard input")
        size, read = Path(name).stat().st_size, 0
        try:
            with self._parquet.ParquetFile(name) as file:
                self._accept(file.schema_arrow, name)
                # Key columns of a type that cannot be a key are rejected before rows are read.
                self._batch(self._no_rows(file.schema_arrow), name, 1, filter)
                for table in _batches(file):
                    yield from without(
                        self._batch(table, name, read + 1, filter), self._too_long(table), self._malformed
                    )
                    read += len(table)
                    advance(size * len(table) // max(file.metadata.num_rows, 1))
            self.inputs.append(identity_of(name))
        except (self._arrow.ArrowException, OSError) as error:
            raise CliError(f"{name}: {error}") from None

    def writer(self, output: Output, *, marked: bool) -> ParquetWriter:
        """Return a writer of rows; `marked` rows have the field `repeat`."""
        return ParquetWriter(output, self, marked=marked)

    def _accept(self, schema: Any, name: str) -> None:
        """Check a schema: that of the first file against the fields, and later ones against the first."""
        if self.schema is not None:
            if not schema.equals(self.schema):
                raise CliError(f"{name}: its schema differs from that of {self._first}")
            return
        self._first, self.schema = name, schema
        for field in filter(None, (*self._fields, self._time)):
            path = self._path(schema, field)
            if len(path) == 0 or schema.names.count(path[0]) > 1:
                problem = "more than one column" if path else "no column"
                raise CliError(f"{name}: it has {problem} {field!r}; its columns are {', '.join(schema.names)}")

    def _batch(self, table: Any, name: str, first: int, filter: Filter) -> Batch:
        numbers: Sequence[int] = range(first, first + len(table))
        times = None
        if self._time is not None:
            times, sound = self._times(self._column(table, self._time), name, first)
            table, times = rows_of(table, sound.tobytes()), times[sound]
            numbers = list(compress(numbers, sound.tolist()))
        fields = self._fields or table.schema.names
        columns = [self._column(table, field) for field in fields] if self._fields else table.columns
        if self._ignore_case:
            columns = [self._lower(*column, name) for column in zip(columns, fields, strict=True)]
        keys = columns[0] if len(fields) == 1 else self._arrow.RecordBatch.from_arrays(columns, fields)
        try:
            return Batch(name, RecordHashes(filter, keys), times, table, numbers, unit="row")
        except (TypeError, ValueError) as error:
            raise CliError(f"{name}: {error}") from None

    def _lower(self, column: Any, field: str, name: str) -> Any:
        """Return a column of the key with its text in lower case, as the other formats have it."""
        types, kind = self._arrow.types, column.type
        if types.is_nested(kind):
            raise CliError(f"{name}: --ignore-case is for fields of text, but {field} is {kind}: name other fields")
        kind = kind.value_type if types.is_dictionary(kind) else getattr(kind, "storage_type", kind)
        if not (types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)):
            return column
        return self._arrow.array([text and text.lower() for text in column.to_pylist()], kind)

    def _no_rows(self, schema: Any) -> Any:
        """Return a batch of no rows: `from_pylist` and `empty_table` would import pandas."""
        columns = [self._arrow.nulls(0, kind) for kind in schema.types]
        return self._arrow.RecordBatch.from_arrays(columns, schema=schema)

    def _too_long(self, table: Any) -> list[tuple[int, str]]:
        """Return the rows that take more bytes in memory than a record may have."""
        if table.nbytes <= self._longest:
            return []
        reason = f"longer than --max-record {self._longest}"
        return [(i, reason) for i in range(len(table)) if table.slice(i, 1).nbytes > self._longest]

    def types(self) -> str:
        """Return the types of the key's fields, for the note of a state."""
        from base64 import b64encode

        key = self._fields or self.schema.names
        empty = self._arrow.RecordBatch.from_pylist([], self.schema)
        types = [(name, self._column(empty, name).type) for name in key]
        return b64encode(self._arrow.schema(types).serialize()).decode()

    def _column(self, table: Any, field: str) -> Any:
        """Return the values of a field. If a structure is missing, so are the fields in it."""
        column, *within = self._path(table.schema, field)
        if not within:
            return table.column(column)
        return optional("pyarrow.compute", "Parquet").struct_field(table.column(column), within)

    def _path(self, fields: Any, name: str) -> list[str]:
        """Return the names that lead to a field: a column, or with dots from a column down; empty if absent."""
        if any(field.name == name for field in fields):
            return [name]
        column, _, within = name.partition(".")
        for field in fields:
            if field.name == column and self._arrow.types.is_struct(field.type):
                path = self._path(field.type, within)
                return [column, *path] if path else []
        return []

    def _times(self, column: Any, name: str, first: int) -> tuple[Any, Any]:
        """Return the time of each row in Unix nanoseconds, and which rows have one. The others are malformed."""
        import numpy as np

        arrow = self._arrow
        if arrow.types.is_date(column.type):
            column = column.cast(arrow.timestamp("s"))
        if arrow.types.is_timestamp(column.type):
            given = column.cast(arrow.int64()).fill_null(0).to_numpy().view(f"datetime64[{column.type.unit}]")
            times = given.astype("datetime64[ns]")
            fits = times.astype(given.dtype) == given  # NumPy wraps around without an error
            sound = column.is_valid().to_numpy(zero_copy_only=False) & fits
            for i in np.flatnonzero(~sound):
                problem = "is missing" if fits[i] else "is outside the years 1677 to 2262"
                self._malformed(f"{name}, row {first + i}", f"the time {self._time} {problem}")
            return times.astype(np.int64), sound
        assert self._clock is not None
        times, sound = np.zeros(len(column), np.int64), np.ones(len(column), np.bool_)
        for row, value in enumerate(column.to_pylist()):
            try:
                times[row] = self._clock.read(value)
            except ValueError as error:
                self._malformed(f"{name}, row {first + row}", str(error))
                sound[row] = False
        return times, sound


def _batches(file: Any) -> Iterator[Any]:
    """Yield batches of at most some blocks of bytes in memory.

    The bytes of a row are those of the first rows of its group: in the file, equal rows take none.
    """
    for group in range(file.num_row_groups):
        left = file.metadata.row_group(group).num_rows
        first = next(file.iter_batches(batch_size=16, row_groups=[group]), None)
        if first:
            rows = min(max(4 * BLOCK * len(first) // max(first.nbytes, 1), 1), _ROWS)
            for batch in file.iter_batches(batch_size=rows, row_groups=[group]):
                left -= len(batch)
                yield batch
        if left:  # pyarrow ends a damaged group without an error
            raise OSError(f"it is damaged: {left} rows of row group {group} cannot be read")


def typed(parts: list[str], types: str) -> Iterator[Any]:
    """Yield the keys that a text may stand for, each as an array, by the types of a state; `ValueError` if none.

    The text ``null`` stands for itself, where the field is text, and for a missing value.
    """
    from base64 import b64decode
    from datetime import time
    from uuid import UUID

    arrow = optional("pyarrow", "Parquet")
    schema = arrow.ipc.read_schema(arrow.py_buffer(b64decode(types)))
    columns = []
    for part, field in zip(parts, schema, strict=True):
        kind = field.type
        column = [arrow.nulls(1, kind)] if part == "null" else []
        try:
            if isinstance(kind, arrow.BaseExtensionType):
                column.append(arrow.array([UUID(part).bytes], kind.storage_type).cast(kind))
            elif arrow.types.is_time(kind):
                column.append(arrow.array([time.fromisoformat(part)], kind))
            elif arrow.types.is_duration(kind):
                column.append(arrow.array([int(part)], kind))
            else:
                column.append(arrow.array([part]).cast(kind.value_type if arrow.types.is_dictionary(kind) else kind))
        except (ValueError, TypeError, arrow.ArrowException) as error:
            if not column:
                raise ValueError(f"it cannot be read as {kind}, the type of the field {field.name}: {error}") from None
        columns.append(column)
    for key in product(*columns):
        yield key[0] if len(key) == 1 else arrow.RecordBatch.from_arrays(list(key), schema.names)


class ParquetWriter:
    """Writes rows to a stream, with the schema of the reader. If they are marked, the field `repeat` comes first."""

    def __init__(self, output: Output, reader: ParquetReader, *, marked: bool) -> None:
        self._marked = marked
        self._stream = output.stream
        self._reader = reader
        self._arrow = optional("pyarrow", "Parquet")
        self._writer: Any = None
        self._waiting: list[Any] = []
        self._rows = self._bytes = 0

    def write(self, batch: Batch, kept: Marks) -> None:
        """Write the kept rows of a batch."""
        rows = rows_of(batch.records, kept)
        self._waiting.append(rows)
        self._rows += len(rows)
        self._bytes += rows.nbytes
        if self._rows >= _ROW_GROUP or self._bytes >= _GROUP_BYTES:
            self._write_group()

    def close(self) -> None:
        """Write the buffered rows and the footer, unless no file could be read."""
        if self._reader.schema is not None:
            self._write_group()
            self._writer.close()

    def _write_group(self) -> None:
        schema = self._reader.schema
        if self._marked:
            schema = schema.insert(0, self._arrow.field(FIELD, self._arrow.bool_()))
        if self._writer is None:
            self._writer = optional("pyarrow.parquet", "Parquet").ParquetWriter(self._stream, schema)
        if any(map(len, self._waiting)):
            self._writer.write_table(self._arrow.Table.from_batches(self._waiting, schema), row_group_size=_ROW_GROUP)
        self._waiting.clear()
        self._rows = self._bytes = 0
