"""CSV and TSV: records of fields, which may span lines when they are quoted."""

from __future__ import annotations

import csv
from collections import deque
from itertools import chain
from operator import itemgetter

from lately._core import RecordReader
from lately.cli.at_once import AtOnce, encoding_of
from lately.cli.errors import CliError
from lately.cli.records import BOM, Gathered, LineReader, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Literal

    from lately import Filter
    from lately.cli.records import Asked, Batch

# The limit of the module `csv`, 128 KiB, refuses documents in a field; with none, one stray quote would take in the
# rest of the file before it is noticed.
LONGEST_FIELD = 1 << 20


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
        csv.field_size_limit(LONGEST_FIELD)

    def _batches(self, blocks: Iterator[bytes], name: str, filter: Filter) -> Iterator[Batch]:
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
        times = self._asked.time
        key = [header.index(field) for field in self._asked.key] or list(range(len(header)))
        key_fields = itemgetter(*key)
        time = None if times is None else header.index(times.field)
        gathered = Gathered(name, head)
        at_once = AtOnce(self._reader(filter, len(header), key, time), self._asked, self._value)
        again = True
        while True:
            if again or lines.at_end:
                yield gathered.batch()
                again = lines.begun  # by the first record, which told how many fields there are
                for batch in lines.at_once(at_once, name):
                    again = at_once.may_go_on(batch)
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
                # Only the first line is judged: a stray quote must not take good lines with it.
                lines.give_back()
                self._asked.malformed(f"{name}, line {number}", broken)
                continue
            undecodable, escaped, raw = lines.undecodable, lines.escaped, lines.take()
            try:
                if reason := undecodable or self._too_long(raw):
                    raise ValueError(reason)
                moment = None if times is None or time is None else times.read(row[time])
                gathered.add(number, key_fields(list(map(key_of, row)) if escaped else row), moment, raw)
            except ValueError as error:
                self._asked.malformed(f"{name}, line {number}", str(error))
        yield gathered.batch()

    def _reader(self, filter: Filter, width: int, key: list[int], time: int | None) -> RecordReader | None:
        """Make what reads whole blocks, if it knows the delimiter."""
        if not self.delimiter.isascii():
            return None
        return RecordReader.csv(
            filter,
            encoding_of(self._asked.encoding, strict=self._asked.strict),
            min(self._asked.longest, LONGEST_FIELD),
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
        self._next: deque[bytes] = deque()  # lines that were given back
        self._block = b""
        self._start = 0  # of the block's next line
        self._begun = False
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
        if not self._begun:
            self._begun = True
            return text.removeprefix(BOM)
        return text

    def _line(self) -> bytes:
        """Give the next line of the block, or of the next one."""
        if self._start == len(self._block):
            if sum(map(len, self._taken)) > self._longest:
                raise csv.Error(f"longer than --max-record {self._longest}")
            self._block, self._start = next(self._blocks), 0
        start, end = self._start, self._block.find(b"\n", self._start) + 1
        self._start = end or len(self._block)
        return self._block[start : self._start]

    @property
    def at_end(self) -> bool:
        """Whether the next line is in another block, which may have to be waited for."""
        return not self._next and self._start == len(self._block)

    @property
    def begun(self) -> bool:
        """Whether a record has begun."""
        return bool(self._taken)

    def at_once(self, at_once: AtOnce, name: str) -> Iterator[Batch]:
        """Give the records from here on, of this block and the next ones, as far as they can be read at once."""
        while not self._next and not self._taken:  # lines that were given back are taken one by one
            if self._start == len(self._block):
                self._block, self._start = next(self._blocks, b""), 0
            batch = at_once.read(name, self._block, self._start, self.number)
            if batch is None:
                return
            self.number, self._start = batch.records.line(len(batch.keys)), batch.records.end
            yield batch
            if self._start < len(self._block):
                return

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
