"""Records that are JSON, an object a line."""

from __future__ import annotations

import json

from lately._core import RecordReader
from lately.cli.at_once import AtOnce, encoding_of, fields_met
from lately.cli.lines import TextReader
from lately.cli.records import Gathered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from lately import Filter
    from lately.cli.records import Asked, Batch


class JsonReader(TextReader):
    """JSON lines: one object each. Without fields, the text of the line is the key."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._strict = True  # JSON is UTF-8
        self._fields = asked.key
        self.absent = set(asked.key)

    def _at_once(self, filter: Filter) -> AtOnce:
        time = None if self._asked.time is None else self._asked.time.field
        encoding = encoding_of(self._asked.encoding, strict=True)
        made = RecordReader.json(filter, encoding, self._asked.longest, key=self._fields, time=time)
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
