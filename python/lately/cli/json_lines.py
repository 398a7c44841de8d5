"""The reader of JSON lines: each line is an object."""

from __future__ import annotations

import json

from lately._core import RecordReader
from lately.cli.fast_path import FastPath, encoding_of, fields_met
from lately.cli.lines import TextReader
from lately.cli.records import Gathered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from lately import Filter
    from lately.cli.records import Batch, ReaderOptions


class JsonReader(TextReader):
    """Reads JSON lines, an object each. Without key fields, the text of the line is the key."""

    def __init__(self, options: ReaderOptions) -> None:
        super().__init__(options)
        self._strict = True  # JSON is UTF-8
        self._fields = options.key
        self.absent = set(options.key)

    def _fast_path(self, filter: Filter) -> FastPath:
        time = None if self._options.time is None else self._options.time.field
        encoding = encoding_of(self._options.encoding, strict=True)
        made = RecordReader.json(filter, encoding, self._options.longest, key=self._fields, time=time)
        return FastPath(made, self._options, json.loads)

    def _read(self, blocks: Iterator[bytes], name: str, fast_path: FastPath) -> Iterator[Batch]:
        for batch in super()._read(blocks, name, fast_path):
            self.absent -= fields_met(fast_path, self._fields)
            yield batch

    def _slowly(self, block: bytes, first: int, name: str) -> Batch:
        times = self._options.time
        gathered = Gathered(name)
        for number, line, text in zip(*self._decoded(block, first, name), strict=True):
            try:
                record = _object(text)
                key = self._key(record, text) if self._fields else text.strip()
                time = None if times is None else times.read(_found(record, times.field))
            except ValueError as error:
                self._options.malformed(f"{name}, line {number}", str(error))
            else:
                gathered.add(number, key, time, line)
        return gathered.batch()

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
