"""The reader of plain text: each line is a record."""

from __future__ import annotations

from lately._core import RecordReader
from lately.cli.line_reader import LineReader, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lately import Filter
    from lately.cli.line_reader import Lines


class TextReader(LineReader):
    """Reads lines. The text of a line is its key."""

    def _core(self, filter: Filter, encoding: str) -> RecordReader | None:
        return RecordReader.lines(filter, encoding, self._options.longest)

    def _read(self, lines: Lines) -> tuple[object, object]:
        text = line_of(lines)
        return key_of(text) if lines.escaped else text, None


def line_of(lines: Lines) -> str:
    """Return the next line without its end; `ValueError` if it is too long or not valid."""
    text = next(lines)
    lines.check()
    return text.removesuffix("\n").removesuffix("\r")
