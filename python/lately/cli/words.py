"""The reader of plain text with key fields: words between blanks."""

from __future__ import annotations

from contextlib import suppress

from lately.cli.errors import UsageError
from lately.cli.lines import TextReader
from lately.cli.records import BOM, Batch, Gathered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from lately import Filter
    from lately.cli.records import ReaderOptions

_BOM = BOM.encode()


def _number(field: str) -> int:
    """Read the number of a word in ``--key``."""
    if field.isascii() and field.isdecimal() and int(field):
        return int(field)
    raise UsageError(
        f"--key {field}: text has no names for its fields, only numbers of words, such as 1: for other formats add "
        "--format csv, tsv, zeek, jsonl or parquet"
    )


class WordReader(TextReader):
    """Reads lines. Their key is made of words between blanks, by the numbers in the options, counted from 1."""

    def __init__(self, options: ReaderOptions) -> None:
        super().__init__(options)
        self._numbers = [_number(field) for field in options.key]

    def _batches(self, blocks: Iterator[bytes], name: str, filter: Filter) -> Iterator[Batch]:
        first = 1
        for block in blocks:
            numbers, lines, _ = self._decoded(block, first, name)
            batch = Gathered(name)
            for number, line in zip(numbers, lines, strict=True):
                words = line.removeprefix(_BOM if number == 1 else b"").split()
                if len(words) < max(self._numbers):
                    reason = f"expected at least {max(self._numbers)} words, for --key, got {len(words)}"
                    self._options.malformed(f"{name}, line {number}", reason)
                else:
                    batch.add(number, self._key(words), None, line)
            yield batch.batch()
            first += block.count(b"\n")

    def _key(self, words: list[bytes]) -> Any:
        key = tuple(self._word(words[number - 1]) for number in self._numbers)
        return key if len(key) > 1 else key[0]

    def _word(self, word: bytes) -> str | bytes:
        """Return the text of a word, or its bytes if it is not valid."""
        with suppress(UnicodeDecodeError):
            return word.decode(self._options.encoding)
        return word
