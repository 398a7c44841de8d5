"""Records that are lines of plain text."""

from __future__ import annotations

from contextlib import suppress
from io import BytesIO
from itertools import compress

from lately._core import RecordReader
from lately.cli.at_once import AtOnce, encoding_of
from lately.cli.errors import CliError
from lately.cli.records import BOM, Batch, Gathered, LineReader

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


_BOM = BOM.encode()


def _number(field: str) -> int:
    """Read the number of a word."""
    if field.isascii() and field.isdecimal() and int(field):
        return int(field)
    raise CliError(
        f"--key {field}: text has no names for its fields, only numbers of words, such as 1: for other formats add "
        "--format csv, tsv, zeek, jsonl or parquet"
    )


class WordReader(TextReader):
    """Lines whose key is made of words between blanks: those of the numbers in `key`, counted from 1."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._numbers = [_number(field) for field in asked.key]

    def _batches(self, blocks: Iterator[bytes], name: str, filter: Filter) -> Iterator[Batch]:
        first = 1
        for block in blocks:
            numbers, lines, _ = self._decoded(block, first, name)
            batch = Gathered(name)
            for number, line in zip(numbers, lines, strict=True):
                words = line.removeprefix(_BOM if number == 1 else b"").split()
                if len(words) < max(self._numbers):
                    reason = f"expected at least {max(self._numbers)} words, for --key, got {len(words)}"
                    self._asked.malformed(f"{name}, line {number}", reason)
                else:
                    batch.add(number, self._key(words), None, line)
            yield batch.batch()
            first += block.count(b"\n")

    def _key(self, words: list[bytes]) -> Any:
        key = tuple(self._word(words[number - 1]) for number in self._numbers)
        return key if len(key) > 1 else key[0]

    def _word(self, word: bytes) -> str | bytes:
        """Decode a word; one that is not valid is its bytes."""
        with suppress(UnicodeDecodeError):
            return word.decode(self._asked.encoding)
        return word
