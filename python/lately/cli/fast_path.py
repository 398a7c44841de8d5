"""The fast path: the core reads the records of a whole block.

The core stops at a record that it does not understand. The readers in Python read that record, and report errors with
their place. Keys and times are those of the Python readers, in a twentieth of their time.
"""

from __future__ import annotations

import codecs

from lately.cli.records import Batch, array_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from lately._core import RecordReader
    from lately.cli.records import ReaderOptions

# After fewer records, the Python readers take the rest of the block: each try of the fast path makes a batch.
_FEW = 128

_ENCODINGS = {"utf-8": "utf-8", "iso8859-1": "latin-1"}


class FastPath:
    """Reads records of blocks by the core, as far as it understands them.

    Attributes
    ----------
    met : int
        A bit for each field of the key, set if some record had the field. A JSON record may lack fields.
    """

    def __init__(self, reader: RecordReader | None, options: ReaderOptions, value: Callable[[bytes], object]) -> None:
        """Store the core's reader, or None, and the function that reads the bytes of a time for `Times.read`."""
        self._reader = reader
        self._options = options
        self._value = value
        self.met = 0

    def read(self, name: str, block: bytes, start: int, number: int) -> Batch | None:
        """Read records from `start` on, where line `number` begins. Return None if the first is not understood."""
        if self._reader is None or start == len(block):
            return None
        times = self._options.time
        lines, keys, given, met = self._reader.read(block, start, number, times is not None and times.plain)
        if not len(lines):
            return None
        self.met |= met
        if not isinstance(given, list):
            return Batch(name, keys, given, lines)
        if times is None:
            return Batch(name, keys, None, lines)
        moments: list[int] = []
        try:
            moments.extend(times.read(self._value(raw)) for raw in given)
        except ValueError:  # the Python reader reports it
            lines, keys = lines[: len(moments)], keys[: len(moments)]
        return Batch(name, keys, array_of(moments), lines) if moments else None

    def is_worthwhile(self, batch: Batch) -> bool:
        """Whether to try the fast path again after the record at which this batch ended."""
        return len(batch.keys) >= _FEW


def encoding_of(name: str, *, strict: bool) -> str:
    """Return the core's name of an encoding; "ascii" for one that it does not have, since all extend ASCII."""
    known = _ENCODINGS.get(codecs.lookup(name).name, "ascii")
    return f"strict {known}" if known == "utf-8" and strict else known


def fields_met(fast_path: FastPath, fields: list[str]) -> set[str]:
    """Return the fields of the key that some record had."""
    return {field for i, field in enumerate(fields) if fast_path.met >> i & 1}
