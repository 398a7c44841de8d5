"""The readers of text, CSV and JSON lines, and the writer of their records. The core reads each block of lines."""

from __future__ import annotations

import codecs
from contextlib import closing
from itertools import compress

from lately._core import RecordHashes, RecordReader, Records
from lately.cli.errors import CliError, DamagedError, UsageError
from lately.cli.inputs import Input, blocks
from lately.cli.records import BOM, Batch, without

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from lately import Filter
    from lately.cli.outputs import Output
    from lately.cli.records import Marks, ReaderOptions

_BOM = BOM.encode()


class LineReader:
    """Reads lines of text, each a record. Reads files one after the other, as one stream.

    Attributes
    ----------
    delimiter : str
        Character between the fields of a line; empty without fields.
    absent : set of str
        Key fields that no record has had so far.
    inputs : list
        Identities of the files read so far.
    header : sequence of str
        Names of the fields, if the first lines state them.
    blank : int
        Number of blank lines, which are not records.
    """

    delimiter = ""
    header: Sequence[str] = ()
    _json = False

    def __init__(self, options: ReaderOptions, *, words: Sequence[tuple[int, int | None]] = ()) -> None:
        """Create a reader. In text these `words` of a line, by the numbers of the first and the last, are the key."""
        self._options = options
        self._words = words
        self._strict = options.strict or self._json
        self.absent = set(options.key) if self._json else set()
        self.inputs: list[Any] = []
        self.blank = 0
        times, encoding = options.time, options.encoding
        utf8 = codecs.lookup(encoding).name == "utf-8"
        self._common = {
            "encoding": ("strict utf-8" if self._strict else "utf-8") if utf8 else encoding,
            "decode": None if utf8 else lambda raw: raw.decode(encoding),
            "ignore_case": options.ignore_case,
            "longest": options.longest,
            "places": None if times is None else times.places,
            "skip_malformed": options.malformed.skip,
        }

    def batches(self, name: str, advance: Callable[[int], object], *, filter: Filter) -> Iterator[Batch]:
        """Read all records of a file, or of standard input for ``-``, with the hashes of their keys for this filter.

        `advance` is called with the number of bytes read.
        """
        shown = "standard input" if name == "-" else name
        try:
            with closing(Input(name, advance, digest=self._options.digest)) as file:
                yield from self._batches(_Lines(blocks(file, self._options.longest)), shown, filter)
                self.inputs.append(file.identity())
        except OSError as error:
            raise CliError(f"{shown}: {error.strerror or error}") from None
        except DamagedError as error:
            raise CliError(f"{shown}: {error}") from None

    def writer(self, output: Output, *, marked: bool) -> LineWriter:
        """Return a writer of records. If they are marked, the field is in their bytes."""
        return LineWriter(output)

    def _batches(self, lines: _Lines, name: str, filter: Filter) -> Iterator[Batch]:
        """Yield the records of each block before the next block is read."""
        lines.fill()
        # Some editors begin a file with a byte order mark. That of the first file is written before the first record.
        mark = _BOM * lines.block.startswith(_BOM)
        lines.start = len(mark)
        head = self._begin(lines, name)
        reader = None if head is None else self._record_reader(filter)
        head = head if head is None or self.inputs else mark + head
        if head:
            yield Batch(name, RecordHashes(filter, []), self._moments([]), [], head=head)
        while reader is not None:
            (records, keys, moments, texts), counts, (lines.start, next_line) = reader.read(*lines.rest())
            present, blank, malformed, fault = counts
            self.blank += blank
            self.absent.difference_update(compress(self._options.key, present))
            yield from self._timed(Batch(name, keys, moments, records), texts)
            if fault is not None:
                line, reason, fatal = fault
                if fatal:
                    raise CliError(f"{name}, line {line}: {reason}")
                self._options.malformed(f"{name}, line {line}", reason, malformed)
            lines.number = next_line
            if lines.ended and lines.start == len(lines.block):
                return
            lines.fill()

    def _timed(self, batch: Batch, texts: list[tuple[int, str]]) -> Iterator[Batch]:
        """Read the times that are text. A record whose time cannot be read is malformed."""
        times = self._options.time
        faults = []
        for i, text in texts:
            try:
                assert times is not None
                batch.times[i] = times.read(text)
            except ValueError as error:
                faults.append((i, str(error)))
        yield from without(batch, faults, self._options.malformed)

    def _moments(self, moments: list[int]) -> Any:
        if self._options.time is None:
            return None
        import numpy as np

        return np.array(moments, np.int64)

    def _begin(self, lines: _Lines, name: str) -> bytes | None:
        """Read the header, if files have one. Return the bytes before the records, or None for an empty file."""
        return b"" if lines.start < len(lines.block) else None

    def _record_reader(self, filter: Filter) -> RecordReader:
        return RecordReader.lines(filter, self._common, self._words)


