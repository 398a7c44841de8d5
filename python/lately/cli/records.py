"""Batches of records, and the base of the readers of text, CSV and JSON lines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import closing
from itertools import compress

from lately._core import Records
from lately.cli.errors import CliError, DamagedError
from lately.cli.inputs import Input, blocks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from lately import Filter
    from lately.cli.outputs import Output
    from lately.cli.signals import Stop
    from lately.cli.times import Times

BOM = "\ufeff"  # some editors and spreadsheets begin a file with it; it is not part of the first record


class Batch:
    """Records of one file, in order.

    Attributes
    ----------
    source : str
        Name of the file.
    keys : Any
        Keys, as a filter takes them.
    times : ndarray of int64 or None
        Nanoseconds since 1970; None without --time.
    records : Any
        The records as they were read, to write them again.
    numbers : sequence of int or None
        Numbers of their lines; None if the records are `Records`, which have them.
    head : bytes
        Bytes to write before the first record: the header of CSV.
    unit : str
        "line" or "row": the word before a number in messages.
    """

    __slots__ = ("head", "keys", "numbers", "records", "source", "times", "unit")

    def __init__(
        self,
        source: str,
        keys: Any,
        times: Any,
        records: Any,
        numbers: Sequence[int] | None = None,
        head: bytes = b"",
        unit: str = "line",
    ) -> None:
        self.source = source
        self.keys = keys
        self.times = times
        self.records = records
        self.numbers = numbers
        self.head = head
        self.unit = unit

    def replace(self, **other: Any) -> Batch:
        """Return a batch with other values for these attributes."""
        return Batch(**{name: getattr(self, name) for name in self.__slots__} | other)

    def place(self, i: int) -> str:
        """Return the place of record `i`, for messages."""
        number = self.records.line(i) if self.numbers is None else self.numbers[i]
        return f"{self.source}, {self.unit} {number}"


def array_of(moments: list[int]) -> Any:
    """Return an array of nanoseconds since 1970. (Imports NumPy, which a run without times does not need)."""
    import numpy as np

    return np.array(moments, np.int64)


Marks = bytes
"""A byte for each record of a batch: 1 for the new or chosen records, 0 for the others."""

_OTHERS = bytes.maketrans(b"\0\1", b"\1\0")


def others(marks: Marks) -> Marks:
    """Return the marks of the other records: 0 for 1, and 1 for 0."""
    return marks.translate(_OTHERS)


class Malformed:
    """Handles malformed records: raises an error, or counts and skips them."""

    def __init__(self, skip: bool) -> None:
        self._skip = skip
        self.count = 0
        self.first = ""

    def __call__(self, place: str, reason: str) -> None:
        """Handle a malformed record."""
        if not self._skip:
            raise CliError(f"{place}: {reason} (--skip-bad skips such records)")
        self.first = self.first or f"{place}: {reason}"
        self.count += 1


class ReaderOptions:
    """Options of the readers.

    Attributes
    ----------
    key : list of str
        Fields of the key; empty for the whole record.
    time : Times or None
        How to read the field with the time.
    encoding : str
        Encoding of text.
    strict : bool
        Whether text that is not valid in the encoding is malformed. Otherwise its bytes are its key.
    longest : int
        Most bytes of a record.
    malformed : Malformed
        Called with each malformed record.
    digest : bool
        Whether to identify an input that is not a regular file by a digest.
    """

    def __init__(
        self,
        key: list[str],
        time: Times | None,
        encoding: str,
        strict: bool,
        longest: int,
        malformed: Malformed,
        *,
        digest: bool,
    ) -> None:
        self.key = key
        self.time = time
        self.encoding = encoding
        self.strict = strict
        self.longest = longest
        self.malformed = malformed
        self.digest = digest


def key_of(text: str) -> str | bytes:
    """Return the key of text decoded with ``surrogateescape``: the text, or its bytes if they are not valid."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="surrogateescape")
    return text


class LineReader(ABC):
    """Base of the readers of text, CSV and JSON lines. They read files one after the other, as one stream.

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
        self.absent: set[str] = set()
        self.inputs: list[Any] = []

    def batches(
        self, name: str, advance: Callable[[int], object], stop: Stop | None = None, *, filter: Filter
    ) -> Iterator[Batch]:
        """Read all records of a file, or of standard input for ``-``.

        `advance` is called with the number of bytes read. The keys are hashes for this filter, or keys that it takes.
        With `stop` the file is followed, as by `Input`.
        """
        shown = "standard input" if name == "-" else name
        try:
            with closing(Input(name, advance, digest=self._options.digest, stop=stop)) as file:
                yield from self._batches(blocks(file, self._options.longest), shown, filter)
                self.inputs.append(file.identity())
        except OSError as error:
            raise CliError(f"{shown}: {error.strerror or error}") from None
        except DamagedError as error:
            raise CliError(f"{shown}: damaged compressed data: {error}") from None

    def writer(self, output: Output, *, marked: bool) -> LineWriter:
        """Return a writer of such records. If they are marked, the field is in their bytes."""
        return LineWriter(output)

    @abstractmethod
    def _batches(self, blocks: Iterator[bytes], name: str, filter: Filter) -> Iterator[Batch]:
        """Yield all records in blocks of lines. Those of a block are yielded before the next block is read."""

    def _too_long(self, line: bytes) -> str:
        """Return the reason to reject a record that is too long, or an empty string."""
        return f"longer than --max-record {self._options.longest}" if len(line) > self._options.longest else ""


class Gathered:
    """Collects records of one file into batches."""

    def __init__(self, source: str, head: bytes = b"") -> None:
        self._source = source
        self._head = head
        self._start()

    def _start(self) -> None:
        self._numbers: list[int] = []
        self._keys: list[object] = []
        self._times: list[int] = []
        self._records: list[bytes] = []

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self._numbers)

    def add(self, number: int, key: object, time: int | None, record: bytes) -> None:
        """Add a record."""
        self._numbers.append(number)
        self._keys.append(key)
        if time is not None:
            self._times.append(time)
        self._records.append(record)

    def batch(self) -> Batch:
        """Return the records as a batch, and begin the next batch."""
        times = array_of(self._times) if self._times else None
        batch = Batch(self._source, self._keys, times, self._records, self._numbers, self._head)
        self._head = b""
        self._start()
        return batch


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
