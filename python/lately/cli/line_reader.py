"""The base of the readers of text, CSV and JSON lines, and the writer of their records."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from contextlib import closing
from itertools import compress

from lately._core import Records
from lately.cli.errors import CliError, DamagedError
from lately.cli.inputs import Input, blocks
from lately.cli.records import BOM, Batch, array_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from lately import Filter
    from lately._core import RecordReader
    from lately.cli.outputs import Output
    from lately.cli.records import Marks, ReaderOptions


def key_of(text: str) -> str | bytes:
    """Return the key of text decoded with ``surrogateescape``: the text, or its bytes if they are not valid."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="surrogateescape")
    return text


class Lines:
    """Iterates over the lines of a file as text, from the current record on, through as many blocks as it needs.

    Attributes
    ----------
    block : bytes
        The current block. If a record continues in the next block, both are joined.
    start : int
        Where the current record starts in the block.
    end : int
        Where the last line that was read ends.
    number : int
        Number of the first line of the record.
    count : int
        How many of its lines were read.
    escaped : bool
        Whether a line of the record is not valid in the encoding. Its bytes are escaped by ``surrogateescape``.
    """

    def __init__(self, blocks: Iterator[bytes], options: ReaderOptions, *, strict: bool) -> None:
        self._blocks = blocks
        self._encoding = options.encoding
        self._longest = options.longest
        self._strict = strict
        self.block = b""
        self.start = self.end = 0
        self.number = 1
        self.count = 0
        self.escaped = False

    def __iter__(self) -> Lines:
        """Return the lines themselves."""
        return self

    def __next__(self) -> str:
        """Return the text of the next line, with its end."""
        if self.end == len(self.block) and not self.fill():
            raise StopIteration
        begin, self.end = self.end, self.block.find(b"\n", self.end) + 1 or len(self.block)
        self.count += 1
        line = self.block[begin : self.end]
        try:
            text = line.decode(self._encoding)
        except UnicodeDecodeError:
            text = line.decode(errors="surrogateescape")  # of another encoding the record is malformed
            self.escaped = True
        return text.removeprefix(BOM) if self.number == self.count == 1 else text

    def line(self) -> str:
        """Return the next line without its end; `ValueError` if it is too long or not valid."""
        text = next(self)
        self.check()
        return text.removesuffix("\n").removesuffix("\r")

    @property
    def at_end(self) -> bool:
        """Whether the record starts in the next block, which may not be available yet."""
        return self.start == len(self.block)

    @property
    def marked(self) -> bool:
        """Whether the record is the first of a file, with a byte order mark before it."""
        return self.number == 1 and self.block.startswith(BOM.encode())

    def fill(self) -> bool:
        """Read the next block, and join it to the lines of the current record. Return False at the end of the file."""
        rest = self.block[self.start :]
        if len(rest) > self._longest:
            raise ValueError(self._too_long())
        more = next(self._blocks, b"")
        self.block, self.start, self.end = rest + more, 0, self.end - self.start
        return bool(more)

    def raw(self) -> bytes:
        """Return the bytes of the lines that were read."""
        return self.block[self.start : self.end]

    def check(self) -> None:
        """Raise `ValueError` if the record is too long, or not valid in a strict encoding."""
        if self.end - self.start > self._longest:
            raise ValueError(self._too_long())
        if self.escaped:
            self.check_text()

    def check_text(self) -> None:
        """Raise `ValueError` if the record is not valid in a strict encoding."""
        if self.escaped and self._strict:
            raise ValueError(f"not valid {self._encoding}")

    def _too_long(self) -> str:
        return f"longer than --max-record {self._longest}"

    def back(self) -> None:
        """Read the lines of the current record again."""
        self.end, self.count, self.escaped = self.start, 0, False

    def forward(self) -> None:
        """Begin a record after the lines that were read."""
        self.start = self.end
        self.number += self.count
        self.count, self.escaped = 0, False

    def move(self, start: int, number: int) -> None:
        """Begin a record at `start`, in line `number`."""
        self.start = self.end = start
        self.number, self.count, self.escaped = number, 0, False


# After fewer records, Python reads the rest of a block: each call of the core makes a batch.
_FEW = 128


