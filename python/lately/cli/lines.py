"""Records that are lines of plain text."""

from __future__ import annotations

from io import BytesIO
from itertools import compress

from lately._core import RecordReader
from lately.cli.at_once import AtOnce, encoding_of
from lately.cli.records import BOM, Batch, LineReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from lately import Filter
    from lately.cli.records import Asked


class TextReader(LineReader):
    """Lines; each is its own key."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._strict = asked.strict

    def _batches(self, blocks: Iterator[bytes], name: str, filter: Filter) -> Iterator[Batch]:
        return self._read(blocks, name, self._at_once(filter))

    def _read(self, blocks: Iterator[bytes], name: str, at_once: AtOnce) -> Iterator[Batch]:
        """Read blocks: where the core leaves a line, that alone is read here, or with all of its block behind it."""
        number = 1
        for block in blocks:
            start = 0
            while start < len(block):
                batch = at_once.read(name, block, start, number)
                if batch is not None:
                    yield batch
                    number, start = batch.records.line(len(batch.keys)), batch.records.end
                if start < len(block):
                    end = block.find(b"\n", start) + 1 if batch and at_once.may_go_on(batch) else 0
                    rest = block[start : end or len(block)]
                    yield self._one_by_one(rest, number, name)
                    number, start = number + rest.count(b"\n"), start + len(rest)

    def _at_once(self, filter: Filter) -> AtOnce:
        encoding = encoding_of(self._asked.encoding, strict=self._strict)
        return AtOnce(RecordReader.lines(filter, encoding, self._asked.longest), self._asked, bytes)

    def _one_by_one(self, block: bytes, first: int, name: str) -> Batch:
        numbers, lines, texts = self._decoded(block, first, name)
        return Batch(name, texts, None, lines, numbers)

    def _decoded(self, block: bytes, first: int, name: str) -> tuple[Sequence[int], list[bytes], list[Any]]:
        """Lines of a block: number, bytes, and text or bytes without the end of the line, of each that will do."""
        lines = BytesIO(block).readlines()
        numbers: Sequence[int] = range(first, first + len(lines))
        texts: list[Any] | None = self._texts(block) if len(block) <= self._asked.longest else None
        if texts is None:
            each = [None if self._too_long(line) else self._texts(line) or self._bytes(line) for line in lines]
            for number, line, text in zip(numbers, lines, each, strict=True):
                if text is None:
                    reason = self._too_long(line) or f"not valid {self._asked.encoding}"
                    self._asked.malformed(f"{name}, line {number}", reason)
            sound = [text is not None for text in each]
            numbers, lines = list(compress(numbers, sound)), list(compress(lines, sound))
            texts = [text[0] for text in each if text]
        if texts and numbers[0] == 1 and isinstance(texts[0], str):
            texts[0] = texts[0].removeprefix(BOM)
        return numbers, lines, texts

    def _texts(self, block: bytes) -> list[str] | None:
        """Text of lines, decoded in one go, which is several times faster than each by itself; None if it fails."""
        try:
            text = block.decode(self._asked.encoding)
        except UnicodeDecodeError:
            return None
        texts = text.split("\n")
        if text.endswith("\n"):
            texts.pop()
        return [line.removesuffix("\r") for line in texts] if "\r" in text else texts

    def _bytes(self, line: bytes) -> list[bytes] | None:
        """Bytes of a line that cannot be decoded, if they will do."""
        return None if self._strict else [line.removesuffix(b"\n").removesuffix(b"\r")]
