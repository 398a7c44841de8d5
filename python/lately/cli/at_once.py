"""Blocks of records read at once, by the core.

It takes what it understands, as far as that goes, and says nothing of the rest: that is left to the readers that take
records one by one, which say what is wrong where. The answers are theirs, at a twentieth of the time.
"""

from __future__ import annotations

import codecs

from lately.cli.records import Batch, array_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from lately._core import RecordReader
    from lately.cli.records import Asked

# Where fewer records are taken, it does not pay to try again within the block: what is found becomes a batch.
_FEW = 128

_ENCODINGS = {"utf-8": "utf-8", "iso8859-1": "latin-1"}


class AtOnce:
    """Takes the records of blocks as far as the core understands them.

    Attributes
    ----------
    met : int
        By bits, which fields of the key some record had; JSON's may lack some.
    """

    def __init__(self, reader: RecordReader | None, asked: Asked, value: Callable[[bytes], object]) -> None:
        """Take what reads keys, and how the bytes of a time become what `Times.read` takes."""
        self._reader = reader
        self._asked = asked
        self._value = value
        self.met = 0

    def read(self, name: str, block: bytes, start: int, number: int) -> Batch | None:
        """Read records from a place of the block on, where the line of this number begins; nothing if it takes none."""
        if self._reader is None or start == len(block):
            return None
        times = self._asked.time
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
        except ValueError:  # whoever comes next says so
            lines, keys = lines[: len(moments)], keys[: len(moments)]
        return Batch(name, keys, array_of(moments), lines) if moments else None

    def may_go_on(self, batch: Batch) -> bool:
        """Whether to try again behind what comes after a batch."""
        return len(batch.keys) >= _FEW


def encoding_of(name: str, *, strict: bool) -> str:
    """Tell how the core is to read text: of encodings that it does not know, what all share with ASCII."""
    known = _ENCODINGS.get(codecs.lookup(name).name, "ascii")
    return f"strict {known}" if known == "utf-8" and strict else known


def fields_met(batches: AtOnce, fields: list[str]) -> set[str]:
    """Name the fields of the key that some record had."""
    return {field for i, field in enumerate(fields) if batches.met >> i & 1}
