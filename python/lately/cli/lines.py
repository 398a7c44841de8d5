"""The reader of plain text: each line is a record."""

from __future__ import annotations

from io import BytesIO
from itertools import compress

from lately._core import RecordReader
from lately.cli.fast_path import FastPath, encoding_of
from lately.cli.records import BOM, Batch, LineReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from lately import Filter
    from lately.cli.records import ReaderOptions


class TextReader(LineReader):
    """Reads lines. The text of a line is its key."""

    def __init__(self, options: ReaderOptions) -> None:
        super().__init__(options)
        self._strict = options.strict

    def _batches(self, blocks: Iterator[bytes], name: str, filter: Filter) -> Iterator[Batch]:
        return self._read(blocks, name, self._fast_path(filter))

    def _read(self, blocks: Iterator[bytes], name: str, fast_path: FastPath) -> Iterator[Batch]:
        """Read blocks. The line at which the fast path stops is read here: alone, or with the rest of its block."""
        number = 1
        for block in blocks:
            start = 0
            while start < len(block):
                batch = fast_path.read(name, block, start, number)
                if batch is not None:
                    yield batch
                    number, start = batch.records.line(len(batch.keys)), batch.records.end
                if start < len(block):
                    end = block.find(b"\n", start) + 1 if batch and fast_path.is_worthwhile(batch) else 0
                    rest = block[start : end or len(block)]
                    yield self._slowly(rest, number, name)
                    number, start = number + rest.count(b"\n"), start + len(rest)

    def _fast_path(self, filter: Filter) -> FastPath:
        encoding = encoding_of(self._options.encoding, strict=self._strict)
        return FastPath(RecordReader.lines(filter, encoding, self._options.longest), self._options, bytes)

    def _slowly(self, block: bytes, first: int, name: str) -> Batch:
        """Read lines without the core; `first` is the number of the first line."""
        numbers, lines, texts = self._decoded(block, first, name)
        return Batch(name, texts, None, lines, numbers)

    def _decoded(self, block: bytes, first: int, name: str) -> tuple[Sequence[int], list[bytes], list[Any]]:
        """Return numbers, bytes and texts of the valid lines; a text has no end of line, and may be bytes."""
        lines = BytesIO(block).readlines()
        numbers: Sequence[int] = range(first, first + len(lines))
        texts: list[Any] | None = self._texts(block) if len(block) <= self._options.longest else None
        if texts is None:
            each = [None if self._too_long(line) else self._texts(line) or self._bytes(line) for line in lines]
            for number, line, text in zip(numbers, lines, each, strict=True):
                if text is None:
                    reason = self._too_long(line) or f"not valid {self._options.encoding}"
                    self._options.malformed(f"{name}, line {number}", reason)
            sound = [text is not None for text in each]
            numbers, lines = list(compress(numbers, sound)), list(compress(lines, sound))
            texts = [text[0] for text in each if text]
        if texts and numbers[0] == 1 and isinstance(texts[0], str):
            texts[0] = texts[0].removeprefix(BOM)
        return numbers, lines, texts

    def _texts(self, block: bytes) -> list[str] | None:
        """Decode lines together, which is several times faster than one after the other; None if one is not valid."""
        try:
            text = block.decode(self._options.encoding)
        except UnicodeDecodeError:
            return None
        texts = text.split("\n")
        if text.endswith("\n"):
            texts.pop()
        return [line.removesuffix("\r") for line in texts] if "\r" in text else texts

    def _bytes(self, line: bytes) -> list[bytes] | None:
        """Return the bytes of a line that cannot be decoded, or None if such a line is malformed."""
        return None if self._strict else [line.removesuffix(b"\n").removesuffix(b"\r")]
