"""Parquet in and out, batch by batch, with pyarrow."""

from __future__ import annotations

import sys
from itertools import compress
from pathlib import Path

from lately.cli.errors import CliError, optional
from lately.cli.inputs import BLOCK, known
from lately.cli.records import Batch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from lately import Filter
    from lately.cli.outputs import Output
    from lately.cli.records import Asked, Marks
    from lately.cli.signals import Stop

FIELD = "repeat"
"""The name of the field of marks."""

# Most rows read at a time.
_ROWS = 1 << 16
# Rows of a row group, as other writers have it, or its bytes in memory. A group for the few new rows of each batch
# would bloat the file.
_ROW_GROUP = 1 << 20
_GROUP_BYTES = 1 << 26


def _libraries(*, numpy: bool) -> tuple[Any, Any]:
    """Import pyarrow and its reader; without NumPy they take half the time, and pyarrow 18 does without.

    To this process it then has none for good.
    """
    hidden = not (numpy or "pyarrow" in sys.modules or "numpy" in sys.modules)
    if hidden:
        sys.modules["numpy"] = None  # type: ignore[assignment]  # whoever imports it is told that there is none
    try:
        optional("pyarrow.compute", "Parquet")  # which filters rows
        return optional("pyarrow", "Parquet"), optional("pyarrow.parquet", "Parquet")
    finally:
        if hidden:
            del sys.modules["numpy"]


class ParquetReader:
    """Batches of rows. Without fields, the whole row is the key."""

    delimiter = ""

    def __init__(self, asked: Asked, *, alone: bool) -> None:
        """Take what is asked, and whether nobody else uses this process."""
        self._arrow, self._parquet = _libraries(numpy=not alone or asked.time is not None)
        self._fields = asked.key
        self._clock = asked.time
        self._time = None if asked.time is None else asked.time.field
        self._malformed = asked.malformed
        self._first = ""
        self.schema: Any = None
        self.absent: set[str] = set()
        self.inputs: list[Any] = []

    def batches(
        self, name: str, advance: Callable[[int], object], stop: Stop | None = None, *, filter: Filter
    ) -> Iterator[Batch]:
        """Read all rows of a file."""
        if stop:
            raise CliError("Parquet does not grow: it is not for --follow")
        if name == "-":
            raise CliError("Parquet is read from its end: give a file instead of standard input")
        size, read = Path(name).stat().st_size, 0
        try:
            with self._parquet.ParquetFile(name) as file:
                self._accept(file.schema_arrow, name)
                for table in file.iter_batches(batch_size=_rows(file.metadata)):
                    yield self._batch(table, name, read + 1)
                    advance(size * len(table) // file.metadata.num_rows)
                    read += len(table)
            self.inputs.append(known(name))
        except (self._arrow.ArrowException, OSError) as error:
            raise CliError(f"{name}: {error}") from None

    def sink(self, output: Output, *, marked: bool) -> ParquetSink:
        """Make what writes such rows."""
        return ParquetSink(output, self, marked=marked)

    def _accept(self, schema: Any, name: str) -> None:
        """Check a schema against the first one and the fields."""
        if self.schema is not None:
            if not schema.equals(self.schema):
                raise CliError(f"{name}: its schema is unlike that of {self._first}")
            return
        self._first, self.schema = name, schema
        for field in filter(None, (*self._fields, self._time)):
            path = self._path(schema, field)
            if len(path) == 0 or schema.names.count(path[0]) > 1:
                problem = "more than one column" if path else "no column"
                raise CliError(f"{name}: there is {problem} {field!r}; it has: {', '.join(schema.names)}")

    def _batch(self, table: Any, name: str, first: int) -> Batch:
        numbers: Sequence[int] = range(first, first + len(table))
        times = None
        if self._time is not None:
            times, sound = self._times(self._column(table, self._time), name, first)
            table, times = table.filter(bools(sound.tobytes())), times[sound]
            numbers = list(compress(numbers, sound.tolist()))
        fields = self._fields or table.schema.names
        columns = [self._column(table, field) for field in fields] if self._fields else table.columns
        keys = columns[0] if len(fields) == 1 else self._arrow.RecordBatch.from_arrays(columns, fields)
        return Batch(name, keys, times, table, numbers, unit="row")

    def _column(self, table: Any, field: str) -> Any:
        """Values of a field; of one within a structure that is missing they are missing."""
        column, *within = self._path(table.schema, field)
        if not within:
            return table.column(column)
        return optional("pyarrow.compute", "Parquet").struct_field(table.column(column), within)

    def _path(self, fields: Any, name: str) -> list[str]:
        """Tell the column of a name, or if it has dots the names from a column down; nothing if there is none."""
        if any(field.name == name for field in fields):
            return [name]
        column, _, within = name.partition(".")
        for field in fields:
            if field.name == column and self._arrow.types.is_struct(field.type):
                path = self._path(field.type, within)
                return [column, *path] if path else []
        return []

    def _times(self, column: Any, name: str, first: int) -> tuple[Any, Any]:
        """Nanoseconds since the Unix epoch of each row, and which rows have a time; the others are malformed."""
        import numpy as np

        arrow = self._arrow
        if arrow.types.is_date(column.type):
            column = column.cast(arrow.timestamp("s"))
        if arrow.types.is_timestamp(column.type):
            given = column.cast(arrow.int64()).fill_null(0).to_numpy().view(f"datetime64[{column.type.unit}]")
            times = given.astype("datetime64[ns]")
            fits = times.astype(given.dtype) == given  # NumPy wraps around in silence
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


def _rows(metadata: Any) -> int:
    """Rows to read at a time: no more than a few blocks of bytes in the fattest group."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    fattest = max((group.total_byte_size / group.num_rows for group in groups if group.num_rows), default=1)
    return min(max(int(4 * BLOCK / max(fattest, 1)), 1), _ROWS)


def bools(marks: Marks) -> Any:
    """Make an Arrow array; ``pyarrow.array`` would import pandas, to see whether that is what it is given."""
    arrow = optional("pyarrow", "Parquet")
    return arrow.Array.from_buffers(arrow.uint8(), len(marks), [None, arrow.py_buffer(marks)]).cast(arrow.bool_())


class ParquetSink:
    """Rows to a stream, with the schema they were read with, and the field of marks before it if they are marked."""

    def __init__(self, output: Output, reader: ParquetReader, *, marked: bool) -> None:
        self._marked = marked
        self._stream = output.stream
        self._reader = reader
        self._arrow = optional("pyarrow", "Parquet")
        self._writer: Any = None
        self._waiting: list[Any] = []
        self._rows = self._bytes = 0

    def write(self, batch: Batch, kept: Marks) -> None:
        """Write those rows of a batch that are kept."""
        rows = batch.records.filter(bools(kept))
        self._waiting.append(rows)
        self._rows += len(rows)
        self._bytes += rows.nbytes
        if self._rows >= _ROW_GROUP or self._bytes >= _GROUP_BYTES:
            self._write_group()

    def close(self) -> None:
        """Write what is waiting, and the footer, if anything could be read at all."""
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
