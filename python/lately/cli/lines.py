"""Records that are lines: plain text, and JSON lines."""

import json
from collections.abc import Iterator, Sequence
from itertools import compress, islice
from typing import Any, BinaryIO

from lately.cli.records import BATCH, BOM, Batch, Gathered, LineReader, Malformed, time_of


class TextReader(LineReader):
    """Lines; each is its own key."""

    def _batches(self, file: BinaryIO, name: str) -> Iterator[Batch]:
        for numbers, lines, texts in _blocks(file, name, self._encoding, self._malformed):
            yield Batch(name, numbers, texts, None, lines)


class JsonReader(LineReader):
    """JSON lines: one object each. Without fields, the text of the line is the key."""

    def __init__(self, fields: Sequence[str], time: str | None, encoding: str, malformed: Malformed) -> None:
        super().__init__(fields, time, encoding, malformed)
        self.absent = set(fields)

    def _batches(self, file: BinaryIO, name: str) -> Iterator[Batch]:
        for block in _blocks(file, name, self._encoding, self._malformed):
            gathered = Gathered(name)
            for number, line, text in zip(*block, strict=True):
                try:
                    record = _object(text)
                    key = self._key(record, text) if self._fields else text.strip()
                    time = None if self._time is None else time_of(record.get(self._time), self._time)
                except ValueError as error:
                    self._malformed(f"{name}, line {number}", str(error))
                else:
                    gathered.add(number, key, time, line)
            yield gathered.batch()

    def _key(self, record: dict[str, Any], text: str) -> object:
        values = tuple([record.get(field) for field in self._fields])
        if None in values and not any(field in record for field in self._fields):
            raise ValueError(f"none of the key fields {', '.join(self._fields)} is there")
        for field, value in zip(self._fields, values, strict=True):
            if isinstance(value, dict | list):
                raise ValueError(f"the key field {field} is not a single value")
            # Text decoded from bytes is sound; only an escape can write half a surrogate pair.
            if "\\u" in text and isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
                raise ValueError(f"the key field {field} holds half a surrogate pair, which is no text")
        if self.absent:
            self.absent.difference_update(record)
        return values[0] if len(values) == 1 else values


def _object(text: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}" if text.strip() else "a blank line") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if type(record) is not dict:
        raise ValueError(f"an object is needed, not {type(record).__name__}")
    return record


def _blocks(
    file: BinaryIO, name: str, encoding: str, malformed: Malformed
) -> Iterator[tuple[Sequence[int], list[bytes], list[str]]]:
    """Batches of lines: number, bytes, and text without the end of the line, of each that can be decoded."""
    first = 1
    while lines := list(islice(file, BATCH)):
        numbers: Sequence[int] = range(first, first + len(lines))
        first += len(lines)
        texts = _texts(lines, encoding)
        if texts is None:
            each = [_texts([line], encoding) for line in lines]
            for number, text in zip(numbers, each, strict=True):
                if text is None:
                    malformed(f"{name}, line {number}", f"not valid {encoding}")
            sound = [text is not None for text in each]
            numbers, lines = list(compress(numbers, sound)), list(compress(lines, sound))
            texts = [text[0] for text in each if text]
        if texts and numbers[0] == 1:
            texts[0] = texts[0].removeprefix(BOM)
        yield numbers, lines, texts


def _texts(lines: list[bytes], encoding: str) -> list[str] | None:
    """Text of the lines, decoded in one go, which is several times faster than each by itself; None if it fails."""
    try:
        text = b"".join(lines).decode(encoding)
    except UnicodeDecodeError:
        return None
    texts = text.split("\n")
    if text.endswith("\n"):
        texts.pop()
    return [line.removesuffix("\r") for line in texts] if "\r" in text else texts
