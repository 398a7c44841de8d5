"""The reader of CSV, TSV and Zeek logs. A record with quoted fields may span lines."""

from __future__ import annotations

import csv

from lately._core import RecordReader
from lately.cli.errors import CliError
from lately.cli.line_reader import LineReader, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from lately import Filter
    from lately.cli.line_reader import Lines
    from lately.cli.records import ReaderOptions

# The most that the module `csv` accepts on every system. Its default of 128 KiB rejects documents in a field; the limit
# here is that of a record.
_NO_LIMIT = 2**31 - 1


class CsvReader(LineReader):
    """Reads records of fields between delimiters. Without key fields, all fields are the key."""

    def __init__(
        self, options: ReaderOptions, *, delimiter: str, quotes: bool, head: Literal["names", "none", "zeek"]
    ) -> None:
        super().__init__(options)
        self._head = head
        self.delimiter = delimiter
        quoting = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
        self._unquoted = not quotes
        self._dialect: dict[str, Any] = {"delimiter": delimiter, "quoting": quoting, "strict": True}
        self._first = ""
        self._header: list[str] = []
        csv.field_size_limit(_NO_LIMIT)

    def _begin(self, lines: Lines, name: str) -> bytes:
        self._name = name
        self._rows = csv.reader(lines, **self._dialect)
        try:
            header = self._names()
            if not lines.block:
                return b""  # an empty file
            lines.check_text()
        except (csv.Error, ValueError) as error:
            raise CliError(f"{name}, line 1: {error}") from None
        if not header:
            raise CliError(f"{name}, line 1: expected a header with the names of the fields")
        head = b""
        if self._head == "none":  # the first line is a record
            header = [str(i + 1) for i in range(len(header))]
            lines.back()
        else:
            head = lines.raw()
            lines.forward()
        return head if self._accept(header, name) else b""

    def _core(self, filter: Filter, encoding: str) -> RecordReader | None:
        header, times = self._header, self._options.time
        self._key = [header.index(field) for field in self._options.key] or list(range(len(header)))
        self._time_field = None if times is None else header.index(times.field)
        if not self.delimiter.isascii():
            return None
        return RecordReader.csv(
            filter,
            encoding,
            self._options.longest,
            delimiter=ord(self.delimiter),
            quotes=not self._unquoted,
            comments=self._head == "zeek",
            width=len(header),
            key=self._key,
            time=self._time_field,
        )

    def _read(self, lines: Lines) -> tuple[object, object] | None:
        try:
            row = next(self._rows)
            if self._head == "zeek" and row and row[0].startswith("#"):
                self._check_fields(row, lines.number)
                return None
            if len(row) != len(self._header):
                raise ValueError(self._unlike(row))
        except (csv.Error, ValueError) as error:
            # Only the first line is malformed: a stray quote must not drop good lines.
            lines.back()
            next(lines)
            raise ValueError(str(error)) from None
        lines.check()
        fields = list(map(key_of, row)) if lines.escaped else row
        key = fields[self._key[0]] if len(self._key) == 1 else tuple([fields[i] for i in self._key])
        return key, None if self._time_field is None else row[self._time_field]

    def _check_fields(self, comment: list[str], line: int) -> None:
        """Raise `CliError` for the header of another log in the middle of a file, if its fields are different."""
        if comment[0] == "#fields" and comment[1:] != self._header:
            raise CliError(f"{self._name}, line {line}: this header differs from that of {self._first}")

    def _unlike(self, row: list[str]) -> str:
        problem = f"{len(row)} fields where the header has {len(self._header)}"
        begins = any(field.startswith('"') for field in row)
        return f"{problem}; if quotes enclose fields, add --quotes" if begins and self._unquoted else problem

    def _names(self) -> list[str]:
        """Read the names of the fields, or without a header the first record."""
        if self._head != "zeek":
            return next(self._rows, [])
        names: list[str] = []
        for row in self._rows:
            if row[:1] == ["#fields"]:
                names = row[1:]
            if row[:1] == ["#types"] or not (row and row[0].startswith("#")):
                break
        return names

    def _accept(self, header: list[str], name: str) -> bool:
        """Check the first header against the key fields, others against the first. Return whether it is the first."""
        if self._first:
            if header != self._header:
                raise CliError(f"{name}: its header differs from that of {self._first}")
            return False
        self._first, self._header = name, header
        times = self._options.time
        for field in (*self._options.key, *([] if times is None else [times.field])):
            if header.count(field) != 1:
                problem = "names no field" if field not in header else "names more than one field"
                raise CliError(f"{name}: the header {problem} {field!r}; its fields are {', '.join(header)}")
        return True