class JsonReader(LineReader):
    """Reads JSON lines, an object each. Without key fields, the text of the line is the key."""

    _json = True  # JSON is text

    def _record_reader(self, filter: Filter) -> RecordReader:
        time = None if self._options.time is None else self._options.time.field
        return RecordReader.json(filter, self._common, key=self._options.key, time=time)


class CsvReader(LineReader):
    """Reads records of fields between delimiters. Without key fields, all fields are the key.

    The head of a file is one of "names", "none" and "zeek".
    """

    def __init__(self, options: ReaderOptions, *, delimiter: str, quotes: bool, head: str) -> None:
        super().__init__(options)
        self._head = head
        self.delimiter = delimiter
        self._dialect: dict[str, Any] = {"delimiter": ord(delimiter), "quotes": quotes}
        self._first = ""
        self.header = ()
        self._comments: bytes | None = None

    def _record_reader(self, filter: Filter) -> RecordReader:
        times = self._options.time
        fields = [number for field in self._options.key for number in self._find(field)]
        return RecordReader.csv(
            filter,
            self._common,
            self._dialect,
            width=len(self.header),
            key=fields or range(len(self.header)),
            time=None if times is None else self._find(times.field)[0],
            comments=self._comments,
        )

    def _begin(self, lines: _Lines, name: str) -> bytes | None:
        self.blank += lines.skip_blank()
        if lines.start == len(lines.block):
            return None
        try:
            header, end = self._zeek(lines) if self._head == "zeek" else self._names(lines)
        except ValueError as error:
            raise CliError(f"{name}, line {lines.number}: {error}") from None
        if not header:
            raise CliError(f"{name}, line {lines.number}: expected a header with the names of the fields")
        head = b""
        if self._head == "none":  # the first line is a record
            header = [str(i + 1) for i in range(len(header))]
        else:
            head = lines.block[lines.start : end]
            lines.move(end)
        return head if self._accept(header, name) else b""

    def _names(self, lines: _Lines) -> tuple[list[str], int]:
        """Read the names of the fields, or without a header the first record."""
        while True:
            found = RecordReader.csv_fields(self._common, self._dialect, lines.block, lines.start, lines.ended)
            if found is not None:
                return [self._text(field) for field in found[0]], found[1]
            lines.fill()

    def _zeek(self, lines: _Lines) -> tuple[list[str], int]:
        """Read the comments at the start of a log, up to the first record."""
        names: list[str] = []
        end = lines.start
        while True:
            if end == len(lines.block):
                if lines.ended:
                    return names, end
                end -= lines.start
                lines.fill()
            if lines.block[end : end + 1] != b"#":
                return names, end
            begin, end = end, lines.block.find(b"\n", end) + 1 or len(lines.block)
            line = lines.block[begin:end].removesuffix(b"\n").removesuffix(b"\r")
            if line.startswith(b"#fields"):
                self._comments = line
                names = self._text(line).split(self.delimiter)[1:]

    def _text(self, field: bytes) -> str:
        try:
            return field.decode(self._options.encoding, "strict" if self._strict else "surrogateescape")
        except UnicodeDecodeError:
            raise ValueError(f"not valid {self._options.encoding}") from None

    def _accept(self, header: list[str], name: str) -> bool:
        """Check the first header against the key fields, others against the first. Return whether it is the first."""
        if self._first:
            if header != self.header:
                raise CliError(
                    f"{name}: its header differs from that of {self._first}: {_difference(header, self.header)}"
                )
            return False
        self._first, self.header = name, header
        times = self._options.time
        for field in (*self._options.key, *([] if times is None else [times.field])):
            if not self._find(field):
                more = sum(other.strip() == field.strip() for other in header) > 1
                problem = "names more than one field" if more else "names no field"
                hint = ", ".join(header)
                if len(header) == 1 and (found := [mark for mark in ";\t|," if mark in header[0]]):
                    mark = "tab" if found[0] == "\t" else found[0]
                    hint += f" (if {mark} separates fields, add --delimiter '{mark}')"
                elif more:
                    numbers = [str(i) for i, other in enumerate(header, 1) if other.strip() == field.strip()]
                    hint += f" (a number chooses one: {' or '.join(numbers)})"
                raise CliError(f"{name}: the header {problem} {field!r}; its fields are {hint}")
        return True

    def _find(self, field: str) -> list[int]:
        """Return the fields of a name in the header, with or without the blanks around it; else of a number."""
        for name, names in ((field, self.header), (field.strip(), [name.strip() for name in self.header])):
            if name in names:
                return [names.index(name)] if names.count(name) == 1 else []
        try:
            first, last = span_of_words(field.strip())
        except UsageError:
            return []
        return list(range(first - 1, last or len(self.header))) if (last or first) <= len(self.header) else []


