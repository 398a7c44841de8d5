"""CSV and TSV: records of fields, which may span lines when they are quoted."""

import csv
from collections import deque
from collections.abc import Callable, Iterator
from io import BytesIO
from itertools import chain
from operator import itemgetter
from typing import Any, Literal

from lately.cli.columns import Columns, CsvColumns
from lately.cli.errors import CliError
from lately.cli.records import BOM, Asked, Batch, Gathered, LineReader, key_of


class CsvReader(LineReader):
    """CSV and its kin. Without fields to look at, all are the key."""

    def __init__(self, asked: Asked, *, delimiter: str, quotes: bool, head: Literal["names", "none", "zeek"]) -> None:
        super().__init__(asked)
        self._head = head
        self.delimiter = delimiter
        quoting = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
        self._unquoted = not quotes
        self._dialect: dict[str, Any] = {"delimiter": delimiter, "quoting": quoting, "strict": True}
        self._first = ""
        self._header: list[str] = []
        # The module's own limit of 128 KiB refuses documents in a field; with none, one stray quote would take in the
        # rest of the file before it is noticed.
        csv.field_size_limit(1 << 20)

    def _batches(self, blocks: Iterator[bytes], name: str) -> Iterator[Batch]:
        lines = _Lines(blocks, self._asked)
        rows: Iterator[list[str]] = csv.reader(lines, **self._dialect)
        try:
            header = self._names(rows)
        except StopIteration:
            return  # an empty file
        except csv.Error as error:
            raise CliError(f"{name}, line 1: {error}") from None
        if lines.undecodable or not header:
            raise CliError(f"{name}, line 1: {lines.undecodable or 'a header that names the fields is needed'}")
        head = b""
        if self._head == "none":  # it was the first record
            rows, header = chain([header], rows), [str(i + 1) for i in range(len(header))]
            self._accept(header, name)
        else:
            raw = lines.take()
            head = raw if self._accept(header, name) else b""
        begun = lines.number
        times = self._asked.time
        key = itemgetter(*(map(header.index, self._asked.key) if self._asked.key else range(len(header))))
        time = None if times is None else header.index(times.field)
        gathered = Gathered(name, head)
        columns = CsvColumns(
            self._asked,
            delimiter=self.delimiter,
            quotes=not self._unquoted,
            header=header,
            comments=self._head == "zeek",
        )
        while True:
            if lines.at_end or lines.number == begun:
                yield gathered.batch()
                for first, found in lines.whole(columns.read):
                    yield found.batch(name, first)
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
                # Only the first line is judged: a stray quote must not take good lines with it.
                lines.give_back()
                self._asked.malformed(f"{name}, line {number}", broken)
                continue
            undecodable, escaped, raw = lines.undecodable, lines.escaped, lines.take()
            try:
                if reason := undecodable or self._too_long(raw):
                    raise ValueError(reason)
                moment = None if times is None or time is None else times.read(row[time])
                gathered.add(number, key(list(map(key_of, row)) if escaped else row), moment, raw)
            except ValueError as error:
                self._asked.malformed(f"{name}, line {number}", str(error))
        yield gathered.batch()

    def _unlike(self, row: list[str], header: list[str]) -> str:
        problem = f"{len(row)} fields where the header has {len(header)}"
        begins = any(field.startswith('"') for field in row)
        return f"{problem}; if quotes enclose fields, --quotes says so" if begins and self._unquoted else problem

    def _names(self, rows: Iterator[list[str]]) -> list[str]:
        """Read the fields' names, or without a header the first record."""
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
        """Check a header against the fields, or against the first one; tell whether it is the first."""
        if self._first:
            if header != self._header:
                raise CliError(f"{name}: its header is unlike that of {self._first}")
            return False
        self._first, self._header = name, header
        times = self._asked.time
        for field in (*self._asked.key, *([] if times is None else [times.field])):
            if header.count(field) != 1:
                problem = "names no field" if field not in header else "names more than one field"
                raise CliError(f"{name}: the header {problem} {field!r}; it has: {', '.join(header)}")
        return True


class _Lines:
    """The lines of a CSV file as text; remembers those of the record being read, as they came."""

    def __init__(self, blocks: Iterator[bytes], asked: Asked) -> None:
        self._blocks = blocks
        self._encoding = asked.encoding
        self._strict = asked.strict
        self._longest = asked.longest
        self._taken: list[bytes] = []
        self._next: deque[bytes] = deque()
        self._begun = False
        self.number = 1
        self.undecodable = ""
        self.escaped = False

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        if not self._next:
            if sum(map(len, self._taken)) > self._longest:
                raise csv.Error(f"longer than --max-record {self._longest}")
            self._next.extend(BytesIO(next(self._blocks)).readlines())
        raw = self._next.popleft()
        self._taken.append(raw)
        try:
            text = raw.decode(self._encoding)
        except UnicodeDecodeError:
            text = raw.decode(self._encoding, "surrogateescape")
            if self._strict:
                self.undecodable = f"not valid {self._encoding}"
            self.escaped = True
        if not self._begun:
            self._begun = True
            return text.removeprefix(BOM)
        return text

    @property
    def at_end(self) -> bool:
        """Whether the next line is in another block, which may have to be waited for."""
        return not self._next

    def whole(self, read: Callable[[bytes], Columns | None]) -> Iterator[tuple[int, Columns]]:
        """Give the number of its first line, and the records, of each block from here on that can be read at once."""
        if self._taken:  # the first record, which told how many fields there are
            return
        block = b"".join(self._next) or next(self._blocks, b"")
        while found := read(block):
            self._next.clear()
            yield self.number, found
            self.number += len(found.lines)
            block = next(self._blocks, b"")
        if not self._next:
            self._next.extend(BytesIO(block).readlines())

    def take(self) -> bytes:
        """Give the bytes of the record just read; the next one begins."""
        self.number += len(self._taken)
        raw = self._taken[0] if len(self._taken) == 1 else b"".join(self._taken)
        self._taken.clear()
        self.undecodable = ""
        self.escaped = False
        return raw

    def give_back(self) -> None:
        """Go on after the first line of the record just read."""
        self._next.extendleft(reversed(self._taken[1:]))
        self.number += 1
        self._taken.clear()
        self.undecodable = ""
        self.escaped = False
