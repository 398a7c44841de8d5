"""The reader of JSON lines: each line is an object."""

from __future__ import annotations

import json

from lately._core import RecordReader
from lately.cli.line_reader import LineReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lately import Filter
    from lately.cli.line_reader import Lines
    from lately.cli.records import ReaderOptions


class JsonReader(LineReader):
    """Reads JSON lines, an object each. Without key fields, the text of the line is the key."""

    def __init__(self, options: ReaderOptions) -> None:
        super().__init__(options)
        self._strict = True  # JSON is text
        self._fields = options.key
        self.absent = set(options.key)

    def _core(self, filter: Filter, encoding: str) -> RecordReader | None:
        time = None if self._options.time is None else self._options.time.field
        return RecordReader.json(filter, encoding, self._options.longest, key=self._fields, time=time)

    def _time(self, raw: bytes) -> object:
        return json.loads(raw)

    def _read(self, lines: Lines) -> tuple[object, object]:
        text = lines.line()
        record, times = _object(text), self._options.time
        key = self._key(record, text) if self._fields else text.strip()
        return key, None if times is None else _found(record, times.field)

    def _key(self, record: dict[str, Any], text: str) -> object:
        values = tuple([_found(record, field) for field in self._fields])
        if values.count(None) == len(values) and all(
            _found(record, field, _ABSENT) is _ABSENT for field in self._fields
        ):
            raise ValueError(f"it has none of the key fields {', '.join(self._fields)}")
        for field, value in zip(self._fields, values, strict=True):
            if isinstance(value, dict | list):
                raise ValueError(f"the key field {field} is not a single value")
            # Decoded text is valid; only an escape can write half a surrogate pair.
            if "\\u" in text and isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
                raise ValueError(f"the key field {field} has half a surrogate pair, which is not text")
        if self.absent:
            self.absent = {field for field in self.absent if _found(record, field, _ABSENT) is _ABSENT}
        return values[0] if len(values) == 1 else values


_ABSENT = object()


def _found(record: dict[str, Any], field: str, absent: object = None) -> Any:
    """Return the value of a field. A name with dots that is not a field leads through nested objects."""
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
        raise ValueError(f"expected an object, got {type(record).__name__}")
    return record
