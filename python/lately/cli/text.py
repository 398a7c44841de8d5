"""The readers of plain text: each line is a record, whose key is the line, or words of it."""

from contextlib import suppress

from lately import Filter
from lately._core import RecordReader
from lately.cli.errors import UsageError
from lately.cli.line_reader import LineReader, Lines, key_of
from lately.cli.records import BOM, ReaderOptions

_BOM = BOM.encode()


class TextReader(LineReader):
    """Reads lines. The text of a line is its key."""

    def _core(self, filter: Filter, encoding: str) -> RecordReader | None:
        return RecordReader.lines(filter, encoding, self._options.longest)

    def _read(self, lines: Lines) -> tuple[object, object]:
        text = lines.line()
        return key_of(text) if lines.escaped else text, None


class WordReader(LineReader):
    """Reads lines. Their key is made of words between blanks, by the numbers in the options, counted from 1."""

    def __init__(self, options: ReaderOptions) -> None:
        super().__init__(options)
        self._numbers = [_number(field) for field in options.key]

    def _core(self, filter: Filter, encoding: str) -> None:
        return None

    def _read(self, lines: Lines) -> tuple[object, object]:
        lines.line()
        words = lines.raw().removeprefix(_BOM if lines.number == 1 else b"").split()
        if len(words) < max(self._numbers):
            raise ValueError(f"expected at least {max(self._numbers)} words, for --key, got {len(words)}")
        key = tuple([self._word(words[number - 1]) for number in self._numbers])
        return key if len(key) > 1 else key[0], None

    def _word(self, word: bytes) -> str | bytes:
        """Return the text of a word, or its bytes if it is not valid."""
        with suppress(UnicodeDecodeError):
            return word.decode(self._options.encoding)
        return word


def _number(field: str) -> int:
    """Read the number of a word in ``--key``."""
    if field.isascii() and field.isdecimal() and int(field):
        return int(field)
    raise UsageError(
        f"--key {field}: text has no names for its fields, only numbers of words, such as 1: for other formats add "
        "--format csv, tsv, zeek, jsonl or parquet"
    )
