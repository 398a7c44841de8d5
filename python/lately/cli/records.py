"""Batches of records, malformed records, and the options of the readers."""

from __future__ import annotations

from collections import namedtuple

from lately.cli.errors import CliError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BOM = "\ufeff"  # some editors and spreadsheets begin a file with it; it is not part of the first record


FIELD = "repeat"
"""Name of the field of ``--mark``, which states whether a record is a repeat."""

_Batch = namedtuple("_Batch", "source keys times records numbers head unit", defaults=(None, b"", "line"))


class Batch(_Batch):
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

    __slots__ = ()

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


_ReaderOptions = namedtuple("_ReaderOptions", "key time encoding strict longest malformed digest")


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
    longest : int
        Greatest number of bytes of a record.
    malformed : Malformed
        Called with each malformed record.
    digest : bool
        Whether to identify an input that is not a regular file by a digest.
    """

    __slots__ = ()
