"""Batches of records, malformed records, and the options of the readers."""

from __future__ import annotations

import re
from collections import namedtuple
from itertools import compress

from lately._core import Records
from lately.cli.errors import CliError, optional

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

BOM = "\ufeff"  # some editors and spreadsheets begin a file with it; it is not part of the first record


FIELD = "repeat"
"""Name of the field of ``--mark``, which states whether a record is a repeat."""

Marks = bytes
"""A byte for each record of a batch: 1 for the new or chosen records, 0 for the others."""

_Batch = namedtuple("_Batch", "source keys times records numbers head unit", defaults=(None, b"", "line"))


class Batch(_Batch):
    """Records of one file, in order.

    Attributes
    ----------
    source : str
        Name of the file.
    keys : RecordHashes
        The hashes of their keys.
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

    __slots__ = ()

    def place(self, i: int) -> str:
        """Return the place of record `i`, for messages."""
        number = self.records.line(i) if self.numbers is None else self.numbers[i]
        return f"{self.source}, {self.unit} {number}"

    def select(self, which: Marks) -> Batch:
        """Return the records whose byte in `which` is 1."""
        times = self.times
        if times is not None:
            import numpy as np

            times = times[np.frombuffer(which, np.bool_)]
        lines = isinstance(self.records, Records)
        records = self.records.select(which) if lines else rows_of(self.records, which)
        numbers = None if self.numbers is None else list(compress(self.numbers, which))
        return self._replace(keys=self.keys.select(which), times=times, records=records, numbers=numbers)


_OTHERS = bytes.maketrans(b"\0\1", b"\1\0")


def others(marks: Marks) -> Marks:
    """Return the marks of the other records: 0 for 1, and 1 for 0."""
    return marks.translate(_OTHERS)


def bools(marks: Marks) -> Any:
    """Return an Arrow array. (``pyarrow.array`` would import pandas, to check the type of its argument)."""
    arrow = optional("pyarrow", "Parquet")
    return arrow.Array.from_buffers(arrow.uint8(), len(marks), [None, arrow.py_buffer(marks)]).cast(arrow.bool_())


def rows_of(table: Any, which: Marks) -> Any:
    """Return the rows whose byte in `which` is 1, also of views and runs, for which pyarrow has no filter."""
    arrow = optional("pyarrow", "Parquet")
    try:
        return table.filter(bools(which))
    except arrow.ArrowNotImplementedError:
        runs = [table.slice(run.start(), run.end() - run.start()) for run in re.finditer(b"\1+", which)]
        columns = zip(*(run.columns for run in runs or [table.slice(0, 0)]), strict=True)
        return arrow.RecordBatch.from_arrays(list(map(arrow.concat_arrays, columns)), schema=table.schema)


class Malformed:
    """Handles malformed records: raises an error, or counts and skips them."""

    def __init__(self, skip: bool) -> None:
        self.skip = skip
        self.count = 0
        self.first = ""

    def __call__(self, place: str, reason: str, count: int = 1) -> None:
        """Handle malformed records, of which the first lies at a place."""
        if not self.skip:
            # Where an option reads the times, --skip-bad would skip all records.
            hint = "" if "add --time-" in reason else " (--skip-bad skips such records)"
            raise CliError(f"{place}: {reason}{hint}")
        self.first = self.first or f"{place}: {reason}"
        self.count += count


def without(batch: Batch, faults: list[tuple[int, str]], malformed: Malformed) -> Iterator[Batch]:
    """Yield a batch without the malformed records in `faults`: the index of each, and what is wrong with it."""
    which = bytearray(b"\1" * len(batch.records))
    for i, reason in faults:
        if not malformed.skip:  # the records before it are written
            which[i:] = bytes(len(which) - i)
            yield batch.select(bytes(which))
        malformed(batch.place(i), reason)
        which[i] = 0
    yield batch.select(bytes(which)) if faults else batch


_ReaderOptions = namedtuple("_ReaderOptions", "key time encoding strict ignore_case longest malformed digest")


class ReaderOptions(_ReaderOptions):
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
    ignore_case : bool
        Whether keys are compared in lower case.
    longest : int
        Greatest number of bytes of a record.
    malformed : Malformed
        Called with each malformed record.
    digest : bool
        Whether to identify an input that is not a regular file by a digest.
    """

    __slots__ = ()