class _Lines:
    """The blocks of a file, and the place up to which they were read.

    Attributes
    ----------
    block : bytes
        The current block. What is left of it is joined to the next one.
    start, number : int
        The place, and the number of its line.
    ended : bool
        Whether this is the last block.
    """

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self.block = b""
        self.start, self.number = 0, 1
        self.ended = False

    def fill(self) -> None:
        """Read the next block."""
        more = next(self._blocks, None)
        self.ended = more is None
        self.block, self.start = self.block[self.start :] + (more or b""), 0

    def skip_blank(self) -> int:
        """Skip blank lines, and return their number."""
        first = self.number
        while self.block.startswith((b"\n", b"\r"), self.start):
            left = len(self.block[self.start :].lstrip(b"\r\n"))
            self.move(len(self.block) - left)
            if not left and not self.ended:
                self.fill()
        return self.number - first

    def move(self, start: int) -> None:
        """Go on to a place in the block."""
        self.number += self.block.count(b"\n", self.start, start)
        self.start = start

    def rest(self) -> tuple[bytes, int, int, bool]:
        """Return what the core reads: the block, the place, the number of its line, and whether it is the last."""
        return self.block, self.start, self.number, self.ended


def span_of_words(field: str) -> tuple[int, int | None]:
    """Read numbers in ``--key``: of one field, such as 3, from one to another, such as 2-4, or to the end, as 3-."""
    first, dash, last = field.partition("-")
    if all(part.isascii() and part.isdecimal() and len(part) < 19 and int(part) for part in (first, last or first)):
        end = int(last) if last else None if dash else int(first)
        if end is None or int(first) <= end:
            return int(first), end
    raise UsageError(
        f"--key {field}: text has no names for its fields, only numbers of words, such as 1 or 2-4: for other formats "
        "add --format csv, tsv, zeek, jsonl or parquet"
    )


def _difference(header: Sequence[str], first: Sequence[str]) -> str:
    """Return in what two headers differ."""
    missing = [name for name in first if name not in header]
    added = [name for name in header if name not in first]
    parts = [f"it lacks {', '.join(missing)}"] * bool(missing) + [f"it adds {', '.join(added)}"] * bool(added)
    return " and ".join(parts) or "the order or the number of equal names"


class LineWriter:
    """Writes lines to a stream, byte for byte. A last line without its end gets one only if other lines follow."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._unended = False

    def write(self, batch: Batch, kept: Marks) -> None:
        """Write the kept lines of a batch, and flush them."""
        records = batch.records
        chosen = records.chosen(kept) if isinstance(records, Records) else b"".join(compress(records, kept))
        lines = batch.head + chosen
        if lines:
            self._output.stream.write(b"\n" + lines if self._unended else lines)
            self._unended = batch.head != _BOM and not lines.endswith(b"\n")
            self._output.flush()

    def close(self) -> None:
        """Do nothing: no line is buffered here, and the stream belongs to the caller."""
