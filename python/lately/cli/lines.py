"""Records that are lines: plain text, and JSON lines."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from itertools import compress
from typing import Any

from lately import Filter
from lately._core import RecordReader
from lately.cli.at_once import AtOnce, fields_met, reader
from lately.cli.records import BOM, Asked, Batch, Gathered, LineReader


class TextReader(LineReader):
    """Lines; each is its own key."""

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
        return AtOnce(reader(RecordReader.lines, filter, self._asked), self._asked, bytes)

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
        return None if self._asked.strict else [line.removesuffix(b"\n").removesuffix(b"\r")]


class JsonReader(TextReader):
    """JSON lines: one object each. Without fields, the text of the line is the key."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(replace(asked, strict=True))  # JSON is UTF-8
        self._fields = asked.key
        self.absent = set(asked.key)

    def _at_once(self, filter: Filter) -> AtOnce:
        time = None if self._asked.time is None else self._asked.time.field
        made = reader(RecordReader.json, filter, self._asked, key=self._fields, time=time)
        return AtOnce(made, self._asked, json.loads)

    def _read(self, blocks: Iterator[bytes], name: str, at_once: AtOnce) -> Iterator[Batch]:
        for batch in super()._read(blocks, name, at_once):
            self.absent -= fields_met(at_once, self._fields)
            yield batch

    def _one_by_one(self, block: bytes, first: int, name: str) -> Batch:
        times = self._asked.time
        gathered = Gathered(name)
        for number, line, text in zip(*self._decoded(block, first, name), strict=True):
            try:
                record = _object(text)
                key = self._key(record, text) if self._fields else text.strip()
                time = None if times is None else times.read(_found(record, times.field))
            except ValueError as error:
                self._asked.malformed(f"{name}, line {number}", str(error))
            else:
                gathered.add(number, key, time, line)
        return gathered.batch()

    def _key(self, record: dict[str, Any], text: str) -> object:
        values = tuple([_found(record, field) for field in self._fields])
        if values.count(None) == len(values) and all(
            _found(record, field, _ABSENT) is _ABSENT for field in self._fields
        ):
            raise ValueError(f"none of the key fields {', '.join(self._fields)} is there")
        for field, value in zip(self._fields, values, strict=True):
            if isinstance(value, dict | list):
                raise ValueError(f"the key field {field} is not a single value")
            # Text decoded from bytes is sound; only an escape can write half a surrogate pair.
            if "\\u" in text and isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
                raise ValueError(f"the key field {field} holds half a surrogate pair, which is no text")
        if self.absent:
            self.absent = {field for field in self.absent if _found(record, field, _ABSENT) is _ABSENT}
        return values[0] if len(values) == 1 else values


_ABSENT = object()


def _found(record: dict[str, Any], field: str, absent: object = None) -> Any:
    """Value of a field, or of one within another if its name has dots and is none by itself."""
    if field in record or "." not in field:
        return record.get(field, absent)
    value: Any = record
    for name in field.split("."):
        value = value.get(name, absent) if isinstance(value, dict) else absent
    return value


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
