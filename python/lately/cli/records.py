"""Records of text, CSV and JSON lines: their keys, their times, and their bytes as they came."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import closing
from itertools import compress

from lately._core import Lines
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

BOM = "\ufeff"  # some editors and spreadsheets begin a file with it; it is no part of the first record


class Batch:
    """Records of one file, in order.

    Attributes
    ----------
    source : str
    keys : Any
        What a filter takes.
    times : ndarray of int64 or None
        Nanoseconds since 1970; None where nobody asks.
    records : Any
        What goes out again.
    numbers : sequence of int or None
        Those of their lines; `Lines` know them.
    head : bytes
        What goes out before the first record, once: the header of CSV.
    unit : str
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

    def but(self, **other: Any) -> Batch:
        """Give the same batch but for what is given."""
        return Batch(**{name: getattr(self, name) for name in self.__slots__} | other)

    def place(self, i: int) -> str:
        """Where record `i` stands."""
        number = self.records.line(i) if self.numbers is None else self.numbers[i]
        return f"{self.source}, {self.unit} {number}"


def array_of(moments: list[int]) -> Any:
    """Give nanoseconds since 1970 as an array, which NumPy is imported for: a run without times does without it."""
    import numpy as np

    return np.array(moments, np.int64)


Marks = bytes
"""A byte for each record of a batch: 1 for those that are new or are chosen, 0 for the others."""

_OTHERS = bytes.maketrans(b"\0\1", b"\1\0")


def others(marks: Marks) -> Marks:
    """Mark the others."""
    return marks.translate(_OTHERS)


class Malformed:
    """What becomes of a malformed record: it is an error, or it is counted and passed over."""

    def __init__(self, skip: bool) -> None:
        self._skip = skip
        self.count = 0
        self.first = ""

    def __call__(self, place: str, reason: str) -> None:
        """Report one."""
        if not self._skip:
            raise CliError(f"{place}: {reason} (--skip-bad passes over such records)")
        self.first = self.first or f"{place}: {reason}"
        self.count += 1


class Asked:
    """What the options say of the records.

    Attributes
    ----------
    key : list of str
    time : Times or None
    encoding : str
    strict : bool
        Whether text that is not valid in it is malformed, and does not just have its bytes for a key.
    longest : int
    malformed : Malformed
    digest : bool
        Whether inputs that are no regular files are to be known again.
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
    """Give the key of text decoded with ``surrogateescape``: the text, or its bytes where they are not valid."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="surrogateescape")
    return text


class LineReader(ABC):
    """What the formats made of lines share.

    Files are read one after the other, as one stream. `absent` holds the key fields that no record has had yet, and
    `inputs` what tells the files read so far from others.
    """

    delimiter = ""
    """What stands between the fields of a line."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self.absent: set[str] = set()
        self.inputs: list[Any] = []

    def batches(
        self, name: str, advance: Callable[[int], object], stop: Stop | None = None, *, filter: Filter
    ) -> Iterator[Batch]:
        """Read all records of a file, or of standard input for ``-``; `advance` is told of the bytes read.

        Keys come as that filter sees them, or as it takes them.

        With `stop` the file is followed, as `Input` does.
        """
        shown = "standard input" if name == "-" else name
        try:
            with closing(Input(name, advance, digest=self._asked.digest, stop=stop)) as file:
                yield from self._batches(blocks(file, self._asked.longest), shown, filter)
                self.inputs.append(file.identity())
        except OSError as error:
            raise CliError(f"{shown}: {error.strerror or error}") from None
        except DamagedError as error:
            raise CliError(f"{shown}: damaged compressed data: {error}") from None

    def sink(self, output: Output, *, marked: bool) -> LineSink:
        """Make what writes such records; their bytes hold the mark."""
        return LineSink(output)

    @abstractmethod
    def _batches(self, blocks: Iterator[bytes], name: str, filter: Filter) -> Iterator[Batch]:
        """Read all records of a file that comes in blocks of lines; what is decided in one is given before the next."""

    def _too_long(self, line: bytes) -> str:
        """Say that a record is too long, or nothing."""
        return f"longer than --max-record {self._asked.longest}" if len(line) > self._asked.longest else ""


class Gathered:
    """Records of one file until they are a batch."""

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
        """Count the records gathered."""
        return len(self._numbers)

    def add(self, number: int, key: object, time: int | None, record: bytes) -> None:
        """Gather one."""
        self._numbers.append(number)
        self._keys.append(key)
        if time is not None:
            self._times.append(time)
        self._records.append(record)

    def batch(self) -> Batch:
        """Give what has been gathered; the next batch begins."""
        times = array_of(self._times) if self._times else None
        batch = Batch(self._source, self._keys, times, self._records, self._numbers, self._head)
        self._head = b""
        self._start()
        return batch


class LineSink:
    """Lines to a stream, as they came; only one that lacked its end, at the end of a file, gets it if others follow."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._unended = False

    def write(self, batch: Batch, kept: Marks) -> None:
        """Write those lines of a batch that are kept, and hand them on."""
        records = batch.records
        chosen = records.chosen(kept) if isinstance(records, Lines) else b"".join(compress(records, kept))
        lines = batch.head + chosen
        if lines:
            self._output.stream.write(b"\n" + lines if self._unended else lines)
            self._unended = not lines.endswith(b"\n")
            self._output.flush()

    def close(self) -> None:
        """Nothing waits here; the stream is not this sink's to close."""