class LineReader(ABC):
    """Base of the readers of text, CSV and JSON lines. They read files one after the other, as one stream.

    The core reads records up to one that is malformed or of a rare form. That record is read here, with Python's own
    `csv` and `json`, which also report what is wrong with it. Then the core goes on.

    Attributes
    ----------
    delimiter : str
        Character between the fields of a line; empty without fields.
    absent : set of str
        Key fields that no record has had so far.
    inputs : list
        Identities of the files read so far.
    """

    delimiter = ""

    def __init__(self, options: ReaderOptions) -> None:
        self._options = options
        self._strict = options.strict
        self.absent: set[str] = set()
        self.inputs: list[Any] = []

    def batches(self, name: str, advance: Callable[[int], object], *, filter: Filter) -> Iterator[Batch]:
        """Read all records of a file, or of standard input for ``-``.

        `advance` is called with the number of bytes read. The keys are hashes for this filter, or keys that it takes.
        """
        shown = "standard input" if name == "-" else name
        try:
            with closing(Input(name, advance, digest=self._options.digest)) as file:
                yield from self._batches(blocks(file, self._options.longest), shown, filter)
                self.inputs.append(file.identity())
        except OSError as error:
            raise CliError(f"{shown}: {error.strerror or error}") from None
        except DamagedError as error:
            raise CliError(f"{shown}: damaged compressed data: {error}") from None

    def writer(self, output: Output, *, marked: bool) -> LineWriter:
        """Return a writer of records. If they are marked, the field is in their bytes."""
        return LineWriter(output)

    def _batches(self, blocks: Iterator[bytes], name: str, filter: Filter) -> Iterator[Batch]:
        """Yield all records in blocks of lines. Those of a block are yielded before the next block is read."""
        lines, times = Lines(blocks, self._options, strict=self._strict), self._options.time
        gathered = Batch(name, [], [], [], [], self._begin(lines, name))
        core = self._core(filter, self._encoding()) if lines.block else None
        worthwhile = True
        while True:
            if worthwhile or lines.at_end:
                yield gathered._replace(times=array_of(gathered.times) if times else None)
                gathered = Batch(name, [], [], [], [])
                if lines.at_end and not lines.fill():
                    return
                batch = None if core is None or lines.marked else self._read_fast(lines, core, name)
                worthwhile = core is not None and lines.marked
                if batch is not None:
                    worthwhile = len(batch.keys) >= _FEW
                    yield batch
                    lines.move(batch.records.end, batch.records.line(len(batch.keys)))
                    if lines.at_end:
                        continue
            block = lines.block
            try:
                record = self._read(lines)
                if record is not None:
                    key, time = record
                    if times:
                        gathered.times.append(times.read(time))
                    gathered.keys.append(key)
                    gathered.records.append(lines.raw())
                    gathered.numbers.append(lines.number)
            except ValueError as error:
                self._options.malformed(f"{name}, line {lines.number}", str(error))
            lines.forward()
            worthwhile = worthwhile or lines.block is not block

    def _read_fast(self, lines: Lines, core: RecordReader, name: str) -> Batch | None:
        """Read records of the block by the core. Return None if the core does not read the first."""
        times = self._options.time
        records, keys, given, met = core.read(lines.block, lines.start, lines.number, times is not None and times.plain)
        if not len(records):
            return None
        self.absent.difference_update(field for i, field in enumerate(self._options.key) if met >> i & 1)
        if times is None or not isinstance(given, list):
            return Batch(name, keys, None if times is None else given, records)
        moments: list[int] = []
        try:
            moments.extend(times.read(self._time(raw)) for raw in given)
        except ValueError:  # reported when this record is read here
            records, keys = records[: len(moments)], keys[: len(moments)]
        return Batch(name, keys, array_of(moments), records) if moments else None

    def _encoding(self) -> str:
        """Return the encoding for the core: UTF-8, or the letter of each byte that is a letter by itself."""
        encoding = self._options.encoding
        if codecs.lookup(encoding).name == "utf-8":
            return "strict utf-8" if self._strict else "utf-8"
        letters = [bytes([byte]).decode(encoding, "replace") for byte in range(256)]
        return "".join(letter if len(letter) == 1 else "\ufffd" for letter in letters)

    def _begin(self, lines: Lines, name: str) -> bytes:
        """Read the header, if files have one. Return the bytes to write before the records."""
        lines.fill()
        return b""

    @abstractmethod
    def _core(self, filter: Filter, encoding: str) -> RecordReader | None:
        """Return the core's reader, or None if it has none for these options."""

    @abstractmethod
    def _read(self, lines: Lines) -> tuple[object, object] | None:
        """Read the next record: its key, and the value of its time. Return None for a comment.

        Raises
        ------
        ValueError
            If the record is malformed. The lines that were read are skipped.
        """

    def _time(self, raw: bytes) -> object:
        """Return the value of a time in the core's records."""
        return raw.decode("ascii")


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
            self._unended = not lines.endswith(b"\n")
            self._output.flush()

    def close(self) -> None:
        """Do nothing: no line is buffered here, and the stream belongs to the caller."""
