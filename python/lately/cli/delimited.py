"""The reader of CSV, TSV and Zeek logs. A record with quoted fields may span lines."""

from __future__ import annotations

import csv
from collections import deque
from itertools import chain
from operator import itemgetter

from lately._core import RecordReader
from lately.cli.errors import CliError
from lately.cli.fast_path import FastPath, encoding_of
from lately.cli.records import BOM, Gathered, LineReader, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Literal

    from lately import Filter
    from lately.cli.records import Batch, ReaderOptions

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

    def _batches(self, blocks: Iterator[bytes], name: str, filter: Filter) -> Iterator[Batch]:
        lines = _Lines(blocks, self._options)
        rows: Iterator[list[str]] = csv.reader(lines, **self._dialect)
        try:
            header = self._names(rows)
        except StopIteration:
            return  # an empty file
        except csv.Error as error:
            raise CliError(f"{name}, line 1: {error}") from None
        if lines.undecodable or not header:
            raise CliError(f"{name}, line 1: {lines.undecodable or 'expected a header with the names of the fields'}")
        head = b""
        if self._head == "none":  # the first line is a record
            rows, header = chain([header], rows), [str(i + 1) for i in range(len(header))]
            self._accept(header, name)
        else:
            raw = lines.take()
            head = raw if self._accept(header, name) else b""
        times = self._options.time
        key = [header.index(field) for field in self._options.key] or list(range(len(header)))
        key_fields = itemgetter(*key)
        time = None if times is None else header.index(times.field)
        gathered = Gathered(name, head)
        fast_path = FastPath(self._reader(filter, len(header), key, time), self._options, self._value)
        worthwhile = True
        while True:
            if worthwhile or lines.at_end:
                yield gathered.batch()
                worthwhile = lines.has_begun  # without a header, the first record was read for its number of fields
                for batch in lines.read_fast(fast_path, name):
                    worthwhile = fast_path.is_worthwhile(batch)
                    yield batch
            number = lines.number
            try:
                row = next(rows)
                if self._head == "zeek" and row[0].startswith("#"):
                    lines.take()
                    continue
                broken = "" if len(row) == len(header) else self._unlike(row, header)
            except StopIteration:
                break
            except csv.Error as error:
                broken = str(error)
            if broken:
                # Only the first line is malformed: a stray quote must not drop good lines.
                lines.give_back()
                self._options.malformed(f"{name}, line {number}", broken)
                continue
            undecodable, escaped, raw = lines.undecodable, lines.escaped, lines.take()
            try:
                if reason := undecodable or self._too_long(raw):
                    raise ValueError(reason)
                moment = None if times is None or time is None else times.read(row[time])
                gathered.add(number, key_fields(list(map(key_of, row)) if escaped else row), moment, raw)
            except ValueError as error:
                self._options.malformed(f"{name}, line {number}", str(error))
        yield gathered.batch()

    def _reader(self, filter: Filter, width: int, key: list[int], time: int | None) -> RecordReader | None:
        """Return the core's reader, or None if the delimiter is not ASCII."""
        if not self.delimiter.isascii():
            return None
        return RecordReader.csv(
            filter,
            encoding_of(self._options.encoding, strict=self._options.strict),
            self._options.longest,
            delimiter=ord(self.delimiter),
            quotes=not self._unquoted,
            comments=self._head == "zeek",
            width=width,
            key=key,
            time=time,
        )

    @staticmethod
    def _value(raw: bytes) -> str:
        return raw.decode("ascii")

    def _unlike(self, row: list[str], header: list[str]) -> str:
        problem = f"{len(row)} fields where the header has {len(header)}"
        begins = any(field.startswith('"') for field in row)
        return f"{problem}; if quotes enclose fields, add --quotes" if begins and self._unquoted else problem

    def _names(self, rows: Iterator[list[str]]) -> list[str]:
        """Read the names of the fields, or without a header the first record."""
        if self._head != "zeek":
            return next(rows)
        names: list[str] = []
        for row in rows:
            if row[0] == "#fields":
                names = row[1:]
            if row[0] == "#types" or not row[0].startswith("#"):
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


class _Lines:
    """Iterates over the lines of a CSV file as text, and stores the bytes of the current record's lines."""

    def __init__(self, blocks: Iterator[bytes], options: ReaderOptions) -> None:
        self._blocks = blocks
        self._encoding = options.encoding
        self._strict = options.strict
        self._longest = options.longest
        self._taken: list[bytes] = []
        self._next: deque[bytes] = deque()  # lines to read again
        self._block = b""
        self._start = 0  # of the next line in the block
        self._past_bom = False
        self.number = 1
        self.undecodable = ""
        self.escaped = False

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        raw = self._next.popleft() if self._next else self._line()
        self._taken.append(raw)
        try:
            text = raw.decode(self._encoding)
        except UnicodeDecodeError:
            text = raw.decode(self._encoding, "surrogateescape")
            if self._strict:
                self.undecodable = f"not valid {self._encoding}"
            self.escaped = True
        if not self._past_bom:
            self._past_bom = True
            return text.removeprefix(BOM)
        return text

    def _line(self) -> bytes:
        """Return the next line of this block, or of the next block."""
        if self._start == len(self._block):
            if sum(map(len, self._taken)) > self._longest:
                raise csv.Error(f"longer than --max-record {self._longest}")
            self._block, self._start = next(self._blocks), 0
        start, end = self._start, self._block.find(b"\n", self._start) + 1
        self._start = end or len(self._block)
        return self._block[start : self._start]

    @property
    def at_end(self) -> bool:
        """Whether the next line is in another block, which may not be available yet."""
        return not self._next and self._start == len(self._block)

    @property
    def has_begun(self) -> bool:
        """Whether lines of the current record were read."""
        return bool(self._taken)

    def read_fast(self, fast_path: FastPath, name: str) -> Iterator[Batch]:
        """Yield batches from here on, of this block and the next ones, as far as the fast path reads them."""
        while not self._next and not self._taken:  # lines to read again are outside the block
            if self._start == len(self._block):
                self._block, self._start = next(self._blocks, b""), 0
            batch = fast_path.read(name, self._block, self._start, self.number)
            if batch is None:
                return
            self.number, self._start = batch.records.line(len(batch.keys)), batch.records.end
            yield batch
            if self._start < len(self._block):
                return

    def take(self) -> bytes:
        """Return the bytes of the current record, and begin the next."""
        self.number += len(self._taken)
        raw = self._taken[0] if len(self._taken) == 1 else b"".join(self._taken)
        self._taken.clear()
        self.undecodable = ""
        self.escaped = False
        return raw

    def give_back(self) -> None:
        """Skip the first line of the current record, and read its other lines again."""
        self._next.extendleft(reversed(self._taken[1:]))
        self.number += 1
        self._taken.clear()
        self.undecodable = ""
        self.escaped = False
